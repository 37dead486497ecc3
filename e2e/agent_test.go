package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"
)

// remote is an agent hosted elsewhere: its tasks work until they are released.
type remote struct {
	*httptest.Server
	mu       sync.Mutex
	messages map[string]string // by the turn's id: the ids under which it was sent, each once
	sent     int
	polled   int
	released bool
	some     chan struct{} // signalled with every request
}

func newRemote(t *testing.T) *remote {
	a := &remote{messages: map[string]string{}, some: make(chan struct{}, 1<<16)}
	a.Server = httptest.NewServer(http.HandlerFunc(a.serve))
	t.Cleanup(a.Close)
	return a
}

func (a *remote) serve(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		fmt.Fprintf(w, `{"name":"Remote","description":"d","url":"http://%s/rpc"}`, r.Host)
		return
	}
	var q struct {
		ID     json.RawMessage
		Method string
		Params struct {
			ID      string
			Message struct {
				MessageID string
				Metadata  struct{ TaskID string }
			}
		}
	}
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	task := q.Params.ID
	if q.Method == "SendMessage" {
		m := q.Params.Message
		a.sent++
		task = "task-" + m.MessageID
		if ids := a.messages[m.Metadata.TaskID]; ids != m.MessageID {
			a.messages[m.Metadata.TaskID] = ids + m.MessageID
		}
	} else {
		a.polled++
	}
	state := "WORKING"
	if a.released {
		state = "COMPLETED"
	}
	result := fmt.Sprintf(`{"id":%q,"status":{"state":"TASK_STATE_%s"}}`, task, state)
	if q.Method == "SendMessage" {
		result = `{"task":` + result + `}`
	}
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, q.ID, result)
	a.some <- struct{}{}
}

// reaches waits until the agent has been asked for so many things.
func (a *remote) reaches(t *testing.T, sent, polled int) {
	t.Helper()
	late := time.After(30 * time.Second)
	for {
		a.mu.Lock()
		there := a.sent >= sent && a.polled >= polled
		a.mu.Unlock()
		if there {
			return
		}
		select {
		case <-a.some:
		case <-late:
			t.Fatalf("the agent was not asked %d and %d times", sent, polled)
		}
	}
}

// answers counts those in the vault, by the event that asked.
func (p *process) answers() map[string]int {
	out, after := map[string]int{}, "0"
	for {
		var l struct {
			Items []struct{ Parents []string }
			Next  string
		}
		if code := p.call("GET", "/v1/vaults/talks/events?type=agent.answered&limit=1000&after="+after, nil, &l); code != 200 {
			p.t.Fatalf("events: %d", code)
		}
		for _, e := range l.Items {
			out[e.Parents[0]]++
		}
		if after = l.Next; after == "" {
			return out
		}
	}
}

// TestKillDuringTurns kills the process while messages are sent, while tasks
// are polled and while answers are published: every event is answered once,
// and no message goes out under two ids.
func TestKillDuringTurns(t *testing.T) { onEach(t, killDuringTurns) }

func killDuringTurns(t *testing.T, at place) {
	const n = 120
	a := newRemote(t)
	p := at.serve(t)
	var s struct{ PublicKey, Bucket string }
	var agent struct{ AgentID string }
	for _, c := range []struct {
		path string
		body any
		out  any
	}{
		{"/v1/agent-services", map[string]any{}, &s},
		{"/v1/vaults", map[string]any{"name": "talks"}, nil},
	} {
		if code := p.call("POST", c.path, c.body, c.out); code != 201 {
			t.Fatalf("%s: %d", c.path, code)
		}
	}
	if code := p.call("POST", "/v1/agents", map[string]any{"kind": "external", "card": a.URL, "bucket": s.Bucket, "asPubkey": s.PublicKey}, &agent); code != 201 {
		t.Fatalf("push: %d", code)
	}
	if code := p.call("POST", "/v1/vaults/talks/connections", map[string]any{"agentId": agent.AgentID}, nil); code != 201 {
		t.Fatalf("connect: %d", code)
	}
	var wg sync.WaitGroup
	asked := make([]string, n)
	gate := make(chan struct{}, 16)
	for i := range asked {
		wg.Go(func() {
			gate <- struct{}{}
			defer func() { <-gate }()
			var e struct{ ID string }
			if code := p.call("POST", "/v1/vaults/talks/events", map[string]any{"type": "asked", "target": agent.AgentID, "payload": map[string]any{"text": "hi"},
				"metadata": map[string]any{"conversation": fmt.Sprint(i)}}, &e); code != 201 {
				t.Errorf("append: %d", code)
			}
			asked[i] = e.ID
		})
	}
	a.reaches(t, n/3, 0)
	wg.Wait()
	p.kill() // while messages are sent
	p = at.serve(t)
	a.reaches(t, n, n/2)
	p.kill() // while tasks are polled
	a.mu.Lock()
	a.released = true
	a.polled = 0
	a.mu.Unlock()
	p = at.serve(t)
	a.reaches(t, n, n/12)
	p.kill() // while answers are published
	p = at.serve(t)
	tick, late := time.NewTicker(20*time.Millisecond), time.After(30*time.Second)
	defer tick.Stop()
	for len(p.answers()) < n {
		select {
		case <-tick.C: // of the other process only its answers tell
		case <-late:
			t.Fatalf("%d of %d events were answered", len(p.answers()), n)
		}
	}
	got := p.answers()
	for _, id := range asked {
		if got[id] != 1 {
			t.Errorf("event %s was answered %d times", id, got[id])
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for turn, ids := range a.messages {
		if len(ids) > len("msg_")+32 {
			t.Errorf("turn %s was sent under several ids: %s", turn, ids)
		}
	}
	t.Logf("%d messages for %d events", a.sent, n)
}
