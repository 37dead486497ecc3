package recovery

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/longstop-dev/longstop/internal/flow"
)

// counting counts the cases that are read.
type counting struct {
	*bed
	read int
}

func (c *counting) Cases(ctx context.Context, ws, run, before string, limit int) ([]flow.Case, error) {
	out, err := c.bed.Cases(ctx, ws, run, before, limit)
	c.read += len(out)
	return out, err
}

// TestSummingUpReadsInProportion: what was observed is summed up with each case
// read once more, and not once for each other of its run.
func TestSummingUpReadsInProportion(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	action := json.RawMessage(`{"type":"retry_with_params","diagnosis":"d","modifications":{}}`)
	const n = 2000
	for i := n; i > 0; i-- { // newest first: a loop of which each turn failed once
		b.cases = append(b.cases, flow.Case{ID: fmt.Sprintf("case_%05d", i), Workspace: "ws", RunID: "run_1", Iteration: fmt.Sprint(i),
			Asked:    []flow.Asked{{Action: action, Accepted: true}},
			Observed: &flow.Observation{State: flow.ObservationAnswered, Asked: flow.Asked{Responder: "a2a", Action: action, Accepted: true}}})
	}
	c := &counting{bed: b}
	d := b.desk()
	d.c.Records = c
	if _, err := d.CasesObserved(t.Context(), flow.Caller{Workspace: "ws"}, &ObservedIn{Cases: n}); err != nil {
		t.Fatal(err)
	}
	if c.read > n {
		t.Errorf("to sum up %d cases %d of their run were read", n, c.read)
	}
}
