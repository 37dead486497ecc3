package flowtest

import (
	"fmt"
	"sync"

	"github.com/longstop-dev/longstop/internal/flow"
)

// Transitions watches the Changes of any number of runs and says which of them
// the state tables of package flow do not allow, or leave a run in a state that
// nobody can bring on.
type Transitions struct {
	mu   sync.Mutex
	runs map[string]*stand
}

// stand is how a run stands after the Changes that were seen of it.
type stand struct {
	mu    sync.Mutex // held while a Change of the run is applied
	run   flow.Run
	steps map[flow.StepKey]flow.StepStatus
	gates map[string]flow.GateStatus
}

// NewTransitions makes a watcher that has seen nothing.
func NewTransitions() *Transitions { return &Transitions{runs: map[string]*stand{}} }

// Apply has apply write the Change and, if it did, gives what is wrong with
// it. Changes of one run are applied one after another. The first that is seen
// of a run must create it.
func (t *Transitions) Apply(c flow.Change, apply func() error) (wrong []string, err error) {
	t.mu.Lock()
	s := t.runs[c.Run.ID]
	if s == nil {
		s = &stand{steps: map[flow.StepKey]flow.StepStatus{}, gates: map[string]flow.GateStatus{}}
		t.runs[c.Run.ID] = s
	}
	t.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := apply(); err != nil {
		return nil, err
	}
	for _, w := range s.take(c) {
		wrong = append(wrong, fmt.Sprintf("run %s, version %d: %s", c.Run.ID, c.Run.Version, w))
	}
	return wrong, nil
}

// take holds a Change against the tables, and brings the stand up to date.
func (s *stand) take(c flow.Change) (wrong []string) {
	say := func(format string, a ...any) { wrong = append(wrong, fmt.Sprintf(format, a...)) }
	was, is := s.run, c.Run
	if !was.Status.Can(is.Status) {
		say("the run goes from %q to %q", was.Status, is.Status)
	}
	if is.Version != was.Version+1 {
		say("its version was %d before", was.Version)
	}
	if is.Seq != was.Seq+int64(len(c.Events)) {
		say("events number %d after %d, and there are %d", is.Seq, was.Seq, len(c.Events))
	}
	for _, step := range c.Steps {
		from, seen := s.steps[step.StepKey]
		if !seen {
			from = flow.StepPending
		}
		if !from.Can(step.Status) {
			say("step %s goes from %q to %q", step.StepKey, from, step.Status)
		}
		s.steps[step.StepKey] = step.Status
	}
	for _, g := range c.Gates {
		if from := s.gates[g.ID]; !from.Can(g.Status) {
			say("gate %s goes from %q to %q", g.ID, from, g.Status)
		}
		s.gates[g.ID] = g.Status
	}
	s.run = is
	return append(wrong, s.loose()...)
}

// loose says what of a run is left without anybody who could bring it on, or
// left behind by its end.
func (s *stand) loose() (wrong []string) {
	say := func(format string, a ...any) { wrong = append(wrong, fmt.Sprintf(format, a...)) }
	r := s.run
	if owned := r.Owner != ""; owned != (r.Status == flow.RunRunning) {
		say("it is %s, and its owner is %q", r.Status, r.Owner)
	}
	open := 0
	for id, status := range s.gates {
		if status == flow.GateOpen {
			open++
			if r.Status.Finished() {
				say("it is %s, and gate %s is open", r.Status, id)
			}
		}
	}
	if r.Status == flow.RunWaiting && open == 0 && r.WakeAt.IsZero() {
		say("it waits for no time and at no gate")
	}
	if !r.Status.Finished() {
		return wrong
	}
	if r.FinishedAt.IsZero() || !r.WakeAt.IsZero() {
		say("it is %s, finished at %s and due at %s", r.Status, r.FinishedAt, r.WakeAt)
	}
	for key, status := range s.steps {
		if status == flow.StepRunning || status == flow.StepWaiting {
			say("it is %s, and step %s is %s", r.Status, key, status)
		}
	}
	return wrong
}
