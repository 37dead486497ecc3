package engine_test

import (
	"context"
	"encoding/json"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/longstop-dev/longstop/internal/engine"
	"github.com/longstop-dev/longstop/internal/flow"
)

// fill puts n runs into the inbox and gives their ids.
func (h *harness) fill(n int) []string {
	h.t.Helper()
	h.types.on("a", failing)
	for range n {
		h.desk.dictate(forAgent(h, ""))
	}
	ids := make([]string, n)
	ids[0] = h.begin(flow.Definition{Steps: steps(flow.Step{Type: "a"})}, ``)
	in := &engine.StartRunIn{Name: "w"}
	in.Body.VersionID = h.waits(ids[0]).VersionID
	var wg sync.WaitGroup
	for w := range 64 {
		wg.Go(func() {
			for i := w + 1; i < n; i += 64 {
				r, err := h.eng.StartRun(context.Background(), by, in)
				if err != nil {
					h.t.Error(err)
					return
				}
				ids[i] = r.ID
				h.waits(r.ID)
			}
		})
	}
	wg.Wait()
	return ids
}

// timeOut has the gates of all those runs time out and checks that each did,
// once.
func (h *harness) timeOut(ids []string) {
	h.t.Helper()
	for _, id := range ids {
		if v := h.endedAtLast(id); v.Status != flow.RunSucceeded || string(v.Output) != "2" {
			h.t.Fatalf("run %s: got %s %s, want what follows the time-out", id, v.Status, v.Output)
		}
	}
	for _, id := range ids {
		n := 0
		for _, e := range h.events(id) {
			if e == flow.EventGateExpired {
				n++
			}
		}
		if n != 1 {
			h.t.Errorf("run %s: its gate expired %d times, want once", id, n)
		}
	}
	if out, err := h.eng.Pending(context.Background(), by, &engine.PendingIn{}); err != nil || len(out.Items) != 0 {
		h.t.Errorf("pending: got %d, %v, want none", len(out.Items), err)
	}
}

// endedAtLast waits for a run's end however long those before it take.
func (h *harness) endedAtLast(id string) flow.Run {
	h.t.Helper()
	changed, stop := h.eng.Watch(id)
	defer stop()
	for {
		run, err := h.store.Run(context.Background(), "ws", id)
		if err != nil {
			h.t.Fatal(err)
		}
		if run.Status.Finished() {
			return run
		}
		<-changed
	}
}

// TestManyTimeOutsWhileDown stops the engine over hundreds of gates whose time
// passes meanwhile.
func TestManyTimeOutsWhileDown(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.desk.expired = flow.Verdict{Kind: flow.VerdictOutput, Output: json.RawMessage(`2`), Source: flow.SourceBuiltin}
	ids := h.fill(300)
	h.stop()
	h.clock.Advance(time.Hour)
	h.start()
	h.timeOut(ids)
}

// TestOfManyActionsOneWins submits several actions to one case at once.
func TestOfManyActionsOneWins(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	for range 10 {
		id := inboxed(h, "")
		h.desk.answers = func(flow.GateAnswer) (flow.Verdict, error) {
			return flow.Verdict{Kind: flow.VerdictOutput, Output: json.RawMessage(`1`), Source: flow.SourceBYOA}, nil
		}
		var won atomic.Int64
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				_, err := h.eng.SubmitAction(t.Context(), by, &engine.SubmitIn{StepIn: engine.StepIn{RunID: id}, Body: json.RawMessage(`{"type":"fixed_output"}`)})
				switch flow.CodeOf(err) {
				case "":
					won.Add(1)
				case flow.CodeConflict:
				default:
					t.Errorf("action: got %v, want conflict for who was later", err)
				}
			})
		}
		wg.Wait()
		wantEqual(t, "actions applied", won.Load(), 1)
		wantStatus(t, h.ended(id), flow.RunSucceeded)
	}
}

// BenchmarkManyTimeOuts opens b.N gates, stops over their time, and measures
// how many time out in a second after the start: none may be lost.
func BenchmarkManyTimeOuts(b *testing.B) {
	h := newHarness(b)
	h.stop()
	h.max = 512
	h.start()
	h.desk.expired = flow.Verdict{Kind: flow.VerdictOutput, Output: json.RawMessage(`2`), Source: flow.SourceBuiltin}
	ids := h.fill(b.N)
	h.stop()
	h.clock.Advance(time.Hour)
	b.ResetTimer()
	h.start()
	h.timeOut(ids)
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "gates/s")
}
