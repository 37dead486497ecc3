package engine

import (
	"strconv"

	"github.com/longstop-dev/longstop/internal/flow"
)

// handover works out which checkpoints of a run a new one begins with: those
// of all steps before the one it starts from, and of lists that run beside it. Steps are known again by
// their ids, because a newer version may number them otherwise.
type handover struct {
	old      flow.Run
	from     *node
	was, def *compiled

	known map[string]*node                         // of the old version, by id
	rows  map[string]map[string]*flow.StepInstance // of the old run, by id and iteration
	wasAt []place                                  // by index
	defAt []place
	path  map[int]string // the steps that hold the first one, and in which list
	left  map[int]bool   // steps that are not carried over, nor what they hold
	out   []carried
}

// place is where a step stands.
type place struct {
	parent int // the index of the step that holds it, -1 for none
	branch string
}

func newHandover(old flow.Run, was, def *compiled, rows []flow.StepInstance, from *node) *handover {
	h := &handover{old: old, from: from, was: was, def: def, known: map[string]*node{}, rows: map[string]map[string]*flow.StepInstance{},
		wasAt: places(was), defAt: places(def), path: map[int]string{}, left: map[int]bool{}}
	for _, n := range was.steps {
		h.known[n.ID] = n
		h.rows[n.ID] = map[string]*flow.StepInstance{}
	}
	for i := range rows {
		h.rows[was.steps[rows[i].Index].ID][rows[i].Iteration] = &rows[i]
	}
	for at := h.defAt[from.Index]; at.parent >= 0; at = h.defAt[at.parent] {
		h.path[at.parent] = at.branch
	}
	return h
}

// places says for each step, by index, where it stands.
func places(c *compiled) []place {
	out := make([]place, len(c.steps))
	for i := range out {
		out[i] = place{parent: -1}
	}
	for _, n := range c.steps {
		for _, b := range n.Nested {
			for _, s := range b.Steps {
				out[s.Index] = place{parent: n.Index, branch: b.Name}
			}
		}
	}
	return out
}

// all gives the checkpoints, or says why the run cannot begin there.
func (h *handover) all() ([]carried, error) {
	for _, n := range h.def.steps {
		if h.after(n) {
			continue
		}
		var err error
		if branch, holds := h.path[n.Index]; holds {
			err = h.enter(n, branch)
		} else {
			err = h.take(n)
		}
		if err != nil {
			return nil, err
		}
	}
	return h.out, nil
}

// after reports that a step is the first one or comes after it, so that it is
// executed: of those written later, all but the ones in a list that runs beside
// the first one's.
func (h *handover) after(n *node) bool {
	if n.Index < h.from.Index {
		return false
	}
	for at := h.defAt[n.Index]; at.parent >= 0; at = h.defAt[at.parent] {
		if way, inside := h.path[at.parent]; inside {
			return way == at.branch
		}
	}
	return true
}

// enter carries a step over that holds the first one: it goes on inside.
func (h *handover) enter(n *node, branch string) error {
	if err := h.same(n); err != nil {
		return err
	}
	row := h.rows[n.ID][""]
	switch {
	case row == nil || !row.Status.Done() && row.Progress.Phase != flow.PhaseNested:
		return h.refuse("step %q stands in %q, which run %s did not get to", h.from.ID, n.ID, h.old.ID).Right("begin with " + n.ID + " or earlier")
	case row.Progress.Branch != branch && row.Progress.Branch != flow.AllBranches:
		return h.refuse("step %q stands in branch %q of %q, and run %s took %q", h.from.ID, branch, n.ID, h.old.ID, row.Progress.Branch).
			Right("begin with " + n.ID + ", which decides again")
	case h.repeats(n):
		return h.refuse("step %q is repeated in %q", h.from.ID, n.ID).Right("begin with " + n.ID)
	}
	inst := flow.StepInstance{StepKey: flow.StepKey{Index: n.Index}, Status: flow.StepRunning, Output: nil,
		Progress: flow.Progress{Phase: flow.PhaseNested, Branch: row.Progress.Branch, Carried: h.old.ID}}
	h.out = append(h.out, carried{n, inst, "what it decided is carried over from " + h.old.ID})
	return nil
}

// repeats reports that what a step holds has run more than once.
func (h *handover) repeats(n *node) bool {
	held := false
	for _, b := range n.Nested {
		for _, s := range b.Steps {
			for iteration := range h.rows[s.ID] {
				held = held || iteration != ""
			}
		}
	}
	return held
}

// take carries over what a step gave, and whatever it holds.
func (h *handover) take(n *node) error {
	at := h.defAt[n.Index]
	if h.left[at.parent] {
		h.left[n.Index] = true
		return nil
	}
	way, inside := h.path[at.parent]
	needed := at.parent < 0 || inside && way == at.branch
	if beside := inside && !needed; beside && h.same(n) != nil {
		h.left[n.Index] = true
		return nil
	}
	if needed {
		if err := h.same(n); err != nil {
			return err
		}
		if row := h.rows[n.ID][""]; row == nil || !row.Status.Done() {
			return h.refuse("step %q comes before %q and has no output in run %s", n.ID, h.from.ID, h.old.ID).Right("begin with " + n.ID + " or earlier")
		}
	}
	done := false
	for _, row := range h.rows[n.ID] {
		if !row.Status.Done() {
			continue
		}
		if err := h.same(n); err != nil {
			return err
		}
		done = true
		h.out = append(h.out, h.carried(n, *row))
	}
	h.left[n.Index] = !done
	return nil
}

func (h *handover) carried(n *node, row flow.StepInstance) carried {
	inst := flow.StepInstance{StepKey: flow.StepKey{Index: n.Index, Iteration: row.Iteration}, Status: row.Status, Output: row.Output,
		RecoverySource: row.RecoverySource, Message: "carried over from " + h.old.ID,
		Progress: flow.Progress{Branch: row.Progress.Branch, Carried: h.old.ID}}
	if row.Progress.Carried != "" { // it was not executed there either
		inst.Progress.Carried = row.Progress.Carried
		inst.Message = "carried over from " + row.Progress.Carried
	}
	note := inst.Message
	if !sameJSON(h.known[n.ID].Config, n.Config) {
		note += "; its config has changed since"
	}
	return carried{n, inst, note}
}

// same says in what a step is not the old version's step of that id.
func (h *handover) same(n *node) error {
	o := h.known[n.ID]
	what := ""
	switch {
	case o == nil:
		what = "is new"
	case o.Type != n.Type:
		what = "was of type " + o.Type
	case !h.stands(o, n):
		what = "stood elsewhere"
	case n.ID == "s"+strconv.Itoa(n.Index) && !sameJSON(o.Config, n.Config): // nothing else tells that it is the same step
		what = "has another config and no id of its own"
	default:
		return nil
	}
	return h.refuse("the version has other steps before %q than run %s had: %q %s", h.from.ID, h.old.ID, n.ID, what).
		Right("begin with " + n.ID + " or earlier, or on the pinned version")
}

// stands reports whether a step stands in the same list as before.
func (h *handover) stands(o, n *node) bool {
	a, b := h.wasAt[o.Index], h.defAt[n.Index]
	if a.branch != b.branch || (a.parent < 0) != (b.parent < 0) {
		return false
	}
	return a.parent < 0 || h.was.steps[a.parent].ID == h.def.steps[b.parent].ID
}

func (h *handover) refuse(format string, args ...any) *flow.Error {
	return flow.Errorf(flow.CodeInvalid, format, args...).At("from")
}
