package engine_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/longstop-dev/longstop/internal/engine"
	"github.com/longstop-dev/longstop/internal/flow"
)

// broken is a database that breaks off for no known reason and for no known
// time: nothing says that it will take the same again.
func broken() error { return flow.Errorf(flow.CodeUnavailable, "the connection was lost") }

// TestACommitOfWhichNothingIsKnown is looked up in what is stored: a step
// whose outcome is there is not executed again, and one whose outcome is lost
// is; the run ends without a restart in either case.
func TestACommitOfWhichNothingIsKnown(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		there    bool // the commit has happened all the same
		executed int
	}{"it is there": {true, 1}, "it is lost": {false, 2}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t)
			var commits atomic.Int32
			h.breaks = func(what string, do func() error) error {
				if what != "apply running" || commits.Add(1) != 2 { // the first begins the run, the second has the first step's outcome
					return do()
				}
				if c.there {
					if err := do(); err != nil {
						return err
					}
				}
				return broken()
			}
			id := h.begin(flow.Definition{Steps: steps(flow.Step{Type: "a"}, flow.Step{Type: "b"})}, ``)
			h.clock.AwaitWaiters(1)
			wantStatus(t, h.await(id, "there", func(*engine.RunView) bool { return true }), flow.RunRunning)
			h.clock.Advance(2 * time.Second)
			wantStatus(t, h.ended(id), flow.RunSucceeded)
			wantEqual(t, "executions of the first", len(h.types.made("a")), c.executed)
			wantEqual(t, "executions of the second", len(h.types.made("b")), 1)
		})
	}
}

// TestAReminderWhoseGateCannotBeRead is sent a little later, not at the next
// start.
func TestAReminderWhoseGateCannotBeRead(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	id, _ := asking(h, flow.Approval{Message: "Pay?", Remind: time.Hour})
	var reads atomic.Int32
	broke := make(chan struct{})
	h.breaks = func(what string, do func() error) error {
		if what == "gate" && reads.Add(1) == 1 {
			close(broke)
			return broken()
		}
		return do()
	}
	h.undriven(id)
	h.clock.Advance(time.Hour)
	<-broke
	for h.reminders(id) == 0 { // whoever looks again has perhaps not begun to wait
		h.clock.Advance(2 * time.Second)
	}
}
