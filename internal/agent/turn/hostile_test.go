package turn_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/longstop-dev/longstop/internal/agent/token"
	"github.com/longstop-dev/longstop/internal/agent/turn"
	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/vault"
)

// flaky is a store of which some writes fail once, as when a database restarts.
type flaky struct {
	turn.Store
	mu   sync.Mutex
	fail func(flow.TurnWrite) bool
}

func (f *flaky) WriteTurn(ctx context.Context, w flow.TurnWrite) ([]flow.VaultEvent, error) {
	f.mu.Lock()
	bad := f.fail(w)
	f.mu.Unlock()
	if bad {
		return nil, flow.Errorf(flow.CodeUnavailable, "the database cannot be used")
	}
	return f.Store.WriteTurn(ctx, w)
}

func once(at flow.TurnStatus) func(flow.TurnWrite) bool {
	done := false
	return func(w flow.TurnWrite) bool {
		if done || w.Turn.Status != at {
			return false
		}
		done = true
		return true
	}
}

// A database that is away for a moment when the answer is written.
func TestAnAnswerThatTheDatabaseDidNotTake(t *testing.T) {
	t.Parallel()
	s := newScripted(t)
	s.send = func(n int, _ call) string {
		return `{"task":` + task(fmt.Sprintf("t-%d", n), "c-1", "WORKING", "") + `}`
	}
	s.get = func(_ int, q call) string { return task(q.Params.ID, "c-1", "COMPLETED", saying("done")) }
	f := &flaky{fail: once(flow.TurnDone)}
	b := newBed(t, s.url, func(b *bed) { b.wrap = func(s turn.Store) turn.Store { f.Store = s; return f } })
	a := b.answer(b.ask(`{"text":"pay the bill"}`, ``))
	sent, _ := s.seen()
	if len(sent) != 1 || a.A2ATaskID != "t-1" {
		t.Errorf("the message was sent %d times, answer %+v", len(sent), a)
	}
}

// breaking is a store with which a try panics once.
type breaking struct {
	turn.Store
	done atomic.Bool
}

func (b *breaking) Agent(ctx context.Context, workspace, id string) (flow.Agent, error) {
	if !b.done.Swap(true) {
		panic("what was sent broke the reading of it")
	}
	return b.Store.Agent(ctx, workspace, id)
}

// TestATryThatPanics has failed, and takes nothing along.
func TestATryThatPanics(t *testing.T) {
	t.Parallel()
	s := newScripted(t)
	s.send = func(int, call) string { return `{"task":` + task("t-1", "c-1", "COMPLETED", saying("done")) + `}` }
	f := &breaking{}
	b := newBed(t, s.url, func(b *bed) { b.wrap = func(s turn.Store) turn.Store { f.Store = s; return f } })
	if a := b.answer(b.ask(`{"text":"hi"}`, ``)); a.Code != "" || a.Text != "done" || !strings.Contains(b.log.String(), "turn: panic") {
		t.Errorf("answer %+v, log %s", a, b.log.String())
	}
}

// The same when the task's id is stored: then the process ends.
func TestATaskIDThatTheDatabaseDidNotTake(t *testing.T) {
	t.Parallel()
	s := newScripted(t)
	s.send = func(n int, _ call) string { return `{"task":` + task("t-1", "", "WORKING", "") + `}` }
	s.get = func(n int, q call) string {
		if n < 20 {
			return task(q.Params.ID, "", "WORKING", "")
		}
		return task(q.Params.ID, "c-1", "COMPLETED", saying("done"))
	}
	f := &flaky{fail: once(flow.TurnWaiting)}
	b := newBed(t, s.url, func(b *bed) { b.wrap = func(s turn.Store) turn.Store { f.Store = s; return f } })
	e := b.ask(`{"text":"pay the bill"}`, ``)
	b.until("ten polls", func() bool { _, polled := s.seen(); return len(polled) > 10 })
	b.restart()
	b.answer(e)
	if sent, _ := s.seen(); len(sent) != 1 {
		t.Errorf("the message was sent %d times", len(sent))
	}
}

// The key cannot be read for a moment, during a poll.
func TestATokenThatCannotBeMadeForAMoment(t *testing.T) {
	t.Parallel()
	s := newScripted(t)
	s.card = func() string {
		return s.plainCard(`,"securitySchemes":{"o":{"oauth2SecurityScheme":{"flows":{}}}},"securityRequirements":[{"schemes":{"o":{"list":[]}}}]`)
	}
	s.send = func(n int, _ call) string { return `{"task":` + task("t-1", "c", "WORKING", "") + `}` }
	s.get = func(n int, q call) string {
		if n < 3 {
			return task("t-1", "c", "WORKING", "")
		}
		return task("t-1", "c", "COMPLETED", saying("done"))
	}
	n := 0
	b := newBed(t, s.url, func(b *bed) {
		b.mints = func(token.Claims) (string, error) {
			if n++; n == 3 {
				return "", flow.Errorf(flow.CodeUnavailable, "the database cannot be used")
			}
			return "tok-tok-tok", nil
		}
	})
	if a := b.answer(b.ask(`{"text":"hi"}`, ``)); a.Text != "done" {
		t.Errorf("answer: %+v", a)
	}
}

// The connection is revoked while the message is under way.
func TestProgressAfterARevocation(t *testing.T) {
	t.Parallel()
	s := newScripted(t)
	var b *bed
	revoked := make(chan struct{})
	s.send = func(int, call) string {
		defer close(revoked)
		if _, err := b.vault.RevokeConnection(context.Background(), b.ada, &vault.ConnectionIn{ID: b.con}); err != nil {
			t.Error(err)
		}
		return `{"task":` + task("t-1", "c-1", "WORKING", saying("words after the revocation")) + `}`
	}
	b = newBed(t, s.url)
	e := b.ask(`{"text":"hi"}`, ``)
	b.answer(e)
	<-revoked // the answer does not wait for the agent
	for _, p := range b.events(flow.EventAgentProgress, e.ID) {
		t.Errorf("published after the revocation: %s", p.Payload)
	}
}

// The connection is revoked while the card is read, which an agent may make
// last for half a minute.
func TestARevocationWhileTheCardIsRead(t *testing.T) {
	t.Parallel()
	s := newScripted(t)
	var b *bed
	s.card = func() string {
		if _, err := b.vault.RevokeConnection(context.Background(), b.ada, &vault.ConnectionIn{ID: b.con}); err != nil {
			t.Error(err)
		}
		return s.plainCard("")
	}
	b = newBed(t, s.url)
	a := b.answer(b.ask(`{"text":"secret of the vault"}`, ``))
	if sent, _ := s.seen(); len(sent) != 0 {
		t.Errorf("%d messages were sent after the revocation; answer %+v", len(sent), a)
	}
}

// What is under 1 MiB for us is 6 MiB as it is stored.
func TestAnswersOfAnyText(t *testing.T) {
	t.Parallel()
	s := newScripted(t)
	s.send = func(int, call) string {
		return `{"task":{"id":"t-1","status":{"state":"TASK_STATE_COMPLETED"},"artifacts":[{"parts":[{"text":"` + strings.Repeat("<", 500_000) + `"},{"data":{"a":"` + strings.Repeat("<", 500_000) + `"}}]}]}}`
	}
	b := newBed(t, s.url)
	e := b.ask(`{"text":"hi"}`, ``)
	b.answer(e)
	if n := len(b.events(flow.EventAgentAnswered, e.ID)[0].Payload); n > 1<<20 {
		t.Errorf("the payload has %d bytes", n)
	}
}

// Tokens of a task that never ends.
func TestUsageOfATaskThatTimesOut(t *testing.T) {
	t.Parallel()
	s := newScripted(t)
	w := `{"id":"t-1","contextId":"c","status":{"state":"TASK_STATE_WORKING"},"metadata":{"usage":{"totalTokens":5000}}}`
	s.send = func(n int, _ call) string { return `{"task":` + w + `}` }
	s.get = func(n int, q call) string { return w }
	b := newBed(t, s.url)
	a := b.answer(b.ask(`{"text":"hi"}`, ``))
	c, err := b.store.Connection(t.Context(), "ws", b.con)
	if err != nil {
		t.Fatal(err)
	}
	if c.Spent != 5000 {
		t.Errorf("spent %d, answer %+v", c.Spent, a)
	}
}

// Usage beyond a double's integers is as good as none.
func TestUsageOfAnySize(t *testing.T) {
	t.Parallel()
	for _, n := range []string{"1e16", "9223372036854775807", "1e308", "1500.5"} {
		s := newScripted(t)
		s.send = func(int, call) string {
			return `{"task":{"id":"t-1","contextId":"c","status":{"state":"TASK_STATE_COMPLETED"},"metadata":{"usage":{"totalTokens":` + n + `}}}}`
		}
		b := newBed(t, s.url)
		b.answer(b.ask(`{"text":"hi"}`, ``))
		if a := b.answer(b.ask(`{"text":"hi"}`, ``)); a.Code != flow.TurnCeilingReached {
			c, _ := b.store.Connection(t.Context(), "ws", b.con)
			t.Errorf("%s: counted %d under a ceiling of 100; code %q", n, c.Spent, a.Code)
		}
	}
}

// The same of a task that is polled: its try lasts 15 minutes.
func TestAClockSetBackOverARestart(t *testing.T) {
	t.Parallel()
	s := newScripted(t)
	s.send = func(int, call) string { return `{"task":` + task("t-1", "c", "WORKING", "") + `}` }
	s.get = func(int, call) string { return task("t-1", "c", "WORKING", "") }
	b := newBed(t, s.url)
	b.clock.Advance(30 * 24 * time.Hour)
	e := b.ask(`{"text":"hi"}`, ``)
	b.until("a poll", func() bool { _, polled := s.seen(); return len(polled) > 0 })
	b.stop()
	b.clock.Advance(-30 * 24 * time.Hour)
	b.open()
	b.start()
	began := b.clock.Now()
	b.until("an hour or the answer", func() bool {
		return b.clock.Now().Sub(began) > 3*time.Hour || len(b.events(flow.EventAgentAnswered, e.ID)) > 0
	})
	if len(b.events(flow.EventAgentAnswered, e.ID)) == 0 {
		t.Errorf("no answer after %v of 3 tries of 15 minutes", b.clock.Now().Sub(began))
	}
}

// The asking event is past its retention while its turn waits behind others.
func TestAQuestionPastItsRetention(t *testing.T) {
	t.Parallel()
	s := newScripted(t)
	s.send = func(int, call) string { return `{"task":` + task("t-1", "c", "WORKING", "") + `}` }
	done := false
	s.get = func(int, call) string {
		if done {
			return task("t-1", "c", "COMPLETED", saying("done"))
		}
		return task("t-1", "c", "WORKING", "")
	}
	b := newBed(t, s.url)
	e := b.ask(`{"text":"hi"}`, `{"correlation":"run_1/0"}`)
	b.until("a poll", func() bool { _, polled := s.seen(); return len(polled) > 0 })
	v, err := b.store.Vault(t.Context(), "ws", "notes")
	if err != nil {
		t.Fatal(err)
	}
	kept := v
	kept.RetentionDays = 1
	if err := b.store.UpdateVault(t.Context(), v, kept); err != nil {
		t.Fatal(err)
	}
	if _, err := b.store.Forget(t.Context(), b.clock.Now().Add(48*time.Hour).UnixMicro(), 1000); err != nil {
		t.Fatal(err)
	}
	s.set(func() { done = true })
	b.until("an answer", func() bool { return len(b.events(flow.EventAgentAnswered, e.ID)) > 0 })
	a := b.events(flow.EventAgentAnswered, e.ID)[0]
	if string(a.Metadata) != `{"correlation":"run_1/0"}` {
		t.Errorf("the answer's metadata: %s", a.Metadata)
	}
}

// TestARevocationWhileTheMessageIsHeld is answered at once, not when the agent
// lets go.
func TestARevocationWhileTheMessageIsHeld(t *testing.T) {
	t.Parallel()
	s := newScripted(t)
	began, hold := make(chan struct{}, 1), make(chan struct{})
	s.send = func(int, call) string { began <- struct{}{}; <-hold; return `{"message":{"parts":[{"text":"late"}]}}` }
	b := newBed(t, s.url)
	defer close(hold)
	e := b.ask(`{"text":"hi"}`, ``)
	<-began
	if _, err := b.vault.RevokeConnection(t.Context(), b.ada, &vault.ConnectionIn{ID: b.con}); err != nil {
		t.Fatal(err)
	}
	if a := b.answer(e); a.Code != flow.TurnConnectionRevoked || a.Text != "" {
		t.Errorf("answer: %+v", a)
	}
}

// TestTriesOverRestarts: three, however often the server starts.
func TestTriesOverRestarts(t *testing.T) {
	t.Parallel()
	s := newScripted(t)
	b := newBed(t, s.url)
	b.stop()
	b.open()
	e := b.ask(`{"text":"hi"}`, ``)
	open, err := b.store.OpenTurns(t.Context())
	if err != nil || len(open) != 1 {
		t.Fatalf("%+v, %v", open, err)
	}
	w := open[0]
	w.Version, w.Status = w.Version+1, flow.TurnSending
	w.Progress = flow.TurnProgress{Try: flow.TurnTries, MessageID: "m", Deadline: b.clock.Now().Add(-time.Minute)}
	if _, err := b.store.WriteTurn(t.Context(), flow.TurnWrite{Turn: w}); err != nil {
		t.Fatal(err)
	}
	b.start()
	if a := b.answer(e); a.Code != flow.TurnTimedOut {
		t.Errorf("answer: %+v", a)
	}
	if sent, _ := s.seen(); len(sent) != 0 {
		t.Errorf("%d messages were sent after the third try", len(sent))
	}
}

// TestARevocationBesideSteps: whoever revokes looks at nothing that a step
// writes.
func TestARevocationBesideSteps(t *testing.T) {
	t.Parallel()
	s := newScripted(t)
	s.send = func(int, call) string { return `{"task":` + task("t-1", "c-1", "WORKING", "") + `}` }
	s.get = func(n int, _ call) string {
		if n < 20 {
			return task("t-1", "c-1", "WORKING", "")
		}
		return task("t-1", "c-1", "COMPLETED", saying("done"))
	}
	b := newBed(t, s.url)
	e := b.ask(`{"text":"hi"}`, ``)
	over, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		for {
			select {
			case <-over:
				return
			default:
				b.d.Revoked("con_of_somebody_else")
			}
		}
	}()
	if a := b.answer(e); a.Text != "done" {
		t.Errorf("answer: %+v", a)
	}
	close(over)
	<-gone
}

// TestDataThatReadersUnderstandDifferently is published as one thing: what
// people may not append, agents do not get into a vault either.
func TestDataThatReadersUnderstandDifferently(t *testing.T) {
	t.Parallel()
	s := newScripted(t)
	s.send = func(int, call) string {
		return `{"message":{"messageId":"m","role":"ROLE_AGENT","parts":[{"text":"nul \u0000"},{"data":{"a":1,"a":2,"n":1e400,"actions":[{"do":1,"do":2}]}}]}}`
	}
	b := newBed(t, s.url)
	a := b.answer(b.ask(`{"text":"hi"}`, ``))
	if string(a.Data) != `{"a":2,"actions":[{"do":2}],"n":"1e400"}` || string(a.Actions) != `[{"do":2}]` || a.Text != "nul \uFFFD" {
		t.Errorf("data %s, actions %s, text %q", a.Data, a.Actions, a.Text)
	}
}
