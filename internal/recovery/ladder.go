package recovery

import (
	"context"
	"fmt"
	"time"

	"github.com/longstop-dev/longstop/internal/flow"
)

// The values of recovery.mode and recovery.builtin that decide something here.
const (
	modeAgent   = "agent"
	modeObserve = "observe"
	builtinOff  = "off"
	builtinStd  = "rules" // answers too where another built-in cannot
)

// defaultHumanTimeout holds where the settings cannot be read.
const defaultHumanTimeout = 7 * 24 * time.Hour

// Decide asks the responders about a case in their order and says what becomes
// of the step:
//
//   - recovery attempt 0 is the own agent's: the A2A agent's if its URL is set,
//     else the MCP server's if its id is. If it fails or answers something
//     invalid, the built-in answers the same attempt;
//   - later attempts are the built-in's;
//   - a needs_human of the own agent spends attempt 0, and the built-in has the
//     next even where recovery.max_attempts is 1;
//   - whatever is left goes to a person.
//
// Where recovery.mode is observe the own agent is asked beside the run: what
// it answers decides nothing, and nobody waits for it.
//
// It never errs: what goes wrong opens a gate.
func (d *Desk) Decide(ctx context.Context, f flow.Failure, k flow.Case) flow.Verdict {
	s, err := d.sit(ctx, f, k)
	if err != nil {
		d.c.Log.Error("recovery cannot read its settings", "run", f.Run.ID, "error", err)
		why := "nobody could be asked: the workspace's settings could not be read"
		if flow.CodeOf(err) == flow.CodeInvalid { // which one, and what would be right
			why += ": " + err.Error()
		}
		return s.gate(flow.GateNeedsHuman, nil, nil, why)
	}
	p := s.progress()
	if s.settings.Mode == modeAgent && p.Round == 0 {
		return s.gate(flow.GateNeedsAgent, nil, nil, "the case waits in the inbox for your agent")
	}
	if allowed := s.allowed(); p.Round >= allowed {
		return s.gate(flow.GateNeedsHuman, nil, nil, fmt.Sprintf("%s spent (setting recovery.max_attempts)", attempts(allowed)))
	}
	if observed := s.settings.Mode == modeObserve || s.kase.Observed != nil; observed {
		s.observe()
	} else if own := s.own(); own != nil && p.Round == 0 {
		if v, decided := s.askOwn(ctx, own); decided {
			return v
		}
	}
	return s.askBuiltin(ctx)
}

// allowed is how many recovery attempts this episode has.
func (s *sitting) allowed() int {
	if s.progress().Agent != nil { // the built-in attempts before a person is called
		return max(s.settings.MaxAttempts, 2)
	}
	return s.settings.MaxAttempts
}

func attempts(n int) string {
	if n == 1 {
		return "the recovery attempt is"
	}
	return fmt.Sprintf("%d recovery attempts are", n)
}

// own is the workspace's own agent, or nil. With both an A2A agent and an MCP
// server set, the MCP server is not called.
func (s *sitting) own() Responder { return s.d.own(s.settings) }

func (d *Desk) own(settings flow.RecoverySettings) Responder {
	switch {
	case settings.A2AAgentURL != "":
		return d.responders["a2a"]
	case settings.MCPServerID != "":
		return d.responders["mcp"]
	}
	return nil
}

// askOwn asks the own agent. If that decides nothing, it is the built-in's
// turn.
func (s *sitting) askOwn(ctx context.Context, own Responder) (v flow.Verdict, decided bool) {
	p, why := s.consult(ctx, own, flow.SourceBYOA)
	if p == nil {
		s.passed = why
		return flow.Verdict{}, false
	}
	s.summary = string(p.action.Type) + ": " + p.action.Diagnosis
	if p.action.Type != flow.ActionNeedsHuman {
		return s.verdict(p), true
	}
	said := escalation(p)
	if s.settings.Builtin == builtinOff {
		return s.gate(flow.GateNeedsHuman, said, nil, s.told(p)), true
	}
	s.close("needs_human by byoa, the built-in is asked")
	return flow.Verdict{Kind: flow.VerdictAgain, Agent: said, Message: then(s.told(p), "; ", "the built-in is asked before a person is"),
		Adapting: s.adapting(), Case: s.kase}, true
}

// askBuiltin asks the built-in provider. Where that is a model which gives no
// usable answer, the rules, which cost nothing, answer in its place.
func (s *sitting) askBuiltin(ctx context.Context) flow.Verdict {
	name := s.settings.Builtin
	if name == "" {
		name = builtinStd
	}
	if name == builtinOff {
		return s.gate(flow.GateNeedsHuman, nil, nil, "the built-in is off (setting recovery.builtin)")
	}
	if s.d.responders[name] == nil {
		return s.gate(flow.GateNeedsHuman, nil, nil, "there is no built-in "+quoted(name)+" in this version")
	}
	p, why := s.consult(ctx, s.d.responders[name], flow.SourceBuiltin)
	if p == nil && name != builtinStd {
		s.failed = "the built-in " + name + " gave no usable answer: " + why
		p, why = s.consult(ctx, s.d.responders[builtinStd], flow.SourceBuiltin)
		name = builtinStd
	}
	switch {
	case p == nil:
		return s.gate(flow.GateNeedsHuman, nil, nil, "the built-in ("+name+") gave no usable answer: "+why)
	case p.action.Type == flow.ActionNeedsHuman:
		return s.gate(flow.GateNeedsHuman, nil, escalation(p), s.told(p))
	case p.action.Type != flow.ActionFixedOutput && s.failure.Left <= p.after:
		return s.gate(flow.GateNeedsHuman, nil, escalation(p), then(s.told(p), "; ", "but no time is left of the step's total_timeout"))
	}
	return s.verdict(p)
}

func escalation(p *plan) *flow.Escalation {
	return &flow.Escalation{Diagnosis: p.action.Diagnosis, Suggestion: p.action.Suggestion}
}

// Expired says what follows when a gate's time is over: the built-in after the
// inbox, failure after a person.
func (d *Desk) Expired(ctx context.Context, f flow.Failure, k flow.Case, g flow.Gate) flow.Verdict {
	s, err := d.sit(ctx, f, k)
	waited := g.ExpiresAt.Sub(g.OpenedAt).Round(time.Second)
	if err == nil && g.Kind == flow.GateNeedsAgent {
		s.passed = fmt.Sprintf("your agent did not answer the case in the inbox within %s", waited)
		s.attempted, s.took = true, g.ExpiresAt.Sub(g.OpenedAt)
		s.kase.Asked = append(s.kase.Asked, flow.Asked{Responder: "inbox", Source: flow.SourceBYOA, At: g.OpenedAt,
			DurationMS: float64(s.took.Microseconds()) / 1000, Rejection: s.passed})
		return s.askBuiltin(ctx)
	}
	if err != nil {
		d.c.Log.Error("recovery cannot read its settings", "run", f.Run.ID, "error", err)
	}
	s.close("the gate expired")
	return flow.Verdict{Kind: flow.VerdictFail, Adapting: s.adapting(), Case: s.kase,
		Message: fmt.Sprintf("nobody answered the %s gate within %s (setting recovery.human_timeout)", g.Kind, waited)}
}
