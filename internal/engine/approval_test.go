package engine_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/longstop-dev/longstop/internal/flow"
)

// asking starts a run whose first step asks for approval.
func asking(h *harness, a flow.Approval) (string, flow.Gate) {
	h.t.Helper()
	h.types.on("a", func(context.Context, flow.Call, int) (flow.Outcome, error) { return flow.Outcome{Approval: &a}, nil })
	id := h.begin(flow.Definition{Steps: steps(flow.Step{Type: "a"}, flow.Step{Type: "b", Config: json.RawMessage(`"{{ steps.s0.output.data }}"`)})}, ``)
	v := h.waits(id)
	if len(v.Gates) != 1 || v.Gates[0].Kind != flow.GateApproval {
		h.t.Fatalf("gates: got %+v, want one approval", v.Gates)
	}
	return id, v.Gates[0]
}

func TestApproval(t *testing.T) {
	t.Parallel()
	form := json.RawMessage(`{"type":"object","required":["amount"],"properties":{"amount":{"type":"integer"}}}`)
	t.Run("approved with a form", func(t *testing.T) {
		t.Parallel()
		h := newHarness(t)
		id, g := asking(h, flow.Approval{Message: "Pay with s3cr3t-value?", Form: form})
		wantEqual(t, "proposal", string(g.Proposal), `{"message":"Pay with [secret:api]?","form":`+string(form)+`}`)
		for _, bad := range []flow.GateAnswer{{Answer: "approve"}, {Answer: "approve", Output: json.RawMessage(`{"amount":"x"}`)}, {Answer: "skip"}, {}} {
			if _, err := answer(h, g.ID, bad); flow.CodeOf(err) != flow.CodeInvalid {
				t.Errorf("%+v: got %v, want invalid", bad, err)
			}
		}
		if _, err := answer(h, g.ID, flow.GateAnswer{Answer: "approve", Output: json.RawMessage(`{"amount":3}`), Reason: "fine"}); err != nil {
			t.Fatal(err)
		}
		v := h.ended(id)
		wantStatus(t, v, flow.RunSucceeded)
		wantEqual(t, "output", string(v.Steps[0].Output), `{"approved":true,"by":"person_1","reason":"fine","data":{"amount":3}}`)
		wantEqual(t, "what the next step read", string(v.Output), `{"amount":3}`)
		wantEqual(t, "recovery was asked", len(h.desk.saw()), 0)
	})
	t.Run("refused: nobody mends that", func(t *testing.T) {
		t.Parallel()
		h := newHarness(t)
		id, g := asking(h, flow.Approval{Message: "Pay?"})
		if _, err := answer(h, g.ID, flow.GateAnswer{Answer: "refuse", Reason: "too much"}); err != nil {
			t.Fatal(err)
		}
		v := h.ended(id)
		wantStatus(t, v, flow.RunFailed)
		wantEqual(t, "error", v.Steps[0].Error, "refused by person_1: too much")
		wantEqual(t, "recovery was asked", len(h.desk.saw()), 0)
	})
	for def, want := range map[string]flow.RunStatus{"approve": flow.RunSucceeded, "refuse": flow.RunFailed, "": flow.RunFailed} {
		t.Run("nobody answers, default "+def, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t)
			id, g := asking(h, flow.Approval{Message: "Pay?", Default: def, Deadline: time.Hour})
			wantEqual(t, "deadline", g.ExpiresAt.Sub(h.clock.Now()), time.Hour)
			h.clock.Advance(time.Hour)
			v := h.ended(id)
			if def == "approve" { // the next step reads data, which nobody gave
				wantEqual(t, "step", v.Steps[0].Status, flow.StepSucceeded)
				return
			}
			wantStatus(t, v, want)
		})
	}
}
