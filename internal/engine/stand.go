package engine

import (
	"strings"
	"time"

	"github.com/longstop-dev/longstop/internal/flow"
)

// stand adds to a change where the run stands after it: which steps begin
// now, whether anything is at work at all, when the first of the parked steps
// is due; or that the run has succeeded, since nothing is open any more.
func (c *change) stand() error {
	d := c.d
	p := d.def.plan(d.rows)
	d.next, d.alone = nil, false
	if len(p.open) == 0 {
		return c.succeed(p.last)
	}
	var ready []task
	var due time.Time
	gated := false
	for i := range p.open {
		t := &p.open[i]
		if _, busy := d.busy[t.key()]; busy {
			continue
		}
		at, parked := t.due(c.now)
		if !parked {
			ready = append(ready, *t)
			continue
		}
		gated = gated || t.inst.Progress.Phase == flow.PhaseGated
		if due.IsZero() || at.Before(due) {
			due = at
		}
	}
	c.wakeAt(due)
	if len(ready)+len(d.busy) == 0 {
		c.rest(p, gated)
		return nil
	}
	d.next = c.places(ready)
	d.alone = len(p.open) == 1 && len(d.next) == 1
	c.begins(p)
	return nil
}

// rest leaves the run to wait: nothing is at work.
func (c *change) rest(p plan, gated bool) {
	c.status(flow.RunWaiting)
	c.c.Run.Owner, c.c.Run.Current = "", current(p, func(flow.StepKey) bool { return true })
	if gated {
		at := c.c.Run.WakeAt
		c.event(flow.EventRunWaiting, nil, runData{WakeAt: &at})
	}
}

// places chooses what begins if there is not room for all: what was at work
// before a restart, then the first in the order of the definition.
func (c *change) places(ready []task) []task {
	free := MaxAtWork - len(c.d.busy)
	if len(ready) <= free {
		return ready
	}
	chosen := make([]task, 0, len(ready))
	for _, before := range []bool{true, false} {
		for _, t := range ready {
			if among(c.d.run.Current, t.key()) == before {
				chosen = append(chosen, t)
			}
		}
	}
	return chosen[:free]
}

// begins adds what begins now, for those who watch.
func (c *change) begins(p plan) {
	d := c.d
	for i := range d.next {
		t := &d.next[i]
		if key := t.key(); t.inst == nil && !among(d.run.Current, key) {
			c.event(flow.EventStepStarted, &key, stepData{ID: t.node.ID, Type: t.node.Type, Title: t.node.Title})
		}
	}
	if d.alone {
		c.c.Run.Current = d.next[0].key().String()
		return
	}
	at := make(map[flow.StepKey]bool, MaxAtWork)
	for i := range d.next {
		at[d.next[i].key()] = true
	}
	c.c.Run.Current = current(p, func(key flow.StepKey) bool {
		_, busy := d.busy[key]
		return busy || at[key]
	})
}

// current names those of the open tasks that which chooses, in the order of
// the definition.
func current(p plan, which func(flow.StepKey) bool) string {
	var names []string
	for i := range p.open {
		if key := p.open[i].key(); which(key) {
			names = append(names, key.String())
		}
	}
	return strings.Join(names, ",")
}

// among reports whether a run's Current names a step instance.
func among(current string, key flow.StepKey) bool {
	if current == "" {
		return false
	}
	want := key.String()
	for name := range strings.SplitSeq(current, ",") {
		if name == want {
			return true
		}
	}
	return false
}
