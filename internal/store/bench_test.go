package store

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/pgtest"
)

// BenchmarkApply writes runs of three no-op steps, so many at a time: one
// change makes the run, one ends each step, and the last ends the run too. For
// PostgreSQL with syncs, start a cluster first and name it:
//
//	sh internal/pgtest/cluster.sh /tmp/longstop-pg-bench fsync
//	LONGSTOP_TEST_PG=/tmp/longstop-pg-bench go test -run '^$' -bench Apply ./internal/store
func BenchmarkApply(b *testing.B) {
	for _, inFlight := range []int{64, 512} {
		b.Run(fmt.Sprintf("sqlite/%d", inFlight), func(b *testing.B) {
			benchmarkApply(b, Options{Path: filepath.Join(b.TempDir(), "t.db")}, inFlight)
		})
		b.Run(fmt.Sprintf("postgres/%d", inFlight), func(b *testing.B) {
			benchmarkApply(b, Options{URL: pgtest.URL(b)}, inFlight)
		})
	}
}

func benchmarkApply(b *testing.B, db Options, inFlight int) {
	s, err := Open(context.Background(), db)
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	output := json.RawMessage(`{"ok":true,"pad":"` + strings.Repeat("x", 256) + `"}`)
	var next atomic.Int64
	var wg sync.WaitGroup
	b.ResetTimer()
	for range inFlight {
		wg.Go(func() {
			for n := next.Add(1); n <= int64(b.N); n = next.Add(1) {
				if err := threeSteps(s, fmt.Sprintf("run_%08d", n), output); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "runs/s")
}

// threeSteps makes the changes of one run.
func threeSteps(s *Store, id string, output json.RawMessage) error {
	c := flow.Change{Run: newRun(id), Events: []flow.Event{{Seq: 1, Type: flow.EventRunStarted, At: at()}}}
	if err := s.Apply(context.Background(), c); err != nil {
		return err
	}
	for i := range 3 {
		c.Run.Version++
		c.Run.Seq++
		c.Events = []flow.Event{{Seq: c.Run.Seq, Type: flow.EventStepSucceeded, At: at()}}
		c.Steps = []flow.StepInstance{{StepKey: flow.StepKey{Index: i}, Status: flow.StepSucceeded, Output: output, Attempts: 1, StartedAt: at(), FinishedAt: at()}}
		if i == 2 {
			c.Run.Status, c.Run.FinishedAt = flow.RunSucceeded, at()
		}
		if err := s.Apply(context.Background(), c); err != nil {
			return err
		}
	}
	return nil
}
