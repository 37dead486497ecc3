package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"sort"
	"time"

	"github.com/longstop-dev/longstop/internal/flow"
)

// failed records a failed attempt: tier 1 tries again if it may, otherwise
// the failure is frozen into a case and recovery has it.
func (d *driver) failed(n *node, inst flow.StepInstance, config json.RawMessage, err error) (bool, error) {
	stepErr := asStepError(err)
	if stepErr.Err != nil {
		d.e.Log.Debug("a step failed", "run", d.run.ID, "step", n.Index, "error", d.masker.Text(stepErr.Err.Error()))
	}
	p := &inst.Progress
	p.Tries++
	p.Failure = d.masked(stepErr)
	inst.Error, inst.Status = p.Failure.Error, flow.StepRunning
	now := d.e.Clock.Now()
	if wait, ok := d.retryIn(n, p, stepErr, now); ok {
		return false, d.backOff(n, inst, wait, "retrying")
	}
	return d.freeze(n, inst, config)
}

func asStepError(err error) *flow.StepError {
	var e *flow.StepError
	if errors.As(err, &e) {
		return e
	}
	return &flow.StepError{Kind: flow.KindInternal, Message: "the step failed unexpectedly", Err: err}
}

// masked is a failure as it may be stored and shown.
func (d *driver) masked(e *flow.StepError) *flow.Failed {
	f := &flow.Failed{Error: d.masker.Text(e.Message), Kind: e.Kind}
	if e.Response != nil {
		r := flow.Response{Status: e.Response.Status, Body: cut(d.masker.Text(e.Response.Body), maxKept)}
		if len(e.Response.Header) > 0 {
			r.Header = make(map[string]string, len(e.Response.Header))
			for name, v := range e.Response.Header {
				r.Header[name] = d.masker.Text(v)
			}
		}
		f.Response = &r
	}
	return f
}

// retryIn says whether tier 1 tries again, and when: exponential back-off with
// full jitter above a half, or what the outsider asked for, if the step's
// total time has room for it.
func (d *driver) retryIn(n *node, p *flow.Progress, e *flow.StepError, now time.Time) (time.Duration, bool) {
	if !e.Retryable() || p.Tries >= n.Retry.Attempts {
		return 0, false
	}
	full := float64(n.Retry.Backoff) * math.Pow(2, float64(p.Tries-1))
	wait := time.Duration(min(full, float64(n.Retry.MaxBackoff)) * (0.5 + d.e.Jitter()/2))
	wait = max(wait, e.RetryAfter)
	if p.Deadline != nil && !now.Add(wait).Before(*p.Deadline) {
		return 0, false // it would end in the time-out
	}
	return wait, true
}

// backOff parks a step until it is tried again.
func (d *driver) backOff(n *node, inst flow.StepInstance, wait time.Duration, status string) error {
	c := d.begin()
	c.backOff(n, inst, wait, status)
	return c.commit(d.ctx)
}

func (c *change) backOff(n *node, inst flow.StepInstance, wait time.Duration, status string) {
	due := c.now.Add(wait)
	inst.Status, inst.Progress.Phase, inst.Progress.DueAt = flow.StepWaiting, flow.PhaseBackoff, &due
	c.step(inst)
	c.park(due)
	c.c.Run.Current = inst.StepKey.String()
	c.event(flow.EventStepRetrying, &inst.StepKey, stepData{ID: n.ID, Type: n.Type, Attempt: inst.Attempts, Error: inst.Error, DueAt: &due})
	c.log(n, &inst, status, func(l *flow.Log) {
		l.Error, l.Message = inst.Error, fmt.Sprintf("next attempt in %s", wait.Round(time.Millisecond))
	})
}

// freeze makes the failure a case, records it, and asks the responders.
func (d *driver) freeze(n *node, inst flow.StepInstance, config json.RawMessage) (bool, error) {
	f := d.failure(n, inst, config)
	k, err := d.e.Recovery.Freeze(d.ctx, f)
	if err != nil {
		return false, d.giveUp(n, inst, d.masker.Text("recovery could not begin: "+err.Error()))
	}
	c := d.begin()
	c.froze(n, inst, k)
	if err := c.commit(d.ctx); err != nil {
		return false, err
	}
	return d.judge(n, *d.rows[inst.StepKey], f, k)
}

// froze adds a case that opens to c.
func (c *change) froze(n *node, inst flow.StepInstance, k flow.Case) {
	inst.Status, inst.Progress.Phase, inst.Progress.CaseID = flow.StepRunning, flow.PhaseRecovering, k.ID
	c.kase(k)
	c.step(inst)
	c.c.Run.Current = inst.StepKey.String()
	c.event(flow.EventStepRecovery, &inst.StepKey, stepData{ID: n.ID, Type: n.Type, Attempt: inst.Attempts, Error: inst.Error, CaseID: k.ID})
	c.log(n, &inst, "recovering", func(l *flow.Log) { l.Error = inst.Error })
}

// failure is what recovery is told.
func (d *driver) failure(n *node, inst flow.StepInstance, config json.RawMessage) flow.Failure {
	f := flow.Failure{Run: d.run, Recovery: d.def.def.Recovery, Step: n.Step, Instance: inst, Config: config, Left: n.TotalTimeout}
	if inst.Progress.Failure != nil {
		f.Failed = *inst.Progress.Failure
	}
	if dl := inst.Progress.Deadline; dl != nil {
		f.Left = dl.Sub(d.e.Clock.Now())
	} else if inst.Progress.Left > 0 {
		f.Left = inst.Progress.Left
	}
	for key, row := range d.rows {
		if row.Status == flow.StepSucceeded && (key.Iteration == "" || key.Iteration == inst.Iteration) {
			f.Prior = append(f.Prior, flow.PriorOutput{Index: key.Index, Output: row.Output})
		}
	}
	sort.Slice(f.Prior, func(i, j int) bool { return f.Prior[i].Index < f.Prior[j].Index })
	return f
}

// again rebuilds a failure and its case from what is stored.
func (d *driver) again(n *node, inst flow.StepInstance) (flow.Failure, flow.Case, error) {
	config, err := d.resolve(n, &inst.Progress)
	if err != nil {
		config = nil // the template error itself may be what is being mended
	}
	k, err := d.e.Records.Case(d.ctx, d.run.Workspace, inst.Progress.CaseID)
	return d.failure(n, inst, config), k, err
}

// decide takes up a case that was frozen before this driver came.
func (d *driver) decide(n *node, inst flow.StepInstance) (bool, error) {
	f, k, err := d.again(n, inst)
	if err != nil {
		return false, err
	}
	return d.judge(n, inst, f, k)
}

// judge asks the responders and applies what comes of it.
func (d *driver) judge(n *node, inst flow.StepInstance, f flow.Failure, k flow.Case) (bool, error) {
	v := d.e.Recovery.Decide(d.ctx, f, k)
	if d.ctx.Err() != nil {
		return false, d.ctx.Err()
	}
	return d.apply(d.begin(), n, inst, v)
}

// expire applies what follows when a gate's time is over.
func (d *driver) expire(n *node, inst flow.StepInstance) (bool, error) {
	g, err := d.e.Records.Gate(d.ctx, d.run.Workspace, inst.Progress.GateID)
	if err != nil {
		return false, err
	}
	act := d.unanswered(n, inst, g)
	if g.CaseID != "" {
		f, k, err := d.again(n, inst)
		if err != nil {
			return false, err
		}
		v := d.e.Recovery.Expired(d.ctx, f, k, g)
		act = func(c *change) (bool, error) { return d.apply(c, n, inst, v) }
	}
	c := d.begin()
	g.Status, g.RemindAt = flow.GateExpired, nil
	c.gate(g)
	c.event(flow.EventGateExpired, &inst.StepKey, gateData{GateID: g.ID, Kind: g.Kind, CaseID: g.CaseID})
	return act(c)
}

// giveUp fails the step and the run for good.
func (d *driver) giveUp(n *node, inst flow.StepInstance, message string) error {
	c := d.begin()
	c.giveUp(n, inst, message)
	return d.fail(c, runError(n, &inst, message))
}

func (c *change) giveUp(n *node, inst flow.StepInstance, message string) {
	inst.Status, inst.FinishedAt, inst.Message = flow.StepFailed, c.now, message
	inst.Progress.GateID = ""
	c.step(inst)
	c.event(flow.EventStepFailed, &inst.StepKey, stepData{ID: n.ID, Type: n.Type, Attempt: inst.Attempts, RecoverySource: inst.RecoverySource, Error: inst.Error, Message: message})
	c.log(n, &inst, "failed", func(l *flow.Log) {
		l.Error, l.Message, l.StartedAt, l.DurationMS = inst.Error, message, &inst.StartedAt, millis(c.now.Sub(inst.StartedAt))
	})
}

// runError is what a run says that failed at a step.
func runError(n *node, inst *flow.StepInstance, message string) string {
	text := fmt.Sprintf("step %d (%s) failed: %s", n.Index, n.ID, inst.Error)
	if message != "" && message != inst.Error {
		text += "\n" + message
	}
	return text
}
