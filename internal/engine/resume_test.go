package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/longstop-dev/longstop/internal/engine"
	"github.com/longstop-dev/longstop/internal/flow"
)

func gate() flow.Verdict {
	return flow.Verdict{Kind: flow.VerdictGate, Gate: &flow.Gate{Kind: flow.GateNeedsHuman, ExpiresAt: time.Date(2026, 1, 8, 3, 0, 0, 0, time.UTC),
		Agent: &flow.Escalation{Diagnosis: "expired", Suggestion: "log in"}}}
}

func failing(context.Context, flow.Call, int) (flow.Outcome, error) {
	return refused("HTTP 401: Unauthorized")
}

// gated starts a run that is parked at a person's gate.
func gated(h *harness) (runID string, g flow.Gate) {
	h.t.Helper()
	h.types.on("a", failing)
	h.desk.dictate(gate())
	runID = h.begin(flow.Definition{Steps: steps(flow.Step{Type: "a"}, flow.Step{Type: "b"})}, ``)
	v := h.waits(runID)
	if len(v.Gates) != 1 {
		h.t.Fatalf("gates: got %+v, want 1", v.Gates)
	}
	return runID, v.Gates[0]
}

func answer(h *harness, gateID string, a flow.GateAnswer) (*flow.Gate, error) {
	return h.eng.AnswerGate(context.Background(), by, &engine.AnswerGateIn{ID: gateID, Body: a})
}

func TestAGateIsAnsweredOnce(t *testing.T) {
	t.Parallel()
	for round := range 10 {
		h := newHarness(t)
		id, g := gated(h)
		h.desk.answers = func(a flow.GateAnswer) (flow.Verdict, error) {
			return flow.Verdict{Kind: flow.VerdictOutput, Output: a.Output, Source: flow.SourceHuman, Message: "by hand"}, nil
		}
		var wg sync.WaitGroup
		errs := make(chan error, 8)
		for i := range cap(errs) {
			wg.Go(func() {
				_, err := answer(h, g.ID, flow.GateAnswer{Answer: "output", Output: json.RawMessage(fmt.Sprint(i))})
				errs <- err
			})
		}
		wg.Wait()
		close(errs)
		won := 0
		for err := range errs {
			switch {
			case err == nil:
				won++
			case flow.CodeOf(err) != flow.CodeConflict:
				t.Errorf("loser: got %v, want conflict", err)
			}
		}
		if won != 1 {
			t.Fatalf("round %d: %d answers won, want 1", round, won)
		}
		v := h.ended(id)
		wantStatus(t, v, flow.RunSucceeded)
		wantEqual(t, "source", v.Steps[0].RecoverySource, flow.SourceHuman)
		wantEqual(t, "attempts", v.Steps[0].Attempts, 1)
		wantEqual(t, "next step ran", len(h.types.made("b")), 1)
	}
}

func TestAnInvalidAnswerLeavesTheGateOpen(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	id, g := gated(h)
	h.desk.answers = func(flow.GateAnswer) (flow.Verdict, error) {
		return flow.Verdict{}, flow.Errorf(flow.CodeInvalid, "no").At("answer")
	}
	if _, err := answer(h, g.ID, flow.GateAnswer{Answer: "x"}); flow.CodeOf(err) != flow.CodeInvalid {
		t.Fatalf("got %v, want invalid", err)
	}
	wantStatus(t, h.waits(id), flow.RunWaiting)
	h.desk.answers = func(flow.GateAnswer) (flow.Verdict, error) {
		return flow.Verdict{Kind: flow.VerdictFail, Source: flow.SourceHuman, Message: "given up"}, nil
	}
	if _, err := answer(h, g.ID, flow.GateAnswer{Answer: "fail"}); err != nil {
		t.Fatal(err)
	}
	wantStatus(t, h.ended(id), flow.RunFailed)
	if _, err := answer(h, g.ID, flow.GateAnswer{Answer: "fail"}); flow.CodeOf(err) != flow.CodeConflict {
		t.Errorf("after the end: got %v, want conflict", err)
	}
}

// spec: R-027
func TestAHintOpensAnEpisode(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	id, g := gated(h)
	h.desk.answers = func(a flow.GateAnswer) (flow.Verdict, error) {
		return flow.Verdict{Kind: flow.VerdictAgain, NewEpisode: true, Hint: a.Hint, Source: flow.SourceHuman}, nil
	}
	h.desk.dictate(flow.Verdict{Kind: flow.VerdictRetry, Source: flow.SourceBYOA, Mods: json.RawMessage(`{"url":"x"}`)})
	h.types.on("a", func(context.Context, flow.Call, int) (flow.Outcome, error) { return value(`1`) })
	if _, err := answer(h, g.ID, flow.GateAnswer{Answer: "hint", Hint: "try x"}); err != nil {
		t.Fatal(err)
	}
	wantStatus(t, h.ended(id), flow.RunSucceeded)
	p := h.desk.saw()[1].Instance.Progress
	wantEqual(t, "episode, round, hint", fmt.Sprintf("%d %d %s", p.Episode, p.Round, p.Hint), "1 0 try x")
}

func TestAGateExpires(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	id, g := gated(h)
	h.desk.expired = flow.Verdict{Kind: flow.VerdictFail, Message: "nobody came"}
	h.clock.Advance(7 * 24 * time.Hour)
	v := h.ended(id)
	wantStatus(t, v, flow.RunFailed)
	got, err := h.store.Gate(t.Context(), "ws", g.ID)
	if err != nil || got.Status != flow.GateExpired {
		t.Errorf("gate: got %s, %v, want expired", got.Status, err)
	}
	if _, err := answer(h, g.ID, flow.GateAnswer{Answer: "fail"}); flow.CodeOf(err) != flow.CodeConflict {
		t.Errorf("late answer: got %v, want conflict", err)
	}
}

func TestCancel(t *testing.T) {
	t.Parallel()
	cancel := func(t *testing.T, h *harness, id string) {
		t.Helper()
		v, err := h.eng.CancelRun(t.Context(), by, &engine.CancelIn{ID: id})
		if err != nil {
			t.Fatalf("cancel: %v", err)
		}
		wantStatus(t, v, flow.RunCancelled)
	}
	t.Run("while a step executes", func(t *testing.T) {
		t.Parallel()
		h := newHarness(t)
		begun := make(chan struct{})
		h.types.on("a", func(ctx context.Context, _ flow.Call, _ int) (flow.Outcome, error) {
			close(begun)
			<-ctx.Done()
			return flow.Outcome{}, ctx.Err()
		})
		id := h.begin(flow.Definition{Steps: steps(flow.Step{Type: "a"}, flow.Step{Type: "b"})}, ``)
		<-begun
		cancel(t, h, id)
		wantEqual(t, "next step ran", len(h.types.made("b")), 0)
		wantEqual(t, "recovery was asked", len(h.desk.saw()), 0)
		v, err := h.eng.GetRun(t.Context(), by, &engine.RunIn{ID: id})
		if err != nil || v.Steps[0].Status != flow.StepFailed || v.Steps[0].Error != "cancelled" || v.Steps[1].Status != flow.StepSkipped {
			t.Errorf("steps: got %+v, %v, want one cancelled and one skipped", v.Steps, err)
		}
		cancel(t, h, id) // again: it is what was wanted
	})
	t.Run("while a responder is asked", func(t *testing.T) {
		t.Parallel()
		h := newHarness(t)
		h.types.on("a", failing)
		h.desk.asked = make(chan struct{}, 1)
		id := h.begin(flow.Definition{Steps: steps(flow.Step{Type: "a"})}, ``)
		<-h.desk.asked
		cancel(t, h, id)
	})
	t.Run("in a back-off", func(t *testing.T) {
		t.Parallel()
		h := newHarness(t)
		h.types.on("a", func(context.Context, flow.Call, int) (flow.Outcome, error) { return transient("x") })
		id := h.begin(flow.Definition{Steps: steps(flow.Step{Type: "a", Retry: flow.Retry{Attempts: 9, Backoff: time.Minute, MaxBackoff: time.Hour}})}, ``)
		h.waits(id)
		cancel(t, h, id)
		h.clock.Advance(time.Hour)
		wantEqual(t, "attempts", len(h.types.made("a")), 1)
	})
	t.Run("at a gate", func(t *testing.T) {
		t.Parallel()
		h := newHarness(t)
		id, g := gated(h)
		cancel(t, h, id)
		got, err := h.store.Gate(t.Context(), "ws", g.ID)
		if err != nil || got.Status != flow.GateClosed {
			t.Errorf("gate: got %s, %v, want closed", got.Status, err)
		}
		if _, err := answer(h, g.ID, flow.GateAnswer{Answer: "fail"}); flow.CodeOf(err) != flow.CodeConflict {
			t.Errorf("answer: got %v, want conflict", err)
		}
	})
	t.Run("after the end", func(t *testing.T) {
		t.Parallel()
		h := newHarness(t)
		id := h.begin(flow.Definition{Steps: steps(flow.Step{Type: "a"})}, ``)
		h.ended(id)
		if _, err := h.eng.CancelRun(t.Context(), by, &engine.CancelIn{ID: id}); flow.CodeOf(err) != flow.CodeConflict {
			t.Errorf("got %v, want conflict", err)
		}
	})
	t.Run("of another workspace", func(t *testing.T) {
		t.Parallel()
		h := newHarness(t)
		id, _ := gated(h)
		other := flow.Caller{Workspace: "other", Role: flow.RoleOwner}
		if _, err := h.eng.CancelRun(t.Context(), other, &engine.CancelIn{ID: id}); flow.CodeOf(err) != flow.CodeNotFound {
			t.Errorf("got %v, want not_found", err)
		}
	})
}

func TestARestart(t *testing.T) {
	t.Parallel()
	t.Run("executes what was not checkpointed, and nothing else again", func(t *testing.T) {
		t.Parallel()
		h := newHarness(t)
		begun := make(chan struct{}, 1)
		h.types.on("b", func(ctx context.Context, _ flow.Call, nth int) (flow.Outcome, error) {
			if nth == 1 {
				begun <- struct{}{}
				<-ctx.Done()
				return flow.Outcome{}, ctx.Err()
			}
			return value(`2`)
		})
		id := h.begin(flow.Definition{Steps: steps(flow.Step{Type: "a"}, flow.Step{Type: "b"}, flow.Step{Type: "c"})}, ``)
		<-begun
		h.stop()
		h.start()
		wantStatus(t, h.ended(id), flow.RunSucceeded)
		wantEqual(t, "a b c ran", fmt.Sprint(len(h.types.made("a")), len(h.types.made("b")), len(h.types.made("c"))), "1 2 1")
		wantEqual(t, "key of the second execution", h.types.made("b")[1].IdempotencyKey, id+"-1")
	})
	t.Run("asks again about a case that was frozen", func(t *testing.T) {
		t.Parallel()
		h := newHarness(t)
		h.types.on("a", failing)
		h.desk.asked = make(chan struct{}, 1)
		id := h.begin(flow.Definition{Steps: steps(flow.Step{Type: "a", Config: json.RawMessage(`{"u":"{{ input.x }}"}`)})}, `{"x":"y"}`)
		<-h.desk.asked
		h.stop()
		h.desk.asked = nil
		h.desk.dictate(flow.Verdict{Kind: flow.VerdictOutput, Output: json.RawMessage(`1`), Source: flow.SourceBYOA})
		h.start()
		wantStatus(t, h.ended(id), flow.RunSucceeded)
		wantEqual(t, "attempts", len(h.types.made("a")), 1)
		saw := h.desk.saw()
		wantEqual(t, "config", string(saw[1].Config), `{"u":"y"}`)
		wantEqual(t, "error", saw[1].Failed.Error, "HTTP 401: Unauthorized")
	})
	t.Run("wakes what was due while it was down, and keeps gates", func(t *testing.T) {
		t.Parallel()
		h := newHarness(t)
		h.types.on("pause", func(_ context.Context, c flow.Call, _ int) (flow.Outcome, error) {
			return flow.Outcome{Until: c.Now.Add(time.Hour), Value: json.RawMessage(`1`)}, nil
		})
		waiting := h.begin(flow.Definition{Steps: steps(flow.Step{Type: "pause"})}, ``)
		h.waits(waiting)
		parked, g := gated(h)
		h.stop()
		h.clock.Advance(2 * time.Hour)
		h.start()
		wantStatus(t, h.ended(waiting), flow.RunSucceeded)
		wantStatus(t, h.waits(parked), flow.RunWaiting)
		h.desk.answers = func(flow.GateAnswer) (flow.Verdict, error) {
			return flow.Verdict{Kind: flow.VerdictSkip, Source: flow.SourceHuman}, nil
		}
		if _, err := answer(h, g.ID, flow.GateAnswer{Answer: "skip"}); err != nil {
			t.Fatal(err)
		}
		wantStatus(t, h.ended(parked), flow.RunSucceeded)
	})
}

func TestStopLetsShortStepsFinish(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	begun, release := make(chan struct{}), make(chan struct{})
	h.types.on("a", func(context.Context, flow.Call, int) (flow.Outcome, error) {
		close(begun)
		<-release
		return value(`1`)
	})
	id := h.begin(flow.Definition{Steps: steps(flow.Step{Type: "a"}, flow.Step{Type: "b"})}, ``)
	<-begun
	stopped := make(chan struct{})
	go func() { h.eng.Stop(context.Background()); close(stopped) }()
	<-h.stopping
	close(release)
	<-stopped
	h.eng = nil
	t.Cleanup(func() { h.store.Close() })
	rows, err := h.store.Steps(t.Context(), id)
	if err != nil || len(rows) != 1 || rows[0].Status != flow.StepSucceeded {
		t.Errorf("checkpoints: got %+v, %v, want the finished step", rows, err)
	}
	wantEqual(t, "b ran", len(h.types.made("b")), 0)
}

func TestNothingIsFoundFromAnotherWorkspace(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	id, g := gated(h)
	other := flow.Caller{Workspace: "other", Role: flow.RoleOwner}
	_, runErr := h.eng.GetRun(t.Context(), other, &engine.RunIn{ID: id})
	_, eventsErr := h.eng.ListEvents(t.Context(), other, &engine.RecordsIn{ID: id})
	_, logsErr := h.eng.ListLogs(t.Context(), other, &engine.RecordsIn{ID: id})
	_, gateErr := h.eng.AnswerGate(t.Context(), other, &engine.AnswerGateIn{ID: g.ID})
	for what, err := range map[string]error{"run": runErr, "events": eventsErr, "logs": logsErr, "gate": gateErr} {
		if flow.CodeOf(err) != flow.CodeNotFound {
			t.Errorf("%s: got %v, want not_found", what, err)
		}
	}
}

func TestAFailedRunIsRetried(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.types.on("b", failing)
	id := h.begin(flow.Definition{Steps: steps(flow.Step{Type: "a"}, flow.Step{Type: "b"}, flow.Step{Type: "c"})}, ``)
	wantStatus(t, h.ended(id), flow.RunFailed)
	h.types.on("b", func(context.Context, flow.Call, int) (flow.Outcome, error) { return value(`1`) })
	if _, err := h.eng.RetryRun(t.Context(), by, &engine.RetryIn{ID: id}); err != nil {
		t.Fatal(err)
	}
	v := h.ended(id)
	wantStatus(t, v, flow.RunSucceeded)
	wantEqual(t, "a b c ran", fmt.Sprint(len(h.types.made("a")), len(h.types.made("b")), len(h.types.made("c"))), "1 2 1")
	wantEqual(t, "key after a person's retry", h.types.made("b")[1].IdempotencyKey, id+"-1-m1")
	if _, err := h.eng.RetryRun(t.Context(), by, &engine.RetryIn{ID: id}); flow.CodeOf(err) != flow.CodeConflict {
		t.Errorf("retry of a run that succeeded: got %v, want conflict", err)
	}
}

func TestARetryOpensAnEpisode(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.types.on("a", failing)
	id := h.begin(flow.Definition{Steps: steps(flow.Step{Type: "a"})}, ``)
	wantStatus(t, h.ended(id), flow.RunFailed)
	if _, err := h.eng.RetryRun(t.Context(), by, &engine.RetryIn{ID: id}); err != nil {
		t.Fatal(err)
	}
	wantStatus(t, h.ended(id), flow.RunFailed)
	p := h.desk.saw()[1].Instance.Progress
	wantEqual(t, "episode and round", fmt.Sprintf("%d %d", p.Episode, p.Round), "1 0")
}
