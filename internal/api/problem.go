package api

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strings"

	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/secret"
)

// Problem is how every error is answered: application/problem+json of RFC
// 9457, with what would be right. It never repeats what was sent.
type Problem struct {
	Type   string         `json:"type" doc:"urn:longstop:error: and the code."`
	Title  string         `json:"title" doc:"The status in words."`
	Status int            `json:"status"`
	Detail string         `json:"detail" doc:"What is wrong."`
	Code   flow.Code      `json:"code" enum:"invalid,unauthenticated,forbidden,not_found,conflict,stale,too_large,rate_limited,unavailable,internal"`
	Field  string         `json:"field,omitempty" doc:"Where."`
	Fix    string         `json:"fix,omitempty" doc:"What would be right."`
	Errors []flow.Problem `json:"errors,omitempty" doc:"Each thing that is wrong."`

	header http.Header
}

// Error is what is wrong.
func (p *Problem) Error() string { return p.Detail }

// GetStatus is the HTTP status.
func (p *Problem) GetStatus() int { return p.Status }

// GetHeaders are the headers that go with the answer.
func (p *Problem) GetHeaders() http.Header { return p.header }

// ContentType is that of problems, whatever was asked for.
func (p *Problem) ContentType(string) string { return "application/problem+json" }

// statusOf is the one table of codes.
func statusOf(code flow.Code) int {
	switch code {
	case flow.CodeInvalid:
		return http.StatusUnprocessableEntity
	case flow.CodeUnauthenticated:
		return http.StatusUnauthorized
	case flow.CodeForbidden:
		return http.StatusForbidden
	case flow.CodeNotFound:
		return http.StatusNotFound
	case flow.CodeConflict, flow.CodeStale:
		return http.StatusConflict
	case flow.CodeTooLarge:
		return http.StatusRequestEntityTooLarge
	case flow.CodeRateLimited:
		return http.StatusTooManyRequests
	case flow.CodeUnavailable:
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}

// codeOf is the table read the other way, for what the router or the decoder
// refuses with a status of its own.
func codeOf(status int) flow.Code {
	switch status {
	case http.StatusUnauthorized:
		return flow.CodeUnauthenticated
	case http.StatusForbidden:
		return flow.CodeForbidden
	case http.StatusNotFound:
		return flow.CodeNotFound
	case http.StatusConflict:
		return flow.CodeConflict
	case http.StatusRequestEntityTooLarge:
		return flow.CodeTooLarge
	case http.StatusTooManyRequests:
		return flow.CodeRateLimited
	case http.StatusServiceUnavailable:
		return flow.CodeUnavailable
	}
	if status >= 500 {
		return flow.CodeInternal
	}
	return flow.CodeInvalid
}

// refuse makes a Problem with a status of its own.
func refuse(status int, detail, field, fix string) *Problem {
	code := codeOf(status)
	return &Problem{Type: "urn:longstop:error:" + string(code), Title: http.StatusText(status), Status: status,
		Detail: detail, Code: code, Field: field, Fix: fix}
}

// problemOf turns any error into what is sent for it. What is not ours to
// tell stays out of it.
func problemOf(err error) *Problem {
	var p *Problem
	if errors.As(err, &p) {
		return p
	}
	var e *flow.Error
	if !errors.As(err, &e) {
		if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
			return refuse(http.StatusServiceUnavailable, "the request was given up before it was answered", "", "send it again")
		}
		return internal()
	}
	if e.Code == flow.CodeInternal {
		return internal()
	}
	p = refuse(statusOf(e.Code), e.Message, e.Field, e.Fix)
	p.Code, p.Type, p.Errors = e.Code, "urn:longstop:error:"+string(e.Code), e.Problems
	switch e.Code {
	case flow.CodeUnauthenticated:
		p.header = http.Header{"Www-Authenticate": {"Bearer"}}
	case flow.CodeRateLimited:
		p.header = http.Header{"Retry-After": {"5"}}
	}
	return p
}

func internal() *Problem {
	return refuse(http.StatusInternalServerError, "something went wrong on our side", "", "the server's log says more; tell its operator when it was")
}

// explain logs what an error's answer leaves out.
func (a *API) explain(ctx context.Context, op string, err error, p *Problem, m *secret.Masker) {
	level := slog.LevelDebug
	if p.Status >= 500 && ctx.Err() == nil {
		level = slog.LevelError
	}
	attrs := []slog.Attr{slog.String("op", op), slog.Int("status", p.Status), slog.String("error", m.Text(err.Error()))}
	var e *flow.Error
	if errors.As(err, &e) && e.Err != nil {
		attrs = append(attrs, slog.String("cause", m.Text(e.Err.Error())))
	}
	a.log.LogAttrs(ctx, level, "request refused", attrs...)
}

// write sends the problem.
func (p *Problem) write(w http.ResponseWriter) {
	for name, values := range p.header {
		w.Header()[name] = values
	}
	w.Header().Set("Content-Type", p.ContentType(""))
	w.WriteHeader(p.Status)
	_ = writeJSON(w, p)
}

func writeJSON(w http.ResponseWriter, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// notFound answers a path that nothing is mounted at.
func (a *API) notFound(w http.ResponseWriter, _ *http.Request) {
	refuse(http.StatusNotFound, "nothing is served at this path", "", "GET /openapi.json lists what is").write(w)
}

// notAllowed answers a method that the path does not have.
func (a *API) notAllowed(w http.ResponseWriter, r *http.Request) {
	allowed := a.methods(r)
	p := refuse(http.StatusMethodNotAllowed, "this path does not take this method", "", "it takes "+allowed)
	if allowed != "" {
		p.header = http.Header{"Allow": {allowed}}
	} else {
		p.Fix = "GET /openapi.json lists what is served"
	}
	p.write(w)
}

// methods lists the methods that the path of r takes.
func (a *API) methods(r *http.Request) string {
	path := r.URL.RawPath
	if path == "" {
		path = r.URL.Path
	}
	var out []string
	for _, m := range []string{"GET", "POST", "PUT", "PATCH", "DELETE"} {
		if a.router.Match(newRouteContext(), m, path) {
			out = append(out, m)
		}
	}
	return strings.Join(out, ", ")
}
