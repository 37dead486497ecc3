package recovery

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/longstop-dev/longstop/internal/flow"
)

// answers lists what a gate takes, by its kind.
func answers(kind flow.GateKind) []string {
	switch kind {
	case flow.GateNeedsHuman:
		return []string{"action", "output", "edit", "hint", "skip", "fail"}
	case flow.GateNeedsAgent:
		return []string{"action"}
	case flow.GateApproval:
		return []string{"approve", "refuse"}
	}
	return nil
}

// Answered turns a gate's answer into a verdict. A person's retry or hint
// opens a new episode. It answers invalid, with the place, if the answer does
// not fit the gate or does not pass the guard, which holds for people too.
func (d *Desk) Answered(ctx context.Context, by flow.Caller, f flow.Failure, k flow.Case, g flow.Gate, a flow.GateAnswer) (flow.Verdict, error) {
	takes := answers(g.Kind)
	if len(takes) == 0 {
		return flow.Verdict{}, flow.Errorf(flow.CodeInvalid, "a gate of kind %s cannot be answered in this version", g.Kind).At("answer")
	}
	if !slices.Contains(takes, a.Answer) {
		return flow.Verdict{}, flow.Errorf(flow.CodeInvalid, "%s is no answer to a gate of kind %s", quoted(a.Answer), g.Kind).
			At("answer").Right("one of " + strings.Join(takes, ", "))
	}
	s, err := d.sit(ctx, f, k)
	if err != nil {
		return flow.Verdict{}, err
	}
	return s.answered(ctx, by, g, a)
}

func (s *sitting) answered(ctx context.Context, by flow.Caller, g flow.Gate, a flow.GateAnswer) (flow.Verdict, error) {
	switch a.Answer {
	case "approve", "refuse":
		return s.approved(by, g, a)
	case "output":
		return s.given(ctx, by, g, flow.Action{Type: flow.ActionFixedOutput, Diagnosis: a.Reason, Output: a.Output}, "output")
	case "edit":
		return s.given(ctx, by, g, flow.Action{Type: flow.ActionRetryWithParams, Diagnosis: a.Reason, Modifications: a.Modifications}, "modifications")
	case "action":
		return s.action(ctx, by, g, a)
	case "hint":
		if strings.TrimSpace(a.Hint) == "" {
			return flow.Verdict{}, flow.Errorf(flow.CodeInvalid, "there is no hint").At("hint").Right("what the responders should know")
		}
		return s.plain(by, flow.Verdict{Kind: flow.VerdictAgain, NewEpisode: true, Hint: cut(s.mask(a.Hint), maxDiagnosis)},
			"asked again with a hint", a.Reason), nil
	case "skip":
		return s.plain(by, flow.Verdict{Kind: flow.VerdictSkip}, "skipped the step", a.Reason), nil
	}
	return s.plain(by, flow.Verdict{Kind: flow.VerdictFail}, "failed the step", a.Reason), nil
}

// action takes one of the five actions, as a responder answers it.
func (s *sitting) action(ctx context.Context, by flow.Caller, g flow.Gate, a flow.GateAnswer) (flow.Verdict, error) {
	if absent(a.Action) {
		return flow.Verdict{}, flow.Errorf(flow.CodeInvalid, "there is no action").At("action").Right("one of the five recovery actions")
	}
	if r := bounded(a.Action, s.limits.AnswerBytes); r != nil {
		return flow.Verdict{}, r.problem("action")
	}
	parsed, notes, r := ParseAction(s.masker.JSON(a.Action), flow.Limits{})
	if r != nil {
		return flow.Verdict{}, r.problem("action")
	}
	if parsed.Type == flow.ActionNeedsHuman && g.Kind == flow.GateNeedsHuman {
		return flow.Verdict{}, flow.Errorf(flow.CodeInvalid, "needs_human is what this gate is about").At("action.type").
			Right("fixed_output, retry_with_params or retry_with_tool")
	}
	return s.given(ctx, by, g, parsed, "action", notes...)
}

// given checks what the gate was given and makes a verdict of it. Notes say
// what of it was ignored.
func (s *sitting) given(ctx context.Context, by flow.Caller, g flow.Gate, a flow.Action, field string, notes ...string) (flow.Verdict, error) {
	switch {
	case field == "output" && len(a.Output) == 0:
		return flow.Verdict{}, flow.Errorf(flow.CodeInvalid, "there is no output").At(field).Right("the step's output as JSON; null is one")
	case field == "modifications" && absent(a.Modifications):
		return flow.Verdict{}, flow.Errorf(flow.CodeInvalid, "there are no modifications").At(field).Right("an object; {} retries as it is")
	}
	for _, raw := range []json.RawMessage{a.Output, a.Modifications} {
		if len(raw) == 0 {
			continue
		}
		if r := bounded(raw, 0); r != nil {
			return flow.Verdict{}, r.problem(field)
		}
		if r := find([]any{decoded(raw)}, impossible); r != nil {
			r.Field = strings.TrimPrefix(r.Field, "[0].")
			return flow.Verdict{}, r.problem(field)
		}
	}
	a.Output, a.Modifications = s.masker.JSON(a.Output), s.masker.JSON(a.Modifications)
	p, r := s.plan(ctx, a, 0)
	if r != nil {
		prefix := ""
		if field == "action" {
			prefix = field
		}
		return flow.Verdict{}, r.problem(prefix)
	}
	p.notes = append(notes, p.notes...)
	p.source, p.responder = flow.SourceHuman, "human"
	if g.Kind == flow.GateNeedsAgent {
		p.source, p.responder = flow.SourceBYOA, "inbox"
		s.attempted, s.took = true, s.d.c.Clock.Now().Sub(g.OpenedAt)
		s.summary = string(a.Type) + ": " + a.Diagnosis
	}
	s.record(by, p)
	if a.Type == flow.ActionNeedsHuman { // only the inbox comes here
		s.close("needs_human by byoa, the built-in is asked")
		return flow.Verdict{Kind: flow.VerdictAgain, Agent: escalation(p), Message: s.told(p), Adapting: s.adapting(), Case: s.kase}, nil
	}
	v := s.verdict(p)
	v.NewEpisode = p.source == flow.SourceHuman && v.Kind != flow.VerdictOutput
	return v, nil
}

// record keeps the answerer's part in the case.
func (s *sitting) record(by flow.Caller, p *plan) {
	raw, err := json.Marshal(p.action)
	if err != nil {
		raw = nil
	}
	raw = s.masker.JSON(raw)
	if len(raw) > maxKept {
		raw = kept(string(raw), len(raw))
	}
	s.kase.Asked = append(s.kase.Asked, flow.Asked{Responder: p.responder, Target: by.Person, Source: p.source,
		At: s.d.c.Clock.Now(), DurationMS: float64(s.took.Microseconds()) / 1000, Action: raw, Accepted: true, Notes: p.notes})
}

// plain is a person's decision that applies nothing.
func (s *sitting) plain(by flow.Caller, v flow.Verdict, did, reason string) flow.Verdict {
	v.Message = "a person " + did
	if v.Kind == flow.VerdictSkip {
		v.Source = flow.SourceHuman
	}
	if reason != "" {
		v.Message = then(v.Message, ": ", reason)
	}
	v.Message = cut(s.mask(v.Message), maxMessage)
	s.kase.Asked = append(s.kase.Asked, flow.Asked{Responder: "human", Target: by.Person, Source: flow.SourceHuman,
		At: s.d.c.Clock.Now(), Accepted: true, Notes: []string{v.Message}})
	s.close("a person " + did)
	v.Adapting, v.Case = s.adapting(), s.kase
	return v
}

func absent(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }
