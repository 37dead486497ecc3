package engine

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/longstop-dev/longstop/internal/flow"
)

// RetryRun goes on with a failed run from the step that failed: another
// attempt, with a new recovery episode, so that the own agent is asked first
// again. A hint is shown to it if the step fails once more. It answers
// conflict for a run that has not failed.
func (e *Engine) RetryRun(ctx context.Context, by flow.Caller, in *RetryIn) (*RunView, error) {
	for {
		run, err := e.Runs.Run(ctx, by.Workspace, in.ID)
		if err != nil {
			return nil, err
		}
		if run.Status != flow.RunFailed {
			return nil, notFailed(run)
		}
		d, err := e.load(ctx, run)
		if err != nil {
			return nil, err
		}
		var view *RunView
		err = e.move(ctx, d, func(c *change) error {
			if c.d.run.Status != flow.RunFailed {
				return flow.Errorf(flow.CodeStale, "run %s is being retried", run.ID)
			}
			c.c.Run.FinishedAt, c.c.Run.Error = time.Time{}, ""
			hint := cut(c.d.masker.Text(strings.TrimSpace(in.Body.Hint)), maxHint)
			c.event(flow.EventRunResumed, nil, runData{By: by.Person, Hint: hint})
			c.did(by, "runs.retry", map[string]any{"workflow": run.Workflow, "hint": hint})
			for _, row := range c.d.sorted() {
				if row.Status == flow.StepFailed {
					c.retry(c.d.def.steps[row.Index], *row, hint)
				}
			}
			err := c.commit(ctx)
			view = e.view(c.d.run)
			return err
		})
		if flow.CodeOf(err) == flow.CodeStale {
			continue // its driver was just putting it down, or another was faster
		}
		return view, err
	}
}

func notFailed(run flow.Run) error {
	return flow.Errorf(flow.CodeConflict, "run %s is %s and has not failed", run.ID, run.Status).Right("only a failed run can be retried")
}

// maxHint bounds a person's hint, in bytes.
const maxHint = 4000

// retry has a failed step attempted again, with a person's hint if there is
// one. One that was stopped because another failed goes on where it was.
func (c *change) retry(n *node, inst flow.StepInstance, hint string) {
	p := inst.Progress
	if p.Stopped {
		c.unstop(n, inst)
		return
	}
	inst.Progress = flow.Progress{Episode: p.Episode + 1, Mends: p.Mends + 1, Mods: p.Mods, Dropped: p.Dropped, Branch: p.Branch, Hint: hint}
	inst.Status, inst.Error, inst.Message, inst.FinishedAt = flow.StepRunning, "", "", time.Time{}
	c.step(inst)
	c.event(flow.EventStepStarted, &inst.StepKey, stepData{ID: n.ID, Type: n.Type, Title: n.Title})
}

// unstop has a step go on that was stopped.
func (c *change) unstop(n *node, inst flow.StepInstance) {
	p := &inst.Progress
	p.Stopped = false
	inst.Status, inst.Error, inst.FinishedAt = flow.StepRunning, "", time.Time{}
	if p.Failure != nil {
		inst.Error = p.Failure.Error
	}
	switch p.Phase {
	case flow.PhaseBackoff, flow.PhaseWaiting, flow.PhaseAwaiting:
		inst.Status = flow.StepWaiting
	}
	c.step(inst)
	if p.Phase != flow.PhaseNested {
		c.event(flow.EventStepStarted, &inst.StepKey, stepData{ID: n.ID, Type: n.Type, Title: n.Title})
	}
}

// sorted gives the checkpoints in order.
func (d *driver) sorted() []*flow.StepInstance {
	return slices.SortedFunc(maps.Values(d.rows), func(a, b *flow.StepInstance) int {
		return cmp.Or(a.Index-b.Index, cmp.Compare(a.Iteration, b.Iteration))
	})
}

// move has do carried out on a run: by its driver, if somebody drives it
// here, else by d, which has been loaded for that and drives the run on. It
// answers stale if the run has moved on meanwhile, and then nothing is done.
func (e *Engine) move(ctx context.Context, d *driver, do act) error {
	if other := e.register(d); other != nil {
		d.cancel()
		return other.hand(ctx, delivery{do: do, asked: true})
	}
	c := d.begin()
	c.asked = true
	c.claim()
	if err := do(c); err != nil || d.run.Status != flow.RunRunning {
		e.unregister(d)
		return err
	}
	e.carryOn(d)
	return nil
}

// carryOn drives a run whose claim is committed, ahead of those that queue: a
// person has waited for it.
func (e *Engine) carryOn(d *driver) {
	e.mu.Lock()
	draining := e.draining
	if !draining {
		e.busy++
		e.wg.Add(1)
	}
	e.mu.Unlock()
	if draining { // the next start takes it up
		e.unregister(d)
		return
	}
	go e.drive(d)
}

// drive moves a run on, in a place that has been taken for it, and gives the
// place back when nothing of the run executes any more.
func (e *Engine) drive(d *driver) {
	defer e.leave()
	d.loop()
	e.unregister(d)
	d.crew.Wait()
}
