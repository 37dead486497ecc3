package store

import (
	"encoding/json"
	"testing"

	"github.com/longstop-dev/longstop/internal/flow"
)

func TestObservations(t *testing.T) {
	onEach(t, func(t *testing.T, db Options) {
		s := open(t, db)
		r := create(t, s, "run_1")
		asked := flow.Observation{State: flow.ObservationAsked, Asked: flow.Asked{Responder: "a2a", Target: "https://a", Source: flow.SourceBYOA, At: at()}}
		kase := func(id string) flow.Case {
			o := asked
			return flow.Case{ID: id, Workspace: "ws", RunID: r.ID, OpenedAt: at(), Asked: []flow.Asked{}, Input: flow.RecoveryInput{SchemaVersion: 1}, Observed: &o}
		}
		one, two := kase("case_1"), kase("case_2")
		plain := flow.Case{ID: "case_3", Workspace: "ws", RunID: r.ID, OpenedAt: at(), Asked: []flow.Asked{}, Input: flow.RecoveryInput{SchemaVersion: 1}}
		apply := func(cases ...flow.Case) {
			t.Helper()
			r.Version++
			if err := s.Apply(t.Context(), flow.Change{Run: r, Cases: cases}); err != nil {
				t.Fatalf("apply: %v", err)
			}
		}
		apply(one, two, plain)
		same(t, "opened with its case", must(s.Case(t.Context(), "ws", "case_1")), one)

		answered := asked
		answered.State, answered.Accepted, answered.Action = flow.ObservationAnswered, true, json.RawMessage(`{"type":"needs_human"}`)
		if err := s.PutObservation(t.Context(), "ws", "case_1", answered); err != nil {
			t.Fatal(err)
		}
		one.Outcome = "mended"
		apply(one) // the case is brought up to date by who still has the old picture of it
		one.Observed = &answered
		same(t, "the answer outlives the case's changes", must(s.Case(t.Context(), "ws", "case_1")), one)

		if n := must(s.LoseObservations(t.Context())); n != 1 {
			t.Errorf("lost %d, want 1", n)
		}
		got := must(s.Case(t.Context(), "ws", "case_2"))
		if got.Observed == nil || got.Observed.State != flow.ObservationLost || got.Observed.Responder != "a2a" {
			t.Errorf("got %+v, want it lost", got.Observed)
		}
		for _, put := range []struct{ workspace, id string }{{"ws2", "case_2"}, {"ws", "case_1"}} {
			failed := asked
			failed.State = flow.ObservationFailed
			if err := s.PutObservation(t.Context(), put.workspace, put.id, failed); err != nil {
				t.Fatal(err)
			}
		}
		same(t, "the first answer stays", must(s.Case(t.Context(), "ws", "case_1")), one)
		if got := must(s.Case(t.Context(), "ws", "case_2")).Observed.State; got != flow.ObservationLost {
			t.Errorf("another workspace wrote: %s", got)
		}
		if err := s.PutObservation(t.Context(), "ws", "case_2", answered); err != nil {
			t.Fatal(err)
		}
		two.Observed = &answered
		same(t, "what was lost may still be answered", must(s.Case(t.Context(), "ws", "case_2")), two)
		same(t, "observed", must(s.ObservedCases(t.Context(), "ws", "", 10)), []flow.Case{two, one})
		same(t, "observed before", must(s.ObservedCases(t.Context(), "ws", "case_2", 10)), []flow.Case{one})
		same(t, "all", must(s.Cases(t.Context(), "ws", r.ID, "", 10)), []flow.Case{plain, two, one})
		if got := must(s.ObservedCases(t.Context(), "ws2", "", 10)); len(got) != 0 {
			t.Errorf("another workspace sees %d", len(got))
		}
	})
}

func TestStepStatus(t *testing.T) {
	onEach(t, func(t *testing.T, db Options) {
		s := open(t, db)
		r := create(t, s, "run_1")
		r.Version = 2
		step := flow.StepInstance{StepKey: flow.StepKey{Index: 1, Iteration: "2"}, Status: flow.StepSucceeded}
		if err := s.Apply(t.Context(), flow.Change{Run: r, Steps: []flow.StepInstance{step}}); err != nil {
			t.Fatal(err)
		}
		if got := must(s.StepStatus(t.Context(), r.ID, step.StepKey)); got != flow.StepSucceeded {
			t.Errorf("got %q", got)
		}
		if got := must(s.StepStatus(t.Context(), r.ID, flow.StepKey{Index: 1})); got != "" {
			t.Errorf("of one that has not begun: %q", got)
		}
	})
}
