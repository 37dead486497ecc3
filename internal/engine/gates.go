package engine

import (
	"context"

	"github.com/longstop-dev/longstop/internal/flow"
)

// AnswerGate answers a gate and has its run go on. Of two answers one wins;
// the other gets conflict and is told what was answered. It answers invalid,
// with the fields, if the answer does not fit the gate.
func (e *Engine) AnswerGate(ctx context.Context, by flow.Caller, in *AnswerGateIn) (*flow.Gate, error) {
	for {
		g, err := e.answer(ctx, by, in)
		if flow.CodeOf(err) != flow.CodeStale {
			return g, err
		}
		// The run has moved, perhaps at another of its gates: look again.
	}
}

// answer answers a gate as the run stands. It answers stale if the run moved
// meanwhile.
func (e *Engine) answer(ctx context.Context, by flow.Caller, in *AnswerGateIn) (*flow.Gate, error) {
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
	if !ok || inst.Progress.GateID != g.ID || run.Status.Finished() {
		d.cancel()
		return nil, e.lost(ctx, by, in.ID)
	}
	do, err := d.about(d.def.steps[inst.Index], *inst).consider(by, g, in.Body)
	if err != nil {
		d.cancel()
		return nil, err
	}
	err = e.move(ctx, d, func(c *change) error {
		if now := c.d.rows[inst.StepKey]; now == nil || now.Progress.GateID != g.ID {
			return flow.Errorf(flow.CodeStale, "gate %s waits no longer", g.ID)
		}
		c.settle(by, &g, in.Body)
		return do(c)
	})
	return &g, err
}

// consider decides what an answer does: recovery decides about a case, and
// the step itself about its approval.
func (w *worker) consider(by flow.Caller, g flow.Gate, a flow.GateAnswer) (act, error) {
	switch {
	case g.Kind == flow.GateInputRequired:
		return w.reply(by, a)
	case g.CaseID == "":
		return w.approval(by, g, a)
	}
	f, k, err := w.again()
	if err != nil {
		return nil, err
	}
	v, err := w.e.Recovery.Answered(w.ctx, by, f, k, g, a)
	return func(c *change) error { return c.apply(w.n, w.inst, v) }, err
}

// settle adds to a change that a gate was answered.
func (c *change) settle(by flow.Caller, g *flow.Gate, a flow.GateAnswer) {
	g.Status, g.AnsweredAt, g.AnsweredBy = flow.GateAnswered, &c.now, by.Person
	g.Answer, g.RemindAt = maskedAnswer(c.d, a), nil
	c.gate(*g)
	key := flow.StepKey{Index: g.StepIndex, Iteration: g.Iteration}
	c.event(flow.EventGateAnswered, &key, gateData{GateID: g.ID, Kind: g.Kind, CaseID: g.CaseID, Answer: a.Answer,
		Reason: g.Answer.Reason, Hint: g.Answer.Hint, By: by.Person})
	c.did(by, answerOp(*g, a), map[string]any{"gateId": g.ID, "kind": g.Kind, "stepIndex": g.StepIndex, "answer": a.Answer,
		"reason": g.Answer.Reason, "action": appliedTo(*g).Type})
}

// answerOp is the operation by which an answer came: the inbox takes actions
// of its own, whoever else may send them.
func answerOp(g flow.Gate, a flow.GateAnswer) string {
	if g.Kind == flow.GateNeedsAgent && a.Answer == "action" {
		return "recovery.action"
	}
	return "gates.answer"
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
