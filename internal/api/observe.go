package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/go-chi/chi/v5"
)

func newRouteContext() *chi.Context { return chi.NewRouteContext() }

// recorder remembers the status that was answered.
type recorder struct {
	http.ResponseWriter
	status int
}

// WriteHeader keeps the first final status.
func (r *recorder) WriteHeader(status int) {
	if r.status == 0 && (status >= 200 || status == http.StatusSwitchingProtocols) {
		r.status = status
	}
	r.ResponseWriter.WriteHeader(status)
}

// Write counts as status 200 if none was written.
func (r *recorder) Write(b []byte) (int, error) {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	return r.ResponseWriter.Write(b)
}

// Unwrap lets the socket behind be reached.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// observe sets what every answer carries, and logs every request: never its
// query, headers or body.
func (a *API) observe(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := a.c.Clock.Now()
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-store")
		c := &call{}
		rec := &recorder{ResponseWriter: w}
		ctx := context.WithValue(r.Context(), callKey{}, c)
		defer func() {
			pattern := chi.RouteContext(ctx).RoutePattern()
			level := slog.LevelInfo
			if pattern == "/healthz" || pattern == "/readyz" {
				level = slog.LevelDebug
			}
			a.log.LogAttrs(ctx, level, "request", slog.String("method", known(r.Method)), slog.String("path", pattern), slog.Int("status", rec.status),
				slog.Float64("ms", float64(a.c.Clock.Now().Sub(began))/float64(time.Millisecond)), slog.String("key", c.by.KeyID))
		}()
		next.ServeHTTP(rec, r.WithContext(ctx))
	})
}

// known keeps made-up methods out of the log.
func known(method string) string {
	switch method {
	case "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS":
		return method
	}
	return "other"
}

// recover answers a panic with status 500 and logs where it came from.
func (a *API) recover(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			v := recover()
			if v == nil {
				return
			}
			if err, ok := v.(error); ok && errors.Is(err, http.ErrAbortHandler) {
				panic(v)
			}
			what := fmt.Sprintf("a %T", v) // its text may hold what was sent
			if e, ok := v.(runtime.Error); ok {
				what = e.Error()
			}
			a.log.LogAttrs(r.Context(), slog.LevelError, "panic", slog.String("what", what), slog.String("stack", string(debug.Stack())))
			if rec, ok := w.(*recorder); !ok || rec.status == 0 {
				internal().write(w)
			}
		}()
		next.ServeHTTP(w, r)
	})
}
