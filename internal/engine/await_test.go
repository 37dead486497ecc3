package engine_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/longstop-dev/longstop/internal/flow"
)

// TestAStepLooksByItself: a minute after it has asked, then each time after as
// long as it has waited, and never later than half an hour: being told may
// have been lost with the process.
func TestAStepLooksByItself(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	begun, looked := h.clock.Now(), make(chan struct{}, 8)
	h.types.on("a", func(_ context.Context, c flow.Call, _ int) (flow.Outcome, error) {
		looked <- struct{}{}
		return flow.Outcome{Await: &flow.Await{Token: c.RunID + "/0//a1", Until: begun.Add(100 * time.Hour), State: json.RawMessage(`{}`), Says: "waits"}}, nil
	})
	id := h.begin(flow.Definition{Steps: steps(flow.Step{Type: "a", Config: json.RawMessage(`{}`)})}, `{}`)
	<-looked
	for _, next := range []time.Duration{time.Minute, time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute, 16 * time.Minute, 30 * time.Minute, 30 * time.Minute} {
		h.waits(id)
		h.undriven(id)
		rows, err := h.store.Steps(t.Context(), id)
		if err != nil || len(rows) != 1 || rows[0].Progress.DueAt == nil {
			t.Fatalf("got %+v, %v, want a step that is due once", rows, err)
		}
		wantEqual(t, "the next look after "+h.clock.Now().Sub(begun).String(), rows[0].Progress.DueAt.Sub(h.clock.Now()), next)
		h.clock.Advance(next)
		<-looked
	}
}
