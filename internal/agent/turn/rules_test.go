package turn_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/longstop-dev/longstop/internal/agent/token"
	"github.com/longstop-dev/longstop/internal/agent/turn"
	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/secret"
	"github.com/longstop-dev/longstop/internal/vault"
)

// spec: A-043
// spec: A-044
func TestWhatTheAgentIsTold(t *testing.T) {
	t.Parallel()
	for payload, want := range map[string]string{
		`{"text":"a","message":"b"}`:             `[{"text":"a"},{"data":{"message":"b"}}]`,
		`{"text":"","message":"b"}`:              `[{"text":"b"},{"data":{"text":""}}]`,
		`{"text":7,"prompt":"p","question":"q"}`: `[{"text":"p"},{"data":{"question":"q","text":7}}]`,
		`{"question":"q"}`:                       `[{"text":"q"}]`,
		`{"body":"x","n":12345678901234567890}`:  `[{"text":"x"},{"data":{"n":12345678901234567890}}]`,
		`{"other":{"text":"no"}}`:                `[{"data":{"other":{"text":"no"}}}]`,
	} {
		s := newScripted(t)
		b := newBed(t, s.url)
		b.answer(b.ask(payload, ``))
		sent, _ := s.seen()
		var raw struct {
			Params struct {
				Message struct{ Parts json.RawMessage }
			}
		}
		if err := json.Unmarshal([]byte(sent[0].raw), &raw); err != nil || string(raw.Params.Message.Parts) != want {
			t.Errorf("%s: got %s, want %s", payload, raw.Params.Message.Parts, want)
		}
		if sent[0].Params.Configuration["returnImmediately"] != true || sent[0].Params.Message.TaskID != "" {
			t.Errorf("sent %s", sent[0].raw)
		}
	}
}

// A message of which something has become a secret is masked on its way.
func TestWhatBecameASecretIsNotSent(t *testing.T) {
	t.Parallel()
	const late = "late-secret-0123456789"
	s := newScripted(t)
	b := newBed(t, s.url, func(b *bed) { b.masker = secret.NewMasker(map[string]string{"late": late}, nil) })
	b.answer(b.ask(`{"text":"use `+late+`","key":"`+late+`"}`, `{"conversation":"about `+late+`"}`))
	sent, _ := s.seen()
	if raw := sent[0].raw; strings.Contains(raw, late) || !strings.Contains(raw, `"use [secret:late]"`) || !strings.Contains(raw, `"about [secret:late]"`) {
		t.Errorf("sent %s, want masks", raw)
	}
}

// spec: A-037
// spec: A-039
func TestTheOlderMethods(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"-32601", "-32009"} {
		s := newScripted(t)
		s.send = func(_ int, q call) string {
			if q.Method == "SendMessage" {
				return asRPC + `{"code":` + code + `,"message":"unknown"}`
			}
			return `{"kind":"task","id":"t-1","contextId":"c-1","status":{"state":"working"}}`
		}
		s.get = func(int, call) string {
			return `{"kind":"task","id":"t-1","contextId":"c-1","status":{"state":"completed"},"artifacts":[{"artifactId":"a","parts":[{"kind":"text","text":"old"}]}]}`
		}
		b := newBed(t, s.url)
		if a := b.answer(b.ask(`{"text":"hi"}`, ``)); a.Text != "old" || a.State != "TASK_STATE_COMPLETED" {
			t.Errorf("%s: %+v", code, a)
		}
		sent, polled := s.seen()
		if len(sent) != 2 || sent[1].Method != "message/send" || len(polled) != 1 || polled[0].Method != "tasks/get" || sent[0].Params.Message.MessageID != sent[1].Params.Message.MessageID {
			t.Errorf("%s: sent %+v, polled %+v", code, sent, polled)
		}
		if !strings.Contains(sent[1].raw, `"blocking":false`) || !strings.Contains(sent[1].raw, `"role":"user"`) {
			t.Errorf("the older form: %s", sent[1].raw)
		}
	}
}

// spec: A-002
// spec: A-036
func TestTheCardIsReadAtEveryCall(t *testing.T) {
	t.Parallel()
	s, other := newScripted(t), newScripted(t)
	other.send = func(int, call) string { return `{"task":` + task("t-9", "c-1", "COMPLETED", saying("moved")) + `}` }
	b := newBed(t, s.url)
	b.answer(b.ask(`{"text":"one"}`, ``))
	s.set(func() {
		s.card = func() string { return strings.ReplaceAll(s.plainCard(""), s.url+"/rpc", other.url+"/new") }
	})
	if a := b.answer(b.ask(`{"text":"two"}`, ``)); a.Text != "moved" {
		t.Errorf("after the endpoint changed: %+v", a)
	}
	if sent, _ := s.seen(); len(sent) != 1 || s.cards != 2 {
		t.Errorf("sent %d to the old endpoint, read %d cards", len(sent), s.cards)
	}
}

// spec: A-060
// spec: A-064
func TestABareMessage(t *testing.T) {
	t.Parallel()
	s := newScripted(t)
	s.send = func(int, call) string {
		return `{"message":{"messageId":"m","role":"ROLE_AGENT","contextId":"c-7","parts":[{"text":"hello"},{"data":{"a":1}},{"data":[2]}],"metadata":{"actions":[{"do":"x"}],"usage":{"input_tokens":3,"output_tokens":4}}}}`
	}
	b := newBed(t, s.url)
	e := b.ask(`{"text":"hi"}`, `{"conversation":"talk"}`)
	a := b.answer(e)
	if a.State != "TASK_STATE_COMPLETED" || a.A2ATaskID != "" || a.Text != "hello" || string(a.Data) != `[{"a":1},[2]]` || string(a.Actions) != `[{"do":"x"}]` || a.Conversation != "talk" ||
		string(a.Usage) != `{"inputTokens":3,"outputTokens":4,"totalTokens":7}` {
		t.Errorf("answer: %+v", a)
	}
	if raw := string(b.events(flow.EventAgentAnswered, e.ID)[0].Payload); strings.Contains(raw, "a2aTaskId") || strings.Contains(raw, `"error"`) {
		t.Errorf("payload: %s", raw)
	}
}

// TestActionsThatAreNoList are data, and no actions.
func TestActionsThatAreNoList(t *testing.T) {
	t.Parallel()
	s := newScripted(t)
	s.send = func(int, call) string {
		return `{"message":{"messageId":"m","role":"ROLE_AGENT","parts":[{"data":{"actions":{"do":"x"}}}]}}`
	}
	b := newBed(t, s.url)
	if a := b.answer(b.ask(`{"text":"hi"}`, ``)); a.Actions != nil || string(a.Data) != `{"actions":{"do":"x"}}` {
		t.Errorf("actions %s, data %s", a.Actions, a.Data)
	}
}

// TestProgressOfAnySize is cut at 16 KiB, between characters.
func TestProgressOfAnySize(t *testing.T) {
	t.Parallel()
	s := newScripted(t)
	s.send = func(int, call) string {
		return `{"task":` + task("t-1", "c-1", "WORKING", saying(strings.Repeat("é", 20_000))) + `}`
	}
	b := newBed(t, s.url)
	e := b.ask(`{"text":"hi"}`, ``)
	b.answer(e)
	all := b.events(flow.EventAgentProgress, e.ID)
	if len(all) != 1 {
		t.Fatalf("%d events of progress, want 1", len(all))
	}
	var p struct{ Text string }
	if err := json.Unmarshal(all[0].Payload, &p); err != nil {
		t.Fatal(err)
	}
	if rest := strings.Trim(p.Text, "é"); rest != "…" || len(p.Text) > 16<<10 || len(p.Text) < 16_000 {
		t.Errorf("%d bytes, beside the text %q", len(p.Text), rest)
	}
}

// TestWhatIsToldOfATaskThatGoesOn: the Job shows why the try before failed.
func TestWhatIsToldOfATaskThatGoesOn(t *testing.T) {
	t.Parallel()
	s := newScripted(t)
	s.send = func(int, call) string { return `{"task":` + task("t-1", "c-1", "WORKING", "") + `}` }
	s.get = func(int, call) string { return task("t-1", "c-1", "WORKING", "") }
	b := newBed(t, s.url)
	e := b.ask(`{"text":"hi"}`, ``)
	var seen vault.TurnView
	b.until("the second try", func() bool {
		jobs, err := b.vault.ListJobs(t.Context(), b.ada, &vault.JobsIn{ID: e.Vault})
		if err != nil {
			t.Fatal(err)
		}
		j, err := b.vault.GetJob(t.Context(), b.ada, &vault.JobIn{ID: jobs.Items[0].ID})
		if err != nil {
			t.Fatal(err)
		}
		seen = j.Turns[0]
		return seen.Try > 1
	})
	if seen.Code != flow.TurnTimedOut || !strings.Contains(seen.Failed, "in time") || seen.Deadline == nil {
		t.Errorf("got %+v", seen)
	}
}

// spec: A-056
// spec: A-057
// spec: A-062
// spec: A-065
func TestTasksThatFail(t *testing.T) {
	t.Parallel()
	for state, code := range map[string]string{"FAILED": flow.TurnAgentFailed, "CANCELED": flow.TurnAgentCanceled, "REJECTED": flow.TurnAgentRejected} {
		s := newScripted(t)
		s.send = func(n int, _ call) string {
			return `{"task":` + strings.Replace(task(fmt.Sprint("t-", n), "c-1", state, saying("no way")), `{"id"`, `{"metadata":{"usage":{"totalTokens":5}},"id"`, 1) + `}`
		}
		b := newBed(t, s.url)
		a := b.answer(b.ask(`{"text":"hi"}`, ``))
		if a.Code != code || a.Error == "" || a.Text != "no way" || a.State != "TASK_STATE_"+state || a.A2ATaskID != "t-3" {
			t.Errorf("%s: %+v", state, a)
		}
		sent, _ := s.seen()
		ids := map[string]bool{}
		for _, q := range sent {
			ids[q.Params.Message.MessageID] = true
		}
		if len(sent) != 3 || len(ids) != 3 {
			t.Errorf("%s: %d messages of %d ids, want three new ones", state, len(sent), len(ids))
		}
		if c, err := b.store.Connection(t.Context(), "ws", b.con); err != nil || c.Spent != 15 {
			t.Errorf("%s: spent %d, %v, want what all tries cost", state, c.Spent, err)
		}
	}
	s := newScripted(t)
	s.send = func(n int, _ call) string {
		if n < 3 {
			return `{"task":` + task(fmt.Sprint("t-", n), "c-1", "FAILED", "") + `}`
		}
		return `{"task":` + task("t-3", "c-1", "COMPLETED", saying("at last")) + `}`
	}
	b := newBed(t, s.url)
	if a := b.answer(b.ask(`{"text":"hi"}`, ``)); a.Code != "" || a.Text != "at last" {
		t.Errorf("the third try: %+v", a)
	}
}

// spec: A-042
// spec: A-058
// spec: A-059
func TestATaskThatNeverEnds(t *testing.T) {
	t.Parallel()
	s := newScripted(t)
	s.send = func(int, call) string { return `{"task":` + task("t-1", "c-1", "SUBMITTED", "") + `}` }
	s.get = func(int, call) string { return task("t-1", "c-1", "WORKING", "") }
	b := newBed(t, s.url)
	began := b.clock.Now()
	a := b.answer(b.ask(`{"text":"hi"}`, ``))
	took := b.clock.Now().Sub(began)
	if a.Code != flow.TurnTimedOut || a.State != "TASK_STATE_WORKING" || a.A2ATaskID != "t-1" || took < 45*time.Minute || took > 46*time.Minute {
		t.Errorf("after %v: %+v", took, a)
	}
	sent, polled := s.seen()
	if len(sent) != 1 || len(polled) < 200 || len(polled) > 300 {
		t.Errorf("sent %d times and polled %d times, want one message and back-off to ten seconds", len(sent), len(polled))
	}
	b.until("the end of its task", func() bool { return s.cancelled() > 0 })
}

// spec: A-051
// spec: A-052
func TestAJobEndsWhenNobodySpeaks(t *testing.T) {
	t.Parallel()
	s := newScripted(t)
	n := 0
	s.send = func(int, call) string { n++; return `{"task":` + task(fmt.Sprint("t-", n), "", "WORKING", "") + `}` }
	s.get = func(_ int, q call) string { return task(q.Params.ID, "c-"+q.Params.ID, "COMPLETED", saying("ok")) }
	b := newBed(t, s.url)
	first := b.answer(b.ask(`{"text":"one"}`, ``))
	b.clock.Advance(30*time.Minute - time.Second)
	s.set(func() { s.get = func(_ int, q call) string { return task(q.Params.ID, "", "COMPLETED", saying("ok")) } })
	second := b.answer(b.ask(`{"text":"two"}`, ``))
	b.clock.Advance(30 * time.Minute)
	third := b.answer(b.ask(`{"text":"three"}`, ``))
	sent, _ := s.seen()
	if second.JobID != first.JobID || sent[1].Params.Message.ContextID != "c-t-1" {
		t.Errorf("within the idle time: %+v with context %q", second, sent[1].Params.Message.ContextID)
	}
	if third.JobID == first.JobID || sent[2].Params.Message.ContextID != "" {
		t.Errorf("after it: %+v with context %q", third, sent[2].Params.Message.ContextID)
	}
	other := b.answer(b.ask(`{"text":"four"}`, `{"conversation":"x"}`))
	if other.JobID == third.JobID {
		t.Error("another conversation is the same Job")
	}
}

// spec: A-047
func TestOnWhoseBehalf(t *testing.T) {
	t.Parallel()
	s := newScripted(t)
	b := newBed(t, s.url)
	for _, author := range []flow.EventAuthor{{Kind: flow.AuthorAgent, ID: "x"}, {Kind: flow.AuthorSchedule, ID: "x"}, {Kind: flow.AuthorRun, ID: "run_1"}} {
		e, err := b.vault.Publish(t.Context(), "ws", "notes", vault.NewEvent{Type: "a", Target: agentID, Payload: json.RawMessage(`{"text":"x"}`)}, author, adaKey, "")
		if err != nil {
			t.Fatal(err)
		}
		b.answer(e)
	}
	sent, _ := s.seen()
	for i, want := range []string{"", "", adaKey} {
		if got := sent[i].Params.Message.Metadata["onBehalfOf"]; got != want {
			t.Errorf("%d: got %v, want %q", i, got, want)
		}
	}
}

// spec: A-022
// spec: A-071
func TestWhatReachesTheAgent(t *testing.T) {
	t.Parallel()
	s := newScripted(t)
	b := newBed(t, s.url)
	if _, err := b.vault.Append(t.Context(), b.ada, &vault.AppendIn{ID: "notes", Body: vault.NewEvent{Type: "note", Payload: json.RawMessage(`{"text":"for nobody"}`)}}); err != nil {
		t.Fatal(err)
	}
	up := &vault.UpdateConnectionIn{ID: b.con}
	up.Body.Scopes = []string{"mail"}
	if _, err := b.vault.UpdateConnection(t.Context(), b.ada, up); err != nil {
		t.Fatal(err)
	}
	if a := b.answer(b.ask(`{"text":"in default"}`, ``)); a.Code != flow.TurnNotConnected {
		t.Errorf("outside of its scopes: %+v", a)
	}
	if sent, _ := s.seen(); len(sent) != 0 {
		t.Errorf("the agent got %+v", sent)
	}
}

// spec: A-078
func TestTokensOfRequests(t *testing.T) {
	t.Parallel()
	requires := `,"securitySchemes":{"o":{"oauth2SecurityScheme":{}}},"securityRequirements":[{"schemes":{"o":{"list":[]}}}]`
	n := 0
	give := func(b *bed) {
		b.mints = func(c token.Claims) (string, error) {
			n++
			return fmt.Sprintf("tok-%d|%s|%s|%s", n, c.Audience, c.Agent, c.OnBehalfOf), nil
		}
	}
	s := newScripted(t)
	s.card = func() string { return s.plainCard(requires) }
	s.send = func(int, call) string { return `{"task":` + task("t-1", "c-1", "WORKING", "") + `}` }
	b := newBed(t, s.url, give)
	b.answer(b.ask(`{"text":"hi"}`, ``))
	sent, polled := s.seen()
	if len(sent) != 1 || len(polled) != 1 || sent[0].Auth != "Bearer tok-1|"+s.url+"|"+agentID+"|"+adaKey || !strings.HasPrefix(polled[0].Auth, "Bearer tok-2|"+s.url) {
		t.Errorf("sent %q, polled %q", sent[0].Auth, polled[0].Auth)
	}
	for name, c := range map[string]struct {
		card, code string
	}{
		"no key":     {requires, flow.TurnAuthUnavailable},
		"unknown":    {`,"securityRequirements":[{"schemes":{"nowhere":{"list":[]}}}]`, flow.TurnCardInvalid},
		"unreadable": {`,"securityRequirements":["x"]`, flow.TurnCardInvalid},
	} {
		s := newScripted(t)
		s.card = func() string { return s.plainCard(c.card) }
		b := newBed(t, s.url)
		if a := b.answer(b.ask(`{"text":"hi"}`, ``)); a.Code != c.code {
			t.Errorf("%s: %+v", name, a)
		}
		if sent, _ := s.seen(); len(sent) != 0 {
			t.Errorf("%s: it was called without a token: %+v", name, sent)
		}
	}
}

// TestTurnsOfOneJob go one after the other in the order of their events, those
// of different Jobs at the same time.
func TestTurnsOfOneJob(t *testing.T) {
	t.Parallel()
	s := newScripted(t)
	ended := map[string]bool{}
	s.send = func(n int, q call) string {
		return `{"task":` + task(q.Params.Message.Parts[0]["text"].(string), "c-"+fmt.Sprint(q.Params.Message.Metadata["context"]), "WORKING", "") + `}`
	}
	s.get = func(_ int, q call) string {
		state := "WORKING"
		if ended[q.Params.ID] {
			state = "COMPLETED"
		}
		return task(q.Params.ID, "", state, "")
	}
	b := newBed(t, s.url)
	a1, a2 := b.ask(`{"text":"a1"}`, `{"conversation":"a"}`), b.ask(`{"text":"a2"}`, `{"conversation":"a"}`)
	b1 := b.ask(`{"text":"b1"}`, `{"conversation":"b"}`)
	b.until("two messages", func() bool { sent, _ := s.seen(); return len(sent) == 2 })
	s.set(func() { ended["b1"] = true })
	b.answer(b1)
	if sent, _ := s.seen(); len(sent) != 2 {
		t.Errorf("a2 was sent while a1 is at work")
	}
	s.set(func() { ended["a1"], ended["a2"] = true, true })
	b.answer(a1)
	b.answer(a2)
	if sent, _ := s.seen(); len(sent) != 3 || sent[2].Params.Message.Parts[0]["text"] != "a2" {
		t.Errorf("sent: %+v", sent)
	}
}

// TestProgress is published when what a person would see has changed, at most
// once a second.
func TestProgress(t *testing.T) {
	t.Parallel()
	s := newScripted(t)
	s.send = func(int, call) string { return `{"task":` + task("t-1", "c-1", "WORKING", saying("step 1")) + `}` }
	s.get = func(n int, _ call) string {
		switch {
		case n == 1: // half a second later
			return task("t-1", "c-1", "WORKING", saying("step 2"))
		case n < 5:
			return task("t-1", "c-1", "WORKING", saying("step 3"))
		}
		return task("t-1", "c-1", "COMPLETED", saying("done"))
	}
	b := newBed(t, s.url)
	e := b.ask(`{"text":"hi"}`, `{"correlation":"x"}`)
	b.answer(e)
	var texts []string
	for _, p := range b.events(flow.EventAgentProgress, e.ID) {
		var v payload
		if err := json.Unmarshal(p.Payload, &v); err != nil || v.A2ATaskID != "t-1" || v.AgentID != agentID || v.State != "TASK_STATE_WORKING" {
			t.Errorf("progress: %s, %v", p.Payload, err)
		}
		texts = append(texts, v.Text)
	}
	if got := strings.Join(texts, ", "); got != "step 1, step 3" {
		t.Errorf("progress: %s", got)
	}
}

// TestAnAgentWhoseKeyIsRotated during its turn is asked under its new id.
func TestAnAgentWhoseKeyIsRotated(t *testing.T) {
	t.Parallel()
	s := newScripted(t)
	s.send = func(n int, _ call) string {
		if n == 1 {
			return `{"task":` + task("t-1", "c-1", "FAILED", "") + `}`
		}
		return `{"task":` + task("t-2", "c-1", "COMPLETED", saying("fine")) + `}`
	}
	b := newBed(t, s.url)
	e := b.ask(`{"text":"hi"}`, ``)
	late := time.After(20 * time.Second)
	for { // the first try has failed, and its pause is not over
		if _, waits, busy := b.d.Next(); waits && busy == 0 {
			if sent, _ := s.seen(); len(sent) == 1 {
				break
			}
		}
		select {
		case <-b.moved:
		case <-late:
			t.Fatal("the first try did not fail")
		}
	}
	a, err := b.store.Agent(t.Context(), "ws", agentID)
	if err != nil {
		t.Fatal(err)
	}
	fresh := strings.Repeat("cd", 32) + ":helper"
	a.ID, a.Manifest.AgentID = fresh, fresh
	for _, err := range []error{b.store.PutAgent(t.Context(), a, slices.Max[[]string]), b.store.MoveConnections(t.Context(), "ws", agentID, fresh, time.Now()), b.store.DeleteAgent(t.Context(), "ws", agentID)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if got := b.answer(e); got.Text != "fine" || got.AgentID != fresh {
		t.Errorf("answer: %+v", got)
	}
}

// halting is a store that stops the process at a write: nothing is written any
// more.
type halting struct {
	turn.Store
	at    flow.TurnStatus // the write of a turn in this status fails
	after bool            // only once it was written
	gone  chan struct{}
}

var errHalted = errors.New("halted")

func (h *halting) WriteTurn(ctx context.Context, w flow.TurnWrite) ([]flow.VaultEvent, error) {
	select {
	case <-h.gone:
		return nil, errHalted
	default:
	}
	if w.Turn.Status != h.at {
		return h.Store.WriteTurn(ctx, w)
	}
	if h.after {
		if _, err := h.Store.WriteTurn(ctx, w); err != nil {
			return nil, err
		}
	}
	close(h.gone)
	return nil, errHalted
}

// TestTheProcessEndsAtEveryWrite: whatever was written last, the turn is
// answered once, and a message whose task was not stored is sent again under
// the same id.
func TestTheProcessEndsAtEveryWrite(t *testing.T) {
	t.Parallel()
	for _, at := range []flow.TurnStatus{flow.TurnSending, flow.TurnWaiting, flow.TurnDone} {
		for _, after := range []bool{false, true} {
			s := newScripted(t)
			s.send = func(int, call) string { return `{"task":` + task("t-1", "c-1", "WORKING", "") + `}` }
			h := &halting{at: at, after: after, gone: make(chan struct{})}
			b := newBed(t, s.url, func(b *bed) { b.wrap = func(s turn.Store) turn.Store { h.Store = s; return h } })
			e := b.ask(`{"text":"hi"}`, ``)
			b.until("the end of the process", func() bool {
				select {
				case <-h.gone:
					return true
				default:
					return false
				}
			})
			b.wrap = nil
			b.restart()
			if a := b.answer(e); a.Text != "done" || a.A2ATaskID != "t-1" {
				t.Errorf("%s, after %t: %+v", at, after, a)
			}
			sent, _ := s.seen()
			ids := map[string]bool{}
			for _, q := range sent {
				ids[q.Params.Message.MessageID] = true
			}
			want := 1
			if at == flow.TurnWaiting && !after {
				want = 2 // the task's id was not stored
			}
			if len(sent) != want || len(ids) != 1 {
				t.Errorf("%s, after %t: sent %d times under %d ids, want %d under one", at, after, len(sent), len(ids), want)
			}
		}
	}
}
