package engine_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/longstop-dev/longstop/internal/engine"
	"github.com/longstop-dev/longstop/internal/flow"
)

func forAgent(h *harness, iteration string) flow.Verdict {
	return flow.Verdict{Kind: flow.VerdictGate, Message: "waits", Gate: &flow.Gate{Kind: flow.GateNeedsAgent, Iteration: iteration,
		Error: strings.Repeat("é", 300), ExpiresAt: h.clock.Now().Add(5 * time.Minute)}}
}

// inboxed starts a run that waits in the inbox.
func inboxed(h *harness, iteration string) string {
	h.t.Helper()
	h.types.on("a", failing)
	h.desk.dictate(forAgent(h, iteration))
	id := h.begin(flow.Definition{Steps: steps(flow.Step{Type: "a"})}, ``)
	h.waits(id)
	return id
}

func TestTheInboxIsPaged(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	gated(h) // a person's gate is not of the inbox
	var want, got []string
	for range 5 {
		want = append(want, inboxed(h, ""))
	}
	in := &engine.PendingIn{Limit: 2}
	for range 3 {
		out, err := h.eng.Pending(t.Context(), by, in)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range out.Items {
			got = append(got, p.RunID)
			wantEqual(t, "error", p.Error, strings.Repeat("é", 199)+"…")
		}
		in.After = out.Next
	}
	if !slices.Equal(got, want) || in.After != "" {
		t.Errorf("got %v and then %q, want %v, oldest first, and no more", got, in.After, want)
	}
	stranger := flow.Caller{Workspace: "other", Role: flow.RoleOwner}
	if out, err := h.eng.Pending(t.Context(), stranger, &engine.PendingIn{}); err != nil || len(out.Items) != 0 {
		t.Errorf("another workspace: got %v, %v, want none", out, err)
	}
	at := engine.StepIn{RunID: want[0]}
	_, inputErr := h.eng.PendingInput(t.Context(), stranger, &at)
	_, caseErr := h.eng.PendingCase(t.Context(), stranger, &at)
	_, actionErr := h.eng.SubmitAction(t.Context(), stranger, &engine.SubmitIn{StepIn: at, Body: json.RawMessage(`{}`)})
	for name, err := range map[string]error{"input": inputErr, "case": caseErr, "action": actionErr} {
		if flow.CodeOf(err) != flow.CodeNotFound {
			t.Errorf("%s of another workspace's run: got %v, want not_found", name, err)
		}
	}
}

func TestAnIterationHasToBeNamed(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	id := inboxed(h, "2.0")
	for iteration, want := range map[string]flow.Code{"": flow.CodeInvalid, "2.0": "", "2.1": flow.CodeNotFound} {
		_, err := h.eng.PendingInput(t.Context(), by, &engine.StepIn{RunID: id, Iteration: iteration})
		if flow.CodeOf(err) != want {
			t.Errorf("iteration %q: got %v, want code %q", iteration, err, want)
		}
		if want == flow.CodeInvalid && !strings.Contains(err.Error(), "2.0") {
			t.Errorf("iteration %q: got %v, want it to name those that there are", iteration, err)
		}
	}
}

func TestPollersAreBounded(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	const places = 512
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for range places {
		wg.Go(func() {
			if _, err := h.eng.Pending(ctx, by, &engine.PendingIn{Wait: 30}); err != nil {
				t.Errorf("a poller with a place: got %v", err)
			}
		})
	}
	h.clock.AwaitWaiters(places)
	if _, err := h.eng.Pending(ctx, by, &engine.PendingIn{Wait: 30}); flow.CodeOf(err) != flow.CodeRateLimited {
		t.Errorf("one too many: got %v, want rate_limited", err)
	}
	if out, err := h.eng.Pending(ctx, by, &engine.PendingIn{}); err != nil || len(out.Items) != 0 {
		t.Errorf("who does not wait: got %v, %v, want the page", out, err)
	}
	cancel()
	wg.Wait()
	done := make(chan error, 1)
	go func() {
		_, err := h.eng.Pending(t.Context(), by, &engine.PendingIn{Wait: 30})
		done <- err
	}()
	h.clock.AwaitWaiters(1)
	h.clock.Advance(30 * time.Second)
	if err := <-done; err != nil {
		t.Errorf("after the others have left: got %v, want a place", err)
	}
}

// TestNoChangeIsMissed has pollers with the tag of the page that they have,
// while runs come into the inbox and leave it: all see its last state.
func TestNoChangeIsMissed(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.desk.answers = func(flow.GateAnswer) (flow.Verdict, error) {
		return flow.Verdict{Kind: flow.VerdictOutput, Output: json.RawMessage(`1`), Source: flow.SourceBYOA}, nil
	}
	const runs = 20
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			tag, seen := "", map[string]bool{}
			for !seen["last"] {
				out, err := h.eng.Pending(t.Context(), by, &engine.PendingIn{Wait: 50, IfNoneMatch: tag})
				if err != nil {
					t.Errorf("poll: %v", err)
					return
				}
				tag, _ = out.Validator()
				for _, p := range out.Items {
					seen["last"] = seen["last"] || p.Iteration == "last"
				}
			}
		})
	}
	for range runs {
		id := inboxed(h, "")
		if _, err := h.eng.SubmitAction(t.Context(), by, &engine.SubmitIn{StepIn: engine.StepIn{RunID: id}, Body: json.RawMessage(`{"type":"fixed_output"}`)}); err != nil {
			t.Fatal(err)
		}
		wantStatus(t, h.ended(id), flow.RunSucceeded)
	}
	inboxed(h, "last")
	wg.Wait() // with a change missed, this does not end
}

// BenchmarkInbox measures the inbox with thousands of cases in it: what 200 pollers
// of pages of 100 wait for while answers come in, and an answer until the
// next attempt has begun.
func BenchmarkInbox(b *testing.B) {
	const open, pollers = 10_000, 200
	h := newHarness(b)
	h.stop()
	h.max = 512
	h.start()
	h.types.on("a", func(_ context.Context, c flow.Call, _ int) (flow.Outcome, error) {
		if strings.Contains(c.IdempotencyKey, "-m") {
			return value(`1`)
		}
		return refused("HTTP 404: Not Found")
	})
	h.desk.answers = func(flow.GateAnswer) (flow.Verdict, error) {
		return flow.Verdict{Kind: flow.VerdictRetry, Mods: json.RawMessage(`{}`), Source: flow.SourceBYOA}, nil
	}
	for range open + b.N {
		h.desk.dictate(forAgent(h, ""))
	}
	ids := make([]string, open+b.N)
	ids[0] = h.begin(flow.Definition{Steps: steps(flow.Step{Type: "a"})}, ``)
	in := &engine.StartRunIn{Name: "w"}
	in.Body.VersionID = h.waits(ids[0]).VersionID
	var wg sync.WaitGroup
	for w := range 64 {
		wg.Go(func() {
			for i := w + 1; i < len(ids); i += 64 {
				r, err := h.eng.StartRun(context.Background(), by, in)
				if err != nil {
					b.Error(err)
					return
				}
				ids[i] = r.ID
				h.waits(r.ID)
			}
		})
	}
	wg.Wait()
	slices.Sort(ids)
	ctx, cancel := context.WithCancel(context.Background())
	var mu sync.Mutex
	var polls, answers []time.Duration
	for range pollers {
		wg.Go(func() {
			for ctx.Err() == nil {
				began := time.Now()
				if _, err := h.eng.Pending(ctx, by, &engine.PendingIn{Limit: 100}); err != nil {
					b.Error(err)
				}
				took := time.Since(began)
				mu.Lock()
				polls = append(polls, took)
				mu.Unlock()
				select {
				case <-time.After(10 * time.Millisecond):
				case <-ctx.Done():
				}
			}
		})
	}
	b.ResetTimer()
	for i := range b.N {
		changed, stop := h.eng.Watch(ids[i])
		began := time.Now()
		if _, err := h.eng.SubmitAction(ctx, by, &engine.SubmitIn{StepIn: engine.StepIn{RunID: ids[i]}, Body: json.RawMessage(`{"type":"retry_with_params"}`)}); err != nil {
			b.Fatal(err)
		}
		<-changed
		answers = append(answers, time.Since(began))
		stop()
	}
	b.StopTimer()
	cancel()
	wg.Wait()
	b.ReportMetric(p99(polls), "poll-p99-ms")
	b.ReportMetric(p99(answers), "answer-p99-ms")
}

func p99(d []time.Duration) float64 {
	if len(d) == 0 { // the one answer that a benchmark begins with may be faster than any poller
		return 0
	}
	slices.Sort(d)
	return float64(d[len(d)*99/100].Microseconds()) / 1000
}
