package client

import (
	"encoding/json"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/longstop-dev/longstop/internal/flow"
)

// Error is what a server refused, or why it could not be asked (Status 0).
// [flow.CodeOf] gives its code.
type Error struct {
	Status     int // of HTTP
	Code       flow.Code
	Message    string
	Field      string
	Fix        string
	Problems   []flow.Problem
	RetryAfter time.Duration // what the server asked for, 0 if nothing

	cause error
}

// Error gives message, place and remedy in one line, and each problem on a
// line of its own.
func (e *Error) Error() string { return e.flow().Error() }

// Unwrap gives it as the error type that all packages share.
func (e *Error) Unwrap() error { return e.flow() }

func (e *Error) flow() *flow.Error {
	f := &flow.Error{Code: e.Code, Message: e.Message, Field: e.Field, Fix: e.Fix, Problems: e.Problems, Err: e.cause}
	if len(f.Problems) == 1 && strings.HasPrefix(f.Message, f.Problems[0].Message) {
		f.Problems = nil // it says the same again
	}
	return f
}

// errorOf reads application/problem+json.
func errorOf(resp *http.Response, data []byte) error {
	var p struct {
		Code               flow.Code
		Detail, Field, Fix string
		Errors             []flow.Problem
	}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if kind != "application/problem+json" || json.Unmarshal(data, &p) != nil || p.Code == "" {
		return foreign(resp.StatusCode, nil)
	}
	e := &Error{Status: resp.StatusCode, Code: p.Code, Message: p.Detail, Field: p.Field, Fix: p.Fix, Problems: p.Errors}
	if s, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && s > 0 && s < 1<<20 {
		e.RetryAfter = time.Duration(s) * time.Second
	}
	return e
}

// foreign is the error of an answer that no Longstop gives: a proxy's, or
// that of another server.
func foreign(status int, cause error) error {
	return &Error{Status: status, Code: flow.CodeUnavailable, Field: "endpoint", cause: cause,
		Message: "the answer (HTTP " + strconv.Itoa(status) + ") is not Longstop's", Fix: "is this the URL of a Longstop server?"}
}
