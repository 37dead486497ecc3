package recovery

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/longstop-dev/longstop/internal/flow"
)

// answered has one source give an action about a failure. It gives what
// becomes of it, and why it was refused.
func answered(t *testing.T, who, action string) (v flow.Verdict, why string) {
	t.Helper()
	b, d := coding(t, "return 1")
	b.tools["s"] = []string{"t"}
	b.refused["https://10.0.0.1/"] = "it is a private address"
	switch who {
	case "a2a":
		b.own.answer = action
	case "mcp":
		b.settings.A2AAgentURL, b.settings.MCPServerID, b.mcp.answer = "", "m", action
	case "rules":
		b.settings.A2AAgentURL, b.rules.answer = "", action
	case "inbox":
		b.settings.Mode = "agent"
	}
	f := httpFailure()
	v = decideWith(t, d, f)
	if who == "inbox" {
		var err error
		v, err = d.Answered(t.Context(), flow.Caller{Person: "p"}, f, v.Case, *v.Gate, flow.GateAnswer{Answer: "action", Action: []byte(action)})
		var e *flow.Error
		if errors.As(err, &e) {
			return v, strings.TrimPrefix(e.Error(), "action.")
		}
	}
	for _, a := range v.Case.Asked {
		if a.Rejection != "" {
			return v, a.Rejection
		}
	}
	return v, ""
}

// TestTheGuardIsTheSameForEveryone: who answers makes no difference to what is
// refused, and none to what becomes of what is not.
//
// spec: R-003 R-035 R-108 R-110 R-111
func TestTheGuardIsTheSameForEveryone(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		action string
		kind   flow.VerdictKind // if it is taken
		gate   flow.GateKind
		why    string // if it is refused
	}{
		"output":          {fixed, flow.VerdictOutput, "", ""},
		"retry":           {`{"type":"retry_with_params","diagnosis":"d","modifications":{"headers":{"A":"1"}}}`, flow.VerdictRetry, "", ""},
		"tool":            {`{"type":"retry_with_tool","diagnosis":"d","toolCall":{"server":"s","tool":"t"}}`, flow.VerdictTool, "", ""},
		"code":            {`{"type":"code_fix","diagnosis":"d","code":"return 1"}`, flow.VerdictGate, flow.GateApproval, ""},
		"title":           {`{"type":"retry_with_params","diagnosis":"d","modifications":{"title":"x"}}`, "", "", "modifications.title: may not be changed"},
		"a field":         {`{"type":"retry_with_params","diagnosis":"d","modifications":{"httpRequest":{"expect":[404]}}}`, "", "", "modifications.httpRequest.expect: may not be changed"},
		"a header":        {`{"type":"retry_with_params","diagnosis":"d","modifications":{"headers":{"Host":"x"}}}`, "", "", "headers.Host: may not be set by a mend"},
		"a private place": {`{"type":"retry_with_params","diagnosis":"d","modifications":{"httpRequest":{"url":"https://10.0.0.1/"}}}`, "", "", "it is a private address"},
		"unknown tool":    {`{"type":"retry_with_tool","diagnosis":"d","toolCall":{"server":"s","tool":"x"}}`, "", "", `MCP server "s" has no tool "x"`},
		"broken code":     {`{"type":"code_fix","diagnosis":"d","code":"throw new Error('no idea')"}`, "", "", "no idea"},
		"no such type":    {`{"type":"rm_rf","diagnosis":"d"}`, "", "", "type: must be one of"},
	} {
		for _, who := range []string{"a2a", "mcp", "rules", "inbox"} {
			t.Run(name+" by "+who, func(t *testing.T) {
				t.Parallel()
				v, why := answered(t, who, tc.action)
				if tc.why != "" {
					if !strings.Contains(why, tc.why) {
						t.Errorf("rejection: got %q, want %q in it", why, tc.why)
					}
					return
				}
				if v.Kind != tc.kind || why != "" || tc.gate != "" && v.Gate.Kind != tc.gate {
					t.Errorf("got %s (%s), refused because of %q; want %s %s", v.Kind, v.Message, why, tc.kind, tc.gate)
				}
			})
		}
	}
}

// TestHowLongAnAgentMayTake: the setting, or what is left of the step's time.
//
// spec: R-013 R-062 R-091
func TestHowLongAnAgentMayTake(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ setting, left, want time.Duration }{
		"the setting":          {5 * time.Second, time.Hour, 5 * time.Second},
		"a raised setting":     {time.Minute, time.Hour, time.Minute},
		"what the step has":    {time.Minute, 20 * time.Second, 20 * time.Second},
		"the step's last bit":  {time.Minute, 50 * time.Millisecond, 50 * time.Millisecond},
		"more than it can use": {time.Minute, 24 * time.Hour, time.Minute},
	} {
		for _, who := range []string{"a2a", "mcp"} {
			t.Run(name+", "+who, func(t *testing.T) {
				t.Parallel()
				b, f := newBed(t), httpFailure()
				own := b.own
				if b.settings.A2AAgentURL = "https://agent.example.com"; who == "mcp" {
					b.settings.A2AAgentURL, b.settings.MCPServerID, own = "", "m", b.mcp
				}
				own.allowed = make(chan time.Duration, 10)
				own.answer, own.hang = fixed, tc.want < time.Second // only the shortest is waited for
				b.settings.Timeout, f.Left = tc.setting, tc.left
				v := b.decide(f)
				if got := <-own.allowed; got > tc.want || got < tc.want-10*time.Second {
					t.Errorf("the agent has %s, want %s", got, tc.want)
				}
				if own.hang && !strings.Contains(v.Message, "no answer within 50ms") {
					t.Errorf("message: got %q, want that 50 ms were over", v.Message)
				}
			})
		}
	}
}
