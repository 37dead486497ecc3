package turn

import (
	"testing"

	"github.com/longstop-dev/longstop/internal/fair"
	"github.com/longstop-dev/longstop/internal/flow"
)

// TestLanes: who finds no place waits, and those who wait take turns.
func TestLanes(t *testing.T) {
	t.Parallel()
	l := newLanes(Limits{All: 7, Workspace: 3, Agent: 1})
	for i, c := range []struct {
		workspace, agent string
		enters           bool
	}{
		{"a", "x", true},
		{"a", "x", false}, // its agent has no place
		{"a", "x", false},
		{"a", "y", true},
		{"a", "w", true},
		{"a", "z", false}, // its workspace has none
		{"b", "x", true},
		{"c", "x", true},
		{"d", "x", true},
		{"e", "x", true},
		{"f", "x", false}, // there is none
	} {
		if got := l.enter(&entry{turn: flow.Turn{Workspace: c.workspace, Agent: c.agent}}); got != c.enters {
			t.Errorf("%d: %s/%s enters: %t, want %t", i, c.workspace, c.agent, got, c.enters)
		}
	}
	leave := func(workspace, agent, want string) {
		t.Helper()
		got := "nobody"
		for _, e := range l.leave(fair.Place{Group: workspace, One: agent}) {
			got = e.turn.Workspace + "/" + e.turn.Agent
		}
		if got != want {
			t.Errorf("when %s/%s leaves: %s gets a place, want %s", workspace, agent, got, want)
		}
	}
	leave("a", "y", "f/x") // a has two still, and would take the last
	leave("a", "w", "nobody")
	leave("b", "x", "a/z")
	leave("a", "x", "a/x")
	leave("f", "x", "nobody")
}
