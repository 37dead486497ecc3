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

// broke records a failed attempt: tier 1 tries again if it may, otherwise
// the failure is frozen into a case and recovery has it.
func (c *change) broke(n *node, inst flow.StepInstance, config json.RawMessage, err error) error {
	d, stepErr := c.d, asStepError(err)
	if stepErr.Err != nil {
		d.e.Log.Debug("a step failed", "run", d.runID, "step", n.Index, "error", d.masker.Text(stepErr.Err.Error()))
	}
	p := &inst.Progress
	p.Tries++
	p.Failure = d.masked(stepErr)
	inst.Error, inst.Status = p.Failure.Error, flow.StepRunning
	if wait, ok := d.retryIn(n, p, stepErr, c.now); ok {
		return c.backOff(n, inst, wait)
	}
	return c.freeze(n, inst, d.about(n, inst).failure(config), "recovery could not begin")
}

func asStepError(err error) *flow.StepError {
	var e *flow.StepError
	if errors.As(err, &e) {
		return e
	}
	return &flow.StepError{Kind: flow.KindInternal, Message: "the step failed unexpectedly", Err: err}
}

// masked is a failure as it may be stored and shown.
func (s *stage) masked(e *flow.StepError) *flow.Failed {
	f := &flow.Failed{Error: s.masker.Text(e.Message), Kind: e.Kind}
	if e.Response != nil {
		r := flow.Response{Status: e.Response.Status, Body: cut(s.masker.Text(e.Response.Body), maxKept)}
		if len(e.Response.Header) > 0 {
			r.Header = make(map[string]string, len(e.Response.Header))
			for name, v := range e.Response.Header {
				r.Header[name] = s.masker.Text(v)
			}
		}
		f.Response = &r
	}
	return f
}

// retryIn says whether tier 1 tries again, and when: exponential back-off with
// full jitter above a half, or what the outsider asked for, if the step's
// total time has room for it.
func (s *stage) retryIn(n *node, p *flow.Progress, e *flow.StepError, now time.Time) (time.Duration, bool) {
	if !e.Retryable() || p.Tries >= n.Retry.Attempts {
		return 0, false
	}
	full := float64(n.Retry.Backoff) * math.Pow(2, float64(p.Tries-1))
	wait := time.Duration(min(full, float64(n.Retry.MaxBackoff)) * (0.5 + s.e.Jitter()/2))
	wait = max(wait, e.RetryAfter)
	if p.Deadline != nil && !now.Add(wait).Before(*p.Deadline) {
		return 0, false // it would end in the time-out
	}
	return wait, true
}

// backOff parks a step until it is tried again.
func (c *change) backOff(n *node, inst flow.StepInstance, wait time.Duration) error {
	due := c.now.Add(wait)
	inst.Status, inst.Progress.Phase, inst.Progress.DueAt = flow.StepWaiting, flow.PhaseBackoff, &due
	c.step(inst)
	c.event(flow.EventStepRetrying, &inst.StepKey, stepData{ID: n.ID, Type: n.Type, Attempt: inst.Attempts, Error: inst.Error, DueAt: &due})
	c.log(n, &inst, "retrying", func(l *flow.Log) {
		l.Error, l.Message = inst.Error, fmt.Sprintf("next attempt in %s", wait.Round(time.Millisecond))
	})
	return c.commit(c.d.ctx)
}

// freeze makes the failure a case and records it; the responders are asked
// next. If that is not possible the step has failed for good, and otherwise
// says why.
func (c *change) freeze(n *node, inst flow.StepInstance, f flow.Failure, otherwise string) error {
	d := c.d
	k, err := d.e.Recovery.Freeze(d.ctx, f)
	if err != nil {
		return c.giveUp(n, inst, d.masker.Text(otherwise+": "+err.Error()))
	}
	inst.Status, inst.Progress.Phase, inst.Progress.CaseID = flow.StepRunning, flow.PhaseRecovering, k.ID
	c.kase(k)
	c.step(inst)
	c.event(flow.EventStepRecovery, &inst.StepKey, stepData{ID: n.ID, Type: n.Type, Attempt: inst.Attempts, Error: inst.Error, CaseID: k.ID})
	c.log(n, &inst, "recovering", func(l *flow.Log) { l.Error = inst.Error })
	if err := c.commit(d.ctx); err != nil {
		return err
	}
	if d.frozen == nil {
		d.frozen = map[flow.StepKey]*frozen{}
	}
	d.frozen[inst.StepKey] = &frozen{f, k}
	return nil
}

// tell gathers what recovery is told about a step beside the step itself. Of
// other steps those that it sees: another branch's would be there or not by
// chance.
func (d *driver) tell(n *node, inst flow.StepInstance) *told {
	t := &told{run: d.run}
	if one := d.frozen[inst.StepKey]; one != nil {
		if delete(d.frozen, inst.StepKey); one.k.ID == inst.Progress.CaseID {
			t.frozen = one
			return t
		}
	}
	for key, row := range d.rows {
		if row.Status == flow.StepSucceeded && (key.Iteration == "" || key.Iteration == inst.Iteration) && n.sees(d.def.steps[key.Index]) {
			t.prior = append(t.prior, flow.PriorOutput{Index: key.Index, Output: row.Output})
		}
	}
	sort.Slice(t.prior, func(i, j int) bool { return t.prior[i].Index < t.prior[j].Index })
	return t
}

// about is a worker for a step instance that recovery is told about.
func (d *driver) about(n *node, inst flow.StepInstance) *worker {
	return &worker{stage: &d.stage, n: n, inst: inst, scope: d.sight(n), told: d.tell(n, inst)}
}

// failure is what recovery is told.
func (w *worker) failure(config json.RawMessage) flow.Failure {
	n, p := w.n, &w.inst.Progress
	f := flow.Failure{Run: w.told.run, Recovery: w.def.def.Recovery, Step: n.Step, Instance: w.inst, Config: config, Left: n.TotalTimeout, Prior: w.told.prior}
	if p.Failure != nil {
		f.Failed = *p.Failure
	}
	if p.Deadline != nil {
		f.Left = p.Deadline.Sub(w.e.Clock.Now())
	} else if p.Left > 0 {
		f.Left = p.Left
	}
	return f
}

// again gives the failure and the case that are being answered, out of what
// is stored if they are not at hand.
func (w *worker) again() (flow.Failure, flow.Case, error) {
	if one := w.told.frozen; one != nil {
		return one.f, one.k, nil
	}
	config, err := w.resolve()
	if err != nil {
		config = nil // the template error itself may be what is being mended
	}
	k, err := w.e.Records.Case(w.ctx, w.workspace, w.inst.Progress.CaseID)
	return w.failure(config), k, err
}

// decide asks the responders about a case.
func (w *worker) decide() act {
	f, k, err := w.again()
	if err != nil {
		return w.cannot(err)
	}
	v := w.e.Recovery.Decide(w.ctx, f, k)
	if w.ctx.Err() != nil {
		return nil
	}
	return func(c *change) error { return c.apply(w.n, w.inst, v) }
}

// expire finds out what follows when a gate's time is over, or only a
// reminder of it is due.
func (w *worker) expire() act {
	g, err := w.e.Records.Gate(w.ctx, w.workspace, w.inst.Progress.GateID)
	if err != nil {
		return w.cannot(err)
	}
	if remindable(&g, w.e.Clock.Now()) {
		return func(c *change) error {
			c.reminded(g)
			return c.commit(c.d.ctx)
		}
	}
	next := w.unanswered(g)
	if g.CaseID != "" {
		f, k, err := w.again()
		if err != nil {
			return w.cannot(err)
		}
		v := w.e.Recovery.Expired(w.ctx, f, k, g)
		next = func(c *change) error { return c.apply(w.n, w.inst, v) }
	}
	return func(c *change) error {
		g.Status, g.RemindAt = flow.GateExpired, nil
		c.gate(g)
		c.event(flow.EventGateExpired, &w.inst.StepKey, gateData{GateID: g.ID, Kind: g.Kind, CaseID: g.CaseID})
		return next(c)
	}
}

// cannot is of a worker that could not read what it needs: the run is not
// driven on, and taken up again at the next start.
func (w *worker) cannot(err error) act {
	if w.ctx.Err() != nil {
		return nil
	}
	return func(*change) error { return err }
}

// giveUp fails the step and the run for good.
func (c *change) giveUp(n *node, inst flow.StepInstance, message string) error {
	inst.Status, inst.FinishedAt, inst.Message = flow.StepFailed, c.now, message
	inst.Progress.GateID = ""
	c.step(inst)
	c.event(flow.EventStepFailed, &inst.StepKey, stepData{ID: n.ID, Type: n.Type, Attempt: inst.Attempts, RecoverySource: inst.RecoverySource, Error: inst.Error, Message: message})
	c.log(n, &inst, "failed", func(l *flow.Log) {
		l.Error, l.Message, l.StartedAt, l.DurationMS = inst.Error, message, &inst.StartedAt, millis(c.now.Sub(inst.StartedAt))
	})
	return c.fail(n, &inst, message)
}

// runError is what a run says that failed at a step.
func runError(n *node, inst *flow.StepInstance, message string) string {
	text := fmt.Sprintf("step %d (%s) failed: %s", n.Index, n.ID, inst.Error)
	if message != "" && message != inst.Error {
		text += "\n" + message
	}
	return text
}
