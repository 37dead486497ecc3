package a2a

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"
)

// What can go wrong, for errors.Is. [StatusError], [RPCError] and [TaskError]
// carry more and are met with errors.As.
var (
	ErrTimeout     = errors.New("the agent did not answer in time")
	ErrUnreachable = errors.New("the agent could not be reached")
	ErrTLS         = errors.New("the TLS connection to the agent failed")
	ErrTooLarge    = errors.New("the agent's answer is too large")
	ErrTooDeep     = errors.New("the agent's answer is nested too deeply")
	ErrHTML        = errors.New("the agent answered with an HTML page")
	ErrShape       = errors.New("the agent's answer is not A2A")
	ErrNoData      = errors.New("the agent's answer has no data part")
	ErrCard        = errors.New("the agent card is not usable")
	ErrSignature   = errors.New("the agent card's signature does not count") // an ErrCard too
	ErrNoRoute     = errors.New("the agent declares no endpoint that can be called")
	ErrToken       = errors.New("the token may not be sent to this endpoint")
	ErrMessage     = errors.New("the message cannot be sent")
)

// Fault is one of the errors above with what was seen. Its text is at most
// 300 characters and holds neither a token nor a query string.
type Fault struct {
	Kind   error  // one of the Err values
	Detail string // what was seen, already cleaned
	Cause  error  // for errors.Is only: its own text may name URLs
}

// Error is the kind, and what was seen.
func (f *Fault) Error() string {
	if f.Detail == "" {
		return f.Kind.Error()
	}
	return clip(f.Kind.Error()+": "+f.Detail, maxErrorText)
}

// Unwrap lets errors.Is see both the kind and the cause.
func (f *Fault) Unwrap() []error {
	if f.Cause == nil {
		return []error{f.Kind}
	}
	return []error{f.Kind, f.Cause}
}

func fault(kind error, format string, args ...any) *Fault {
	return &Fault{Kind: kind, Detail: plain(fmt.Sprintf(format, args...), maxErrorText)}
}

// StatusError is an HTTP answer outside 2xx that holds no JSON-RPC error.
type StatusError struct {
	Status     int
	RetryAfter time.Duration // 0: not said
	HTML       bool          // the body was a page; errors.Is(err, ErrHTML) holds
	Text       string        // the start of the body or its message, cleaned
}

// Error is the status with the start of what came with it.
func (e *StatusError) Error() string {
	s := fmt.Sprintf("the agent answered with HTTP %d %s", e.Status, http.StatusText(e.Status))
	switch {
	case e.HTML:
		s += " and an HTML page"
	case e.Text != "":
		s += ": " + e.Text
	}
	return clip(s, maxErrorText)
}

// Is makes a page behind an error status an [ErrHTML] too.
func (e *StatusError) Is(target error) bool { return target == ErrHTML && e.HTML }

// RPCError is an error that the agent spoke: a JSON-RPC error, or the error
// object of the HTTP+JSON binding translated to the JSON-RPC code.
type RPCError struct {
	Code       int
	Message    string // cleaned
	Status     int    // of the HTTP answer it came in
	RetryAfter time.Duration
}

// Error is the code with the words of the agent.
func (e *RPCError) Error() string {
	s := fmt.Sprintf("the agent answered with error %d", e.Code)
	if e.Status < 200 || e.Status > 299 {
		s += fmt.Sprintf(" (HTTP %d)", e.Status)
	}
	if e.Message != "" {
		s += ": " + e.Message
	}
	return clip(s, maxErrorText)
}

// TaskError is a task that ended without success, or that waits for a person.
type TaskError struct {
	State  State
	TaskID string
	Text   string // what the agent said, at most 200 characters
}

// Error is the state with what the agent said.
func (e *TaskError) Error() string {
	s := "the agent's task is " + string(e.State)
	if e.Text != "" {
		s += ": " + e.Text
	}
	return clip(s, maxErrorText)
}

// transportFault names a failed exchange. The *url.Error around most causes
// is dropped because it repeats the whole URL.
func transportFault(ctx context.Context, err error, clean func(string) string) *Fault {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	f := &Fault{Kind: ErrUnreachable, Detail: clean(err.Error()), Cause: err}
	var timeout net.Error
	switch {
	case errors.Is(context.Cause(ctx), context.Canceled) || errors.Is(err, context.Canceled):
		f.Kind, f.Detail = context.Canceled, ""
	case errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil, errors.As(err, &timeout) && timeout.Timeout():
		f.Kind, f.Detail = ErrTimeout, ""
	case isTLS(err):
		f.Kind = ErrTLS
	}
	return f
}

func isTLS(err error) bool {
	var (
		verify    *tls.CertificateVerificationError
		record    tls.RecordHeaderError
		alert     tls.AlertError
		authority x509.UnknownAuthorityError
		hostname  x509.HostnameError
		invalid   x509.CertificateInvalidError
	)
	return errors.As(err, &verify) || errors.As(err, &record) || errors.As(err, &alert) || errors.As(err, &authority) ||
		errors.As(err, &hostname) || errors.As(err, &invalid) || errors.Is(err, http.ErrSchemeMismatch)
}
