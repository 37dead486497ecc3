package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/longstop-dev/longstop/internal/flow"
)

// complete ends a step instance with its output; what follows begins in the
// same transaction.
//
// The change may hold what led to it already: a verdict, an answered gate.
func (c *change) complete(n *node, inst flow.StepInstance, output json.RawMessage) error {
	inst.Status, inst.Output, inst.FinishedAt, inst.Error = flow.StepSucceeded, null(output), c.now, ""
	if inst.Progress.Source != flow.SourceNone {
		inst.RecoverySource = inst.Progress.Source
	}
	inst.Progress = flow.Progress{Mends: inst.Progress.Mends, Episode: inst.Progress.Episode, Branch: inst.Progress.Branch}
	if inst.StartedAt.IsZero() {
		inst.StartedAt = c.now
	}
	took := millis(c.now.Sub(inst.StartedAt))
	c.step(inst)
	c.event(flow.EventStepSucceeded, &inst.StepKey, stepData{ID: n.ID, Type: n.Type, Attempt: inst.Attempts, DurationMS: took, RecoverySource: inst.RecoverySource, Message: inst.Message})
	for _, line := range c.console {
		c.log(n, &inst, "console", func(l *flow.Log) { l.Message = cut(c.d.masker.Text(line), maxLine) })
	}
	c.log(n, &inst, "succeeded", func(l *flow.Log) {
		l.Message, l.DurationMS, l.StartedAt = inst.Message, took, &inst.StartedAt
	})
	return c.commit(c.d.ctx)
}

// succeed ends the run with its output; last is the last step instance.
func (c *change) succeed(last *flow.StepInstance) error {
	d := c.d
	output := json.RawMessage("null")
	if last != nil {
		output = null(last.Output)
	}
	if d.def.output != nil {
		v, err := d.def.output.Eval(d.scope)
		if err == nil {
			output, err = encode(v)
		}
		if err != nil {
			c.failed(d.masker.Text("the workflow's output cannot be made: " + err.Error()))
			return nil
		}
		output = d.masker.JSON(output)
	}
	if int64(len(output)) > d.limits.OutputBytes {
		c.failed(tooLarge("the workflow's output", len(output), d.limits.OutputBytes))
		return nil
	}
	c.finish(flow.RunSucceeded)
	c.c.Run.Output = output
	c.event(flow.EventRunSucceeded, nil, runData{Output: bounded(output)})
	return nil
}

// failed ends the run with an error, which must be masked.
func (c *change) failed(message string) {
	c.finish(flow.RunFailed)
	c.c.Run.Error = message
	c.event(flow.EventRunFailed, nil, runData{Error: message})
}

// fail ends the run because a step failed for good, which the change says
// already. What else was under way is stopped: a retry of the run goes on
// with it where it was.
func (c *change) fail(n *node, inst *flow.StepInstance, message string) error {
	why := fmt.Sprintf("stopped: step %d (%s) failed", n.Index, n.ID)
	for _, one := range c.underWay() {
		m := c.d.def.steps[one.Index]
		one.Status, one.Error, one.FinishedAt = flow.StepFailed, why, c.now
		p := &one.Progress
		stopClock(p, c.now)
		if p.Stopped = p.Phase != flow.PhaseGated; !p.Stopped { // its gate closes: it is tried again
			p.Phase, p.GateID, p.DueAt, p.Await = flow.PhaseAttempt, "", nil, nil
		}
		c.step(one)
		if p.Phase != flow.PhaseNested {
			c.event(flow.EventStepFailed, &one.StepKey, stepData{ID: m.ID, Type: m.Type, Attempt: one.Attempts, Error: why, Stopped: true})
			c.log(m, &one, "failed", func(l *flow.Log) { l.Error = why })
		}
	}
	if err := c.closeGates(c.d.ctx); err != nil {
		return err
	}
	c.failed(runError(n, inst, message))
	return c.commit(c.d.ctx)
}

// abort ends the run as cancelled. What it was executing has been interrupted.
func (d *driver) abort(by flow.Caller) error {
	c := d.begin()
	ctx := context.WithoutCancel(d.ctx)
	if err := c.cancel(ctx, by); err != nil {
		return err
	}
	return c.commit(ctx)
}

// cancel adds all that cancelling the run means.
func (c *change) cancel(ctx context.Context, by flow.Caller) error {
	for _, one := range c.underWay() {
		one.Status, one.Error, one.FinishedAt = flow.StepFailed, "cancelled", c.now
		c.step(one)
	}
	if err := c.closeGates(ctx); err != nil {
		return err
	}
	c.finish(flow.RunCancelled)
	c.event(flow.EventRunCancelled, nil, runData{By: by.Person})
	c.did(by, "runs.cancel", map[string]any{"workflow": c.d.run.Workflow})
	return nil
}

// underWay gives the step instances that have begun and not ended, apart from
// those that the change speaks of already, in order: also what is executing
// for the first time, which has no checkpoint yet.
func (c *change) underWay() []flow.StepInstance {
	var out []flow.StepInstance
	spoken := func(key flow.StepKey) bool {
		return slices.ContainsFunc(c.c.Steps, func(s flow.StepInstance) bool { return s.StepKey == key })
	}
	for key, row := range c.d.rows {
		if (row.Status == flow.StepWaiting || row.Status == flow.StepRunning) && !spoken(key) {
			out = append(out, *row)
		}
	}
	if c.d.run.Status == flow.RunRunning {
		for _, t := range c.d.def.plan(c.d.rows).open {
			if key := t.key(); t.inst == nil && !spoken(key) && among(c.d.run.Current, key) {
				out = append(out, flow.StepInstance{StepKey: key, Attempts: 1})
			}
		}
	}
	slices.SortFunc(out, func(a, b flow.StepInstance) int {
		return cmp.Or(a.Index-b.Index, cmp.Compare(a.Iteration, b.Iteration))
	})
	return out
}

// closeGates closes the gates of a run that ends, apart from those that the
// change speaks of already.
func (c *change) closeGates(ctx context.Context) error {
	gated := false
	for _, row := range c.d.rows {
		gated = gated || row.Progress.GateID != "" && row.Status == flow.StepWaiting
	}
	if !gated {
		return nil
	}
	return c.closeOpenGates(ctx)
}

// closeOpenGates closes all gates of the run that the store has as open, apart
// from those that the change speaks of already.
func (c *change) closeOpenGates(ctx context.Context) error {
	for after, more := "", true; more; {
		page, err := c.d.e.Records.Gates(ctx, c.d.workspace, c.d.runID, string(flow.GateOpen), after, 500)
		if err != nil {
			return err
		}
		for _, g := range page {
			after = g.ID
			if slices.ContainsFunc(c.c.Gates, func(one flow.Gate) bool { return one.ID == g.ID }) {
				continue
			}
			g.Status, g.RemindAt = flow.GateClosed, nil
			c.gate(g)
			key := flow.StepKey{Index: g.StepIndex, Iteration: g.Iteration}
			c.event(flow.EventGateClosed, &key, gateData{GateID: g.ID, Kind: g.Kind})
		}
		more = len(page) == 500
	}
	return nil
}

// maxLine bounds a line that a step printed.
const maxLine = 1024

// bounded is a value small enough for an event, or nothing.
func bounded(raw json.RawMessage) json.RawMessage {
	if len(raw) > 4096 {
		return nil
	}
	return raw
}
