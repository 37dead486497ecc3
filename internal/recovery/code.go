package recovery

import (
	"context"
	"encoding/json"
	"strconv"

	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/sandbox"
)

// approvalNever lets a code fix be applied without a person.
const approvalNever = "never"

// Sandbox runs code that nobody has checked.
type Sandbox interface {
	Run(ctx context.Context, p sandbox.Program) (sandbox.Result, error)
}

// repair is what a code_fix made of the step's input: exactly this is applied,
// at once or when a person has seen it.
type repair struct {
	input, output json.RawMessage
}

// Proposal is what a person is shown at the approval gate of a code fix.
type Proposal struct {
	Type      flow.ActionType `json:"type"`
	Diagnosis string          `json:"diagnosis"`
	Code      string          `json:"code"`
	Input     json.RawMessage `json:"input"`  // what the code was given as input
	Output    json.RawMessage `json:"output"` // what it made of it, and what approving applies
	Source    flow.Source     `json:"source"`
}

// runCode runs a code fix and holds what it makes to the step's contract. Its
// result is a claim like any other.
func (s *sitting) runCode(ctx context.Context, code string) (*repair, *Rejection) {
	if s.d.c.Sandbox == nil {
		return nil, reject("type", "code_fix is not offered here: there is no sandbox to run code in",
			"fixed_output, retry_with_params, retry_with_tool or needs_human")
	}
	input := s.codeInput()
	res, err := s.d.c.Sandbox.Run(ctx, sandbox.Program{Code: code, Args: map[string]json.RawMessage{"input": input, "context": s.codeContext()}})
	if err != nil {
		return nil, reject("code", "failed: "+oneLine(s.mask(err.Error()), 300), "the body of a function that returns the step's output")
	}
	f := &repair{input: input, output: s.masker.JSON(res.Value)}
	if r := s.checkOutput(f.output); r != nil {
		r.Field = "code"
		return nil, r
	}
	return f, nil
}

// codeInput is the response's body when the step got one, else the output of
// the step before, else the workflow's input.
func (s *sitting) codeInput() json.RawMessage {
	if r := s.failure.Failed.Response; r != nil && r.Body != "" {
		if raw := json.RawMessage(r.Body); json.Valid(raw) {
			return raw
		}
		return encoded(r.Body)
	}
	if n := len(s.failure.Prior); n > 0 {
		return s.failure.Prior[n-1].Output
	}
	return s.kase.Input.WorkflowInput
}

// codeContext is what else the code sees.
func (s *sitting) codeContext() json.RawMessage {
	prior := map[string]json.RawMessage{}
	for _, p := range s.failure.Prior {
		prior[strconv.Itoa(p.Index)] = p.Output
	}
	return encoded(map[string]any{"workflow_input": s.kase.Input.WorkflowInput, "prior_outputs": prior,
		"error": s.kase.Input.Error, "response": s.failure.Failed.Response})
}

// fix applies what a code fix made, or has a person approve it first.
func (s *sitting) fix(p *plan) flow.Verdict {
	s.kase.Before, s.kase.After = decoded(p.fixed.input), decoded(p.fixed.output)
	if s.settings.CodeFixApproval == approvalNever || p.source == flow.SourceHuman {
		v := flow.Verdict{Kind: flow.VerdictOutput, Output: p.fixed.output, Source: p.source, Message: s.told(p), Adapting: s.adapting()}
		s.close(string(p.action.Type) + " by " + string(p.source))
		v.Case = s.kase
		return v
	}
	said := &flow.Escalation{Diagnosis: p.action.Diagnosis, Suggestion: "Approve the code and what it makes, or refuse it."}
	agent, builtin := said, (*flow.Escalation)(nil)
	if p.source == flow.SourceBuiltin {
		agent, builtin = nil, said
	}
	v := s.gate(flow.GateApproval, agent, builtin, then(s.told(p), "; ", "a person has to approve it (setting recovery.code_fix_approval)"))
	v.Agent = nil // nobody has called for a person
	v.Gate.Proposal = encoded(Proposal{Type: p.action.Type, Diagnosis: p.action.Diagnosis, Code: p.action.Code,
		Input: p.fixed.input, Output: p.fixed.output, Source: p.source})
	return v
}

// approved applies a proposal that a person has approved, or counts a refused
// one as a failed recovery attempt.
func (s *sitting) approved(by flow.Caller, g flow.Gate, a flow.GateAnswer) (flow.Verdict, error) {
	var p Proposal
	if err := json.Unmarshal(g.Proposal, &p); err != nil {
		return flow.Verdict{}, flow.Errorf(flow.CodeInternal, "the gate's proposal is not readable").Because(err)
	}
	if len(a.Output) > 0 {
		return flow.Verdict{}, flow.Errorf(flow.CodeInvalid, "a code fix is approved as it is: an output of your own is not taken").At("output").
			Right("approve or refuse without one; after a refusal a person's gate may be given an output")
	}
	if a.Answer == "approve" {
		return s.plain(by, flow.Verdict{Kind: flow.VerdictOutput, Output: p.Output, Source: p.Source}, "approved the code fix: "+p.Diagnosis, a.Reason), nil
	}
	return s.plain(by, flow.Verdict{Kind: flow.VerdictAgain}, "refused the code fix", a.Reason), nil
}
