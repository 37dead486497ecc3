package turn

import (
	"testing"

	"github.com/longstop-dev/longstop/internal/flow"
)

// TestLanes: each bound holds by itself, and those who wait take turns.
func TestLanes(t *testing.T) {
	t.Parallel()
	l := newLanes(Limits{All: 3, Workspace: 2, Agent: 1})
	for i, c := range []struct {
		workspace, agent string
		enters           bool
	}{
		{"a", "x", true},
		{"a", "x", false}, // its agent has no place
		{"a", "x", false},
		{"a", "y", true},
		{"a", "z", false}, // its workspace has none
		{"b", "x", true},
		{"c", "x", false}, // there is none
	} {
		if got := l.enter(&entry{turn: flow.Turn{Workspace: c.workspace, Agent: c.agent}}); got != c.enters {
			t.Errorf("%d: %s/%s enters: %t, want %t", i, c.workspace, c.agent, got, c.enters)
		}
	}
	at := place{"a", "x"}
	for i, want := range []place{{"a", "x"}, {"a", "z"}} {
		got := l.leave(at)
		if len(got) != 1 || laneKey(got[0]) != want {
			t.Errorf("leaving %d: %d get a place, want %v", i, len(got), want)
		}
	}
	if got := l.leave(place{"b", "x"}); len(got) != 1 || laneKey(got[0]) != (place{"c", "x"}) {
		t.Errorf("when another workspace leaves: %d get a place, want c/x", len(got))
	}
	if l.all != 3 || l.workspaces["b"] != 0 || len(l.queues[at]) != 1 {
		t.Errorf("%d places, %d of b, %d wait: want 3, 0, 1", l.all, l.workspaces["b"], len(l.queues[at]))
	}
}
