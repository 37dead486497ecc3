package mcpclient

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The bounds of what a server may list.
const (
	maxTools = 1000
	maxPages = maxTools // one tool a page
)

// Tools lists a server's tools: at most a thousand, and as many bytes as one
// answer may have.
func (p *Pool) Tools(ctx context.Context, srv Server) ([]Tool, error) {
	return with(ctx, p, srv, func(ctx context.Context, s *session) ([]Tool, error) {
		var out []Tool
		var size int64
		for page, cursor := 0, ""; ; page++ {
			r, err := s.ListTools(ctx, &mcp.ListToolsParams{Cursor: cursor})
			if said := answered(err); said != nil && said.Code == jsonrpc.CodeMethodNotFound {
				return nil, nil // a server without tools
			}
			if err != nil {
				return nil, err
			}
			for _, t := range r.Tools {
				tool := toolOf(t)
				size += tool.size()
				out = append(out, tool)
			}
			switch cursor = r.NextCursor; {
			case len(out) > maxTools || page == maxPages:
				return nil, fail(ErrTooLarge, nil, "it lists more than %d tools, or on more than %d pages", maxTools, maxPages)
			case size > p.o.MaxBytes:
				return nil, fail(ErrTooLarge, nil, "its tools take more than %d bytes", p.o.MaxBytes)
			case cursor == "":
				return out, nil
			}
		}
	})
}

// Call calls a tool. args must be a JSON object; none is an empty one. A tool
// that fails is a Result with IsError, not an error, whether it says so in its
// result or by an error of the protocol's.
func (p *Pool) Call(ctx context.Context, srv Server, tool string, args json.RawMessage) (Result, error) {
	if len(args) == 0 {
		args = json.RawMessage("{}")
	}
	if !json.Valid(args) || bytes.TrimSpace(args)[0] != '{' {
		return Result{}, ErrArguments
	}
	return with(ctx, p, srv, func(ctx context.Context, s *session) (Result, error) {
		r, err := s.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: args})
		said := answered(err)
		switch {
		case said != nil && unknownTool(said):
			return Result{}, fail(ErrNoTool, nil, "%q", tool)
		case said != nil:
			return Result{IsError: true, Text: []string{brief(s.link.masked(said.Message))}}, nil
		case err != nil:
			return Result{}, err
		}
		out, err := resultOf(r, s.link)
		if out.unknown(tool) {
			return Result{}, fail(ErrNoTool, nil, "%q", tool)
		}
		return out, err
	})
}

// unknownTool reports whether a server says that it has no such tool. MCP has
// no code of its own for that.
func unknownTool(e *jsonrpc.Error) bool {
	text := strings.ToLower(e.Message)
	return e.Code == jsonrpc.CodeMethodNotFound ||
		e.Code == jsonrpc.CodeInvalidParams && strings.Contains(text, "tool") &&
			(strings.Contains(text, "unknown") || strings.Contains(text, "not found"))
}

// with runs f on a session with the server, made if there is none. A session
// that turns out to be gone before the server took the call up is made anew,
// once.
func with[T any](ctx context.Context, p *Pool, srv Server, f func(context.Context, *session) (T, error)) (T, error) {
	var none T
	if srv.Transport == "stdio" && !p.o.AllowStdio {
		return none, ErrStdio
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(p.life, func() { cancel(ErrClosed) })()
	for again := false; ; again = true {
		e, made, err := p.session(ctx, srv)
		if err != nil {
			return none, err
		}
		out, err := attempt(ctx, e.session, f)
		if err == nil {
			return out, nil
		}
		if !keeps(err) {
			p.drop(e)
		}
		if made || again || !sessionGone(err) || ctx.Err() != nil {
			return none, sorted(ctx, err, e.session.link)
		}
	}
}

// linger is how long a request may still be read after its answer came, so
// that its connection serves the next one.
const linger = 2 * time.Second

// attempt runs f once. What f sends is cancelled when ctx ends, and otherwise
// only a little after f's end, whenever the caller gives ctx up.
func attempt[T any](ctx context.Context, s *session, f func(context.Context, *session) (T, error)) (T, error) {
	s.link.begin()
	defer s.link.end()
	sending, cancel := context.WithCancel(context.WithoutCancel(ctx))
	out, err := within(ctx, func() (T, error) { return f(sending, s) }, func(T) {})
	if err != nil {
		cancel()
	} else {
		time.AfterFunc(linger, cancel)
	}
	return out, err
}
