package demo

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/longstop-dev/longstop/internal/client"
	"github.com/longstop-dev/longstop/internal/flow"
)

// agent says whose agent the workspace's settings name during a scenario.
type agent string

const (
	noAgent  agent = "none"
	a2aAgent agent = "A2A"
	mcpAgent agent = "MCP"
	inAgent  agent = "inbox" // it runs no server: it polls
)

// scenario is a workflow that breaks and what must come of it.
type scenario struct {
	name   string
	agent  agent
	yaml   string           // %s is the API's URL
	answer *flow.GateAnswer // what a person answers the gate, if one opens
	want   want
}

// want is how a run must end.
type want struct {
	status  flow.RunStatus
	source  flow.Source // who mended the last step
	output  string      // what the output must hold
	message string      // what the last step's message must hold
}

func (s scenario) definition(api string) []byte {
	return []byte(strings.ReplaceAll(s.yaml, "%s", api))
}

// check says what of a finished run is not as it must be; "" if all is.
func (s scenario) check(r *client.Run) string {
	last := r.Steps[len(r.Steps)-1]
	switch {
	case r.Status != s.want.status:
		return fmt.Sprintf("the run %s, and should have %s: %s", r.Status, s.want.status, r.Error)
	case last.RecoverySource != s.want.source:
		return fmt.Sprintf("mended by %q, and should have been by %q", last.RecoverySource, s.want.source)
	case !strings.Contains(string(r.Output), s.want.output):
		return fmt.Sprintf("the output %s does not hold %s", r.Output, s.want.output)
	case !strings.Contains(last.Message, s.want.message):
		return fmt.Sprintf("the message %q does not hold %q", last.Message, s.want.message)
	}
	return ""
}

// fetch is a workflow of one request.
func fetch(name, title, intent, path, contract string) string {
	return fmt.Sprintf(`
name: %s
recovery: {timeout_ms: 1000}
steps:
  - id: fetch
    type: http_request
    title: %q
    intent: %q
    config: {url: "%%s%s"}
    output: %s
`, name, title, intent, path, contract)
}

const hasID, hasRows = `{type: object, required: [id]}`, `{type: object, required: [rows]}`

// scenarios lists what the demo shows, the agents in turn.
func scenarios() []scenario {
	return []scenario{
		{name: "A busy API: the step's own retry", agent: noAgent, yaml: `
name: busy
steps:
  # 429 with Retry-After: 1, then 503, then an answer
  - {id: fetch, type: http_request, title: Ask a busy API, config: {url: "%s/busy/{{ run.id }}"}, retry: {attempts: 3, backoff: 100ms}}
`, want: want{status: flow.RunSucceeded, output: `{"ok":true}`}},
		{name: "Nothing fails: branches and a wait", agent: noAgent, yaml: `
name: branches
steps:
  - {id: user, type: http_request, title: Fetch a user, config: {url: "%s/v2/users/42"}}
  - {id: pause, type: wait, title: Wait a moment, config: {for: 200ms}}
  - id: vip
    type: conditional
    title: Is she Alice?
    config:
      if: steps.user.output.name == "Alice"
      then: [{id: greet, type: transform, title: Greet her, config: {value: "Hello {{ steps.user.output.name }}"}}]
      else: [{id: other, type: transform, config: {value: "Who?"}}]
`, want: want{status: flow.RunSucceeded}},
		{name: "No agent: the built-in follows a Link", agent: noAgent,
			yaml: fetch("retired", "Fetch a user", "GET a user", "/old/users/42", hasID),
			want: want{status: flow.RunSucceeded, source: flow.SourceBuiltin, output: `"Alice"`}},
		{name: "A2A: retry_with_params", agent: a2aAgent,
			yaml: fetch("moved", "Fetch a user", "GET a user", "/v1/users/42", hasID),
			want: want{status: flow.RunSucceeded, source: flow.SourceBYOA, output: `"Alice"`, message: "v2 has the same shape"}},
		{name: "A2A: fixed_output", agent: a2aAgent,
			yaml: fetch("report", "Fetch the report", "GET the nightly report", "/reports", hasRows),
			want: want{status: flow.RunSucceeded, source: flow.SourceBYOA, output: `"yesterday"`}},
		{name: "A2A: a slow API, the agent gives it time", agent: a2aAgent, yaml: `
name: patience
steps:
  - {id: fetch, type: http_request, title: Ask a slow API, config: {url: "%s/slow/42"}, timeout: 300ms, output: {type: object, required: [id]}}
`, want: want{status: flow.RunSucceeded, source: flow.SourceBYOA, output: `"late":true`, message: "most of a second"}},
		{name: "A2A: too slow, the built-in takes over", agent: a2aAgent,
			yaml: fetch("slow", "Fetch a user", "GET a user while the agent thinks too long", "/old/users/42", hasID),
			want: want{status: flow.RunSucceeded, source: flow.SourceBuiltin, output: `"Alice"`, message: "no answer within 1s"}},
		{name: "A2A: rubbish, the built-in takes over", agent: a2aAgent,
			yaml: fetch("rubbish", "Fetch a user", "GET a user while the agent babbles", "/old/users/42", hasID),
			want: want{status: flow.RunSucceeded, source: flow.SourceBuiltin, output: `"Alice"`, message: "passed over"}},
		{name: "A2A: hostile, refused by the guard", agent: a2aAgent,
			yaml: fetch("hostile", "Fetch a user", "GET a user while the agent was turned", "/old/users/42", hasID),
			want: want{status: flow.RunSucceeded, source: flow.SourceBuiltin, output: `"Alice"`, message: "metadata"}},
		{name: "A2A: needs_human, a person answers", agent: a2aAgent,
			yaml:   fetch("expired", "Fetch orders", "GET today's orders", "/orders", `{type: object, required: [orders]}`),
			answer: &flow.GateAnswer{Answer: "output", Output: json.RawMessage(`{"orders":[]}`), Reason: "No orders today, I looked."},
			want:   want{status: flow.RunSucceeded, source: flow.SourceHuman, output: `{"orders":[]}`}},
		{name: "A2A: a person's hint, the agent mends", agent: a2aAgent,
			yaml:   fetch("hinted", "Fetch invoices", "GET the invoices", "/invoices", hasRows),
			answer: &flow.GateAnswer{Answer: "hint", Hint: "They want an X-Tenant header since Monday; ours is acme."},
			want:   want{status: flow.RunSucceeded, source: flow.SourceBYOA, output: `{"rows":3}`, message: "The hint names the header"}},
		{name: "MCP: retry_with_params", agent: mcpAgent,
			yaml: fetch("moved-mcp", "Fetch a user", "GET a user", "/v1/users/42", hasID),
			want: want{status: flow.RunSucceeded, source: flow.SourceBYOA, output: `"Alice"`}},
		{name: "MCP: retry_with_tool", agent: mcpAgent,
			yaml: fetch("archive", "Fetch the report", "GET the nightly report, or the archive's", "/reports", hasRows),
			want: want{status: flow.RunSucceeded, source: flow.SourceBYOA, output: `"archive"`}},
		{name: "MCP: code_fix, a person approves it", agent: mcpAgent,
			yaml:   fetch("shape", "Fetch a profile", "GET a profile; the agent writes code", "/profiles/42", hasID),
			answer: &flow.GateAnswer{Answer: "approve", Reason: "Looks right."},
			want:   want{status: flow.RunSucceeded, source: flow.SourceBYOA, output: `"id":"42"`, message: "approved the code fix"}},
		{name: "MCP: code_fix refused, the built-in mends", agent: mcpAgent,
			yaml:   fetch("shape-refused", "Fetch a profile", "GET a profile; the agent writes code", "/profiles/42", hasID),
			answer: &flow.GateAnswer{Answer: "refuse", Reason: "I do not like it."},
			want:   want{status: flow.RunSucceeded, source: flow.SourceBuiltin, output: `"id":"42"`}},
		{name: "MCP: needs_human, a person edits", agent: mcpAgent,
			yaml:   fetch("expired-mcp", "Fetch orders", "GET today's orders", "/orders", hasID),
			answer: &flow.GateAnswer{Answer: "edit", Modifications: json.RawMessage(`{"httpRequest":{"url":"%s/v2/users/7"}}`), Reason: "Users will do."},
			want:   want{status: flow.RunSucceeded, source: flow.SourceHuman, output: `"7"`}},
		{name: "Inbox: an agent polls and answers", agent: inAgent,
			yaml: strings.Replace(fetch("polled", "Fetch a user", "GET a user", "/v1/users/42", hasID), "{timeout_ms: 1000}", "{mode: agent}", 1),
			want: want{status: flow.RunSucceeded, source: flow.SourceBYOA, output: `"Alice"`, message: "v2 has the same shape"}},
	}
}
