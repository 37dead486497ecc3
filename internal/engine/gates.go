package engine

import (
	"context"

	"github.com/longstop-dev/longstop/internal/flow"
)

// AnswerGate answers a gate and wakes its run. Of two answers one wins; the
// other gets conflict and is told what was answered. It answers invalid, with
// the fields, if the answer does not fit the gate.
func (e *Engine) AnswerGate(ctx context.Context, by flow.Caller, in *AnswerGateIn) (*flow.Gate, error) {
	g, err := e.Records.Gate(ctx, by.Workspace, in.ID)
	if err != nil {
		return nil, err
	}
	if g.Status != flow.GateOpen {
		return nil, answered(g)
	}
	if err := misplaced(in.Body); err != nil {
		return nil, err
	}
	run, err := e.Runs.Run(ctx, by.Workspace, g.RunID)
	if err != nil {
		return nil, err
	}
	if in.Body.Answer == "approve" {
		if err := e.mayApprove(ctx, by, run, g); err != nil {
			return nil, err
		}
	}
	d, err := e.load(ctx, run)
	if err != nil {
		return nil, err
	}
	inst, ok := d.rows[flow.StepKey{Index: g.StepIndex, Iteration: g.Iteration}]
	if !ok || inst.Progress.GateID != g.ID || run.Status != flow.RunWaiting {
		d.cancel()
		return nil, e.lost(ctx, by, in.ID)
	}
	act, err := d.consider(by, *inst, g, in.Body)
	if err != nil {
		d.cancel()
		return nil, err
	}
	g, err = e.settle(ctx, by, d, *inst, g, in.Body, act)
	if flow.CodeOf(err) == flow.CodeStale {
		return nil, e.lost(ctx, by, in.ID)
	}
	return &g, err
}

// consider decides what an answer does: recovery decides about a case, and
// the step itself about its approval.
func (d *driver) consider(by flow.Caller, inst flow.StepInstance, g flow.Gate, a flow.GateAnswer) (act, error) {
	n := d.def.steps[inst.Index]
	if g.CaseID == "" {
		return d.approval(by, n, inst, g, a)
	}
	f, k, err := d.again(n, inst)
	if err != nil {
		return nil, err
	}
	v, err := d.e.Recovery.Answered(d.ctx, by, f, k, g, a)
	return func(c *change) (bool, error) { return d.apply(c, n, inst, v) }, err
}

// act carries a decision about a gate out within the change that closes it.
type act func(*change) (again bool, err error)

// settle commits an answer with what comes of it, and drives the run on.
func (e *Engine) settle(ctx context.Context, by flow.Caller, d *driver, inst flow.StepInstance, g flow.Gate, a flow.GateAnswer, do act) (flow.Gate, error) {
	c := d.begin()
	c.claim()
	g.Status, g.AnsweredAt, g.AnsweredBy = flow.GateAnswered, &c.now, by.Person
	g.Answer, g.RemindAt = maskedAnswer(d, a), nil
	c.gate(g)
	c.event(flow.EventGateAnswered, &inst.StepKey, gateData{GateID: g.ID, Kind: g.Kind, CaseID: g.CaseID, Answer: a.Answer,
		Reason: g.Answer.Reason, Hint: g.Answer.Hint, By: by.Person})
	again, err := do(c)
	if err != nil {
		d.cancel()
		return g, err
	}
	if !again {
		d.cancel()
		return g, nil
	}
	e.carryOn(d)
	return g, nil
}

// maskedAnswer is an answer as it is kept.
func maskedAnswer(d *driver, a flow.GateAnswer) *flow.GateAnswer {
	a.Reason, a.Hint = d.masker.Text(a.Reason), d.masker.Text(a.Hint)
	a.Output, a.Modifications, a.Action = d.masker.JSON(a.Output), d.masker.JSON(a.Modifications), d.masker.JSON(a.Action)
	return &a
}

// lost says why an answer came too late.
func (e *Engine) lost(ctx context.Context, by flow.Caller, gateID string) error {
	g, err := e.Records.Gate(ctx, by.Workspace, gateID)
	if err != nil {
		return err
	}
	return answered(g)
}

func answered(g flow.Gate) error {
	switch g.Status {
	case flow.GateAnswered:
		return flow.Errorf(flow.CodeConflict, "gate %s was answered already with %q by %s", g.ID, g.Answer.Answer, g.AnsweredBy)
	case flow.GateExpired:
		return flow.Errorf(flow.CodeConflict, "gate %s has expired", g.ID)
	case flow.GateClosed:
		return flow.Errorf(flow.CodeConflict, "gate %s is closed: its run has ended", g.ID)
	}
	return flow.Errorf(flow.CodeConflict, "gate %s is being answered", g.ID).Right("read it again")
}
