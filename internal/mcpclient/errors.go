package mcpclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// How a call fails: every error of this package is one of these, or the
// caller's own context.Canceled. The texts are one short line. What lies
// behind, such as a refusal of the egress guard's, stays in the chain.
var (
	ErrTimeout      = errors.New("the MCP server did not answer in time")
	ErrUnauthorized = errors.New("the MCP server refused the credentials")
	ErrTooLarge     = errors.New("the MCP server's answer is too large")
	ErrTooDeep      = errors.New("the MCP server's answer is nested too deep")
	ErrNoTool       = errors.New("the MCP server has no such tool")
	ErrUnreachable  = errors.New("the MCP server cannot be reached")
	ErrProtocol     = errors.New("the MCP server does not speak the protocol")
	ErrStdio        = errors.New("MCP servers over stdio run in dev and run only")
	ErrArguments    = errors.New("the arguments of an MCP tool must be one JSON object")
	ErrClosed       = errors.New("the MCP client is closed")
)

// failure is one of the errors above, with what was seen and what caused it.
type failure struct {
	kind  error
	seen  string
	cause error // nil if nothing lies behind
}

func fail(kind error, cause error, seen string, args ...any) *failure {
	return &failure{kind, brief(fmt.Sprintf(seen, args...)), cause}
}

// Error is the kind and what was seen.
func (f *failure) Error() string { return f.kind.Error() + ": " + f.seen }

// Unwrap gives the kind and the cause.
func (f *failure) Unwrap() []error {
	if f.cause == nil {
		return []error{f.kind}
	}
	return []error{f.kind, f.cause}
}

// statusError is an HTTP status that is no answer of MCP's.
type statusError struct {
	status  int
	session bool   // the request named a session
	said    string // the server's JSON-RPC error, masked, if it sent one along
}

// Error names the status and what the server says.
func (e *statusError) Error() string {
	text := fmt.Sprintf("HTTP %d %s", e.status, http.StatusText(e.status))
	if e.status < 400 {
		text += " (redirects are not followed: use the URL that it leads to)"
	}
	if e.said != "" {
		text += ": " + e.said
	}
	return text
}

// sessionGone reports whether a call failed before the server took it up,
// because the session is no more.
func sessionGone(err error) bool {
	var s *statusError
	if errors.As(err, &s) {
		return s.session && (s.status == http.StatusNotFound || s.status == http.StatusBadRequest)
	}
	return errors.Is(err, mcp.ErrSessionMissing) || errors.Is(err, mcp.ErrConnectionClosed) || errors.Is(err, errStdin)
}

// answered gives the JSON-RPC error that a server answered with, or nil. (The
// SDK marks requests that were not sent with an error of the same type.)
func answered(err error) *jsonrpc.Error {
	var sent *url.Error
	var said *jsonrpc.Error
	if errors.As(err, &sent) || !errors.As(err, &said) {
		return nil
	}
	return said
}

// keeps reports whether a session is as good as before after err.
func keeps(err error) bool {
	return answered(err) != nil || errors.Is(err, ErrNoTool) || errors.Is(err, context.Canceled)
}

// sorted makes an error of this package's out of what the SDK, the HTTP client
// or a stream's bounds gave.
func sorted(ctx context.Context, err error, l *link) error {
	var (
		done   *failure
		status *statusError
		sent   *url.Error
		slow   net.Error
	)
	switch {
	case errors.Is(context.Cause(ctx), ErrClosed):
		return ErrClosed
	case errors.As(err, &done):
		return done
	case errors.As(err, &status):
		if status.status == http.StatusUnauthorized || status.status == http.StatusForbidden {
			return fail(ErrUnauthorized, status, "%s", status)
		}
		return fail(ErrUnreachable, status, "%s", status)
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return ErrTimeout
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &slow) && slow.Timeout():
		return ErrTimeout
	case errors.As(err, &sent): // the URL in its text may hold secrets
		return fail(ErrUnreachable, sent.Err, "%s", l.masked(sent.Err.Error()))
	}
	if said := answered(err); said != nil {
		return fail(ErrProtocol, nil, "it answers with the error %d: %s", said.Code, l.masked(said.Message))
	}
	if breach := l.breach.Load(); breach != nil {
		return breach
	}
	if seen := reason(err); seen != "" {
		return fail(ErrProtocol, nil, "%s", l.masked(seen))
	}
	if said := l.stderr.line(); said != "" {
		return fail(ErrUnreachable, nil, "the command ended before it answered: %s", said)
	}
	return fail(ErrUnreachable, nil, "it closed the connection before it answered")
}

// reason is why the SDK gave a session up; nothing if the server just went.
func reason(err error) string {
	text := err.Error()
	switch {
	case errors.Is(err, mcp.ErrConnectionClosed): // the SDK keeps only the text of what lies behind
		_, text, _ = strings.Cut(text, "is closing: ")
		if text == io.EOF.Error() || strings.Contains(text, errStdin.Error()) {
			return ""
		}
		return text
	case errors.Is(err, io.EOF), errors.Is(err, errStdin), strings.Contains(text, "terminated without response"):
		return ""
	}
	return text
}

// brief is one line of at most 200 bytes.
func brief(s string) string {
	s = strings.Join(strings.Fields(strings.ToValidUTF8(s, "\uFFFD")), " ")
	if len(s) > 200 {
		s = strings.ToValidUTF8(s[:200], "") + "…"
	}
	return s
}
