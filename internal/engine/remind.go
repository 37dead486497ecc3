package engine

import (
	"slices"
	"time"

	"github.com/longstop-dev/longstop/internal/flow"
)

// every is the time between reminders as a gate keeps it, in seconds.
func every(d time.Duration) int64 {
	if d < 0 {
		return -1
	}
	return int64(d / time.Second)
}

// arm sets a gate's first reminder, if people are to be reminded of it. An
// agent that polls needs none.
func (c *change) arm(g *flow.Gate) {
	d := c.d
	if g.Kind == flow.GateNeedsAgent {
		return
	}
	if g.Every == 0 {
		policy, err := d.e.Workspaces.Gates(d.ctx, d.run.Workspace)
		if err != nil { // the gate has to open all the same
			d.e.Log.Error("the workspace's settings cannot be read: a gate opens without reminders", "run", d.run.ID, "error", err)
		}
		g.Every = every(policy.RemindEvery)
	}
	g.Every = max(g.Every, 0)
	g.RemindAt = nextReminder(g, g.OpenedAt)
}

// nextReminder is the first of the gate's reminders after now, or nil if its
// time is over by then.
func nextReminder(g *flow.Gate, now time.Time) *time.Time {
	if g.Every <= 0 {
		return nil
	}
	each := time.Duration(g.Every) * time.Second
	at := g.OpenedAt.Add((now.Sub(g.OpenedAt)/each + 1) * each)
	if !at.Before(g.ExpiresAt) {
		return nil
	}
	return &at
}

// remindable reports whether a gate is due for no more than a reminder, and
// counts it then.
func remindable(g *flow.Gate, now time.Time) bool {
	if g.Status != flow.GateOpen || !g.ExpiresAt.After(now) || g.RemindAt == nil {
		return false
	}
	g.Reminded++
	g.RemindAt = nextReminder(g, now)
	return true
}

// remind sends the reminders that are due at a parked run's gates, without
// waking the run, and parks it until what is due next. It reports whether that
// was all: it is not if anything else of the run is due. Of reminders that
// were due while nobody was there, one is sent.
func (d *driver) remind() (all bool, err error) {
	now := d.e.Clock.Now()
	next := time.Time{}
	var gates []flow.Gate
	for _, row := range d.rows {
		due := row.Progress.DueAt
		if row.Status != flow.StepWaiting || due == nil {
			continue
		}
		at := *due
		if !at.After(now) {
			if row.Progress.Phase != flow.PhaseGated {
				return false, nil
			}
			g, err := d.e.Records.Gate(d.ctx, d.run.Workspace, row.Progress.GateID)
			if err != nil {
				return false, err
			}
			if !remindable(&g, now) {
				return false, nil
			}
			gates, at = append(gates, g), g.Due()
		}
		if next.IsZero() || at.Before(next) {
			next = at
		}
	}
	if len(gates) == 0 {
		return false, nil
	}
	slices.SortFunc(gates, func(a, b flow.Gate) int { return a.StepIndex - b.StepIndex })
	c := d.begin()
	for _, g := range gates {
		c.reminded(g)
	}
	c.wakeAt(next)
	return true, c.commit(d.ctx)
}

// reminded adds a reminder of a gate to c.
func (c *change) reminded(g flow.Gate) {
	key := flow.StepKey{Index: g.StepIndex, Iteration: g.Iteration}
	inst, due := *c.d.rows[key], g.Due()
	inst.Progress.DueAt = &due
	c.step(inst)
	c.gate(g)
	c.event(flow.EventGateReminded, &key, gateData{GateID: g.ID, Kind: g.Kind, CaseID: g.CaseID, ExpiresAt: &g.ExpiresAt, Reminder: g.Reminded, RemindAt: g.RemindAt})
	c.log(c.d.def.steps[g.StepIndex], &inst, "reminded", func(l *flow.Log) {
		l.Message = "nobody has answered yet; the gate waits until " + g.ExpiresAt.UTC().Format(time.RFC3339)
	})
}
