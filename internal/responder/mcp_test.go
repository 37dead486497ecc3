package responder

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/mcpclient"
)

// park is a workspace's servers and the pool behind them.
type park struct {
	mu     sync.Mutex
	tools  map[string][]string // by server id
	listed int
	calls  []string
	result mcpclient.Result
	err    error
	how    string
}

func newPark() *park {
	return &park{tools: map[string][]string{"mine": {"other", ToolName}, "bare": {"other"}}, result: mcpclient.Result{Structured: json.RawMessage(fixed)}}
}

func (p *park) Server(_ context.Context, workspace, id string) (flow.MCPServer, map[string]string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, ok := p.tools[id]; !ok || workspace != "ws" {
		return flow.MCPServer{}, nil, flow.Errorf(flow.CodeNotFound, "there is no MCP server %s", id)
	}
	return flow.MCPServer{ID: id, URL: "https://mcp.example.com/" + id + "?k=1", Transport: "sse"}, map[string]string{"X-Key": "k"}, nil
}

func (p *park) Tools(_ context.Context, srv mcpclient.Server) ([]mcpclient.Tool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.listed++
	if srv.Transport == "stdio" {
		return []mcpclient.Tool{{Name: ToolName, Description: "from " + srv.Command[0]}}, p.err
	}
	if srv.Headers["X-Key"] != "k" || srv.Transport != "sse" || !strings.HasPrefix(srv.URL, "https://mcp.example.com/"+srv.ID) {
		return nil, fmt.Errorf("wrong server %+v", srv)
	}
	var out []mcpclient.Tool
	for _, name := range p.tools[srv.ID] {
		out = append(out, mcpclient.Tool{Name: name})
	}
	return out, p.err
}

func (p *park) Call(ctx context.Context, srv mcpclient.Server, tool string, args json.RawMessage) (mcpclient.Result, error) {
	p.mu.Lock()
	p.calls = append(p.calls, srv.ID+"/"+tool+" "+string(args))
	result, err, how := p.result, p.err, p.how
	p.mu.Unlock()
	if how == "hang" {
		<-ctx.Done()
		return mcpclient.Result{}, mcpclient.ErrTimeout
	}
	if how == "fail" {
		return mcpclient.Result{IsError: true, Text: []string{"no\n" + strings.Repeat("x", 5000)}}, nil
	}
	return result, err
}

func mcpQuestion(server string) flow.Question {
	q := question()
	q.Settings.MCPServerID = server
	return q
}

func TestMCPSuite(t *testing.T) {
	t.Parallel()
	suite(t, func(t *testing.T) subject {
		p := newPark()
		return subject{responder: NewMCP(NewTools(p, p, testClock())), question: mcpQuestion("mine"), behave: func(how string) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.how = how
		}}
	})
}

// spec: R-014 R-043
func TestMCPAnswers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		server string
		set    func(*park)
		want   string // of the action
		kind   flow.AskKind
		says   string
	}{
		{"structured", "mine", func(*park) {}, fixed, "", ""},
		{"text", "mine", func(p *park) { p.result = mcpclient.Result{Text: []string{" " + fixed + "\n"}} }, fixed, "", ""},
		{"prose", "mine", func(p *park) { p.result = mcpclient.Result{Text: []string{"I would wait"}} }, `"I would wait"`, "", ""},
		{"not registered", "gone", func(*park) {}, "", flow.AskUnreachable, "there is no MCP server gone"},
		{"without the tool", "bare", func(*park) {}, "", flow.AskUnreachable, `the MCP server "bare" does not list the tool diagnose_step_failure (it lists other)`},
		{"tool error", "mine", func(p *park) { p.result = mcpclient.Result{IsError: true, Text: []string{"bad key"}} }, "", flow.AskInvalid, "failed: bad key"},
		{"unauthorized", "mine", func(p *park) { p.err = fmt.Errorf("%w: HTTP 401", mcpclient.ErrUnauthorized) }, "", flow.AskUnreachable, "HTTP 401"},
		{"too large", "mine", func(p *park) { p.err = mcpclient.ErrTooLarge }, "", "", "too large"},
		{"timeout", "mine", func(p *park) { p.err = mcpclient.ErrTimeout }, "", flow.AskTimeout, "in time"},
		{"no protocol", "mine", func(p *park) { p.err = fmt.Errorf("%w: EOF", mcpclient.ErrProtocol) }, "", flow.AskInvalid, "protocol"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := newPark()
			c.set(p)
			a, err := NewMCP(NewTools(p, p, testClock())).Ask(t.Context(), mcpQuestion(c.server))
			if a.Target != c.server {
				t.Errorf("target = %q, want %q", a.Target, c.server)
			}
			if c.want != "" {
				if err != nil || string(a.Action) != c.want {
					t.Errorf("got %s, %v, want %s", a.Action, err, c.want)
				}
				return
			}
			var e *flow.AskError
			if !errors.As(err, &e) || c.kind != "" && e.Kind != c.kind || !strings.Contains(e.Message, c.says) {
				t.Errorf("got %#v, want %s with %q", err, c.kind, c.says)
			}
		})
	}
}

func TestToolListIsBelievedForAMinute(t *testing.T) {
	t.Parallel()
	p, clock := newPark(), testClock()
	m := NewMCP(NewTools(p, p, clock))
	ask := func() {
		t.Helper()
		_, _ = m.Ask(t.Context(), mcpQuestion("mine"))
	}
	listed := func(want int, when string) {
		t.Helper()
		if p.listed != want {
			t.Errorf("listed %d times %s, want %d", p.listed, when, want)
		}
	}
	ask()
	ask()
	listed(1, "within a minute")
	clock.Advance(toolsAge + time.Second)
	ask()
	listed(2, "after it")
	p.err = errors.New("gone")
	ask()
	p.err = nil
	ask()
	listed(3, "after a failed call")
	var sent flow.RecoveryInput
	if err := json.Unmarshal([]byte(strings.TrimPrefix(p.calls[0], "mine/diagnose_step_failure ")), &sent); err != nil || sent.Error != "HTTP 429: Too Many Requests" {
		t.Errorf("sent %s, %v", p.calls[0], err)
	}
}

// spec: R-064 R-065 R-112
func TestHas(t *testing.T) {
	t.Parallel()
	p := newPark()
	tools := NewTools(p, p, testClock())
	for _, c := range []struct{ workspace, server, tool, want string }{
		{"ws", "mine", "other", ""},
		{"ws", "gone", "other", `MCP server "gone" is not registered in this workspace`},
		{"elsewhere", "mine", "other", `MCP server "mine" is not registered in this workspace`},
		{"ws", "bare", "t", `MCP server "bare" has no tool "t" (it lists other)`},
	} {
		err := tools.Has(t.Context(), c.workspace, c.server, c.tool)
		if got := fmt.Sprint(err); c.want == "" && err != nil || c.want != "" && got != c.want {
			t.Errorf("Has(%s, %s, %s) = %v, want %q", c.workspace, c.server, c.tool, err, c.want)
		}
	}
	p.err = errors.New("connection refused")
	if err := NewTools(p, p, testClock()).Has(t.Context(), "ws", "mine", "x"); err == nil || !strings.Contains(err.Error(), "cannot be asked for its tools: connection refused") {
		t.Errorf("got %v", err)
	}
}

func TestToolsCall(t *testing.T) {
	t.Parallel()
	p := newPark()
	tools := NewTools(p, p, testClock())
	if out, err := tools.Call(t.Context(), "ws", "mine", "other", json.RawMessage(`{}`)); err != nil || string(out) != fixed {
		t.Errorf("got %s, %v", out, err)
	}
	if _, err := tools.Call(t.Context(), "ws", "gone", "other", nil); flow.CodeOf(err) != flow.CodeNotFound {
		t.Errorf("unknown server: %v", err)
	}
	p.err = fmt.Errorf("%w: x", mcpclient.ErrNoTool)
	if _, err := tools.Call(t.Context(), "ws", "mine", "x", nil); flow.CodeOf(err) != flow.CodeNotFound {
		t.Errorf("unknown tool: %v", err)
	}
	for cause, kind := range map[error]flow.ErrorKind{mcpclient.ErrTooLarge: flow.KindTooLarge, mcpclient.ErrUnauthorized: flow.KindRefused} {
		p.err = cause
		var e *flow.StepError
		if _, err := tools.Call(t.Context(), "ws", "mine", "x", nil); !errors.As(err, &e) || e.Kind != kind {
			t.Errorf("%v: got %v, want %s", cause, err, kind)
		}
	}
	p.err, p.how = nil, "fail"
	var e *flow.StepError
	if _, err := tools.Call(t.Context(), "ws", "mine", "other", nil); !errors.As(err, &e) || e.Kind != flow.KindTool || !strings.HasPrefix(e.Message, "the tool other failed: no xxx") {
		t.Errorf("a tool error: %v", err)
	}
}
