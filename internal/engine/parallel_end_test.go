package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/longstop-dev/longstop/internal/engine"
	"github.com/longstop-dev/longstop/internal/flow"
)

// forked is a run with a branch at work in b, one that waits for an hour, one
// at a gate, one that is done, and one that is about to call c.
func forked(h *harness, work *held) (runID string) {
	h.types.on("b", work.step)
	h.types.on("pause", func(_ context.Context, c flow.Call, _ int) (flow.Outcome, error) {
		return flow.Outcome{Until: c.Now.Add(time.Hour), Value: json.RawMessage(`"later"`)}, nil
	})
	return h.begin(flow.Definition{Steps: steps(
		fork("p",
			list(flow.Step{Type: "b", ID: "work"}, flow.Step{Type: "a", ID: "next"}),
			list(flow.Step{Type: "pause", ID: "wait"}),
			list(flow.Step{Type: "ask", ID: "gate"}),
			list(flow.Step{Type: "a", ID: "done"}),
			list(flow.Step{Type: "ask", ID: "go"}, flow.Step{Type: "c", ID: "last"})),
		flow.Step{Type: "a", ID: "after"},
	)}, ``)
}

// parked waits until all branches of a forked run stand where they should.
func parked(h *harness, runID string) *engine.RunView {
	h.t.Helper()
	return h.await(runID, "parked", func(v *engine.RunView) bool {
		return strings.HasPrefix(statuses(v), "p:running work:running next:pending wait:waiting gate:waiting done:succeeded go:waiting")
	})
}

// goOn answers the gate before c.
func goOn(h *harness, v *engine.RunView) {
	h.t.Helper()
	for _, g := range v.Gates {
		if g.StepIndex == 6 {
			if _, err := answer(h, g.ID, flow.GateAnswer{Answer: "approve"}); err != nil {
				h.t.Fatal(err)
			}
		}
	}
}

func TestAFailureStopsTheOtherBranches(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	work := hold()
	h.types.on("c", failing)
	id := forked(h, work)
	<-work.begun
	goOn(h, parked(h, id))
	<-work.cut // the call's context has ended
	v := h.ended(id)
	wantStatus(t, v, flow.RunFailed)
	wantEqual(t, "error", v.Error, "step 7 (last) failed: HTTP 401: Unauthorized\nnobody can mend this")
	wantEqual(t, "steps", statuses(v), "p:failed work:failed next:skipped wait:failed gate:failed done:succeeded go:succeeded last:failed after:skipped")
	wantEqual(t, "why", v.Steps[1].Error, "stopped: step 7 (last) failed")
	if len(v.Gates) > 0 {
		t.Errorf("open gates: got %+v", v.Gates)
	}
	ev := h.events(id)
	wantEqual(t, "the last events", joined(ev[len(ev)-6:]), "step:failed step:failed step:failed step:failed gate:closed run:failed")
	if w, err := h.store.Wakeups(t.Context()); err != nil || len(w) != 0 {
		t.Errorf("wake-ups: got %v, %v, want none", w, err)
	}

	// A retry goes on with what had not ended, and executes nothing again that had.
	waited := h.clock.Now()
	h.types.on("c", func(context.Context, flow.Call, int) (flow.Outcome, error) { return value(`"c"`) })
	again := hold()
	close(again.end)
	h.types.on("b", again.step)
	h.clock.Advance(10 * time.Minute)
	if _, err := h.eng.RetryRun(t.Context(), by, &engine.RetryIn{ID: id}); err != nil {
		t.Fatal(err)
	}
	v = h.await(id, "waiting with one gate", func(v *engine.RunView) bool { return v.Status == flow.RunWaiting && len(v.Gates) == 1 })
	wantEqual(t, "steps after the retry", statuses(v), "p:running work:succeeded next:succeeded wait:waiting gate:waiting done:succeeded go:succeeded last:succeeded after:pending")
	wantEqual(t, "the wait goes on as it was", v.WakeAt.Sub(waited), time.Hour)
	if _, err := answer(h, v.Gates[0].ID, flow.GateAnswer{Answer: "approve"}); err != nil {
		t.Fatal(err)
	}
	h.clock.Advance(50 * time.Minute)
	wantStatus(t, h.ended(id), flow.RunSucceeded)
	wantEqual(t, "executions of a b c pause", fmt.Sprint(len(h.types.made("a")), len(h.types.made("b")), len(h.types.made("c")), len(h.types.made("pause"))), "3 2 2 1")
	keys := h.types.made("b")
	wantEqual(t, "the key of what was interrupted", keys[1].IdempotencyKey, keys[0].IdempotencyKey)
	wantEqual(t, "the key of what failed", h.types.made("c")[1].IdempotencyKey, id+"-7-m1")
}

func TestCancelStopsAllBranches(t *testing.T) {
	t.Parallel()
	for name, act := range map[string]func(h *harness, work *held){
		"while one is at work": func(*harness, *held) {},
		"when all are parked":  func(_ *harness, work *held) { close(work.end) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t)
			work := hold()
			id := forked(h, work)
			<-work.begun
			parked(h, id)
			act(h, work)
			if name != "while one is at work" {
				h.waits(id)
			}
			if _, err := h.eng.CancelRun(t.Context(), by, &engine.CancelIn{ID: id}); err != nil {
				t.Fatal(err)
			}
			v := h.view(id)
			wantStatus(t, v, flow.RunCancelled)
			for _, s := range v.Steps {
				if s.Status == flow.StepRunning || s.Status == flow.StepWaiting || s.Status == flow.StepPending {
					t.Errorf("step %s is %s", s.ID, s.Status)
				}
			}
			open, err := h.store.Gates(t.Context(), "ws", id, string(flow.GateOpen), "", 10)
			if err != nil || len(open) > 0 {
				t.Errorf("open gates: got %+v, %v", open, err)
			}
			h.clock.Advance(2 * time.Hour)
			wantEqual(t, "c executed", len(h.types.made("c")), 0)
			h.undriven(id)
		})
	}
}

// A step that does not heed its context does not keep a cancelled run.
func TestCancelDoesNotWaitForADeafStep(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	begun, release := make(chan struct{}, 2), make(chan struct{})
	t.Cleanup(func() { close(release) })
	h.types.on("a", func(context.Context, flow.Call, int) (flow.Outcome, error) {
		begun <- struct{}{}
		<-release
		return value(`1`)
	})
	id := h.begin(flow.Definition{Steps: steps(fork("p", list(flow.Step{Type: "a"}), list(flow.Step{Type: "a"})))}, ``)
	<-begun
	<-begun
	v, err := h.eng.CancelRun(t.Context(), by, &engine.CancelIn{ID: id})
	if err != nil {
		t.Fatal(err)
	}
	wantStatus(t, v, flow.RunCancelled)
}

// What a branch has checkpointed is never executed again.
func TestARestartInTheMiddleOfBranches(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	work := hold()
	id := forked(h, work)
	<-work.begun
	goOn(h, parked(h, id))
	h.await(id, "past c", func(v *engine.RunView) bool { return v.Steps[7].Status == flow.StepSucceeded })
	h.stop()
	again := hold()
	h.types.on("b", again.step)
	h.start()
	<-again.begun
	v := h.view(id)
	wantEqual(t, "steps", statuses(v), "p:running work:running next:pending wait:waiting gate:waiting done:succeeded go:succeeded last:succeeded after:pending")
	close(again.end)
	h.waits(id)
	h.clock.Advance(time.Hour)
	h.await(id, "over the wait", func(v *engine.RunView) bool { return v.Steps[3].Status == flow.StepSucceeded })
	if _, err := answer(h, v.Gates[0].ID, flow.GateAnswer{Answer: "approve"}); err != nil {
		t.Fatal(err)
	}
	v = h.ended(id)
	wantStatus(t, v, flow.RunSucceeded)
	wantEqual(t, "executions of a b c pause ask", fmt.Sprint(len(h.types.made("a")), len(h.types.made("b")), len(h.types.made("c")), len(h.types.made("pause")), len(h.types.made("ask"))), "3 2 1 1 2")
	wantEqual(t, "each step started once", strings.Count(joined(h.events(id)), "step:started"), 9)
}

// A run that was at work when the process ended, and that has no place among
// the driven ones yet, can be answered, and is not taken up twice.
func TestAnAnswerTakesUpARunThatIsQueued(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	work := hold()
	first, second := forked(h, work), forked(h, work)
	<-work.begun
	<-work.begun
	parked(h, first)
	v := parked(h, second)
	h.stop()
	h.max = 1
	again := hold()
	h.types.on("b", again.step)
	h.start() // the only place goes to the first
	<-again.begun
	wantEqual(t, "driven runs", h.eng.Active(), 1)
	goOn(h, v)
	<-again.begun
	h.await(second, "past c", func(v *engine.RunView) bool { return v.Steps[7].Status == flow.StepSucceeded })
	close(again.end)
	h.waits(first)
	h.waits(second)
	wantEqual(t, "b executed", len(h.types.made("b")), 4)
	wantEqual(t, "c executed", len(h.types.made("c")), 1)
}

// An old wake-up of a run does nothing: not while it is driven, nor after.
func TestAWakeUpThatIsStale(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.types.on("pause", func(_ context.Context, c flow.Call, nth int) (flow.Outcome, error) {
		return flow.Outcome{Until: c.Now.Add(time.Hour), Value: json.RawMessage(`1`)}, nil
	})
	id := h.begin(flow.Definition{Steps: steps(fork("p", list(flow.Step{Type: "ask"}), list(flow.Step{Type: "pause"})))}, ``)
	v := h.waits(id)
	before, err := h.store.Run(t.Context(), "ws", id)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := answer(h, v.Gates[0].ID, flow.GateAnswer{Answer: "approve"}); err != nil {
		t.Fatal(err)
	}
	h.waits(id)
	after, err := h.store.Run(t.Context(), "ws", id)
	if err != nil || !after.WakeAt.Equal(before.WakeAt) {
		t.Errorf("wake-up: got %v, %v, want the wait's, as before: %v", after.WakeAt, err, before.WakeAt)
	}
	h.clock.Advance(time.Hour)
	wantStatus(t, h.ended(id), flow.RunSucceeded)
	wantEqual(t, "the wait executed", len(h.types.made("pause")), 1)
}

// The output of all branches together is bounded and checked as any other.
func TestTheOutputOfBranchesIsChecked(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.limit.OutputBytes = 100
	h.types.on("a", func(context.Context, flow.Call, int) (flow.Outcome, error) {
		return value(`"` + strings.Repeat("x", 80) + `"`)
	})
	v := h.ended(h.begin(flow.Definition{Steps: steps(fork("p", list(flow.Step{Type: "a"}), list(flow.Step{Type: "a"})))}, ``))
	wantStatus(t, v, flow.RunFailed)
	wantEqual(t, "error", v.Steps[0].Error, "the output is 167 bytes, over the limit of 100 (setting limits.output_bytes)")

	h.types.on("b", func(context.Context, flow.Call, int) (flow.Outcome, error) { return value(`1`) })
	p := fork("p", list(flow.Step{Type: "b"}), list(flow.Step{Type: "b"}))
	p.Output = json.RawMessage(`{"items":{"type":"string"}}`)
	v = h.ended(h.begin(flow.Definition{Steps: steps(p)}, ``))
	wantStatus(t, v, flow.RunFailed)
	if !strings.Contains(v.Steps[0].Error, "does not satisfy its contract") {
		t.Errorf("error: got %s", v.Steps[0].Error)
	}
}
