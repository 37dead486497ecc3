package engine

import (
	"context"
	"strings"
	"time"

	"github.com/longstop-dev/longstop/internal/flow"
)

// RetryRun goes on with a failed run from the step that failed: another
// attempt, with a new recovery episode, so that the own agent is asked first
// again. A hint is shown to it if the step fails once more. It answers
// conflict for a run that has not failed.
func (e *Engine) RetryRun(ctx context.Context, by flow.Caller, in *RetryIn) (*RunView, error) {
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
	c := d.begin()
	c.claim()
	c.c.Run.FinishedAt, c.c.Run.Error = time.Time{}, ""
	hint := cut(d.masker.Text(strings.TrimSpace(in.Body.Hint)), maxHint)
	c.event(flow.EventRunResumed, nil, runData{By: by.Person, Hint: hint})
	for _, row := range d.rows {
		if row.Status == flow.StepFailed {
			c.retry(d.def.steps[row.Index], *row, hint)
		}
	}
	if err := c.commit(ctx); err != nil {
		d.cancel()
		if flow.CodeOf(err) == flow.CodeStale {
			return nil, flow.Errorf(flow.CodeConflict, "run %s is being retried", run.ID).Right("read it again")
		}
		return nil, err
	}
	view := e.view(d.run)
	e.carryOn(d)
	return view, nil
}

func notFailed(run flow.Run) error {
	return flow.Errorf(flow.CodeConflict, "run %s is %s and has not failed", run.ID, run.Status).Right("only a failed run can be retried")
}

// maxHint bounds a person's hint, in bytes.
const maxHint = 4000

// retry has a failed step attempted again.
func (c *change) retry(n *node, inst flow.StepInstance, hint string) {
	p := inst.Progress
	inst.Progress = flow.Progress{Episode: p.Episode + 1, Mends: p.Mends + 1, Mods: p.Mods, Dropped: p.Dropped, Branch: p.Branch, Hint: hint}
	inst.Status, inst.Error, inst.Message, inst.FinishedAt = flow.StepRunning, "", "", time.Time{}
	c.step(inst)
	c.c.Run.Current = inst.StepKey.String()
	c.event(flow.EventStepStarted, &inst.StepKey, stepData{ID: n.ID, Type: n.Type, Title: n.Title})
}

// carryOn drives a run whose claim is committed, ahead of those that queue: a
// person has waited for it.
func (e *Engine) carryOn(d *driver) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.draining { // the next start takes it up
		d.cancel()
		return
	}
	e.busy++
	e.wg.Add(1)
	e.active[d.run.ID] = d
	go func() { defer e.leave(); defer e.unregister(d); d.loop() }()
}
