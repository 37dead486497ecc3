package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/longstop-dev/longstop/internal/engine"
	"github.com/longstop-dev/longstop/internal/flow"
)

// BenchmarkThreeSteps drives runs of three no-op steps on SQLite with full
// syncs, so many at a time, from their creation to their end.
func BenchmarkThreeSteps(b *testing.B) {
	for _, inFlight := range []int{1, 64, 512} {
		b.Run(fmt.Sprint(inFlight), func(b *testing.B) {
			h := newHarness(b)
			h.stop()
			h.max = inFlight
			h.start()
			first := h.begin(flow.Definition{Steps: steps(flow.Step{Type: "a", Config: payload()}, flow.Step{Type: "b", Config: payload()}, flow.Step{Type: "c", Config: payload()})}, ``)
			in := &engine.StartRunIn{Name: "w"}
			in.Body.VersionID = h.ended(first).VersionID
			var next atomic.Int64
			var wg sync.WaitGroup
			b.ResetTimer()
			for range inFlight {
				wg.Go(func() {
					for next.Add(1) <= int64(b.N) {
						h.runOnce(b, in)
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "runs/s")
		})
	}
}

const padding = "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"

func payload() json.RawMessage { return json.RawMessage(`{"ok":true,"pad":"` + padding + `"}`) }

// runOnce starts a run and waits for its last commit.
func (h *harness) runOnce(b *testing.B, in *engine.StartRunIn) {
	r, err := h.eng.StartRun(context.Background(), by, in)
	if err != nil {
		b.Error(err)
		return
	}
	changed, stop := h.eng.Watch(r.ID)
	defer stop()
	for {
		run, err := h.store.Run(context.Background(), "ws", r.ID)
		if err != nil {
			b.Error(err)
			return
		}
		if run.Status.Finished() {
			return
		}
		<-changed
	}
}
