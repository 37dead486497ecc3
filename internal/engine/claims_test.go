package engine_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/longstop-dev/longstop/internal/engine"
	"github.com/longstop-dev/longstop/internal/flow"
)

func agentKey(id string) flow.Caller {
	return flow.Caller{Workspace: "ws", Person: "person_1", KeyID: id, Role: flow.RoleAgent}
}

func (h *harness) claim(by flow.Caller, run, name string, lease int) (*engine.ClaimOut, error) {
	h.t.Helper()
	return h.eng.ClaimCase(h.t.Context(), by, &engine.ClaimIn{StepIn: engine.StepIn{RunID: run}, Lease: lease, Name: name})
}

func (h *harness) submit(by flow.Caller, run string) error {
	h.t.Helper()
	h.desk.answers = func(flow.GateAnswer) (flow.Verdict, error) {
		return flow.Verdict{Kind: flow.VerdictOutput, Output: json.RawMessage(`1`), Source: flow.SourceBYOA}, nil
	}
	_, err := h.eng.SubmitAction(h.t.Context(), by, &engine.SubmitIn{StepIn: engine.StepIn{RunID: run}, Body: json.RawMessage(`{"type":"fixed_output"}`)})
	return err
}

// conflicts checks that err names who holds the case.
func conflicts(t *testing.T, what string, err error, says string) {
	t.Helper()
	if flow.CodeOf(err) != flow.CodeConflict || !strings.Contains(err.Error(), says) {
		t.Errorf("%s: got %v, want conflict with %q", what, err, says)
	}
}

func TestAClaimKeepsOtherAgentsOff(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	id := inboxed(h, "")
	one, two := agentKey("key_1"), agentKey("key_2")
	c, err := h.claim(one, id, "a", 60)
	if err != nil || c.ClaimedBy != "a (key_1)" || c.ExpiresAt.Sub(h.clock.Now()) != time.Minute {
		t.Fatalf("claim: got %+v, %v", c, err)
	}
	const held = "claimed by a (key_1) until 2026-01-01T03:01:00Z"
	_, err = h.claim(two, id, "", 60)
	conflicts(t, "another key's claim", err, held)
	_, err = h.claim(one, id, "b", 60)
	conflicts(t, "another name's claim", err, held)
	conflicts(t, "another key's action", h.submit(two, id), held)
	_, err = h.eng.ReleaseCase(t.Context(), two, &engine.ReleaseIn{StepIn: engine.StepIn{RunID: id}})
	conflicts(t, "another key's release", err, held)
	h.clock.Advance(30 * time.Second)
	if again, err := h.claim(one, id, "a", 3600); err != nil || !again.ClaimedAt.Equal(c.ClaimedAt) || again.ExpiresAt.Sub(h.clock.Now()) != 270*time.Second {
		t.Errorf("prolonged: got %+v, %v, want it to end with the gate", again, err)
	}
	if _, err := h.eng.ReleaseCase(t.Context(), one, &engine.ReleaseIn{StepIn: engine.StepIn{RunID: id}, Name: "a"}); err != nil {
		t.Errorf("release: %v", err)
	}
	if _, err := h.eng.ReleaseCase(t.Context(), two, &engine.ReleaseIn{StepIn: engine.StepIn{RunID: id}}); err != nil {
		t.Errorf("release of nothing: %v", err)
	}
	if _, err := h.claim(two, id, "", 60); err != nil {
		t.Errorf("claim of what was released: %v", err)
	}
	if err := h.submit(two, id); err != nil {
		t.Errorf("the holder's action: %v", err)
	}
	wantStatus(t, h.ended(id), flow.RunSucceeded)
	_, err = h.claim(one, id, "", 60)
	conflicts(t, "a claim of what was answered", err, "answered already")
}

func TestAClaimEnds(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	one, two := agentKey("key_1"), agentKey("key_2")
	t.Run("by its lease", func(t *testing.T) {
		id := inboxed(h, "")
		if _, err := h.claim(one, id, "", 10); err != nil {
			t.Fatal(err)
		}
		h.clock.Advance(10 * time.Second)
		if err := h.submit(two, id); err != nil {
			t.Errorf("another's action after the lease: %v", err)
		}
	})
	t.Run("by a person, who may answer the gate all the same", func(t *testing.T) {
		id := inboxed(h, "")
		if _, err := h.claim(one, id, "", 60); err != nil {
			t.Fatal(err)
		}
		if _, err := answer(h, h.waits(id).Gates[0].ID, flow.GateAnswer{Answer: "action", Action: json.RawMessage(`{}`)}); err != nil {
			t.Errorf("a person's answer: %v", err)
		}
		second := inboxed(h, "")
		if _, err := h.claim(one, second, "", 60); err != nil {
			t.Fatal(err)
		}
		if _, err := h.eng.ReleaseCase(t.Context(), by, &engine.ReleaseIn{StepIn: engine.StepIn{RunID: second}}); err != nil {
			t.Errorf("a person's release: %v", err)
		}
		if err := h.submit(two, second); err != nil {
			t.Errorf("another's action after it: %v", err)
		}
	})
	t.Run("with the case, whose time-out it does not hold up", func(t *testing.T) {
		id := inboxed(h, "")
		h.desk.expired = flow.Verdict{Kind: flow.VerdictOutput, Output: json.RawMessage(`2`), Source: flow.SourceBuiltin}
		for range 4 {
			if _, err := h.claim(one, id, "", 3600); err != nil {
				t.Fatal(err)
			}
			h.clock.Advance(74 * time.Second)
		}
		h.clock.Advance(time.Minute)
		wantStatus(t, h.ended(id), flow.RunSucceeded)
	})
	t.Run("bad ones", func(t *testing.T) {
		id := inboxed(h, "")
		for _, in := range []engine.ClaimIn{{Lease: 4}, {Lease: 3601}, {Name: "a\nb"}, {Name: strings.Repeat("a", 61)}} {
			in.RunID = id
			if _, err := h.eng.ClaimCase(t.Context(), one, &in); flow.CodeOf(err) != flow.CodeInvalid {
				t.Errorf("%+v: got %v, want invalid", in, err)
			}
		}
		stranger := agentKey("key_3")
		stranger.Workspace = "ws2"
		if _, err := h.claim(stranger, id, "", 60); flow.CodeOf(err) != flow.CodeNotFound {
			t.Errorf("another workspace's: got %v, want not_found", err)
		}
	})
}

// TestPollersSeeClaims has a poller wait with the tag of what it has seen:
// it is woken by a claim and by the end of its lease, and not by who goes on
// with one.
func TestPollersSeeClaims(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	id := inboxed(h, "")
	one := agentKey("key_1")
	tag := ""
	poll := func() <-chan string {
		out := make(chan string, 1)
		in := &engine.PendingIn{Wait: 50, IfNoneMatch: tag}
		go func() {
			page, err := h.eng.Pending(t.Context(), by, in)
			switch {
			case err != nil:
				out <- err.Error()
			case in.IfNoneMatch != "" && page.Items[0].ClaimedBy != nil:
				tag, _ = page.Validator()
				out <- *page.Items[0].ClaimedBy
			default:
				tag, _ = page.Validator()
				out <- "nobody"
			}
		}()
		return out
	}
	wantEqual(t, "before", <-poll(), "nobody")
	claimed := poll()
	h.clock.AwaitWaiters(2) // the gate's time-out is one
	if _, err := h.claim(one, id, "a", 20); err != nil {
		t.Fatal(err)
	}
	wantEqual(t, "claimed", <-claimed, "a (key_1)")
	ended := poll()
	h.clock.AwaitWaiters(3) // and the lease's end another
	h.clock.Advance(10 * time.Second)
	if _, err := h.claim(one, id, "a", 20); err != nil {
		t.Fatal(err)
	}
	h.clock.Advance(10 * time.Second) // the first lease's end: it was prolonged
	h.clock.AwaitWaiters(3)
	h.clock.Advance(10 * time.Second)
	wantEqual(t, "the lease has ended", <-ended, "nobody")
}
