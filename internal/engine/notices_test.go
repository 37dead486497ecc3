package engine_test

import (
	"encoding/json"
	"testing"

	"github.com/longstop-dev/longstop/internal/flow"
)

// A run may fail without a step of it having failed: that is told too.
func TestARunThatFailsAtItsOutputIsTold(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.policy.Notify = true
	id := h.begin(flow.Definition{Steps: steps(flow.Step{Type: "a"}), Output: json.RawMessage(`"{{ steps.0.output.nope }}"`)}, ``)
	wantStatus(t, h.ended(id), flow.RunFailed)
	told, err := h.store.Notices(t.Context(), "ws", "", 10)
	if err != nil || len(told) != 1 || told[0].Type != flow.EventRunFailed || told[0].RunID != id {
		t.Errorf("notices: got %+v, %v, want that the run has failed", told, err)
	}
}
