package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"

	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/secret"
)

// driver moves one run on. It is used by one goroutine; only stop may be
// called from others.
type driver struct {
	e      *Engine
	run    flow.Run
	def    *compiled
	rows   map[flow.StepKey]*flow.StepInstance
	masker *secret.Masker
	limits flow.Limits
	scope  map[string]any
	steps  map[string]any // the scope's member of that name

	ctx       context.Context // ends when the run is cancelled or the engine interrupted
	cancel    context.CancelFunc
	cancelled atomic.Pointer[flow.Caller] // who cancelled it
	ended     chan struct{}
}

// load makes a driver out of what is stored.
func (e *Engine) load(ctx context.Context, run flow.Run) (*driver, error) {
	rows, err := e.Runs.Steps(ctx, run.ID)
	if err != nil {
		return nil, err
	}
	return e.newDriver(ctx, run, rows)
}

func (e *Engine) newDriver(ctx context.Context, run flow.Run, rows []flow.StepInstance) (*driver, error) {
	d := &driver{e: e, run: run, rows: make(map[flow.StepKey]*flow.StepInstance, len(rows)+4), ended: make(chan struct{})}
	for i := range rows {
		d.rows[rows[i].StepKey] = &rows[i]
	}
	var err error
	if d.def, err = e.defs.get(ctx, run.VersionID); err != nil {
		return nil, err
	}
	if d.masker, err = e.Workspaces.Masker(ctx, run.Workspace); err != nil {
		return nil, err
	}
	if d.limits, err = e.Workspaces.Limits(ctx, run.Workspace); err != nil {
		return nil, err
	}
	d.ctx, d.cancel = context.WithCancel(e.ctx)
	return d, d.fillScope(ctx)
}

// fillScope sets up the names that templates and conditions see.
func (d *driver) fillScope(ctx context.Context) error {
	d.steps = map[string]any{}
	d.scope = map[string]any{"steps": d.steps, "run": map[string]any{"id": d.run.ID, "workflow": d.run.Workflow}}
	if d.def.reads.input {
		input, err := decode(d.run.Input)
		if err != nil {
			return err
		}
		d.scope["input"] = input
	}
	if d.def.reads.secrets {
		values, err := d.e.Workspaces.Values(ctx, d.run.Workspace)
		if err != nil {
			return err
		}
		secrets := make(map[string]any, len(values))
		for name, v := range values {
			secrets[name] = v
		}
		d.scope["secrets"] = secrets
	}
	for _, inst := range d.rows {
		if err := d.see(inst); err != nil {
			return err
		}
	}
	return nil
}

// see adds a finished step's output to the scope.
func (d *driver) see(inst *flow.StepInstance) error {
	if !d.def.reads.steps || !inst.Status.Done() {
		return nil
	}
	output, err := decode(inst.Output)
	if err != nil {
		return err
	}
	v := map[string]any{"output": output}
	d.steps[d.def.steps[inst.Index].ID] = v
	d.steps[inst.StepKey.String()] = v
	return nil
}

func decode(raw json.RawMessage) (any, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, flow.Errorf(flow.CodeUnavailable, "a stored value is not JSON").Because(errors.Join(flow.ErrUnreadable, err))
	}
	return v, nil
}

// stop has the driver end the run as cancelled as soon as it can.
func (d *driver) stop(by flow.Caller) {
	d.cancelled.CompareAndSwap(nil, &by)
	d.cancel()
}

// loop moves the run on until it is parked or finished, until somebody else
// has it, or until the engine stops.
func (d *driver) loop() {
	for {
		again, err := d.step()
		if by := d.cancelled.Load(); by != nil && !d.run.Status.Finished() && d.run.Status != flow.RunWaiting {
			err = d.abort(*by)
			again = false
		}
		switch {
		case err == nil && again:
			continue
		case err == nil:
		case flow.CodeOf(err) == flow.CodeStale:
			d.e.Log.Info("run was taken over", "run", d.run.ID)
		case d.ctx.Err() != nil: // the engine stops: the next start takes it up
		default:
			d.e.stuck(job{runID: d.run.ID}, d.run, err)
		}
		return
	}
}

// step does the next thing there is to do. It reports whether there is more
// for this driver.
func (d *driver) step() (again bool, err error) {
	if d.cancelled.Load() != nil {
		return false, nil
	}
	if d.e.stopping() {
		return false, nil
	}
	t := d.def.next(d.rows)
	if t.done { // only a definition without steps, or a crash between: normally the last step ends the run
		return false, d.succeed(d.begin(), t.last)
	}
	inst := d.instance(t)
	switch inst.Progress.Phase {
	case flow.PhaseNested:
		return d.join(t, inst)
	case flow.PhaseWaiting:
		return d.complete(d.begin(), t.node, inst, inst.Output)
	case flow.PhaseRecovering:
		return d.decide(t.node, inst)
	case flow.PhaseGated:
		return d.expire(t.node, inst)
	}
	return d.attempt(t.node, inst)
}

// instance gives a copy of the task's step instance, made if it has not begun.
func (d *driver) instance(t task) flow.StepInstance {
	if t.inst != nil {
		return *t.inst
	}
	return flow.StepInstance{StepKey: flow.StepKey{Index: t.node.Index}, Status: flow.StepPending}
}

// join ends a container whose nested steps are done.
func (d *driver) join(t task, inst flow.StepInstance) (bool, error) {
	out := json.RawMessage("null")
	if t.last != nil {
		out = null(t.last.Output)
	}
	return d.complete(d.begin(), t.node, inst, out)
}

// complete ends a step instance with its output, goes on to what follows, and
// ends the run if nothing does.
//
// c may hold what led to it already: a verdict, an answered gate.
func (d *driver) complete(c *change, n *node, inst flow.StepInstance, output json.RawMessage) (bool, error) {
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
		c.log(n, &inst, "console", func(l *flow.Log) { l.Message = cut(d.masker.Text(line), maxLine) })
	}
	c.log(n, &inst, "succeeded", func(l *flow.Log) {
		l.Message, l.DurationMS, l.StartedAt = inst.Message, took, &inst.StartedAt
	})
	return d.goOn(c, &inst)
}

// goOn decides what follows a step that has just become done, adds it to the
// change that says so, and commits: one transaction for the end of a step and
// what comes of it.
func (d *driver) goOn(c *change, inst *flow.StepInstance) (bool, error) {
	had, existed := d.rows[inst.StepKey]
	d.rows[inst.StepKey] = inst
	t := d.def.next(d.rows)
	undo := func() {
		if existed {
			d.rows[inst.StepKey] = had
		} else {
			delete(d.rows, inst.StepKey)
		}
	}
	if err := d.see(inst); err != nil {
		undo()
		return false, err
	}
	if t.done {
		if err := d.succeed(c, t.last); err != nil {
			undo()
			return false, err
		}
		return false, nil
	}
	c.started(t)
	if err := c.commit(d.ctx); err != nil {
		undo()
		return false, err
	}
	return true, nil
}

// started adds that the next step begins, for those who watch.
func (c *change) started(t task) {
	if t.inst != nil {
		return
	}
	key := flow.StepKey{Index: t.node.Index}
	c.c.Run.Current = key.String()
	c.event(flow.EventStepStarted, &key, stepData{ID: t.node.ID, Type: t.node.Type, Title: t.node.Title})
}

// succeed ends the run with its output; last is the last step instance.
func (d *driver) succeed(c *change, last *flow.StepInstance) error {
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
			return d.fail(c, d.masker.Text("the workflow's output cannot be made: "+err.Error()))
		}
		output = d.masker.JSON(output)
	}
	if int64(len(output)) > d.limits.OutputBytes {
		return d.fail(c, tooLarge("the workflow's output", len(output), d.limits.OutputBytes))
	}
	c.finish(flow.RunSucceeded)
	c.c.Run.Output = output
	c.event(flow.EventRunSucceeded, nil, runData{Output: bounded(output)})
	return c.commit(d.ctx)
}

// fail ends the run with an error, which must be masked.
func (d *driver) fail(c *change, message string) error {
	c.finish(flow.RunFailed)
	c.c.Run.Error = message
	c.event(flow.EventRunFailed, nil, runData{Error: message})
	return c.commit(d.ctx)
}

// abort ends the run as cancelled. What it was executing has been interrupted.
func (d *driver) abort(by flow.Caller) error {
	c := d.begin()
	d.cancelInto(c, by)
	return c.commit(context.WithoutCancel(d.ctx))
}

// cancelInto adds to c all that cancelling the run means.
func (d *driver) cancelInto(c *change, by flow.Caller) {
	if t := d.def.next(d.rows); d.run.Status == flow.RunRunning && t.node != nil && t.inst == nil { // it was executing for the first time
		c.step(flow.StepInstance{StepKey: flow.StepKey{Index: t.node.Index}, Status: flow.StepFailed, Error: "cancelled", Attempts: 1, FinishedAt: c.now})
	}
	c.finish(flow.RunCancelled)
	for _, row := range d.rows {
		if row.Status == flow.StepWaiting || row.Status == flow.StepRunning {
			inst := *row
			inst.Status, inst.FinishedAt = flow.StepFailed, c.now
			inst.Error = "cancelled"
			c.step(inst)
		}
	}
	c.event(flow.EventRunCancelled, nil, runData{By: by.Person})
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
