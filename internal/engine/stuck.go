package engine

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/longstop-dev/longstop/internal/flow"
)

// How long a run waits before what the database has not taken is tried again:
// twice as long each time.
const (
	againFirst = 100 * time.Millisecond
	againMost  = 2 * time.Second
)

// record writes a change. While the database cannot take it for the moment, a
// run that is being driven waits and offers the same change again: what a step
// has done outside is known here only, and doing it twice is the last resort.
// A caller who waits for an answer is told at once: asked says that the change
// is one.
func (e *Engine) record(ctx context.Context, d *driver, c flow.Change, asked bool) error {
	err := e.Runs.Apply(ctx, c)
	if err == nil || !errors.Is(err, flow.ErrLater) || asked || c.Run.Version == 1 || e.driving(c.Run.ID) != d {
		return err
	}
	e.Log.Error("the database does not take what a run has done; it is offered again until it does", "run", c.Run.ID, "error", err)
	for wait := againFirst; errors.Is(err, flow.ErrLater) && !e.stopping(); wait = min(2*wait, againMost) {
		if !d.hold(ctx, wait) {
			return err
		}
		if err = e.Runs.Apply(ctx, c); errors.Is(err, flow.ErrLater) {
			d.refuse(err)
		}
	}
	if err == nil {
		e.Log.Info("the database has taken what a run has done", "run", c.Run.ID)
	}
	return err
}

// hold waits, but not while a caller does: there may be room again. It reports
// whether ctx and the engine still go on.
func (d *driver) hold(ctx context.Context, wait time.Duration) bool {
	due, release := d.e.Clock.After(wait)
	defer release()
	for {
		select {
		case <-due:
			return true
		case v := <-d.mail:
			if d.kept = append(d.kept, v); v.asked {
				return true
			}
		case <-ctx.Done():
			return false
		case <-d.e.ctx.Done():
			return false
		}
	}
}

// refuse tells callers that the database takes nothing.
func (d *driver) refuse(why error) {
	d.kept = slices.DeleteFunc(d.kept, func(v delivery) bool {
		if v.asked {
			v.done <- why
		}
		return v.asked
	})
}

// pause waits; it reports whether ctx and the engine still go on.
func (e *Engine) pause(ctx context.Context, d time.Duration) bool {
	due, release := e.Clock.After(d)
	defer release()
	select {
	case <-due:
		return true
	case <-ctx.Done():
	case <-e.ctx.Done():
	}
	return false
}

// stuck decides what becomes of a run that cannot be driven on. If that
// passes, its job is done later; if what is stored of it is damaged, it fails;
// otherwise it stays as it is until the next start.
func (e *Engine) stuck(j job, run flow.Run, err error) {
	switch {
	case e.ctx.Err() != nil:
	case errors.Is(err, flow.ErrLater):
		e.Log.Error("the database cannot be used for a run; it is taken up again", "run", j.runID, "error", err)
		go func() {
			if e.pause(e.ctx, againMost) {
				e.take(j)
			}
		}()
	case errors.Is(err, flow.ErrUnreadable) && run.Version > 0:
		e.Log.Error("a run fails, since what is stored of it is damaged", "run", run.ID, "error", err)
		stale := e.end(e.ctx, run, flow.RunFailed, flow.EventRunFailed, runData{Error: "the run cannot go on: " + err.Error()}, nil)
		if stale != nil {
			e.Log.Error("a damaged run cannot be ended", "run", run.ID, "error", stale)
		}
	default:
		// What was written is perhaps there all the same: what is stored decides.
		e.Log.Error("a run cannot be driven on now; it is taken up again", "run", j.runID, "error", err)
		wait := min(againMost<<min(j.tries, 5), time.Minute)
		j.tries++
		go func() {
			if e.pause(e.ctx, wait) {
				e.take(j)
			}
		}()
	}
}

// end ends a run of which nothing but its own row can be read, and closes its
// gates; by is who wanted that, nil if nobody did.
func (e *Engine) end(ctx context.Context, run flow.Run, s flow.RunStatus, event string, data runData, by *flow.Caller) error {
	d := &driver{stage: stage{e: e, runID: run.ID, workspace: run.Workspace}, run: run, rows: map[flow.StepKey]*flow.StepInstance{}}
	c := d.begin()
	c.c.Claim = true // whoever may be about to drive it is refused
	c.c.Run.Epoch++
	if err := c.closeOpenGates(ctx); err != nil {
		return err
	}
	c.finish(s)
	c.c.Run.Error = data.Error
	c.event(event, nil, data)
	if by != nil {
		c.did(*by, "runs.cancel", map[string]any{"workflow": run.Workflow})
	}
	return c.commit(ctx)
}

// shown is a stored value as it can be put into an answer: what is damaged
// must not make the rest of it unreadable.
func shown(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 || json.Valid(raw) {
		return raw
	}
	return json.RawMessage(`"this value is damaged in the database and cannot be read"`)
}
