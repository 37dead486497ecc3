package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/longstop-dev/longstop/internal/flow"
)

// problem is an error on the wire: RFC 9457 with our code, the place that is
// wrong and what would be right.
type problem struct {
	Type   string         `json:"type"`
	Title  string         `json:"title"`
	Status int            `json:"status"`
	Detail string         `json:"detail"`
	Code   flow.Code      `json:"code"`
	Field  string         `json:"field,omitempty"`
	Fix    string         `json:"fix,omitempty"`
	Errors []flow.Problem `json:"errors,omitempty"`
	after  string         // Retry-After
}

// statusOf is the one table of codes of this face.
func statusOf(c flow.Code) int {
	switch c {
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

func problemOf(err error) *problem {
	var e *flow.Error
	switch {
	case errors.As(err, &e):
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		e = flow.Errorf(flow.CodeUnavailable, "the request ended before its answer was ready")
	default:
		e = flow.Errorf(flow.CodeInternal, "something went wrong here").Right("the server's log says what")
	}
	p := &problem{Type: "about:blank", Status: statusOf(e.Code), Detail: e.Message, Code: e.Code, Field: e.Field, Fix: e.Fix, Errors: e.Problems}
	p.Title = http.StatusText(p.Status)
	if e.Code == flow.CodeRateLimited || e.Code == flow.CodeUnavailable {
		p.after = "1"
	}
	return p
}

// cause is what an error hides from whoever is told of it.
func cause(err error) error {
	var e *flow.Error
	if errors.As(err, &e) && e.Err != nil {
		return e.Err
	}
	return nil
}

// Error is the detail; huma asks for it.
func (p *problem) Error() string { return p.Detail }

// GetStatus is the HTTP status; huma asks for it.
func (p *problem) GetStatus() int { return p.Status }

// GetHeaders are the headers that go along; huma asks for them.
func (p *problem) GetHeaders() http.Header {
	h := http.Header{}
	for name, v := range p.header() {
		if name != "Content-Type" {
			h.Set(name, v)
		}
	}
	return h
}

// ContentType is problem+json; huma asks for it.
func (p *problem) ContentType(string) string { return "application/problem+json" }

func (p *problem) header() map[string]string {
	h := map[string]string{"Content-Type": "application/problem+json"}
	if p.Status == http.StatusUnauthorized {
		h["WWW-Authenticate"] = `Bearer realm="longstop"`
	}
	if p.after != "" {
		h["Retry-After"] = p.after
	}
	return h
}

func (p *problem) json() []byte {
	b, err := json.Marshal(p)
	if err != nil { // a struct of texts and numbers marshals
		return []byte(`{"title":"Internal Server Error","status":500}`)
	}
	return b
}

func (p *problem) write(w http.ResponseWriter) {
	for name, v := range p.header() {
		w.Header().Set(name, v)
	}
	w.WriteHeader(p.Status)
	_, _ = w.Write(p.json())
}

// write sends an error outside of huma.
func write(w http.ResponseWriter, _ *http.Request, err error) { problemOf(err).write(w) }

// plainProblem turns huma's own errors into ours. Huma's hold the value that
// was sent, which may be a secret: it is left out.
func plainProblem(_ huma.Context, _ string, v any) (any, error) {
	m, ok := v.(*huma.ErrorModel)
	if !ok {
		return v, nil
	}
	p := &problem{Type: "about:blank", Title: http.StatusText(m.Status), Status: m.Status, Detail: m.Detail, Code: codeOf(m.Status)}
	if m.Status >= 500 {
		p.Detail = "something went wrong here"
	}
	for _, d := range m.Errors {
		if d == nil {
			continue
		}
		p.Errors = append(p.Errors, flow.Problem{Field: strings.TrimPrefix(d.Location, "body."), Message: withoutValues(d.Message)})
	}
	if len(p.Errors) == 1 {
		p.Field, p.Detail = p.Errors[0].Field, p.Errors[0].Message
	}
	return p, nil
}

// withoutValues cuts off what a decoder quotes of the body.
func withoutValues(message string) string {
	if i := strings.Index(message, "invalid character"); i >= 0 {
		return "the body is not JSON"
	}
	return message
}

func codeOf(status int) flow.Code {
	switch {
	case status == http.StatusRequestEntityTooLarge:
		return flow.CodeTooLarge
	case status >= 500:
		return flow.CodeInternal
	}
	return flow.CodeInvalid
}
