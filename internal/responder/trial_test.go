package responder

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/longstop-dev/longstop/internal/a2a"
	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/mcpclient"
	"github.com/longstop-dev/longstop/internal/nettest"
)

func newTrial(p *park) *Trial {
	return NewTrial(&a2a.Client{HTTP: nettest.Client()}, NewTools(p, p, testClock()))
}

func TestTrialOfAURL(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	trial := newTrial(newPark())
	seen, answer, err := trial.Try(t.Context(), flow.AgentRef{URL: a.URL, Token: "s3cr3t-token"}, question())
	if err != nil || !seen.Found || seen.Kind != "a2a" || seen.Name != "Fixer" || seen.Endpoint != a.URL+"/rpc" || string(answer.Action) != fixed || answer.Target != a.URL {
		t.Errorf("seen %+v, answer %+v, %v", seen, answer, err)
	}
	last := func() string {
		a.mu.Lock()
		defer a.mu.Unlock()
		return a.tokens[len(a.tokens)-1]
	}
	if last() != "Bearer s3cr3t-token" {
		t.Errorf("the agent got %q, want the token", last())
	}
	q := question()
	q.Settings = flow.RecoverySettings{A2AAgentURL: "https://another.example.com", A2AAuthToken: "of-another", A2AOrigin: a.URL}
	if _, _, err = trial.Try(t.Context(), flow.AgentRef{URL: a.URL}, q); err != nil || last() != "" {
		t.Errorf("another agent's token: got %q, %v, want nothing sent", last(), err)
	}
	q.Settings.A2AAgentURL = a.URL
	if _, _, err = trial.Try(t.Context(), flow.AgentRef{URL: a.URL}, q); err != nil || last() != "Bearer of-another" {
		t.Errorf("the agent of the settings: got %q, %v, want its token", last(), err)
	}

	a.script(func(w http.ResponseWriter, _ *http.Request, _ any) { w.WriteHeader(http.StatusUnauthorized) })
	seen, _, err = trial.Try(t.Context(), flow.AgentRef{URL: a.URL}, question())
	if !seen.Found || err == nil || !strings.Contains(err.Error(), "401") {
		t.Errorf("refused: seen %+v, %v", seen, err)
	}
	a.mu.Lock()
	a.noCard = true
	a.mu.Unlock()
	seen, _, err = trial.Try(t.Context(), flow.AgentRef{URL: a.URL}, question())
	var e *flow.AskError
	if seen.Found || seen.Problem == "" || !errors.As(err, &e) || e.Kind != flow.AskUnreachable {
		t.Errorf("without a card: seen %+v, %v", seen, err)
	}
}

func TestTrialOfServersAndCommands(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		agent  flow.AgentRef
		set    func(*park)
		found  bool
		answer string
		says   string
	}{
		{"registered", flow.AgentRef{Server: "mine"}, func(*park) {}, true, fixed, ""},
		{"not registered", flow.AgentRef{Server: "gone"}, func(*park) {}, false, "", "there is no MCP server gone"},
		{"without the tool", flow.AgentRef{Server: "bare"}, func(*park) {}, false, "", "does not list the tool diagnose_step_failure (it lists other)"},
		{"command", flow.AgentRef{Command: []string{"./agent"}}, func(*park) {}, true, fixed, ""},
		{"no commands here", flow.AgentRef{Command: []string{"./agent"}}, func(p *park) { p.err = mcpclient.ErrStdio }, false, "", "dev and run only"},
		{"tool error", flow.AgentRef{Server: "mine"}, func(p *park) { p.how = "fail" }, true, "", "the tool diagnose_step_failure failed: no xxx"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := newPark()
			c.set(p)
			seen, answer, err := newTrial(p).Try(t.Context(), c.agent, question())
			if seen.Found != c.found || seen.Kind != "mcp" || string(answer.Action) != c.answer || answer.Target == "" {
				t.Errorf("seen %+v, answer %+v, %v", seen, answer, err)
			}
			if c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
				t.Errorf("got %v, want %q", err, c.says)
			}
			if !c.found && !strings.Contains(seen.Problem, c.says) {
				t.Errorf("problem = %q, want %q", seen.Problem, c.says)
			}
		})
	}
}

// one is a directory of one server.
type one struct{ url string }

func (o one) Server(context.Context, string, string) (flow.MCPServer, map[string]string, error) {
	return flow.MCPServer{ID: "mine", URL: o.url}, nil, nil
}

// TestRealMCPServer asks a server of the Go SDK, which answers with structured
// content, with text, with an error, and with what is no action.
func TestRealMCPServer(t *testing.T) {
	t.Parallel()
	how := make(chan string, 1)
	s := mcp.NewServer(&mcp.Implementation{Name: "fixer", Version: "1"}, nil)
	s.AddTool(&mcp.Tool{Name: ToolName, InputSchema: json.RawMessage(`{"type":"object"}`)}, func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		var in flow.RecoveryInput
		if err := json.Unmarshal(r.Params.Arguments, &in); err != nil || in.SchemaVersion != 1 {
			return nil, errors.New("not a RecoveryToolInput")
		}
		switch <-how {
		case "structured":
			return &mcp.CallToolResult{StructuredContent: json.RawMessage(fixed)}, nil
		case "text":
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fixed}}}, nil
		}
		return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: "no idea"}}}, nil
	})
	web := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil))
	t.Cleanup(web.Close)
	pool := mcpclient.New(mcpclient.Options{HTTP: &http.Client{Transport: &http.Transport{}}})
	t.Cleanup(pool.Close)
	m := NewMCP(NewTools(one{web.URL}, pool, testClock()))
	for _, form := range []string{"structured", "text"} {
		how <- form
		a, err := m.Ask(t.Context(), mcpQuestion("mine"))
		if err != nil {
			t.Fatalf("%s: %v", form, err)
		}
		var got, want any
		if json.Unmarshal(a.Action, &got) != nil || json.Unmarshal([]byte(fixed), &want) != nil || canonical(t, got) != canonical(t, want) {
			t.Errorf("%s: got %s, want %s", form, a.Action, fixed)
		}
	}
	how <- "error"
	_, err := m.Ask(t.Context(), mcpQuestion("mine"))
	var e *flow.AskError
	if !errors.As(err, &e) || e.Kind != flow.AskInvalid || !strings.Contains(e.Message, "no idea") {
		t.Errorf("a tool error: %#v", err)
	}
}

func canonical(t *testing.T, v any) string {
	t.Helper()
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}
