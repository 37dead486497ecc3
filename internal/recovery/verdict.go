package recovery

import (
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/longstop-dev/longstop/internal/flow"
)

const (
	maxMessage = 2000 // characters of a log message
	// maxAdapting leaves the event's own members room within 1,024 bytes.
	maxAdapting = 800
)

// verdict carries a plan out.
func (s *sitting) verdict(p *plan) flow.Verdict {
	if p.action.Type == flow.ActionCodeFix {
		return s.fix(p)
	}
	v := flow.Verdict{Source: p.source, Message: s.told(p), Adapting: s.adapting()}
	switch p.action.Type {
	case flow.ActionFixedOutput:
		v.Kind, v.Output = flow.VerdictOutput, p.action.Output
	case flow.ActionRetryWithTool:
		v.Kind, v.Tool, v.After = flow.VerdictTool, p.action.ToolCall, p.after
	default:
		v.Kind, v.Mods, v.Dropped, v.After = flow.VerdictRetry, p.mend.mods, p.mend.dropped, p.after
		s.kase.Before, s.kase.After = p.mend.before, p.mend.after
	}
	s.close(string(p.action.Type) + " by " + string(p.source))
	v.Case = s.kase
	return v
}

// gate parks the run on someone. What the own agent said earlier in this
// episode stands on the gate, and the built-in's beside it.
func (s *sitting) gate(kind flow.GateKind, agent, builtin *flow.Escalation, why string) flow.Verdict {
	f, now := s.failure, s.d.c.Clock.Now()
	if agent == nil {
		agent = s.progress().Agent
	}
	open := s.settings.HumanTimeout
	if kind == flow.GateNeedsAgent {
		open = s.settings.AgentTimeout
	}
	if open <= 0 {
		open = defaultHumanTimeout
	}
	title := f.Step.Title
	if title == "" {
		title = f.Step.ID
	}
	g := &flow.Gate{ID: s.d.c.NewID("gate"), Workspace: f.Run.Workspace, RunID: f.Run.ID, Workflow: f.Run.Workflow,
		StepIndex: f.Step.Index, Iteration: f.Instance.Iteration, Title: s.mask(title), StepType: f.Step.Type, Kind: kind, Status: flow.GateOpen,
		CaseID: s.kase.ID, Error: cut(s.mask(f.Failed.Error), maxError), Agent: agent, Builtin: builtin,
		OpenedAt: now, ExpiresAt: now.Add(open)}
	s.kase.Outcome = string(kind) + " gate opened"
	return flow.Verdict{Kind: flow.VerdictGate, Gate: g, Agent: agent, Message: s.prefixed(why), Adapting: s.adapting(), Case: s.kase}
}

// close ends the case.
func (s *sitting) close(outcome string) {
	now := s.d.c.Clock.Now()
	s.kase.Outcome, s.kase.ClosedAt = outcome, &now
}

// told says who answered what, and what of it was left out, in one sentence.
func (s *sitting) told(p *plan) string {
	who := "a person"
	switch p.source {
	case flow.SourceBYOA:
		who = "your agent (" + p.responder + ")"
	case flow.SourceBuiltin:
		who = "the built-in (" + p.responder + ")"
	}
	text := who + " answered " + string(p.action.Type)
	if p.action.Diagnosis != "" {
		text += ": " + p.action.Diagnosis
	}
	if len(p.notes) > 0 {
		text += " [" + strings.Join(p.notes, "; ") + "]"
	}
	return s.prefixed(text)
}

// prefixed puts before a message why the own agent was passed over.
func (s *sitting) prefixed(text string) string {
	if s.failed != "" && !strings.Contains(text, s.failed) {
		text = s.failed + "; " + text
	}
	if s.beside != "" && !strings.Contains(text, s.beside) {
		text = s.beside + "; " + text
	}
	if s.passed != "" && !strings.HasPrefix(text, "your agent was passed over") {
		text = then("your agent was passed over: "+s.passed, "; ", text)
	}
	return cut(s.mask(text), maxMessage)
}

// then joins what others wrote with what follows: their full stop would end
// the sentence in its middle.
func then(said, sep, what string) string {
	return strings.TrimRight(said, " .;:,") + sep + what
}

// adapting is the payload of step:adapting.
func (s *sitting) adapting() flow.Adapting {
	a := flow.Adapting{BYOAAttempted: s.attempted}
	if s.attempted {
		ms := s.took.Milliseconds()
		a.BYOATimingMS = &ms
	}
	if s.summary != "" {
		a.BYOAResultSummary = &s.summary
	}
	if s.passed != "" {
		a.BYOARejectionReason = &s.passed
	}
	return fit(a, maxAdapting)
}

// fit cuts first the summary and then the reason, on a character, until the
// payload has at most size bytes as JSON.
func fit(a flow.Adapting, size int) flow.Adapting {
	for _, text := range []**string{&a.BYOAResultSummary, &a.BYOARejectionReason} {
		if *text == nil {
			continue
		}
		whole := strings.ToValidUTF8(**text, "\uFFFD")
		*text = &whole
		if length(a) <= size {
			continue
		}
		low, high := 0, len(whole) // the longest beginning that fits is in [low, high)
		for low+1 < high {
			middle := (low + high) / 2
			part := whole[:onCharacter(whole, middle)] + "…"
			*text = &part
			if length(a) <= size {
				low = middle
			} else {
				high = middle
			}
		}
		part := whole[:onCharacter(whole, low)] + "…"
		*text = &part
	}
	return a
}

func length(a flow.Adapting) int {
	b, err := json.Marshal(a)
	if err != nil {
		return 0 // cannot happen to strings and numbers
	}
	return len(b)
}

// onCharacter moves n back to where a character begins.
func onCharacter(s string, n int) int {
	for n > 0 && n < len(s) && !utf8.RuneStart(s[n]) {
		n--
	}
	return n
}
