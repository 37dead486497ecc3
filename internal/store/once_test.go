package store

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/longstop-dev/longstop/internal/flow"
)

// TestWhoeverIsRefusedAKeyFindsWhatItMade sends creations with one key at the
// same time, so that many of them meet in one transaction.
func TestWhoeverIsRefusedAKeyFindsWhatItMade(t *testing.T) {
	onEach(t, func(t *testing.T, db Options) {
		s := open(t, db)
		for round := range 20 {
			key := fmt.Sprint("k", round)
			made := make(chan string, 32)
			var wg sync.WaitGroup
			for i := range cap(made) {
				wg.Go(func() {
					r := newRun(fmt.Sprintf("run_%d_%d", round, i))
					once := &flow.Once{Workspace: "ws", Key: key, Digest: "d", Made: r.ID, At: at()}
					err := s.Apply(context.Background(), flow.Change{Run: r, Once: once, Events: []flow.Event{{Seq: 1, Type: flow.EventRunStarted, At: at()}}})
					if err != nil && flow.CodeOf(err) != flow.CodeConflict {
						t.Errorf("apply: got %v, want conflict or nothing", err)
					}
					o, readErr := s.Once(context.Background(), "ws", key, at().Add(-flow.OnceFor))
					if readErr != nil || err == nil && o.Made != r.ID {
						t.Errorf("after %v: got %+v, %v, want what the key has made", err, o, readErr)
					}
					made <- o.Made
				})
			}
			wg.Wait()
			close(made)
			got := map[string]bool{}
			for id := range made {
				got[id] = true
			}
			if len(got) != 1 {
				t.Errorf("round %d: got %d runs, want 1: %v", round, len(got), got)
			}
		}
		if got := must(s.Runs(t.Context(), flow.RunFilter{Workspace: "ws", Limit: 100})); len(got) != 20 {
			t.Errorf("got %d runs, want 20", len(got))
		}
	})
}

// TestARefusedMemberIsToldLast has two creations with one key in one batch, and
// takes their answers by hand: who is refused must find what the other made.
func TestARefusedMemberIsToldLast(t *testing.T) {
	onEach(t, func(t *testing.T, db Options) {
		s := open(t, db)
		creation := func(id string) *op {
			c := flow.Change{Run: newRun(id), Once: &flow.Once{Workspace: "ws", Key: "k", Made: id, At: at()}}
			enc, err := encode(c)
			if err != nil {
				t.Fatal(err)
			}
			return &op{apply: func(ctx context.Context, t tx) error { return apply(ctx, t, &c, enc) }, done: make(chan error)}
		}
		first, second := creation("run_1"), creation("run_2")
		go s.commit([]*op{first, second})
		var refused bool
		for range 2 {
			select {
			case err := <-first.done:
				if err != nil || refused {
					t.Errorf("the first: got %v, after the second was refused: %t; want it done before", err, refused)
				}
			case err := <-second.done:
				if refused = true; flow.CodeOf(err) != flow.CodeConflict {
					t.Errorf("the second: got %v, want conflict", err)
				}
			}
		}
		if o, err := s.Once(t.Context(), "ws", "k", at().Add(-time.Hour)); err != nil || o.Made != "run_1" {
			t.Errorf("got %+v, %v, want what the first has made", o, err)
		}
	})
}

func TestOldKeysAreForgotten(t *testing.T) {
	onEach(t, func(t *testing.T, db Options) {
		s := open(t, db)
		put := func(run, key string, when time.Time) error {
			return s.Apply(t.Context(), flow.Change{Run: newRun(run), Once: &flow.Once{Workspace: "ws", Key: key, Made: run, At: when}})
		}
		if err := put("run_1", "a", at()); err != nil {
			t.Fatal(err)
		}
		if err := put("run_2", "a", at().Add(flow.OnceFor-time.Second)); flow.CodeOf(err) != flow.CodeConflict {
			t.Errorf("within the day: got %v, want conflict", err)
		}
		if err := put("run_3", "a", at().Add(flow.OnceFor)); err != nil {
			t.Errorf("after the day: got %v", err)
		}
		if err := put("run_4", "b", at().Add(3*flow.OnceFor)); err != nil {
			t.Fatal(err)
		}
		var n int64
		if err := s.db.queryRow(t.Context(), `SELECT COUNT(*) FROM idempotency_keys`).Scan(&n); err != nil || n != 1 {
			t.Errorf("got %d keys, %v, want the newest alone", n, err)
		}
	})
}
