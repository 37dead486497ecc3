package recovery

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/longstop-dev/longstop/internal/flow"
)

const (
	fixed = `{"type":"fixed_output","diagnosis":"took it from the cache","output":{"id":42}}`
	human = `{"type":"needs_human","diagnosis":"the key is gone","suggestion":"renew it"}`
)

// spec: R-001 R-009 R-011 R-012 R-056 R-068 R-076 R-093 R-106
func TestWhoIsAsked(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name            string
		set             func(*bed, *flow.Failure)
		own, mcp, rules int
	}{
		{"nobody is set", func(*bed, *flow.Failure) {}, 0, 0, 1},
		{"A2A", func(b *bed, _ *flow.Failure) { b.settings.A2AAgentURL = "https://a" }, 1, 0, 0},
		{"MCP", func(b *bed, _ *flow.Failure) { b.settings.MCPServerID = "m" }, 0, 1, 0},
		{"both: MCP is not called", func(b *bed, _ *flow.Failure) { b.settings.A2AAgentURL, b.settings.MCPServerID = "https://a", "m" }, 1, 0, 0},
		{"both, and A2A fails: still not", func(b *bed, _ *flow.Failure) {
			b.settings.A2AAgentURL, b.settings.MCPServerID = "https://a", "m"
			b.own.err = errors.New("x")
		}, 1, 0, 1},
		{"attempt 1 is the built-in's", func(b *bed, f *flow.Failure) {
			b.settings.A2AAgentURL = "https://a"
			f.Instance.Progress.Round = 1
		}, 0, 0, 1},
		{"attempt 2 is nobody's", func(b *bed, f *flow.Failure) {
			b.settings.A2AAgentURL = "https://a"
			f.Instance.Progress.Round = 2
		}, 0, 0, 0},
		{"one attempt only", func(b *bed, f *flow.Failure) { b.settings.MaxAttempts = 1; f.Instance.Progress.Round = 1 }, 0, 0, 0},
		{"one attempt, after the agent's needs_human", func(b *bed, f *flow.Failure) {
			b.settings.MaxAttempts = 1
			f.Instance.Progress.Round, f.Instance.Progress.Agent = 1, &flow.Escalation{Diagnosis: "d"}
		}, 0, 0, 1},
		{"but only once", func(b *bed, f *flow.Failure) {
			b.settings.MaxAttempts = 1
			f.Instance.Progress.Round, f.Instance.Progress.Agent = 2, &flow.Escalation{Diagnosis: "d"}
		}, 0, 0, 0},
		{"no time left for the own agent", func(b *bed, f *flow.Failure) {
			b.settings.A2AAgentURL = "https://a"
			f.Left = 0
		}, 0, 0, 1},
		{"the built-in is off", func(b *bed, _ *flow.Failure) { b.settings.Builtin = "off" }, 0, 0, 0},
		{"the built-in is not here", func(b *bed, _ *flow.Failure) { b.settings.Builtin = "oracle" }, 0, 0, 0},
		{"inbox", func(b *bed, _ *flow.Failure) { b.settings.Mode, b.settings.A2AAgentURL = "agent", "https://a" }, 0, 0, 0},
		{"observed", func(b *bed, _ *flow.Failure) { b.settings.Mode = "observe" }, 0, 0, 1},
		{"settings cannot be read", func(b *bed, _ *flow.Failure) { b.broken = errors.New("disk") }, 0, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b, f := newBed(t), httpFailure()
			b.own.answer, b.mcp.answer = fixed, fixed
			c.set(b, &f)
			v := b.decide(f)
			if b.own.count() != c.own || b.mcp.count() != c.mcp || b.rules.count() != c.rules {
				t.Errorf("asked a2a %d, mcp %d, rules %d, want %d, %d, %d", b.own.count(), b.mcp.count(), b.rules.count(), c.own, c.mcp, c.rules)
			}
			if got, want := v.Adapting.BYOAAttempted, c.own+c.mcp > 0; got != want {
				t.Errorf("byoa_attempted = %v, want %v", got, want)
			}
			if v.Case.ID == "" || v.Message == "" || len(v.Case.Asked) != c.own+c.mcp+c.rules && c.name != "no time left for the own agent" {
				t.Errorf("verdict without its record: %+v", v)
			}
		})
	}
}

// spec: R-002 R-004 R-050 R-057 R-058
func TestOwnAgentIsUsed(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.settings.MCPServerID, b.mcp.answer = "m", fixed
	v := b.decide(httpFailure())
	if v.Kind != flow.VerdictOutput || v.Source != flow.SourceBYOA || string(v.Output) != `{"id":42}` {
		t.Fatalf("verdict = %+v", v)
	}
	if want := "your agent (mcp) answered fixed_output: took it from the cache"; v.Message != want {
		t.Errorf("message = %q, want %q", v.Message, want)
	}
	a := v.Adapting
	if !a.BYOAAttempted || a.BYOAResultSummary == nil || *a.BYOAResultSummary != "fixed_output: took it from the cache" || a.BYOATimingMS == nil || a.BYOARejectionReason != nil {
		t.Errorf("adapting = %+v", a)
	}
	k := v.Case
	if k.ClosedAt == nil || k.Outcome != "fixed_output by byoa" || len(k.Asked) != 1 || !k.Asked[0].Accepted || k.Asked[0].Responder != "mcp" ||
		k.Asked[0].Source != flow.SourceBYOA || string(k.Asked[0].Action) != fixed {
		t.Errorf("case = %+v", k)
	}
}

// spec: R-005 R-006 R-007 R-010 R-051 R-059 R-064 R-065 R-076
func TestOwnAgentIsPassedOver(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		set  func(*bed)
		want string
	}{
		{"rubbish", func(b *bed) { b.own.answer = "<html>" }, "HTML or XML page"},
		{"error", func(b *bed) { b.own.err = &flow.AskError{Kind: flow.AskUnreachable, Message: "could not be reached"} }, "could not be reached"},
		{"an error that holds a secret", func(b *bed) { b.own.err = errors.New("token sk-live-0123456789 refused") }, "token [secret:api] refused"},
		{"too slow", func(b *bed) { b.own.hang, b.settings.Timeout = true, 20*time.Millisecond }, "no answer within 20ms"},
		{"it breaks", func(b *bed) { b.own.panics = true }, "the responder a2a broke"},
		{"code", func(b *bed) { b.own.answer = `{"type":"code_fix","diagnosis":"d","code":"return 1"}` }, "code_fix is not offered here"},
		{"unknown server", func(b *bed) {
			b.own.answer = `{"type":"retry_with_tool","diagnosis":"d","toolCall":{"server":"x","tool":"t"}}`
		}, `MCP server "x" is not registered in this workspace`},
		{"unknown tool", func(b *bed) {
			b.tools["s"] = []string{"other"}
			b.own.answer = `{"type":"retry_with_tool","diagnosis":"d","toolCall":{"server":"s","tool":"t"}}`
		}, `MCP server "s" has no tool "t"`},
		{"over the limit", func(b *bed) { b.limits.OutputBytes = 5; b.own.answer = fixed }, "at most 5, the limit of limits.output_bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t)
			b.settings.A2AAgentURL = "https://agent.example.com"
			c.set(b)
			b.rules.answer = `{"type":"retry_with_params","diagnosis":"it has moved","modifications":{}}`
			v := b.decide(httpFailure())
			if v.Kind != flow.VerdictRetry || v.Source != flow.SourceBuiltin {
				t.Fatalf("verdict = %s by %q, want the built-in's retry (%s)", v.Kind, v.Source, v.Message)
			}
			if !strings.HasPrefix(v.Message, "your agent was passed over: ") || !strings.Contains(v.Message, c.want) ||
				!strings.HasSuffix(v.Message, "the built-in (rules) answered retry_with_params: it has moved") {
				t.Errorf("message = %q, want %q in it", v.Message, c.want)
			}
			a := v.Adapting
			if !a.BYOAAttempted || a.BYOARejectionReason == nil || !strings.Contains(*a.BYOARejectionReason, c.want) || a.BYOAResultSummary != nil {
				t.Errorf("adapting = %+v", a)
			}
			if n := len(v.Case.Asked); n != 2 || v.Case.Asked[0].Accepted || !v.Case.Asked[1].Accepted || v.Case.Attempt != 0 {
				t.Errorf("case = %+v, want both in one attempt", v.Case)
			}
			if all, _ := json.Marshal(v); strings.Contains(string(all), "sk-live") {
				t.Errorf("the verdict holds the secret: %s", all)
			}
		})
	}
}

// spec: R-040 R-067
func TestNeedsHumanOfTheOwnAgent(t *testing.T) {
	t.Parallel()
	b, f := newBed(t), httpFailure()
	b.settings.A2AAgentURL, b.settings.MaxAttempts, b.own.answer = "https://a", 1, human
	v := b.decide(f)
	if v.Kind != flow.VerdictAgain || v.Agent == nil || v.Agent.Diagnosis != "the key is gone" || v.Gate != nil || b.rules.count() != 0 {
		t.Fatalf("verdict = %+v, want the built-in's turn", v)
	}
	if v.Source != flow.SourceNone || v.Case.ClosedAt == nil {
		t.Errorf("source %q, closed %v: nothing was applied, and the case is over", v.Source, v.Case.ClosedAt)
	}
	f.Instance.Progress.Round, f.Instance.Progress.Agent = 1, v.Agent
	b.rules.answer = `{"type":"needs_human","diagnosis":"no rule","suggestion":"look"}`
	v = b.decide(f)
	g := v.Gate
	if v.Kind != flow.VerdictGate || g == nil {
		t.Fatalf("verdict = %+v, want a gate", v)
	}
	if g.Agent == nil || g.Agent.Suggestion != "renew it" || g.Builtin == nil || g.Builtin.Diagnosis != "no rule" {
		t.Errorf("gate says agent %+v, builtin %+v", g.Agent, g.Builtin)
	}
	if g.Kind != flow.GateNeedsHuman || g.Status != flow.GateOpen || g.RunID != "run_1" || g.StepIndex != 2 || g.Workflow != "w" || g.CaseID != v.Case.ID ||
		g.Workspace != "ws" || g.Title != "Fetch user" || !g.ExpiresAt.Equal(b.clock.Now().Add(time.Hour)) || !strings.HasPrefix(g.Error, "HTTP 404: Not Found\nno [secret:api]") {
		t.Errorf("gate = %+v", g)
	}
	if v.Case.ClosedAt != nil || v.Case.Outcome != "needs_human gate opened" {
		t.Errorf("case = %+v, want it open", v.Case)
	}

	b = newBed(t)
	b.settings.A2AAgentURL, b.settings.Builtin, b.own.answer = "https://a", "off", human
	if v := b.decide(httpFailure()); v.Kind != flow.VerdictGate || v.Gate.Agent == nil || v.Gate.Builtin != nil {
		t.Errorf("with the built-in off: %+v, want the gate at once", v)
	}
}

func TestBuiltinRetryNeedsTime(t *testing.T) {
	t.Parallel()
	b, f := newBed(t), httpFailure()
	b.rules.answer, b.rules.after = `{"type":"retry_with_params","diagnosis":"wait","modifications":{}}`, 30*time.Second
	if v := b.decide(f); v.Kind != flow.VerdictRetry || v.After != 30*time.Second {
		t.Errorf("with a minute left: %s after %s, want a retry", v.Kind, v.After)
	}
	f.Left = 20 * time.Second
	if v := b.decide(f); v.Kind != flow.VerdictGate || !strings.Contains(v.Message, "no time is left of the step's total_timeout") {
		t.Errorf("with 20 s left: %s, %q, want a gate", v.Kind, v.Message)
	}
	f.Left, b.rules.answer, b.rules.after = 0, fixed, 0
	if v := b.decide(f); v.Kind != flow.VerdictOutput {
		t.Errorf("an output with no time left: %s, want it taken", v.Kind)
	}
}

func TestContractHoldsForGivenOutputs(t *testing.T) {
	t.Parallel()
	b, f := newBed(t), httpFailure()
	f.Step.Output = json.RawMessage(`{"type":"object","required":["id"],"properties":{"id":{"type":"integer"}}}`)
	b.settings.A2AAgentURL = "https://a"
	b.own.answer = `{"type":"fixed_output","diagnosis":"d","output":{"id":"42"}}`
	v := b.decide(f)
	if v.Kind != flow.VerdictGate || !strings.Contains(v.Case.Asked[0].Rejection, "output: does not satisfy the step's output contract: ") {
		t.Errorf("a wrong output: %s, %q", v.Kind, v.Case.Asked[0].Rejection)
	}
	b.own.answer = fixed
	if v := b.decide(f); v.Kind != flow.VerdictOutput {
		t.Errorf("a right output: %s (%s)", v.Kind, v.Message)
	}
}

func TestToolVerdict(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.settings.A2AAgentURL, b.tools["s"] = "https://a", []string{"t"}
	b.own.answer = `{"type":"retry_with_tool","diagnosis":"d","toolCall":{"server":"s","tool":"t","params":{"k":"sk-live-0123456789"}}}`
	v := b.decide(httpFailure())
	if v.Kind != flow.VerdictTool || v.Tool == nil || v.Tool.Server != "s" || string(v.Tool.Params) != `{"k":"[secret:api]"}` {
		t.Errorf("verdict = %+v, tool %+v", v, v.Tool)
	}
}

func TestTheRulesStandInForTheModel(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		model *fake
		left  time.Duration
		why   string
	}{
		"it fails":          {&fake{name: "model", err: &flow.AskError{Kind: flow.AskUnreachable, Message: "model.daily_tokens is spent"}}, time.Minute, "model.daily_tokens is spent"},
		"it is refused":     {&fake{name: "model", answer: `{"type":"rm_rf","diagnosis":"d"}`}, time.Minute, "must be one of"},
		"it breaks":         {&fake{name: "model", panics: true}, time.Minute, "broke"},
		"no time for it":    {&fake{name: "model", answer: fixed}, 0, "no time was left"},
		"it takes too long": {&fake{name: "model", hang: true}, 20 * time.Millisecond, "no answer within"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, f := newBed(t), httpFailure()
			b.model, b.settings.Builtin, b.rules.answer, f.Left = tc.model, "model", fixed, tc.left
			v := b.decide(f)
			if v.Kind != flow.VerdictOutput || v.Source != flow.SourceBuiltin || len(v.Case.Asked) != 2 || v.Case.Asked[1].Responder != "rules" {
				t.Fatalf("verdict = %s by %q, asked %+v; want the rules' output", v.Kind, v.Source, v.Case.Asked)
			}
			want := "the built-in model gave no usable answer: "
			if strings.Count(v.Message, want) != 1 || !strings.Contains(v.Message, tc.why) || !strings.HasSuffix(v.Message, "the built-in (rules) answered fixed_output: took it from the cache") {
				t.Errorf("message = %q, want once that the model gave none, and %q", v.Message, tc.why)
			}
		})
	}
	t.Run("after the own agent", func(t *testing.T) {
		t.Parallel()
		b := newBed(t)
		b.model, b.settings.Builtin, b.settings.A2AAgentURL = &fake{name: "model", answer: "rubbish"}, "model", "https://a"
		b.own.answer = "rubbish"
		v := b.decide(httpFailure())
		if v.Kind != flow.VerdictGate || len(v.Case.Asked) != 3 || strings.Count(v.Message, "passed over") != 1 || strings.Count(v.Message, "built-in model gave") != 1 {
			t.Errorf("verdict = %s, %q, %d asked; want a gate after three, each told of once", v.Kind, v.Message, len(v.Case.Asked))
		}
	})
}

// TestTheModelMayAskTheGuard has it ask before it answers.
func TestTheModelMayAskTheGuard(t *testing.T) {
	t.Parallel()
	b, f := newBed(t), httpFailure()
	f.Step.Output = json.RawMessage(`{"type":"object","required":["id"]}`)
	b.model, b.settings.Builtin = &fake{name: "model", answer: fixed}, "model"
	b.decide(f)
	check := b.model.asked[0].Check
	for action, want := range map[string]string{
		`{"type":"fixed_output","diagnosis":"d","output":{"id":1}}`:                                       "",
		`{"type":"fixed_output","diagnosis":"d","output":{}}`:                                             "output contract",
		`{"type":"retry_with_params","diagnosis":"d","modifications":{"title":"x"}}`:                      "title",
		`{"type":"retry_with_params","diagnosis":"d","modifications":{"headers":{"X":"[secret:other]"}}}`: "other",
		`{"type":"retry_with_params","diagnosis":"d","modifications":{"sk-live-0123456789":1}}`:           "[secret:api]",
		`certainly`: "not JSON",
	} {
		err := check(t.Context(), json.RawMessage(action))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "sk-live")) {
			t.Errorf("%s: got %v, want %q", action, err, want)
		}
	}
}

func TestInbox(t *testing.T) {
	t.Parallel()
	b, f := newBed(t), httpFailure()
	b.settings.Mode = "agent"
	v := b.decide(f)
	if v.Kind != flow.VerdictGate || v.Gate.Kind != flow.GateNeedsAgent || !v.Gate.ExpiresAt.Equal(b.clock.Now().Add(5*time.Minute)) {
		t.Fatalf("verdict = %+v", v)
	}
	b.rules.answer = fixed
	v = b.desk().Expired(t.Context(), f, v.Case, *v.Gate)
	if v.Kind != flow.VerdictOutput || v.Source != flow.SourceBuiltin || !strings.Contains(v.Message, "did not answer the case in the inbox within 5m0s") {
		t.Errorf("expired: %s by %q, %q, want the built-in", v.Kind, v.Source, v.Message)
	}
}

func TestExpiredHumanGate(t *testing.T) {
	t.Parallel()
	b, f := newBed(t), httpFailure()
	v := b.decide(f)
	v = b.desk().Expired(t.Context(), f, v.Case, *v.Gate)
	if v.Kind != flow.VerdictFail || v.Message != "nobody answered the needs_human gate within 1h0m0s (setting recovery.human_timeout)" || v.Case.ClosedAt == nil {
		t.Errorf("verdict = %s, %q", v.Kind, v.Message)
	}
}

func TestWhatResponderIsAsked(t *testing.T) {
	t.Parallel()
	b, f := newBed(t), httpFailure()
	b.settings.A2AAgentURL, b.settings.A2AAuthToken, b.own.answer = "https://a", "tok", fixed
	f.Step.Output, f.Step.Recovery = json.RawMessage(`{"type":"object"}`), map[string]string{"recovery.timeout_ms": "5000"}
	f.Instance.Progress.Mods = json.RawMessage(`{"timeout":60000}`)
	b.decide(f)
	q := b.own.asked[0]
	if q.Workspace != "ws" || q.RunID != "run_1" || q.StepIndex != 2 || q.Attempt != 0 || q.Settings.A2AAuthToken != "tok" || q.Timeout != time.Minute ||
		q.Cap != 10*time.Minute || string(q.Contract) != `{"type":"object"}` || q.Response.Status != 404 || q.Failed.Kind != flow.KindRefused {
		t.Errorf("question = %+v", q)
	}
	if len(b.layers) != 2 || b.layers[1]["recovery.timeout_ms"] != "5000" {
		t.Errorf("layers = %v, want the definition's, then the step's", b.layers)
	}
}

// spec: R-005
func TestLateAnswerIsDropped(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.settings.A2AAgentURL, b.settings.Timeout = "https://a", 20*time.Millisecond
	late := make(chan struct{})
	released := make(chan struct{})
	d := New(Config{Settings: b, Secrets: b, Egress: b, Tools: b, Records: b, Responders: []Responder{&stubborn{late: late, done: released}, b.rules},
		Clock: b.clock, NewID: b.id, Log: b.desk().c.Log})
	k, err := d.Freeze(t.Context(), httpFailure())
	if err != nil {
		t.Fatal(err)
	}
	v := d.Decide(t.Context(), httpFailure(), k)
	if v.Kind != flow.VerdictGate || !strings.Contains(v.Message, "no answer within 20ms") {
		t.Errorf("verdict = %s, %q", v.Kind, v.Message)
	}
	close(late)
	<-released // its goroutine ends though nobody waits
}

// stubborn answers when it is told to, whatever the deadline.
type stubborn struct{ late, done chan struct{} }

func (*stubborn) Name() string { return "a2a" }

func (s *stubborn) Ask(context.Context, flow.Question) (flow.Answer, error) {
	<-s.late
	close(s.done)
	return flow.Answer{Action: json.RawMessage(fixed)}, nil
}

// spec: R-055
func TestAdaptingFits(t *testing.T) {
	t.Parallel()
	text := func(s string) *string { return &s }
	ms := int64(1234)
	for name, long := range map[string]string{"ascii": strings.Repeat("a", 5000), "wide": strings.Repeat("😀", 2000), "escaped": strings.Repeat("<\"\n&", 1000),
		"broken": strings.Repeat("\xff", 3000), "short": "ok"} {
		a := fit(flow.Adapting{BYOAAttempted: true, BYOAResultSummary: text("fixed_output: " + long), BYOATimingMS: &ms, BYOARejectionReason: text(long)}, 800)
		raw, err := json.Marshal(a)
		if err != nil || len(raw) > 800 || !json.Valid(raw) {
			t.Errorf("%s: %d bytes, %v", name, len(raw), err)
		}
		if !utf8.ValidString(*a.BYOAResultSummary) || !utf8.ValidString(*a.BYOARejectionReason) {
			t.Errorf("%s: cut within a character", name)
		}
		if name == "short" && (*a.BYOAResultSummary != "fixed_output: ok" || *a.BYOARejectionReason != "ok") {
			t.Errorf("a short one was changed: %+v", a)
		}
	}
	reason := strings.Repeat("r", 600)
	a := fit(flow.Adapting{BYOAResultSummary: text(strings.Repeat("s", 600)), BYOARejectionReason: &reason}, 800)
	if *a.BYOARejectionReason != reason || len(*a.BYOAResultSummary) > 200 {
		t.Errorf("summary has %d bytes, reason %d: the summary is cut first", len(*a.BYOAResultSummary), len(*a.BYOARejectionReason))
	}
	if a = fit(flow.Adapting{BYOAResultSummary: text(strings.Repeat("s", 6000))}, 800); length(a) < 795 {
		t.Errorf("only %d of 800 bytes are used", length(a))
	}
}
