package engine_test

import (
	"testing"
	"time"

	"github.com/longstop-dev/longstop/internal/flow"
)

// TestWhatAnAgentTakesIsTakenFromTheStep: recovery runs on the step's own
// clock, as its attempts do.
//
// spec: R-069
func TestWhatAnAgentTakesIsTakenFromTheStep(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.types.on("a", failing)
	h.desk.takes = func() { h.clock.Advance(4 * time.Second) }
	h.desk.dictate(flow.Verdict{Kind: flow.VerdictAgain, Agent: &flow.Escalation{Diagnosis: "d"}})
	v := h.ended(h.begin(flow.Definition{Steps: steps(flow.Step{Type: "a", TotalTimeout: 10 * time.Second})}, ``))
	wantStatus(t, v, flow.RunFailed)
	saw := h.desk.saw()
	if len(saw) != 2 {
		t.Fatalf("recovery was asked %d times, want 2", len(saw))
	}
	wantEqual(t, "left for the first attempt", saw[0].Left, 10*time.Second)
	wantEqual(t, "left for the second, after 4 s", saw[1].Left, 6*time.Second)
}

// TestRunsAtGatesAreDrivenByNobody parks many: one timer of the dispatcher
// waits for all of them.
//
// spec: R-096
func TestRunsAtGatesAreDrivenByNobody(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	const runs = 100
	var ids []string
	for range runs {
		id, _ := gated(h)
		ids = append(ids, id)
	}
	h.undriven(ids...)
	if n := h.clock.Waiters(); n > 1 {
		t.Errorf("%d runs at gates hold %d timers, want one for all", runs, n)
	}
}
