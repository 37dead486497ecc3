package turn_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/vault"
)

// spec: A-079
// spec: A-080
// spec: A-081
func TestTheCeiling(t *testing.T) {
	t.Parallel()
	s := newScripted(t)
	s.send = func(n int, _ call) string {
		return `{"task":` + strings.Replace(task(fmt.Sprint("t-", n), "c-1", "COMPLETED", saying("ok")), `{"id"`, `{"artifacts":[{"artifactId":"a","parts":[],"metadata":{"https://x.example/usage":{"promptTokens":30,"completionTokens":20}}}],"id"`, 1) + `}`
	}
	b := newBed(t, s.url) // the ceiling is 100
	for i, want := range []int{0, 1, 1} {
		if a := b.answer(b.ask(`{"text":"hi"}`, ``)); a.Code != "" {
			t.Errorf("turn %d: %+v", i, a)
		}
		if got := len(b.events(flow.EventAgentCeilingWarning, "")); got != want {
			t.Errorf("after turn %d: %d warnings, want %d", i, got, want)
		}
	}
	a := b.answer(b.ask(`{"text":"hi"}`, ``))
	if a.Code != flow.TurnCeilingReached || !strings.Contains(a.Error, "150") || a.Text != "" {
		t.Errorf("past the ceiling: %+v", a)
	}
	if sent, _ := s.seen(); len(sent) != 3 {
		t.Errorf("sent %d messages, want 3", len(sent))
	}
	up := &vault.UpdateConnectionIn{ID: b.con}
	up.Body.Ceilings = &vault.Ceilings{A2ATokens: 1000}
	if _, err := b.vault.UpdateConnection(t.Context(), b.ada, up); err != nil {
		t.Fatal(err)
	}
	if a := b.answer(b.ask(`{"text":"hi"}`, ``)); a.Code != "" {
		t.Errorf("after it was raised: %+v", a)
	}
	var w struct{ SpentTokens, A2ATokens int64 }
	if err := json.Unmarshal(b.events(flow.EventAgentCeilingWarning, "")[0].Payload, &w); err != nil || w.SpentTokens != 100 || w.A2ATokens != 100 {
		t.Errorf("warning: %+v, %v", w, err)
	}
}

// TestTheCeilingIsWarnedOf at 80 of 100 tokens, and not before.
func TestTheCeilingIsWarnedOf(t *testing.T) {
	t.Parallel()
	s := newScripted(t)
	s.send = func(n int, _ call) string {
		cost := []int{79, 1}[n-1]
		return fmt.Sprintf(`{"message":{"messageId":"m","role":"ROLE_AGENT","parts":[{"text":"ok"}],"metadata":{"usage":{"totalTokens":%d}}}}`, cost)
	}
	b := newBed(t, s.url)
	for want := range 2 {
		b.answer(b.ask(`{"text":"hi"}`, ``))
		if got := len(b.events(flow.EventAgentCeilingWarning, "")); got != want {
			t.Errorf("after %d turns: %d warnings, want %d", want+1, got, want)
		}
	}
}

func TestAConnectionThatIsRevokedDuringATurn(t *testing.T) {
	t.Parallel()
	s := newScripted(t)
	s.send = func(int, call) string {
		return `{"task":` + task("t-1", "c-1", "WORKING", saying("secret so far")) + `}`
	}
	s.get = func(int, call) string { return task("t-1", "c-1", "WORKING", "") }
	b := newBed(t, s.url)
	e := b.ask(`{"text":"hi"}`, ``)
	s.stop = func() {
		if len(b.events(flow.EventAgentAnswered, e.ID)) == 0 {
			t.Error("the answer waits for the end of the task")
		}
	}
	b.until("progress", func() bool { return len(b.events(flow.EventAgentProgress, e.ID)) > 0 })
	if _, err := b.vault.RevokeConnection(t.Context(), b.ada, &vault.ConnectionIn{ID: b.con}); err != nil {
		t.Fatal(err)
	}
	if a := b.answer(e); a.Code != flow.TurnConnectionRevoked || a.Text != "" || a.Data != nil {
		t.Errorf("answer: %+v", a)
	}
	b.until("the end of its task", func() bool { return s.cancelled() > 0 })
}

// TestAConnectionThatIsRevokedWhileTheAgentAnswers: nothing of the answer that
// comes then is published.
func TestAConnectionThatIsRevokedWhileTheAgentAnswers(t *testing.T) {
	t.Parallel()
	s := newScripted(t)
	b, revoked := newBed(t, s.url), make(chan struct{})
	s.set(func() {
		s.send = func(int, call) string {
			defer close(revoked)
			if _, err := b.vault.RevokeConnection(t.Context(), b.ada, &vault.ConnectionIn{ID: b.con}); err != nil {
				t.Error(err)
			}
			return `{"message":{"messageId":"m","role":"ROLE_AGENT","parts":[{"text":"secret"},{"data":{"actions":[1]}}]}}`
		}
	})
	a := b.answer(b.ask(`{"text":"hi"}`, ``))
	<-revoked // the answer does not wait for the agent
	if a.Code != flow.TurnConnectionRevoked || a.Error == "" || a.Text != "" || a.Data != nil || a.Actions != nil {
		t.Errorf("answer: %+v", a)
	}
}

// TestAScopeThatIsTakenAway: a turn that waited behind another is not begun.
func TestAScopeThatIsTakenAway(t *testing.T) {
	t.Parallel()
	s := newScripted(t)
	s.send = func(int, call) string { return `{"task":` + task("t-1", "c-1", "WORKING", "") + `}` }
	s.get = func(int, call) string { return task("t-1", "c-1", "WORKING", "") }
	b := newBed(t, s.url)
	first := b.ask(`{"text":"one"}`, ``)
	b.until("a poll", func() bool { _, polled := s.seen(); return len(polled) > 0 })
	second := b.ask(`{"text":"two"}`, ``)
	up := &vault.UpdateConnectionIn{ID: b.con}
	up.Body.Scopes = []string{"mail"}
	if _, err := b.vault.UpdateConnection(t.Context(), b.ada, up); err != nil {
		t.Fatal(err)
	}
	s.set(func() { s.get = func(int, call) string { return task("t-1", "c-1", "COMPLETED", saying("ok")) } })
	if a := b.answer(first); a.Code != "" {
		t.Errorf("the first: %+v", a)
	}
	if a := b.answer(second); a.Code != flow.TurnNotConnected {
		t.Errorf("the second: %+v", a)
	}
	if sent, _ := s.seen(); len(sent) != 1 {
		t.Errorf("sent %d messages, want 1", len(sent))
	}
}
