package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/longstop-dev/longstop/internal/flow"
)

// PendingIn narrows the inbox, oldest first.
type PendingIn struct {
	Limit       int    `query:"limit" minimum:"1" maximum:"500" default:"50" doc:"Items on a page."`
	After       string `query:"after" doc:"The cursor that the page before gave as next."`
	Wait        int    `query:"wait" minimum:"0" maximum:"50" doc:"Seconds to wait for a change: with If-None-Match until the page is another, without until there is anything on it."`
	IfNoneMatch string `header:"If-None-Match" doc:"The ETag of the page that the caller has."`
}

// PendingItem is a case that waits in the inbox for an agent.
type PendingItem struct {
	RunID     string    `json:"runId"`
	StepIndex int       `json:"stepIndex"`
	Iteration string    `json:"iteration" doc:"Empty outside of loops."`
	Workflow  string    `json:"workflow"`
	Title     string    `json:"title"`
	Type      string    `json:"type" doc:"The step's."`
	Error     string    `json:"error" doc:"Its first 200 characters."`
	OpenedAt  time.Time `json:"openedAt"`
	ExpiresAt time.Time `json:"expiresAt" doc:"Then the built-in has its turn."`
	ClaimedBy *string   `json:"claimedBy" doc:"Who has claimed it; null if nobody has."`
}

// PendingOut is a page of the inbox. The items are shared: they must not be
// changed.
type PendingOut struct {
	Items []PendingItem `json:"items"`
	Next  string        `json:"next" doc:"Cursor of the next page; empty at the end."`

	tag       string
	unchanged bool
	until     time.Time // the first of its claims ends; zero without
}

// Validator gives the page's entity tag, and whether it is the one that the
// caller has already.
func (o *PendingOut) Validator() (tag string, unchanged bool) { return o.tag, o.unchanged }

// StepIn names a step instance of a run.
type StepIn struct {
	RunID     string `path:"runId"`
	StepIndex int    `path:"stepIndex" minimum:"0"`
	Iteration string `query:"iteration" doc:"Inside a loop: which time round."`
}

// SubmitIn is one of the five recovery actions, for a step instance.
type SubmitIn struct {
	StepIn
	Body json.RawMessage
}

// SubmitOut says what was applied.
type SubmitOut struct {
	RunID     string          `json:"runId"`
	StepIndex int             `json:"stepIndex"`
	Iteration string          `json:"iteration"`
	GateID    string          `json:"gateId"`
	CaseID    string          `json:"caseId"`
	Applied   flow.ActionType `json:"applied" enum:"fixed_output,retry_with_params,code_fix,retry_with_tool,needs_human" doc:"The action's type."`
	AppliedAt time.Time       `json:"appliedAt"`
}

// PendingInput gives RecoveryToolInput of the step's latest case that was put
// into the inbox, whether it still waits or not; not_found if there was none,
// and invalid if the iteration is missing.
func (e *Engine) PendingInput(ctx context.Context, by flow.Caller, in *StepIn) (*flow.RecoveryInput, error) {
	k, err := e.PendingCase(ctx, by, in)
	if err != nil {
		return nil, err
	}
	return &k.Input, nil
}

// PendingCase gives that case whole, as PendingInput finds it.
func (e *Engine) PendingCase(ctx context.Context, by flow.Caller, in *StepIn) (*flow.Case, error) {
	g, err := e.inboxGate(ctx, by, in)
	if err != nil {
		return nil, err
	}
	k, err := e.Records.Case(ctx, by.Workspace, g.CaseID)
	if err != nil {
		return nil, err
	}
	return &k, nil
}

// SubmitAction answers a case in the inbox and wakes its run. Of two answers
// one wins. It answers conflict, with what was applied, if the case has been
// answered or waits no longer, conflict too if somebody else has claimed it, and invalid, with the fields of the action, if
// the action does not pass the guard; the case goes on waiting then.
func (e *Engine) SubmitAction(ctx context.Context, by flow.Caller, in *SubmitIn) (*SubmitOut, error) {
	g, err := e.inboxGate(ctx, by, &in.StepIn)
	if err != nil {
		return nil, err
	}
	if g.Status == flow.GateOpen {
		if err := e.heldBack(ctx, by, g); err != nil {
			return nil, err
		}
		done, err := e.AnswerGate(ctx, by, &AnswerGateIn{ID: g.ID, Body: flow.GateAnswer{Answer: "action", Action: in.Body}})
		switch {
		case err == nil:
			return submitted(*done), nil
		case flow.CodeOf(err) != flow.CodeConflict:
			return nil, bare(err)
		}
		if g, err = e.Records.Gate(ctx, by.Workspace, g.ID); err != nil {
			return nil, err
		}
	}
	return nil, e.taken(ctx, g)
}

func submitted(g flow.Gate) *SubmitOut {
	out := &SubmitOut{RunID: g.RunID, StepIndex: g.StepIndex, Iteration: g.Iteration, GateID: g.ID, CaseID: g.CaseID, Applied: appliedTo(g).Type}
	if g.AnsweredAt != nil {
		out.AppliedAt = *g.AnsweredAt
	}
	return out
}

// appliedTo is the action that a gate was answered with.
func appliedTo(g flow.Gate) flow.Action {
	var a flow.Action
	if g.Answer == nil || json.Unmarshal(g.Answer.Action, &a) != nil {
		return flow.Action{}
	}
	return a
}

// bare takes the member action out of the places that an error names: here
// the action is the whole body.
func bare(err error) error {
	var e *flow.Error
	if !errors.As(err, &e) {
		return err
	}
	field := func(name string) string {
		if name == "action" {
			return "body"
		}
		return strings.TrimPrefix(name, "action.")
	}
	out := e.At(field(e.Field))
	out.Problems = slices.Clone(e.Problems)
	for i := range out.Problems {
		out.Problems[i].Field = field(out.Problems[i].Field)
	}
	return out
}

// taken says what has become of a case that waits no longer.
func (e *Engine) taken(ctx context.Context, g flow.Gate) error {
	what := fmt.Sprintf("the case of step %d", g.StepIndex)
	switch g.Status {
	case flow.GateAnswered:
		a := appliedTo(g)
		bad := flow.Errorf(flow.CodeConflict, "%s was answered already by %s; applied was %s: %s", what, g.AnsweredBy, a.Type, beginning(a.Diagnosis, 200))
		bad.Problems = []flow.Problem{{Field: "applied", Message: beginning(string(g.Answer.Action), 2000)}}
		return bad
	case flow.GateExpired:
		now := ""
		if k, err := e.Records.Case(ctx, g.Workspace, g.CaseID); err == nil && k.Outcome != "" {
			now = "; applied was " + k.Outcome
		}
		return flow.Errorf(flow.CodeConflict, "%s waited until %s and waits no longer%s", what, g.ExpiresAt.Format(time.RFC3339), now).
			Right("answer sooner, or raise recovery.agent_timeout")
	case flow.GateClosed:
		return flow.Errorf(flow.CodeConflict, "%s is closed: its run has ended; nothing was applied", what)
	}
	return flow.Errorf(flow.CodeConflict, "%s is being answered", what).Right("read it again")
}

// beginning is the first n characters of a text.
func beginning(text string, n int) string {
	if r := []rune(text); len(r) > n {
		return string(r[:n]) + "…"
	}
	return text
}

// inboxGate finds the latest gate of the inbox at a step instance, the open
// one first.
func (e *Engine) inboxGate(ctx context.Context, by flow.Caller, in *StepIn) (flow.Gate, error) {
	if _, err := e.Runs.Run(ctx, by.Workspace, in.RunID); err != nil {
		return flow.Gate{}, err
	}
	latest := map[string]flow.Gate{} // by iteration
	for _, status := range []flow.GateStatus{flow.GateOpen, ""} {
		for after := ""; ; {
			page, err := e.Records.Gates(ctx, by.Workspace, in.RunID, string(status), after, 500)
			if err != nil {
				return flow.Gate{}, err
			}
			for _, g := range page {
				if after = g.ID; g.Kind == flow.GateNeedsAgent && g.StepIndex == in.StepIndex {
					latest[g.Iteration] = g
				}
			}
			if len(page) < 500 {
				break
			}
		}
		if g, ok := latest[in.Iteration]; ok {
			return g, nil
		}
	}
	return flow.Gate{}, noGate(in, latest)
}

func noGate(in *StepIn, at map[string]flow.Gate) error {
	if len(at) == 0 {
		return flow.Errorf(flow.CodeNotFound, "step %d of run %s has no case in the inbox", in.StepIndex, in.RunID).
			Right("GET /v1/recovery/pending lists the cases that wait")
	}
	var known []string
	for iteration := range at {
		known = append(known, iteration)
	}
	slices.Sort(known)
	if known = known[:min(len(known), 20)]; in.Iteration == "" {
		return flow.Errorf(flow.CodeInvalid, "step %d runs in a loop, and no iteration is named", in.StepIndex).At("iteration").
			Right("one of " + strings.Join(known, ", "))
	}
	return flow.Errorf(flow.CodeNotFound, "step %d of run %s has no case of this iteration in the inbox", in.StepIndex, in.RunID).At("iteration")
}
