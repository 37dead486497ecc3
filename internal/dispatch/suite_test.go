package dispatch_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/longstop-dev/longstop/internal/dispatch"
	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/flow/flowtest"
)

// dispatcher is what every dispatcher can do.
type dispatcher interface {
	Start(ctx context.Context, fire func(flow.Wakeup)) error
	Stop()
	Schedule(flow.Wakeup)
}

// stored stands for the rows of parked runs.
type stored []flow.Wakeup

func (s stored) Wakeups(context.Context) ([]flow.Wakeup, error) { return s, nil }

func TestLocal(t *testing.T) {
	t.Parallel()
	suite(t, func(c flow.Clock, rows stored) dispatcher { return dispatch.NewLocal(c, rows) })
}

// suite holds for every dispatcher.
func suite(t *testing.T, make_ func(flow.Clock, stored) dispatcher) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	begin := func(t *testing.T, rows stored) (*flowtest.Clock, dispatcher, chan flow.Wakeup) {
		clock := flowtest.NewClock(start)
		d := make_(clock, rows)
		fired := make(chan flow.Wakeup, 4096)
		if err := d.Start(t.Context(), func(w flow.Wakeup) { fired <- w }); err != nil {
			t.Fatalf("start: %v", err)
		}
		t.Cleanup(d.Stop)
		return clock, d, fired
	}
	at := func(s int) time.Time { return start.Add(time.Duration(s) * time.Second) }

	t.Run("fires what is due and nothing before", func(t *testing.T) {
		t.Parallel()
		clock, d, fired := begin(t, nil)
		d.Schedule(flow.Wakeup{RunID: "b", Seq: 1, At: at(20)})
		d.Schedule(flow.Wakeup{RunID: "a", Seq: 1, At: at(10)})
		d.Schedule(flow.Wakeup{RunID: "now", Seq: 1, At: at(0)})
		want(t, fired, "now")
		clock.AwaitWaiters(1)
		clock.Advance(10 * time.Second)
		want(t, fired, "a")
		clock.AwaitWaiters(1)
		if len(fired) != 0 {
			t.Fatalf("fired early: %v", <-fired)
		}
		clock.Advance(10 * time.Second)
		want(t, fired, "b")
	})
	t.Run("a later wake-up takes the earlier one's place", func(t *testing.T) {
		t.Parallel()
		clock, d, fired := begin(t, nil)
		d.Schedule(flow.Wakeup{RunID: "a", Seq: 1, At: at(10)})
		d.Schedule(flow.Wakeup{RunID: "a", Seq: 2, At: at(30)})
		d.Schedule(flow.Wakeup{RunID: "gone", Seq: 1, At: at(5)})
		d.Schedule(flow.Wakeup{RunID: "gone"})
		d.Schedule(flow.Wakeup{RunID: "b", Seq: 1, At: at(20)})
		clock.Advance(20 * time.Second)
		want(t, fired, "b")
		clock.AwaitWaiters(1)
		clock.Advance(10 * time.Second)
		if w := want(t, fired, "a"); w.Seq != 2 {
			t.Errorf("seq: got %d, want 2", w.Seq)
		}
	})
	t.Run("what was due while down fires at start", func(t *testing.T) {
		t.Parallel()
		var rows stored
		for i := range 1000 {
			rows = append(rows, flow.Wakeup{RunID: fmt.Sprint(i), Seq: 1, At: at(-i)})
		}
		_, _, fired := begin(t, rows)
		seen := map[string]bool{}
		for range rows {
			seen[(<-fired).RunID] = true
		}
		if len(seen) != len(rows) {
			t.Errorf("fired: got %d, want %d", len(seen), len(rows))
		}
	})
	t.Run("a clock set back fires nothing twice", func(t *testing.T) {
		t.Parallel()
		clock, d, fired := begin(t, nil)
		d.Schedule(flow.Wakeup{RunID: "a", Seq: 1, At: at(10)})
		clock.AwaitWaiters(1)
		clock.Advance(10 * time.Second)
		want(t, fired, "a")
		clock.Advance(-time.Hour)
		d.Schedule(flow.Wakeup{RunID: "b", Seq: 1, At: at(20)})
		clock.AwaitWaiters(1)
		clock.Advance(time.Hour + 10*time.Second)
		want(t, fired, "b")
	})
	t.Run("stops before it starts", func(t *testing.T) {
		t.Parallel()
		make_(flowtest.NewClock(start), nil).Stop()
	})
}

func want(t *testing.T, fired chan flow.Wakeup, run string) flow.Wakeup {
	t.Helper()
	select {
	case w := <-fired:
		if w.RunID != run {
			t.Fatalf("fired: got %s, want %s", w.RunID, run)
		}
		return w
	case <-time.After(10 * time.Second):
		t.Fatalf("%s did not fire", run)
		panic("unreachable")
	}
}
