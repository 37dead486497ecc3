package api

import (
	"bufio"
	"net"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/longstop-dev/longstop/internal/flow"
)

// around does what every request needs: headers, a line in the log without
// query and headers, and an end to panics.
func (f *face) around(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		rec := &recorder{ResponseWriter: w}
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
		defer func() {
			if v := recover(); v != nil && v != http.ErrAbortHandler {
				f.Log.Error("a handler panicked", "path", pattern(r), "panic", v, "stack", string(debug.Stack()))
				if rec.status == 0 {
					write(rec, r, flow.Errorf(flow.CodeInternal, "something went wrong here").Right("the server's log says what"))
				}
			}
			f.Log.Debug("request", "method", r.Method, "path", pattern(r), "status", rec.status, "ms", time.Since(began).Milliseconds())
		}()
		next.ServeHTTP(rec, r)
	})
}

// pattern is the path as it was mounted, or as it was sent if nothing is.
func pattern(r *http.Request) string {
	if c := chi.RouteContext(r.Context()); c != nil && c.RoutePattern() != "" {
		return c.RoutePattern()
	}
	return r.URL.Path
}

// recorder remembers the status that was sent.
type recorder struct {
	http.ResponseWriter
	status int
}

// WriteHeader notes the status.
func (r *recorder) WriteHeader(status int) {
	if r.status == 0 {
		r.status = status
	}
	r.ResponseWriter.WriteHeader(status)
}

// Write notes that a body without a status is a success.
func (r *recorder) Write(b []byte) (int, error) {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	return r.ResponseWriter.Write(b)
}

// Flush sends what is buffered, for event streams.
func (r *recorder) Flush() { _ = http.NewResponseController(r.ResponseWriter).Flush() }

// Hijack hands the connection over, for WebSockets.
func (r *recorder) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	r.status = http.StatusSwitchingProtocols
	return http.NewResponseController(r.ResponseWriter).Hijack()
}

// Unwrap lets http.ResponseController through.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }
