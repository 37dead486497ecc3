package mcpclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The bounds of what is read.
const (
	maxTools = 1000
	maxDepth = 200
)

// Tool is what a server lists.
type Tool struct {
	Name         string          `json:"name"`
	Description  string          `json:"description,omitempty"`
	InputSchema  json.RawMessage `json:"inputSchema,omitempty"`
	OutputSchema json.RawMessage `json:"outputSchema,omitempty"`
}

// Result is what a tool answered.
type Result struct {
	Structured json.RawMessage // structured content, or nil
	Text       []string        // the text parts
	IsError    bool            // the tool says that it failed
}

// Value is the answer as one JSON value: structured content if there is any,
// else JSON in the first text, else the texts as one JSON string.
func (r Result) Value() json.RawMessage {
	if len(r.Structured) > 0 {
		return r.Structured
	}
	text := strings.Join(r.Text, "\n")
	if t := strings.TrimSpace(text); t != "" && json.Valid([]byte(t)) {
		return json.RawMessage(t)
	}
	if len(r.Text) == 0 {
		return json.RawMessage("null")
	}
	b, err := json.Marshal(text)
	if err != nil {
		return json.RawMessage("null")
	}
	return b
}

// Tools lists a server's tools, at most a thousand.
func (p *Pool) Tools(ctx context.Context, srv Server) ([]Tool, error) {
	var out []Tool
	err := p.with(ctx, srv, func(ctx context.Context, s *session) error {
		out = nil
		for t, err := range s.cs.Tools(ctx, nil) {
			if err != nil {
				return err
			}
			if len(out) == maxTools {
				return fmt.Errorf("%w: it lists more than %d tools", ErrProtocol, maxTools)
			}
			out = append(out, Tool{Name: t.Name, Description: t.Description, InputSchema: schema(t.InputSchema), OutputSchema: schema(t.OutputSchema)})
		}
		return nil
	})
	return out, err
}

func schema(v any) json.RawMessage {
	if v == nil {
		return nil
	}
	b, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	return b
}

// Call calls a tool. args must be a JSON object. A tool that fails is a Result
// with IsError, not an error.
func (p *Pool) Call(ctx context.Context, srv Server, tool string, args json.RawMessage) (Result, error) {
	if len(args) == 0 {
		args = json.RawMessage("{}")
	}
	var out Result
	err := p.with(ctx, srv, func(ctx context.Context, s *session) error {
		r, err := s.cs.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: args})
		if err != nil {
			var rpc *jsonrpc.Error
			if errors.As(err, &rpc) && rpc.Code == jsonrpc.CodeInvalidParams && strings.Contains(rpc.Message, "unknown tool") {
				return fmt.Errorf("%w: %q", ErrNoTool, tool)
			}
			return err
		}
		out, err = read(r)
		return err
	})
	return out, err
}

func read(r *mcp.CallToolResult) (Result, error) {
	out := Result{IsError: r.IsError}
	if r.StructuredContent != nil {
		b, err := json.Marshal(r.StructuredContent)
		if err != nil {
			return out, fmt.Errorf("%w: its structured content is not JSON", ErrProtocol)
		}
		out.Structured = b
	}
	for _, c := range r.Content {
		if t, ok := c.(*mcp.TextContent); ok {
			out.Text = append(out.Text, t.Text)
		}
	}
	for _, raw := range append([]string{string(out.Structured)}, out.Text...) {
		if deep(raw) {
			return out, ErrTooDeep
		}
	}
	return out, nil
}

// deep reports whether JSON text is nested beyond the bound, without parsing
// it.
func deep(raw string) bool {
	depth, quoted := 0, false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			if depth++; depth > maxDepth {
				return true
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return false
}
