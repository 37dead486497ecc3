package mcpclient

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// How a call fails. The texts are short and hold no header's value.
var (
	ErrTimeout      = errors.New("the MCP server did not answer in time")
	ErrUnauthorized = errors.New("the MCP server refused the credentials")
	ErrTooLarge     = errors.New("the MCP server's answer is too large")
	ErrTooDeep      = errors.New("the MCP server's answer is nested too deep")
	ErrNoTool       = errors.New("the MCP server has no such tool")
	ErrUnreachable  = errors.New("the MCP server cannot be reached")
	ErrProtocol     = errors.New("the MCP server does not speak the protocol")
	ErrStdio        = errors.New("MCP servers over stdio run in dev and run only")
	ErrClosed       = errors.New("the MCP client is closed")
)

// failed sorts what the SDK or the transport gave. seen is the last HTTP
// status that was not a success, or 0.
func failed(ctx context.Context, err error, seen *watch) error {
	status := int(seen.status.Load())
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrNoTool), errors.Is(err, ErrTooDeep), errors.Is(err, ErrProtocol):
		return err
	case errors.Is(err, ErrTooLarge), seen.tooLarge.Load():
		return ErrTooLarge
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return fmt.Errorf("%w: HTTP %d", ErrUnauthorized, status)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(ctx.Err(), context.DeadlineExceeded):
		return ErrTimeout
	case ctx.Err() != nil:
		return ctx.Err()
	case status >= 400:
		return fmt.Errorf("%w: HTTP %d", ErrUnreachable, status)
	}
	if refused := seen.refusal.Load(); refused != nil {
		return fmt.Errorf("%w: %s", ErrUnreachable, brief((*refused).Error()))
	}
	return fmt.Errorf("%w: %s", ErrProtocol, brief(err.Error()))
}

// brief is one line of at most 200 bytes.
func brief(s string) string {
	s = strings.Join(strings.Fields(strings.ToValidUTF8(s, "\uFFFD")), " ")
	if len(s) > 200 {
		s = strings.ToValidUTF8(s[:200], "") + "…"
	}
	return s
}
