package engine_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/longstop-dev/longstop/internal/engine"
	"github.com/longstop-dev/longstop/internal/flow"
)

// reminders counts a run's reminders.
func (h *harness) reminders(id string) int {
	return strings.Count(joined(h.events(id)), flow.EventGateReminded)
}

// remindedTimes waits until a run has had n reminders.
func (h *harness) remindedTimes(id string, n int) {
	h.t.Helper()
	h.await(id, "reminded", func(*engine.RunView) bool { return h.reminders(id) >= n })
}

func TestAGateReminds(t *testing.T) {
	t.Parallel()
	t.Run("every so often until it is answered", func(t *testing.T) {
		t.Parallel()
		h := newHarness(t)
		id, g := asking(h, flow.Approval{Message: "Pay?", Deadline: 10 * time.Hour, Remind: 4 * time.Hour})
		opened := h.clock.Now()
		for n := 1; n <= 2; n++ {
			h.clock.Advance(4*time.Hour - time.Second)
			wantEqual(t, "a second before", h.reminders(id), n-1)
			h.clock.Advance(time.Second)
			h.remindedTimes(id, n)
		}
		v := h.waits(id)
		wantEqual(t, "events", joined(h.events(id)), "run:started step:started gate:opened run:waiting gate:reminded gate:reminded")
		got := v.Gates[0]
		wantEqual(t, "reminded", got.Reminded, 2)
		wantEqual(t, "next", got.RemindAt == nil, true) // the third would be after the deadline
		wantEqual(t, "expires", got.ExpiresAt.Sub(opened), 10*time.Hour)
		l, err := h.eng.ListLogs(t.Context(), by, &engine.RecordsIn{ID: id})
		if err != nil || len(l.Items) != 2 || l.Items[0].Status != "reminded" || !strings.Contains(l.Items[0].Message, "nobody has answered yet") {
			t.Errorf("log: got %+v, %v, want two reminders", l, err)
		}
		h.clock.Advance(2 * time.Hour)
		wantStatus(t, h.ended(id), flow.RunFailed)
		if g, err := h.store.Gate(t.Context(), "ws", g.ID); err != nil || g.Status != flow.GateExpired || g.Reminded != 2 {
			t.Errorf("gate: got %+v, %v, want it expired", g, err)
		}
	})
	t.Run("an answer ends it", func(t *testing.T) {
		t.Parallel()
		h := newHarness(t)
		id, g := asking(h, flow.Approval{Message: "Pay?", Remind: time.Hour})
		h.clock.Advance(time.Hour)
		h.remindedTimes(id, 1)
		if _, err := answer(h, g.ID, flow.GateAnswer{Answer: "refuse"}); err != nil {
			t.Fatal(err)
		}
		wantStatus(t, h.ended(id), flow.RunFailed)
		h.clock.Advance(5 * time.Hour)
		wantEqual(t, "reminders", h.reminders(id), 1)
	})
	t.Run("one for all that were due while nobody was there", func(t *testing.T) {
		t.Parallel()
		h := newHarness(t)
		id, g := asking(h, flow.Approval{Message: "Pay?", Deadline: 24 * time.Hour, Remind: time.Hour})
		h.stop()
		h.clock.Advance(5*time.Hour + time.Minute)
		h.start()
		h.remindedTimes(id, 1)
		v := h.waits(id)
		wantEqual(t, "next", v.Gates[0].RemindAt.Sub(g.OpenedAt), 6*time.Hour)
		wantEqual(t, "wakes", v.WakeAt.Sub(g.OpenedAt), 6*time.Hour)
		h.clock.Advance(59 * time.Minute)
		h.remindedTimes(id, 2)
	})
	t.Run("as the workspace says", func(t *testing.T) {
		t.Parallel()
		h := newHarness(t)
		h.policy.RemindEvery = time.Hour
		for remind, want := range map[time.Duration]int64{0: 3600, -1: 0, 2 * time.Hour: 7200} {
			_, g := asking(h, flow.Approval{Message: "Pay?", Remind: remind})
			wantEqual(t, "seconds between reminders", g.Every, want)
			wantEqual(t, "has a next one", g.RemindAt != nil, want > 0)
		}
		id := inboxed(h, "")
		wantEqual(t, "an agent's gate reminds nobody", h.waits(id).Gates[0].RemindAt == nil, true)
	})
}

func TestSelfApproval(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	other := flow.Caller{Workspace: "ws", Person: "person_2", Role: flow.RoleOperator}
	h.policy.DenySelfApproval = true
	_, g := asking(h, flow.Approval{Message: "Pay?"})
	_, err := answer(h, g.ID, flow.GateAnswer{Answer: "approve"})
	if flow.CodeOf(err) != flow.CodeForbidden || !strings.Contains(err.Error(), "gates.self_approval") {
		t.Errorf("approved by who started the run: got %v, want forbidden that says why", err)
	}
	if _, err := h.eng.AnswerGate(t.Context(), other, &engine.AnswerGateIn{ID: g.ID, Body: flow.GateAnswer{Answer: "approve"}}); err != nil {
		t.Errorf("approved by another: got %v", err)
	}
	id, g := asking(h, flow.Approval{Message: "Pay?"})
	if _, err := answer(h, g.ID, flow.GateAnswer{Answer: "refuse"}); err != nil {
		t.Errorf("refused by who started the run: got %v", err)
	}
	wantStatus(t, h.ended(id), flow.RunFailed)
}

func TestAnAnswerTakesOnlyItsOwnMembers(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	_, g := asking(h, flow.Approval{Message: "Pay?"})
	one := []byte(`{"a":1}`)
	for _, bad := range []flow.GateAnswer{{Answer: "refuse", Output: one}, {Answer: "approve", Hint: "x"}, {Answer: "approve", Action: one}, {Answer: "skip", Output: one},
		{Answer: "fail", Modifications: one}, {Answer: "hint", Hint: "x", Output: one}, {Answer: "output", Output: one, Modifications: one}} {
		if _, err := answer(h, g.ID, bad); flow.CodeOf(err) != flow.CodeInvalid || !strings.Contains(err.Error(), "does not take") {
			t.Errorf("%+v: got %v, want invalid and what it does not take", bad, err)
		}
	}
	for _, kind := range []string{"action", "output", "edit", "hint", "skip", "fail", "", "nod"} {
		if _, err := answer(h, g.ID, flow.GateAnswer{Answer: kind}); flow.CodeOf(err) != flow.CodeInvalid || !strings.Contains(err.Error(), "approve or refuse") {
			t.Errorf("%q: got %v, want invalid and what the gate takes", kind, err)
		}
	}
	if _, err := h.eng.AnswerGate(context.Background(), by, &engine.AnswerGateIn{ID: g.ID, Body: flow.GateAnswer{Answer: "approve", Output: one}}); err != nil {
		t.Errorf("approved: got %v", err)
	}
}

// TestSelfApprovalOfCode: code that came in with a key of one's own is one's
// own too.
func TestSelfApprovalOfCode(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.policy.DenySelfApproval = true
	other := flow.Caller{Workspace: "ws", Person: "person_2", Role: flow.RoleOperator}
	h.types.on("a", failing)
	h.desk.said = []flow.Asked{{Responder: "inbox", Accepted: true, Target: other.Person}}
	code := gate()
	code.Gate.Kind = flow.GateApproval
	h.desk.dictate(code)
	v := h.waits(h.begin(flow.Definition{Steps: steps(flow.Step{Type: "a"})}, ``))
	_, err := h.eng.AnswerGate(t.Context(), other, &engine.AnswerGateIn{ID: v.Gates[0].ID, Body: flow.GateAnswer{Answer: "approve"}})
	if flow.CodeOf(err) != flow.CodeForbidden || !strings.Contains(err.Error(), "a key of yours") {
		t.Errorf("code approved by whose key sent it in: got %v, want forbidden that says why", err)
	}
}
