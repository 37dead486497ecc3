package mcpclient_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/longstop-dev/longstop/internal/mcpclient"
)

// TestMain lets the test binary be a stdio server when it is started as one.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "stdio-server" {
		os.Exit(stdioServer(os.Args[2]))
	}
	os.Exit(m.Run())
}

const bigID = "9007199254740993" // no float64 holds it

// hooks are what a test wants to know of, or to decide in, the server's tools.
type hooks struct {
	block func(ctx context.Context) // in the tool block
}

// newServer makes a server with one tool for each way to answer.
func newServer(h hooks) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ServerOptions{PageSize: 2})
	in := json.RawMessage(`{"type":"object","properties":{"error":{"type":"string"}}}`)
	out := json.RawMessage(`{"type":"object","required":["type"]}`)
	tool := func(name string, f func(ctx context.Context, args json.RawMessage) (*mcp.CallToolResult, error)) {
		s.AddTool(&mcp.Tool{Name: name, Description: "tool " + name, InputSchema: in, OutputSchema: out}, func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return f(ctx, r.Params.Arguments)
		})
	}
	text := func(s string) []mcp.Content { return []mcp.Content{&mcp.TextContent{Text: s}} }
	tool("structured", func(_ context.Context, args json.RawMessage) (*mcp.CallToolResult, error) {
		b := `{"type": "fixed_output", "id": ` + bigID + `, "args": ` + string(args) + `}`
		return &mcp.CallToolResult{StructuredContent: json.RawMessage(b), Content: text(b)}, nil
	})
	tool("text", func(context.Context, json.RawMessage) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: text(`{"type":"needs_human","id":` + bigID + `}`)}, nil
	})
	tool("words", func(context.Context, json.RawMessage) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: append(text("I am"), text("at a loss")...)}, nil
	})
	tool("failing", func(context.Context, json.RawMessage) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{IsError: true, Content: text("boom")}, nil
	})
	tool("deep", func(context.Context, json.RawMessage) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: text(strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000))}, nil
	})
	tool("huge", func(context.Context, json.RawMessage) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: text(strings.Repeat("x", 1<<20))}, nil
	})
	tool("brackets", func(context.Context, json.RawMessage) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: text(`{"s":"\"` + strings.Repeat("[{", 500) + `"}`)}, nil
	})
	tool("half", func(context.Context, json.RawMessage) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: text(strings.Repeat("x", 40<<10))}, nil
	})
	tool("broken", func(context.Context, json.RawMessage) (*mcp.CallToolResult, error) {
		return nil, errors.New("it broke inside")
	})
	tool("block", func(ctx context.Context, _ json.RawMessage) (*mcp.CallToolResult, error) {
		if h.block != nil {
			h.block(ctx)
		}
		return &mcp.CallToolResult{Content: text("unblocked")}, nil
	})
	return s
}

const toolCount = 10

// traffic is a transport that notes what went over it.
type traffic struct {
	base http.RoundTripper
	mu   sync.Mutex
	seen []string // "POST tools/call", "GET", ...
}

func (c *traffic) RoundTrip(r *http.Request) (*http.Response, error) {
	what := r.Method
	if r.GetBody != nil {
		if b, err := r.GetBody(); err == nil {
			var m struct{ Method string }
			_ = json.NewDecoder(b).Decode(&m)
			what += " " + m.Method
		}
	}
	c.mu.Lock()
	c.seen = append(c.seen, what)
	c.mu.Unlock()
	return c.base.RoundTrip(r)
}

// take gives what went over it since it was last asked.
func (c *traffic) take() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := c.seen
	c.seen = nil
	return out
}

func count(list []string, what string) int {
	n := 0
	for _, s := range list {
		if s == what {
			n++
		}
	}
	return n
}

// newPool makes a pool that ends with the test, and its traffic.
func newPool(t *testing.T, o mcpclient.Options) (*mcpclient.Pool, *traffic) {
	t.Helper()
	base := &http.Transport{}
	t.Cleanup(base.CloseIdleConnections)
	c := &traffic{base: base}
	o.HTTP = &http.Client{Transport: c}
	p := mcpclient.New(o)
	t.Cleanup(p.Close)
	return p, c
}

// serve serves a handler until the test ends, also to clients that hang.
func serve(t testing.TB, h http.Handler) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s.URL
}

// handlers are the ways in which a Go server can be reached.
func handlers(s *mcp.Server) map[string]http.Handler {
	get := func(*http.Request) *mcp.Server { return s }
	return map[string]http.Handler{
		"stateless":      mcp.NewStreamableHTTPHandler(get, &mcp.StreamableHTTPOptions{Stateless: true}),
		"stateless JSON": mcp.NewStreamableHTTPHandler(get, &mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true}),
		"stateful":       mcp.NewStreamableHTTPHandler(get, nil),
		"stateful JSON":  mcp.NewStreamableHTTPHandler(get, &mcp.StreamableHTTPOptions{JSONResponse: true}),
		"SSE only":       mcp.NewSSEHandler(get, nil),
	}
}

// within is a context that ends after d.
func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// patient is the context of a call that is to succeed.
func patient(t *testing.T) context.Context { t.Helper(); return within(t, 20*time.Second) }

// same reports whether two JSON texts are equal up to white space, digit for
// digit.
func same(t *testing.T, what string, got json.RawMessage, want string) {
	t.Helper()
	compact := func(s string) string {
		d := json.NewDecoder(strings.NewReader(s))
		d.UseNumber()
		var v any
		if err := d.Decode(&v); err != nil {
			return fmt.Sprintf("%v in %q", err, s)
		}
		b, _ := json.Marshal(v)
		return string(b)
	}
	if g, w := compact(string(got)), compact(want); g != w {
		t.Errorf("%s: got %s, want %s", what, g, w)
	}
}
