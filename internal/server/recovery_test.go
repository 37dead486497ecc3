package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/longstop-dev/longstop/internal/nettest"
)

// toolServer is an MCP server of the Go SDK with the recovery tool, which
// answers action, and a tool that fetches a user.
func toolServer(t *testing.T, action string, asked *atomic.Int64) *httptest.Server {
	t.Helper()
	s := mcp.NewServer(&mcp.Implementation{Name: "byoa", Version: "1"}, nil)
	any := json.RawMessage(`{"type":"object"}`)
	s.AddTool(&mcp.Tool{Name: "diagnose_step_failure", InputSchema: any}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		asked.Add(1)
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: action}}}, nil
	})
	s.AddTool(&mcp.Tool{Name: "get_user_fallback", InputSchema: any}, func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{StructuredContent: json.RawMessage(`{"id":9,"params":` + string(r.Params.Arguments) + `}`)}, nil
	})
	h := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil))
	t.Cleanup(h.Close)
	return h
}

func (st *stop) register(id, url string) {
	st.t.Helper()
	st.must("PUT", "/v1/mcp-servers/"+id, map[string]any{"url": url}, nil)
}

// spec: R-008 R-039 R-041
func TestTheMCPServerAnswers(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ action, output string }{
		"fixed_output":    {`{"type":"fixed_output","diagnosis":"cached","output":{"id":1}}`, `{"id":1}`},
		"retry_with_tool": {`{"type":"retry_with_tool","diagnosis":"fallback","toolCall":{"server":"mine","tool":"get_user_fallback","params":{"userId":42}}}`, `{"id":9,"params":{"userId":42}}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			st := begin(t)
			var asked atomic.Int64
			st.must("PUT", "/v1/secrets/api", map[string]any{"value": secretValue}, nil)
			st.register("mine", toolServer(t, tc.action, &asked).URL)
			st.set("recovery.mcp_server_id", "mine")
			r := st.ended(st.run(fmt.Sprintf(moved, api(t).URL), map[string]any{}))
			if r.Status != "succeeded" || r.source(0) != "byoa" || string(r.Output) != tc.output || asked.Load() != 1 {
				t.Fatalf("got %s by %s with %s, asked %d times (%s)", r.Status, r.source(0), r.Output, asked.Load(), r.Steps[0].Message)
			}
		})
	}
}

// spec: R-076 R-093
func TestWhenBothAreSetTheMCPServerIsNotCalled(t *testing.T) {
	t.Parallel()
	st := begin(t)
	var asked atomic.Int64
	st.must("PUT", "/v1/secrets/api", map[string]any{"value": secretValue}, nil)
	st.register("mine", toolServer(t, `{"type":"fixed_output","diagnosis":"mcp","output":{"id":1}}`, &asked).URL)
	st.set("recovery.mcp_server_id", "mine")
	st.set("recovery.a2a_agent_url", agent(t, raw(500, "text/plain", "boom")).URL)
	r := st.ended(st.run(fmt.Sprintf(moved, api(t).URL), map[string]any{}))
	if r.Status != "succeeded" || r.source(0) != "builtin" || asked.Load() != 0 {
		t.Fatalf("got %s by %s, MCP asked %d times", r.Status, r.source(0), asked.Load())
	}
}

const expired = `
name: expired
steps:
  - {id: login, type: transform, config: {value: {token: abc}}}
  - {id: user, type: http_request, config: {url: "%s/expired", headers: {X-Token: "{{ steps.login.output.token }}"}}, output: {type: object, required: [id]}}
`

// called starts a run whose agent calls for a person, and gives the run at
// its gate.
func called(t *testing.T, st *stop, asked *atomic.Int64) runView {
	t.Helper()
	st.set("recovery.a2a_agent_url", agent(t, func(w http.ResponseWriter, r *http.Request, id string, in map[string]any) {
		asked.Add(1)
		if hint, _ := in["human_hint"].(string); hint != "" {
			says(`{"type":"fixed_output","diagnosis":"with a hint","output":{"id":5,"hint":"`+hint+`"}}`)(w, r, id, in)
			return
		}
		says(`{"type":"needs_human","diagnosis":"token expired","suggestion":"log in again"}`)(w, r, id, in)
	}).URL)
	return st.gated(st.run(fmt.Sprintf(expired, api(t).URL), map[string]any{}))
}

// spec: R-011 R-040 R-067 R-068
func TestACallForAPersonTriesTheBuiltInFirst(t *testing.T) {
	t.Parallel()
	st := begin(t)
	var asked atomic.Int64
	r := called(t, st, &asked)
	g := r.Gates[0]
	if g.Kind != "needs_human" || g.Agent == nil || g.Agent.Diagnosis != "token expired" || g.Agent.Suggestion != "log in again" {
		t.Errorf("gate: got %+v, want the agent's diagnosis and suggestion", g)
	}
	if g.Builtin == nil || g.Builtin.Diagnosis == "" {
		t.Errorf("gate: got %+v, want the built-in's beside it", g.Builtin)
	}
	if asked.Load() != 1 {
		t.Errorf("the agent was asked %d times, want 1", asked.Load())
	}
	var cases struct {
		Items []struct {
			ID    string
			Asked []struct{ Responder string }
		}
	}
	st.must("GET", "/v1/cases?runId="+r.ID, nil, &cases)
	var who []string
	for i := len(cases.Items) - 1; i >= 0; i-- {
		for _, a := range cases.Items[i].Asked {
			who = append(who, a.Responder)
		}
	}
	if got := strings.Join(who, " "); got != "a2a rules" {
		t.Errorf("asked: got %q, want a2a, then rules", got)
	}
}

// spec: R-027
func TestAPersonAnswers(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		answer         map[string]any
		status, source string
		output         string // what it must hold
		asked          int64
	}{
		"output": {map[string]any{"answer": "output", "output": map[string]any{"id": 3}, "reason": "from the console"}, "succeeded", "human", `{"id":3}`, 1},
		"skip":   {map[string]any{"answer": "skip"}, "succeeded", "human", `null`, 1},
		"fail":   {map[string]any{"answer": "fail", "reason": "not worth it"}, "failed", "null", ``, 1},
		"hint":   {map[string]any{"answer": "hint", "hint": "use the cache"}, "succeeded", "byoa", `"hint":"use the cache"`, 2},
		"action": {map[string]any{"answer": "action", "action": map[string]any{"type": "fixed_output", "diagnosis": "by hand", "output": map[string]any{"id": 4}}}, "succeeded", "human", `{"id":4}`, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			st := begin(t)
			var asked atomic.Int64
			r := called(t, st, &asked)
			st.must("POST", "/v1/gates/"+r.Gates[0].ID+"/answer", tc.answer, nil)
			r = st.ended(r.ID)
			if r.Status != tc.status || r.source(1) != tc.source || !strings.Contains(string(r.Output), tc.output) || asked.Load() != tc.asked {
				t.Fatalf("got %s by %s with %s, agent asked %d times (%s)", r.Status, r.source(1), r.Output, asked.Load(), r.Error)
			}
			if code, b := st.call("POST", "/v1/gates/"+st.gateOf(r.ID)+"/answer", tc.answer, nil); code != http.StatusConflict {
				t.Errorf("a second answer: got %d %s, want 409", code, b)
			}
		})
	}
	t.Run("edit", func(t *testing.T) {
		t.Parallel()
		st := begin(t)
		var asked atomic.Int64
		r := called(t, st, &asked)
		up := api(t)
		st.must("POST", "/v1/gates/"+r.Gates[0].ID+"/answer", map[string]any{"answer": "edit",
			"modifications": map[string]any{"httpRequest": map[string]any{"url": up.URL + "/v2/users/1"}}}, nil)
		if r = st.ended(r.ID); r.Status != "succeeded" || r.source(1) != "human" || !strings.Contains(string(r.Output), `"id":42`) {
			t.Fatalf("got %s by %s with %s (%s)", r.Status, r.source(1), r.Output, r.Error)
		}
	})
	t.Run("wrongly", func(t *testing.T) {
		t.Parallel()
		st := begin(t)
		var asked atomic.Int64
		r := called(t, st, &asked)
		for _, bad := range []map[string]any{{"answer": "approve"}, {"answer": "output"}, {"answer": "output", "output": map[string]any{"no": "id"}},
			{"answer": "edit", "modifications": map[string]any{"title": "x"}}, {"answer": "hint"}, {"answer": "shrug"}, {}, {"answer": "action", "action": map[string]any{"type": "x"}}} {
			if code, b := st.call("POST", "/v1/gates/"+r.Gates[0].ID+"/answer", bad, nil); code != http.StatusUnprocessableEntity {
				t.Errorf("%v: got %d %s, want 422", bad, code, b)
			}
		}
		if r = st.get(r.ID); r.Status != "waiting" {
			t.Errorf("after wrong answers: got %s, want waiting", r.Status)
		}
	})
}

// gateOf is the only gate that a run has had.
func (st *stop) gateOf(run string) string {
	st.t.Helper()
	var l struct{ Items []struct{ ID string } }
	st.must("GET", "/v1/gates?runId="+run, nil, &l)
	if len(l.Items) != 1 {
		st.t.Fatalf("gates of %s: got %d, want 1", run, len(l.Items))
	}
	return l.Items[0].ID
}

func TestCancelAtAGate(t *testing.T) {
	t.Parallel()
	st := begin(t)
	var asked atomic.Int64
	r := called(t, st, &asked)
	st.must("POST", "/v1/runs/"+r.ID+"/cancel", nil, nil)
	if r = st.get(r.ID); r.Status != "cancelled" || len(r.Gates) != 0 {
		t.Errorf("got %s with %d open gates", r.Status, len(r.Gates))
	}
}

func TestAgentsAreTriedAndCasesReplayed(t *testing.T) {
	t.Parallel()
	st := begin(t)
	var asked atomic.Int64
	r := called(t, st, &asked)
	var cases struct{ Items []struct{ ID string } }
	st.must("GET", "/v1/cases?runId="+r.ID, nil, &cases)
	good := agent(t, says(`{"type":"retry_with_params","diagnosis":"a new header","modifications":{"headers":{"X-New":"1"}}}`))
	bad := agent(t, says(`{"type":"fixed_output","diagnosis":"nothing"}`))
	type trial struct {
		Found     struct{ Found bool }
		Valid     bool
		Rejection string
	}
	var replay struct{ Now trial }
	st.must("POST", "/v1/cases/"+cases.Items[0].ID+"/replay", map[string]any{"agent": good.URL}, &replay)
	if !replay.Now.Found.Found || !replay.Now.Valid {
		t.Errorf("replay: got %+v, want a valid answer", replay.Now)
	}
	var out trial
	st.must("POST", "/v1/agents/test", map[string]any{"agent": bad.URL}, &out)
	if !out.Found.Found || out.Valid || !strings.Contains(out.Rejection, "output") {
		t.Errorf("test of a bad agent: got %+v, want a refusal that names output", out)
	}
	if r = st.get(r.ID); r.Status != "waiting" {
		t.Errorf("after a replay the run is %s: something was applied", r.Status)
	}
}

// TestTheSpecificationsCurlLines sends what `curl -d` sends.
//
// spec: R-046 R-047 R-048 R-078 R-079
func TestTheSpecificationsCurlLines(t *testing.T) {
	t.Parallel()
	st := begin(t)
	var asked atomic.Int64
	st.register("your-mcp-server-id", toolServer(t, `{}`, &asked).URL)
	for key, value := range map[string]string{"recovery.mcp_server_id": "your-mcp-server-id", "recovery.timeout_ms": "15000",
		"recovery.a2a_agent_url": agent(t, says(`{}`)).URL, "recovery.a2a_auth_token": "your-bearer-token"} {
		req, err := http.NewRequest("PUT", st.s.URL()+"/v1/settings/"+key, strings.NewReader(fmt.Sprintf(`{"value": %q}`, value)))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+st.s.Key())
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		resp, err := nettest.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			t.Errorf("%s: got %d, want 200", key, resp.StatusCode)
		}
	}
	if _, b := st.call("GET", "/v1/settings/recovery.a2a_auth_token", nil, nil); strings.Contains(b, "your-bearer-token") {
		t.Errorf("the token is shown: %s", b)
	}
	for value, want := range map[string]int{"999": 422, "60001": 422, "1000": 200, "60000": 200, "x": 422} {
		if code, b := st.call("PUT", "/v1/settings/recovery.timeout_ms", map[string]any{"value": value}, nil); code != want {
			t.Errorf("timeout %s: got %d %s, want %d", value, code, b, want)
		}
	}
	if code, _ := st.call("PUT", "/v1/settings/recovery.nope", map[string]any{"value": "1"}, nil); code != http.StatusNotFound {
		t.Errorf("an unknown key: got %d, want 404", code)
	}
}

// spec: R-036 R-037
func TestACodeFixIsApproved(t *testing.T) {
	t.Parallel()
	st := begin(t)
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"userId":7,"fullName":"Alice"}`)
	}))
	t.Cleanup(up.Close)
	st.set("recovery.a2a_agent_url", agent(t, says(`{"type":"code_fix","diagnosis":"renamed","code":"return { id: input.userId, name: input.fullName };"}`)).URL)
	yaml := fmt.Sprintf("name: shape\nsteps: [{type: http_request, config: {url: %q}, output: {type: object, required: [id]}}]\n", up.URL)
	r := st.gated(st.run(yaml, map[string]any{}))
	if r.Gates[0].Kind != "approval" {
		t.Fatalf("gate: got %s, want approval", r.Gates[0].Kind)
	}
	var g struct {
		Proposal struct {
			Code   string
			Output json.RawMessage
		}
	}
	st.must("GET", "/v1/gates/"+r.Gates[0].ID, nil, &g)
	if !strings.Contains(g.Proposal.Code, "fullName") || string(g.Proposal.Output) != `{"id":7,"name":"Alice"}` {
		t.Errorf("what the person sees: got %+v", g.Proposal)
	}
	st.must("POST", "/v1/gates/"+r.Gates[0].ID+"/answer", map[string]any{"answer": "approve"}, nil)
	if r = st.ended(r.ID); r.Status != "succeeded" || r.source(0) != "byoa" || string(r.Output) != `{"id":7,"name":"Alice"}` {
		t.Fatalf("got %s by %s with %s (%s)", r.Status, r.source(0), r.Output, r.Error)
	}
	// Refused, it is a failed recovery attempt: the built-in has the next.
	r = st.gated(st.run(yaml, map[string]any{}))
	st.must("POST", "/v1/gates/"+r.Gates[0].ID+"/answer", map[string]any{"answer": "refuse", "reason": "no"}, nil)
	if r = st.ended(r.ID); r.Status != "succeeded" || r.source(0) != "builtin" {
		t.Fatalf("refused: got %s by %s (%s)", r.Status, r.source(0), r.Steps[0].Message)
	}
}
