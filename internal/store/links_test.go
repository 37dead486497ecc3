package store

import (
	"testing"

	"github.com/longstop-dev/longstop/internal/flow"
)

func TestRunsNameWhatTheyWereStartedAgainFrom(t *testing.T) {
	onEach(t, func(t *testing.T, db Options) {
		s := open(t, db)
		create(t, s, "run_1")
		for _, id := range []string{"run_3", "run_2"} {
			r := newRun(id)
			r.RerunOf, r.RerunFrom = "run_1", "two"
			step := flow.StepInstance{Status: flow.StepSucceeded, Output: []byte(`1`), Progress: flow.Progress{Carried: "run_1"}}
			if err := s.Apply(t.Context(), flow.Change{Run: r, Steps: []flow.StepInstance{step}}); err != nil {
				t.Fatal(err)
			}
			same(t, "run", must(s.Run(t.Context(), "ws", id)), r)
			same(t, "steps", must(s.Steps(t.Context(), id)), []flow.StepInstance{step})
		}
		same(t, "reruns", must(s.Reruns(t.Context(), "ws", "run_1", 10)), []string{"run_2", "run_3"})
		same(t, "the first", must(s.Reruns(t.Context(), "ws", "run_1", 1)), []string{"run_2"})
		for _, other := range [][2]string{{"other", "run_1"}, {"ws", "run_2"}, {"ws", ""}} {
			if got := must(s.Reruns(t.Context(), other[0], other[1], 10)); len(got) != 0 {
				t.Errorf("reruns of %v: got %v, want none", other, got)
			}
		}
		if got := must(s.Runs(t.Context(), flow.RunFilter{Workspace: "ws", Limit: 1})); got[0].RerunOf != "run_1" {
			t.Errorf("list: got %+v, want the link", got[0])
		}
	})
}
