package engine

import "github.com/longstop-dev/longstop/internal/flow"

// The plan is not stored: what comes next follows from the definition and the
// checkpoints, so that a restart finds it again.

// task is what a run has to do next.
type task struct {
	node *node
	inst *flow.StepInstance // nil for a step that has not begun
	// last is, for a container whose nested steps are done, the instance of
	// the last of them; nil if none ran.
	last   *flow.StepInstance
	joined bool // the nested steps of node are done
	done   bool // the whole list is done, last being the last instance in it
}

// next finds the first step that is not done.
func (c *compiled) next(rows map[flow.StepKey]*flow.StepInstance) task {
	return c.walk(c.def.Steps, "", rows)
}

func (c *compiled) walk(steps []flow.Step, iteration string, rows map[flow.StepKey]*flow.StepInstance) task {
	var last *flow.StepInstance
	for i := range steps {
		s := &steps[i]
		inst := rows[flow.StepKey{Index: s.Index, Iteration: iteration}]
		if inst != nil && inst.Status.Done() {
			last = inst
			continue
		}
		t := task{node: c.steps[s.Index], inst: inst}
		if inst == nil || inst.Progress.Phase != flow.PhaseNested {
			return t
		}
		nested := c.walk(branch(s, inst.Progress.Branch), iteration, rows)
		if !nested.done {
			return nested
		}
		t.joined, t.last = true, nested.last
		return t
	}
	return task{done: true, last: last}
}

func branch(s *flow.Step, name string) []flow.Step {
	for _, b := range s.Nested {
		if b.Name == name {
			return b.Steps
		}
	}
	return nil
}
