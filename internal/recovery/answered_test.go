package recovery

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/longstop-dev/longstop/internal/flow"
)

// answer opens a gate and answers it.
func (b *bed) answer(f flow.Failure, a flow.GateAnswer) (flow.Verdict, error) {
	b.t.Helper()
	v := b.decide(f)
	if v.Kind != flow.VerdictGate {
		b.t.Fatalf("verdict = %s, want a gate", v.Kind)
	}
	return b.desk().Answered(b.t.Context(), flow.Caller{Workspace: "ws", Person: "person_1"}, f, v.Case, *v.Gate, a)
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	raw := func(s string) json.RawMessage { return json.RawMessage(s) }
	for _, c := range []struct {
		name    string
		answer  flow.GateAnswer
		kind    flow.VerdictKind
		source  flow.Source
		episode bool
		check   func(flow.Verdict) bool
	}{
		{"output", flow.GateAnswer{Answer: "output", Output: raw(`{"id":1}`), Reason: "looked it up"}, flow.VerdictOutput, flow.SourceHuman, false,
			func(v flow.Verdict) bool {
				return string(v.Output) == `{"id":1}` && v.Message == "a person answered fixed_output: looked it up"
			}},
		{"null output", flow.GateAnswer{Answer: "output", Output: raw(`null`)}, flow.VerdictOutput, flow.SourceHuman, false,
			func(v flow.Verdict) bool { return string(v.Output) == "null" }},
		{"edit", flow.GateAnswer{Answer: "edit", Modifications: raw(`{"headers":{"A":"1"}}`)}, flow.VerdictRetry, flow.SourceHuman, true,
			func(v flow.Verdict) bool { return string(v.Mods) == `{"headers":{"A":"1"}}` && v.Case.After != nil }},
		{"edit with a secret in the clear", flow.GateAnswer{Answer: "edit", Modifications: raw(`{"headers":{"A":"sk-live-0123456789"}}`)}, flow.VerdictRetry, flow.SourceHuman, true,
			func(v flow.Verdict) bool { return string(v.Mods) == `{"headers":{"A":"[secret:api]"}}` }},
		{"output with a secret", flow.GateAnswer{Answer: "output", Output: raw(`"sk-live-0123456789"`)}, flow.VerdictOutput, flow.SourceHuman, false,
			func(v flow.Verdict) bool { return string(v.Output) == `"[secret:api]"` }},
		{"retry as it is", flow.GateAnswer{Answer: "edit", Modifications: raw(`{}`)}, flow.VerdictRetry, flow.SourceHuman, true,
			func(v flow.Verdict) bool { return string(v.Mods) == `{}` && v.Case.After == nil }},
		{"action", flow.GateAnswer{Answer: "action", Action: raw(`{"type":"retry_with_tool","diagnosis":"d","toolCall":{"server":"s","tool":"t"}}`)},
			flow.VerdictTool, flow.SourceHuman, true, func(v flow.Verdict) bool { return v.Tool.Tool == "t" }},
		{"hint", flow.GateAnswer{Answer: "hint", Hint: "use v2, not sk-live-0123456789"}, flow.VerdictAgain, flow.SourceNone, true,
			func(v flow.Verdict) bool { return v.Hint == "use v2, not [secret:api]" }},
		{"skip", flow.GateAnswer{Answer: "skip", Reason: "optional"}, flow.VerdictSkip, flow.SourceHuman, false,
			func(v flow.Verdict) bool { return v.Message == "a person skipped the step: optional" }},
		{"fail", flow.GateAnswer{Answer: "fail"}, flow.VerdictFail, flow.SourceNone, false,
			func(v flow.Verdict) bool { return v.Message == "a person failed the step" }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t)
			b.tools["s"] = []string{"t"}
			v, err := b.answer(httpFailure(), c.answer)
			if err != nil {
				t.Fatal(err)
			}
			if v.Kind != c.kind || v.Source != c.source || v.NewEpisode != c.episode || !c.check(v) {
				t.Errorf("verdict = %+v", v)
			}
			k := v.Case
			last := k.Asked[len(k.Asked)-1]
			if k.ClosedAt == nil || k.Outcome == "needs_human gate opened" || last.Responder != "human" || last.Target != "person_1" || last.Source != flow.SourceHuman {
				t.Errorf("case = %+v", k)
			}
			if v.Adapting.BYOAAttempted {
				t.Error("a person is no agent, but byoa_attempted is set")
			}
			if all, _ := json.Marshal(v); strings.Contains(string(all), "sk-live") {
				t.Errorf("the verdict holds the secret: %s", all)
			}
		})
	}
}

func TestWrongAnswers(t *testing.T) {
	t.Parallel()
	raw := func(s string) json.RawMessage { return json.RawMessage(s) }
	for _, c := range []struct {
		name   string
		answer flow.GateAnswer
		field  string
		want   string
	}{
		{"approve", flow.GateAnswer{Answer: "approve"}, "answer", `"approve" is no answer to a gate of kind needs_human (one of action, output, edit, hint, skip, fail)`},
		{"nothing", flow.GateAnswer{}, "answer", "one of action, output"},
		{"output without one", flow.GateAnswer{Answer: "output"}, "output", "there is no output"},
		{"output against the contract", flow.GateAnswer{Answer: "output", Output: raw(`{"id":"x"}`)}, "output", "does not satisfy the step's output contract"},
		{"output too deep", flow.GateAnswer{Answer: "output", Output: raw(strings.Repeat("[", 300) + strings.Repeat("]", 300))}, "output", "nested more than 200"},
		{"output out of range", flow.GateAnswer{Answer: "output", Output: raw(`{"id":1e999}`)}, "output.id", "out of range"},
		{"edit without any", flow.GateAnswer{Answer: "edit"}, "modifications", "{} retries as it is"},
		{"edit no object", flow.GateAnswer{Answer: "edit", Modifications: raw(`[]`)}, "modifications", "must be an object"},
		{"edit of what is fixed", flow.GateAnswer{Answer: "edit", Modifications: raw(`{"retry":1}`)}, "modifications.retry", "may not be changed"},
		{"edit to a refused place", flow.GateAnswer{Answer: "edit", Modifications: raw(`{"httpRequest":{"url":"http://10.0.0.1/"}}`)}, "modifications.httpRequest.url", "private"},
		{"edit with a secret for a stranger", flow.GateAnswer{Answer: "edit", Modifications: raw(`{"httpRequest":{"url":"https://x.example/","headers":{"A":"[secret:api]"}}}`)},
			"modifications.httpRequest.headers.A", "holds a secret"},
		{"action without one", flow.GateAnswer{Answer: "action"}, "action", "there is no action"},
		{"action broken", flow.GateAnswer{Answer: "action", Action: raw(`{"type":"foo"}`)}, "action.type", "must be one of"},
		{"action needs_human", flow.GateAnswer{Answer: "action", Action: raw(human)}, "action.type", "needs_human is what this gate is about"},
		{"action with code", flow.GateAnswer{Answer: "action", Action: raw(`{"type":"code_fix","diagnosis":"d","code":"return 1"}`)}, "action.type", "not offered"},
		{"action refused by the guard", flow.GateAnswer{Answer: "action", Action: raw(`{"type":"retry_with_params","diagnosis":"d","modifications":{"title":"x"}}`)},
			"action.modifications.title", "may not be changed"},
		{"hint without any", flow.GateAnswer{Answer: "hint", Hint: " "}, "hint", "there is no hint"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b, f := newBed(t), httpFailure()
			b.refused["http://10.0.0.1/"] = "it leads to a private address"
			f.Step.Output = json.RawMessage(`{"type":"object","properties":{"id":{"type":"integer"}}}`)
			_, err := b.answer(f, c.answer)
			var e *flow.Error
			if !errors.As(err, &e) || e.Code != flow.CodeInvalid || e.Field != c.field || !strings.Contains(e.Error(), c.want) {
				t.Errorf("got %v, want invalid at %s with %q", err, c.field, c.want)
			}
		})
	}
}

// spec: R-050 R-100
func TestInboxAnswer(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.settings.Mode = "agent"
	v, err := b.answer(httpFailure(), flow.GateAnswer{Answer: "action", Action: json.RawMessage(fixed)})
	if err != nil || v.Kind != flow.VerdictOutput || v.Source != flow.SourceBYOA || v.NewEpisode {
		t.Errorf("got %+v, %v, want an output by byoa", v, err)
	}
	v, err = b.answer(httpFailure(), flow.GateAnswer{Answer: "action", Action: json.RawMessage(human)})
	if err != nil || v.Kind != flow.VerdictAgain || v.Agent == nil || v.NewEpisode {
		t.Errorf("got %+v, %v, want the built-in's turn", v, err)
	}
	if _, err = b.answer(httpFailure(), flow.GateAnswer{Answer: "skip"}); flow.CodeOf(err) != flow.CodeInvalid {
		t.Errorf("skip: %v, want invalid", err)
	}
}

func TestOtherGates(t *testing.T) {
	t.Parallel()
	_, err := newBed(t).desk().Answered(t.Context(), flow.Caller{}, httpFailure(), flow.Case{}, flow.Gate{Kind: flow.GateInputRequired}, flow.GateAnswer{Answer: "approve"})
	if flow.CodeOf(err) != flow.CodeInvalid {
		t.Errorf("got %v, want invalid", err)
	}
}
