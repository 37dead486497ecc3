package step

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/longstop-dev/longstop/internal/flow"
)

// mailbox is a vault with a script.
type mailbox struct {
	mu      sync.Mutex
	asked   []flow.AgentAsk
	answers map[string]string // payloads by correlation
	fail    error
	away    error // of looking for an answer
	hang    bool
}

func (m *mailbox) Ask(ctx context.Context, q flow.AgentAsk) (*flow.VaultEvent, error) {
	if m.hang {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fail != nil {
		return nil, m.fail
	}
	m.asked = append(m.asked, q)
	return &flow.VaultEvent{ID: "evt:" + q.Correlation, Vault: "vault_1"}, nil
}

func (m *mailbox) Answer(_ context.Context, vault, asked, correlation string) (*flow.VaultEvent, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	body, ok := m.answers[correlation]
	if m.away != nil || !ok {
		return nil, m.away
	}
	if asked != "evt:"+correlation {
		return nil, flow.Errorf(flow.CodeNotFound, "looked for what follows %q", asked)
	}
	if vault != "vault_1" {
		return nil, flow.Errorf(flow.CodeNotFound, "looked in %q", vault)
	}
	return &flow.VaultEvent{ID: "evt_2", Payload: json.RawMessage(body)}, nil
}

const askDesk = `{"vault": "orders", "agent": "desk", "payload": {"text": "late?"}, "timeout": "10m"}`

// waits runs a new attempt and gives what it awaits.
func waits(t *testing.T, m *mailbox, config string) (flow.Call, *flow.Await) {
	t.Helper()
	c := callOf(config)
	c.Attempt = 1
	out, err := NewTable(Deps{Vaults: m}).Run(t.Context(), "agent", c)
	if err != nil || out.Await == nil {
		t.Fatalf("got %+v, %v; want it to wait", out, err)
	}
	c.Awaited = &flow.Awaited{Token: out.Await.Token, State: out.Await.State}
	return c, out.Await
}

func TestAgentAsksAndWaits(t *testing.T) {
	t.Parallel()
	m := &mailbox{answers: map[string]string{}}
	c, a := waits(t, m, askDesk)
	q := m.asked[0]
	if q.Vault != "orders" || q.Agent != "desk" || q.EventType != "workflow.asked" || q.Conversation != "run:run_1" || string(q.Payload) != `{"text": "late?"}` || q.Correlation != a.Token || !strings.HasPrefix(a.Token, "run_1/") {
		t.Errorf("asked %+v, waits for %+v", q, a)
	}
	if !a.Until.Equal(now().Add(10 * time.Minute)) {
		t.Errorf("until %v", a.Until)
	}
	run := func() (flow.Outcome, error) { return NewTable(Deps{Vaults: m}).Run(t.Context(), "agent", c) }
	c.Now = now().Add(time.Minute)
	if out, err := run(); err != nil || out.Await == nil || out.Await.Token != a.Token || !out.Await.Until.Equal(a.Until) {
		t.Errorf("nothing is there yet: %+v, %v", out, err)
	}
	c.Now = now().Add(10 * time.Minute)
	_, err := run()
	failedAs(t, err, flow.KindTimeout)
	m.answers[a.Token] = `{"text":"yes","data":{"late":true},"state":"TASK_STATE_COMPLETED"}`
	if out, err := run(); err != nil || string(out.Value) != `{"late":true}` {
		t.Errorf("an answer at the last moment: %+v, %v", out, err)
	}
	m.answers[a.Token] = `{"text":"yes","state":"TASK_STATE_COMPLETED"}`
	if out, err := run(); err != nil || string(out.Value) != `{"text":"yes"}` {
		t.Errorf("without data: %+v, %v", out, err)
	}
	if len(m.asked) != 1 {
		t.Errorf("asked %d times", len(m.asked))
	}
}

func TestAgentFailures(t *testing.T) {
	t.Parallel()
	m := &mailbox{answers: map[string]string{}}
	c, a := waits(t, m, askDesk)
	for code, kind := range map[string]flow.ErrorKind{flow.TurnAgentFailed: flow.KindTool, flow.TurnTimedOut: flow.KindTimeout, flow.TurnUnreachable: flow.KindTransient,
		flow.TurnNotConnected: flow.KindRefused, flow.TurnCeilingReached: flow.KindRefused, flow.TurnConnectionRevoked: flow.KindRefused} {
		m.answers[a.Token] = `{"text":"so it is","error":"because","code":"` + code + `","state":""}`
		_, err := NewTable(Deps{Vaults: m}).Run(t.Context(), "agent", c)
		if e := failedAs(t, err, kind); !strings.Contains(e.Message, code) || !strings.Contains(e.Message, "because") || !strings.Contains(e.Message, "so it is") {
			t.Errorf("%s: %s", code, e.Message)
		}
	}
	m.away = flow.Errorf(flow.CodeUnavailable, "the database does not answer")
	out, err := NewTable(Deps{Vaults: m}).Run(t.Context(), "agent", c)
	if err != nil || out.Await == nil || out.Await.Token != a.Token || len(m.asked) != 1 {
		t.Errorf("a look that cannot look: %+v, %v, asked %d times; want it to wait on", out, err, len(m.asked))
	}
	c.Now = now().Add(10 * time.Minute)
	_, err = NewTable(Deps{Vaults: m}).Run(t.Context(), "agent", c)
	failedAs(t, err, flow.KindTransient)
	m.fail, m.away = flow.Errorf(flow.CodeNotFound, "there is no vault %q", "orders"), nil
	c.Awaited = nil
	_, err = NewTable(Deps{Vaults: m}).Run(t.Context(), "agent", c)
	if e := failedAs(t, err, flow.KindConfig); !strings.Contains(e.Message, "there is no vault") {
		t.Errorf("no vault: %s", e.Message)
	}
	m.fail = flow.Errorf(flow.CodeUnavailable, "the database does not answer")
	_, err = NewTable(Deps{Vaults: m}).Run(t.Context(), "agent", c)
	failedAs(t, err, flow.KindTransient)
}

func TestAgentThatAsksBack(t *testing.T) {
	t.Parallel()
	m := &mailbox{answers: map[string]string{}}
	c, a := waits(t, m, askDesk)
	m.answers[a.Token] = `{"text":"Which city?","state":"TASK_STATE_INPUT_REQUIRED"}`
	out, err := NewTable(Deps{Vaults: m}).Run(t.Context(), "agent", c)
	if err != nil || out.Ask == nil || out.Ask.Text != "Which city?" || out.Ask.From != "desk" {
		t.Fatalf("got %+v, %v; want a question", out, err)
	}
	for i, reply := range []string{`"Berlin"`, `{"city":"Berlin"}`} {
		c.Awaited = &flow.Awaited{State: out.Ask.State, Reply: json.RawMessage(reply)}
		c.Now = now().Add(time.Hour)
		next, err := NewTable(Deps{Vaults: m}).Run(t.Context(), "agent", c)
		if err != nil || next.Await == nil || next.Await.Token == a.Token || !next.Await.Until.Equal(c.Now.Add(10*time.Minute)) {
			t.Fatalf("got %+v, %v; want it to wait for another answer", next, err)
		}
		q := m.asked[i+1]
		if want := []string{`{"text":"Berlin"}`, `{"city":"Berlin"}`}[i]; string(q.Payload) != want || q.Conversation != "run:run_1" || strings.Join(q.Parents, "") != "evt_2" || q.Correlation != next.Await.Token {
			t.Errorf("replied %+v, want %s after the answer in the same conversation", q, want)
		}
	}
}
