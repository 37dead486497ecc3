package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// userAPI is an upstream of which only /v2 works, and which counts how often
// its two versions were called.
type userAPI struct {
	*httptest.Server
	v1, v2 atomic.Int64
}

func newUserAPI(t *testing.T) *userAPI {
	t.Helper()
	u := &userAPI{}
	u.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path != "/v2/users/42" || r.Header.Get("X-Kept") != "1" {
			u.v1.Add(1)
			w.WriteHeader(http.StatusBadRequest)
			io.WriteString(w, `{"userId":42,"fullName":"Alice"}`)
			return
		}
		u.v2.Add(1)
		io.WriteString(w, `{"id":42}`)
	}))
	t.Cleanup(u.Close)
	return u
}

// A way is how an own agent is asked: set makes it answer with an action, and
// answer hands the action in where nobody asks.
type way struct {
	set    func(t *testing.T, st *stop, action string)
	answer func(st *stop, run, action string)
}

func ways() map[string]way {
	return map[string]way{
		"a2a": {set: func(t *testing.T, st *stop, action string) {
			st.set("recovery.a2a_agent_url", agent(t, says(action)).URL)
		}},
		"mcp": {set: func(t *testing.T, st *stop, action string) {
			var asked atomic.Int64
			st.register("own", toolServer(t, action, &asked).URL)
			st.set("recovery.mcp_server_id", "own")
		}},
		"inbox": {set: func(_ *testing.T, st *stop, _ string) { st.set("recovery.mode", "agent") },
			answer: func(st *stop, run, action string) {
				st.gatedBy(run, "needs_agent")
				st.must("POST", "/v1/recovery/"+run+"/0/action", json.RawMessage(action), nil)
			}},
	}
}

// TestEveryActionOverEveryWay has an own agent give each of the five actions
// over A2A, over MCP and in the inbox: they do the same everywhere.
//
// spec: R-002 R-004 R-008 R-031 R-032 R-034 R-036 R-037 R-039 R-040 R-050 R-070 R-072 R-100 R-102
func TestEveryActionOverEveryWay(t *testing.T) {
	t.Parallel()
	for name, w := range ways() {
		for kind, tc := range map[string]struct {
			action string // %s is the upstream
			output string // of the run; "" if it waits for a person
			v1, v2 int64  // calls of the upstream's two versions
		}{
			"fixed_output":      {`{"type":"fixed_output","diagnosis":"cached","output":{"id":1}}`, `{"id":1}`, 1, 0},
			"retry_with_params": {`{"type":"retry_with_params","diagnosis":"v2","modifications":{"httpRequest":{"url":"%s/v2/users/42"}}}`, `{"id":42}`, 1, 1},
			"retry_with_tool":   {`{"type":"retry_with_tool","diagnosis":"other","toolCall":{"server":"tools","tool":"get_user_fallback","params":{"userId":42}}}`, `{"id":9,"params":{"userId":42}}`, 1, 0},
			"code_fix":          {`{"type":"code_fix","diagnosis":"renamed","code":"return { id: input.userId, name: input.fullName };"}`, `{"id":42,"name":"Alice"}`, 1, 0},
			"needs_human":       {`{"type":"needs_human","diagnosis":"token expired","suggestion":"log in again"}`, ``, 1, 0},
		} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				t.Parallel()
				st, up := begin(t), newUserAPI(t)
				var asked atomic.Int64
				st.register("tools", toolServer(t, `{}`, &asked).URL)
				action := strings.ReplaceAll(tc.action, "%s", up.URL)
				w.set(t, st, action)
				id := st.run(fmt.Sprintf("name: user\nsteps:\n  - {type: http_request, config: {url: %q, headers: {X-Kept: \"1\"}}}\n", up.URL+"/v1/users/42"), nil)
				if w.answer != nil {
					w.answer(st, id, action)
				}
				if tc.output == "" {
					g := st.gatedBy(id, "needs_human").Gates[0]
					if g.Agent == nil || g.Agent.Diagnosis != "token expired" || g.Agent.Suggestion != "log in again" {
						t.Errorf("gate: got %+v, want the agent's diagnosis and suggestion", g.Agent)
					}
				} else {
					if kind == "code_fix" {
						g := st.gatedBy(id, "approval").Gates[0]
						st.must("POST", "/v1/gates/"+g.ID+"/answer", map[string]any{"answer": "approve"}, nil)
					}
					r := st.ended(id)
					if r.Status != "succeeded" || string(r.Output) != tc.output || r.source(0) != "byoa" {
						t.Errorf("got %s by %s with %s, want %s by byoa (%s)", r.Status, r.source(0), r.Output, tc.output, r.Steps[0].Message)
					}
				}
				if v1, v2 := up.v1.Load(), up.v2.Load(); v1 != tc.v1 || v2 != tc.v2 {
					t.Errorf("the upstream was called %d and %d times, want %d and %d", v1, v2, tc.v1, tc.v2)
				}
			})
		}
	}
}

// bareServer is an MCP server without the recovery tool.
func bareServer(t *testing.T) string {
	t.Helper()
	s := mcp.NewServer(&mcp.Implementation{Name: "bare", Version: "1"}, nil)
	s.AddTool(&mcp.Tool{Name: "other", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{}, nil
	})
	h := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil))
	t.Cleanup(h.Close)
	return h.URL
}

// TestServersThatCannotHelp: whatever is wrong with the MCP server, the
// built-in mends the step, and the step's log row says what was wrong.
func TestServersThatCannotHelp(t *testing.T) {
	t.Parallel()
	down := httptest.NewServer(http.NotFoundHandler())
	down.Close()
	var asked atomic.Int64
	for name, tc := range map[string]struct{ url, says string }{
		// spec: R-001 R-051
		"nobody is set": {"", "the built-in (rules) answered"},
		// spec: R-006 R-010 R-043 R-051
		"it is down": {down.URL, "your agent was passed over: "},
		// spec: R-010 R-014
		"it lacks the tool": {bareServer(t), "does not list the tool diagnose_step_failure"},
		// spec: R-007 R-010 R-051
		"its answer is none": {toolServer(t, `{"type":"fixed_output"}`, &asked).URL, "diagnosis: is missing"},
		// spec: R-064 R-065
		"it names an unknown server": {toolServer(t, `{"type":"retry_with_tool","diagnosis":"x","toolCall":{"server":"nope","tool":"t","params":{}}}`, &asked).URL,
			`MCP server "nope" is not registered in this workspace`},
		// spec: R-064 R-065
		"it names an unknown tool": {toolServer(t, `{"type":"retry_with_tool","diagnosis":"x","toolCall":{"server":"own","tool":"nope","params":{}}}`, &asked).URL,
			`MCP server "own" has no tool "nope"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			st := begin(t)
			st.must("PUT", "/v1/secrets/api", map[string]any{"value": secretValue}, nil)
			if tc.url != "" {
				st.register("own", tc.url)
				st.set("recovery.mcp_server_id", "own")
			}
			r := st.ended(st.run(fmt.Sprintf(moved, api(t).URL), nil))
			if r.Status != "succeeded" || r.source(0) != "builtin" {
				t.Errorf("got %s by %s, want succeeded by builtin", r.Status, r.source(0))
			}
			var logs struct {
				Items []struct {
					Message string
					Source  *string `json:"recovery_source"`
				}
			}
			st.must("GET", "/v1/runs/"+r.ID+"/logs", nil, &logs)
			last := logs.Items[len(logs.Items)-1]
			if last.Source == nil || *last.Source != "builtin" || !strings.Contains(last.Message, tc.says) {
				t.Errorf("log: got %+v, want builtin and %q", last, tc.says)
			}
		})
	}
}

// TestTheServerIsAskedAgainWithoutTheAgentsURL: to come back to MCP one
// removes the A2A agent's URL.
//
// spec: R-093 R-094
func TestTheServerIsAskedAgainWithoutTheAgentsURL(t *testing.T) {
	t.Parallel()
	st, up := begin(t), api(t)
	var asked, called atomic.Int64
	st.must("PUT", "/v1/secrets/api", map[string]any{"value": secretValue}, nil)
	st.register("own", toolServer(t, `{"type":"fixed_output","diagnosis":"mcp","output":{"id":1}}`, &asked).URL)
	st.set("recovery.mcp_server_id", "own")
	st.set("recovery.a2a_agent_url", agent(t, func(w http.ResponseWriter, r *http.Request, id string, in map[string]any) {
		called.Add(1)
		says(`{"type":"fixed_output","diagnosis":"a2a","output":{"id":2}}`)(w, r, id, in)
	}).URL)
	if r := st.ended(st.run(fmt.Sprintf(moved, up.URL), nil)); string(r.Output) != `{"id":2}` || asked.Load() != 0 || called.Load() != 1 {
		t.Errorf("with both: got %s, MCP asked %d times, A2A %d", r.Output, asked.Load(), called.Load())
	}
	st.must("DELETE", "/v1/settings/recovery.a2a_agent_url", nil, nil)
	if r := st.ended(st.run(fmt.Sprintf(moved, up.URL), nil)); string(r.Output) != `{"id":1}` || asked.Load() != 1 || called.Load() != 1 {
		t.Errorf("without the URL: got %s, MCP asked %d times, A2A %d", r.Output, asked.Load(), called.Load())
	}
}

// TestTheToolIsGivenTheCase: the tool's arguments are RecoveryToolInput, as it
// is kept with the case and sent over A2A.
//
// spec: R-008 R-071 R-109
func TestTheToolIsGivenTheCase(t *testing.T) {
	t.Parallel()
	st := begin(t)
	sent := make(chan json.RawMessage, 1)
	s := mcp.NewServer(&mcp.Implementation{Name: "own", Version: "1"}, nil)
	s.AddTool(&mcp.Tool{Name: "diagnose_step_failure", InputSchema: json.RawMessage(`{"type":"object"}`)},
		func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			sent <- r.Params.Arguments
			return &mcp.CallToolResult{StructuredContent: json.RawMessage(`{"type":"fixed_output","diagnosis":"d","output":{"id":1}}`)}, nil
		})
	h := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil))
	t.Cleanup(h.Close)
	st.must("PUT", "/v1/secrets/api", map[string]any{"value": secretValue}, nil)
	st.register("own", h.URL)
	st.set("recovery.mcp_server_id", "own")
	r := st.ended(st.run(fmt.Sprintf(moved, api(t).URL), map[string]any{"userId": 42}))
	var cases struct {
		Items []struct{ Input map[string]any }
	}
	st.must("GET", "/v1/cases?runId="+r.ID, nil, &cases)
	if len(cases.Items) != 1 {
		t.Fatalf("got %d cases, want 1", len(cases.Items))
	}
	var got map[string]any
	if err := json.Unmarshal(<-sent, &got); err != nil {
		t.Fatal(err)
	}
	if got, want := asJSON(t, got), asJSON(t, cases.Items[0].Input); got != want {
		t.Errorf("the tool was given %s, want the case's %s", got, want)
	}
}
