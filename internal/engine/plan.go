package engine

import (
	"time"

	"github.com/longstop-dev/longstop/internal/flow"
)

// The plan is not stored: what comes next follows from the definition and the
// checkpoints, so that a restart finds it again.

// plan is where a run stands.
type plan struct {
	// open are the step instances that are not done and that no step before
	// them in their list keeps from being so, in the order of the definition:
	// at work, parked, or about to begin. There are several where nested lists
	// run at the same time, and none when the run is done.
	open []task
	last *flow.StepInstance // of a run that is done: its last step's; nil if it has no steps
}

// task is what a run has to do for one step instance.
type task struct {
	node *node
	inst *flow.StepInstance // nil for a step that has not begun
	// ends are, for a step whose nested lists are done, the last instance in
	// each of them; nil for a list without steps.
	ends []*flow.StepInstance
}

func (t *task) key() flow.StepKey {
	if t.inst != nil {
		return t.inst.StepKey
	}
	return flow.StepKey{Index: t.node.Index}
}

// due says until when the task is parked, or that it is not.
func (t *task) due(now time.Time) (at time.Time, parked bool) {
	if t.inst == nil || t.inst.Progress.DueAt == nil {
		return at, false
	}
	switch t.inst.Progress.Phase {
	case flow.PhaseBackoff, flow.PhaseWaiting, flow.PhaseGated, flow.PhaseAwaiting:
		at = *t.inst.Progress.DueAt
		return at, at.After(now)
	}
	return at, false
}

// plan finds out where a run with these checkpoints stands.
func (c *compiled) plan(rows map[flow.StepKey]*flow.StepInstance) plan {
	var p plan
	p.last, _ = c.walk(c.def.Steps, "", rows, &p.open)
	return p
}

// walk adds what is open in a list of steps. A list that is done adds
// nothing, and last is its last instance then.
func (c *compiled) walk(steps []flow.Step, iteration string, rows map[flow.StepKey]*flow.StepInstance, open *[]task) (last *flow.StepInstance, done bool) {
	for i := range steps {
		s := &steps[i]
		inst := rows[flow.StepKey{Index: s.Index, Iteration: iteration}]
		if inst != nil && inst.Status.Done() {
			last = inst
			continue
		}
		t := task{node: c.steps[s.Index], inst: inst}
		if inst != nil && inst.Progress.Phase == flow.PhaseNested {
			if t.ends, done = c.nested(s, inst, rows, open); !done {
				return nil, false
			}
		}
		*open = append(*open, t)
		return nil, false
	}
	return last, true
}

// nested adds what is open in the nested lists that a step has chosen.
func (c *compiled) nested(s *flow.Step, inst *flow.StepInstance, rows map[flow.StepKey]*flow.StepInstance, open *[]task) (ends []*flow.StepInstance, done bool) {
	done = true
	for _, b := range s.Nested {
		if chosen := inst.Progress.Branch; chosen != b.Name && chosen != flow.AllBranches {
			continue
		}
		last, over := c.walk(b.Steps, inst.Iteration, rows, open)
		ends, done = append(ends, last), done && over
	}
	return ends, done
}
