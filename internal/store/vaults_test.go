package store

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/longstop-dev/longstop/internal/flow"
)

const agentID = "ab:helper" // the store does not look into ids

// vaulted makes a store with a vault, an agent in two versions, and its
// connection.
func vaulted(t *testing.T, db Options) (*Store, flow.Vault, flow.Connection) {
	t.Helper()
	s, _, _, _ := founded(t, db)
	v := flow.Vault{ID: "vault_1", Workspace: "ws", Name: "notes", Owner: "p", Scopes: []string{"default", "mail"}, RetentionDays: 3, CreatedAt: at()}
	if err := s.CreateVault(t.Context(), v); err != nil {
		t.Fatal(err)
	}
	for _, version := range []string{"1.0.0", "1.1.0"} {
		a := flow.Agent{ID: agentID, Workspace: "ws", Service: "ab", PushedBy: "p", PushedAt: at(),
			Manifest: flow.Manifest{Kind: flow.KindExternal, Card: "https://a.example.com", AgentID: agentID, Alias: "helper", Version: version, Scopes: []string{"default"}, IdleTimeout: 1800}}
		if err := s.PutAgent(t.Context(), a, slices.Max[[]string]); err != nil {
			t.Fatal(err)
		}
	}
	c, err := s.Connect(t.Context(), flow.Connection{ID: "con_1", Workspace: "ws", Vault: v.ID, Agent: agentID, Scopes: []string{"default"}, Ceiling: 100, GrantedBy: "p", CreatedAt: at()})
	if err != nil {
		t.Fatal(err)
	}
	return s, v, c
}

func event(id string) flow.VaultEvent {
	return flow.VaultEvent{ID: id, Workspace: "ws", Vault: "vault_1", Scope: "default", Type: "question.asked", Payload: json.RawMessage(`{"text":"hi"}`),
		Metadata: json.RawMessage(`{"correlation":"c1"}`), Author: flow.EventAuthor{Kind: flow.AuthorPerson, ID: "p"}, OnBehalfOf: "010203", At: at()}
}

func TestVaults(t *testing.T) {
	onEach(t, func(t *testing.T, db Options) {
		s, v, _ := vaulted(t, db)
		same(t, "by id", must(s.Vault(t.Context(), "ws", v.ID)), v)
		same(t, "by name", must(s.Vault(t.Context(), "ws", "notes")), v)
		same(t, "all", must(s.Vaults(t.Context(), "ws")), []flow.Vault{v})
		_, err := s.Vault(t.Context(), "other", v.ID)
		wantCode(t, "another workspace", err, flow.CodeNotFound)
		twice := v
		twice.ID = "vault_2"
		wantCode(t, "the same name", s.CreateVault(t.Context(), twice), flow.CodeConflict)
		was := v
		v.Scopes, v.RetentionDays = append(v.Scopes, "more"), 0
		if err := s.UpdateVault(t.Context(), was, v); err != nil {
			t.Fatal(err)
		}
		wantCode(t, "of what it was before", s.UpdateVault(t.Context(), was, v), flow.CodeStale)
		same(t, "updated", must(s.Vault(t.Context(), "ws", v.ID)), v)
		must(s.AppendEvent(t.Context(), flow.VaultAppend{Event: event("evt_1")}))
		wantCode(t, "delete in another workspace", s.DeleteVault(t.Context(), "other", v.ID), flow.CodeNotFound)
		if err := s.DeleteVault(t.Context(), "ws", v.ID); err != nil {
			t.Fatal(err)
		}
		if left := must(s.VaultEvents(t.Context(), flow.EventFilter{Vault: v.ID, Limit: 10})); len(left) != 0 {
			t.Errorf("%d events are left", len(left))
		}
		if left := must(s.Connections(t.Context(), "ws", "")); len(left) != 0 {
			t.Errorf("%d connections are left", len(left))
		}
		_, err = s.AppendEvent(t.Context(), flow.VaultAppend{Event: event("evt_2")})
		wantCode(t, "append to a vault that is gone", err, flow.CodeNotFound)
	})
}

func TestConnectionsAreGrantedAgain(t *testing.T) {
	onEach(t, func(t *testing.T, db Options) {
		s, _, c := vaulted(t, db)
		same(t, "read", must(s.Connection(t.Context(), "ws", c.ID)), c)
		_, err := s.Connect(t.Context(), c)
		wantCode(t, "twice", err, flow.CodeConflict)
		was := c
		c.Scopes, c.Ceiling = []string{"mail"}, 7
		if err := s.UpdateConnection(t.Context(), was, c); err != nil {
			t.Fatal(err)
		}
		wantCode(t, "of what it was before", s.UpdateConnection(t.Context(), was, c), flow.CodeStale)
		later := at().Add(time.Hour)
		for range 2 { // the second changes nothing
			if err := s.RevokeConnection(t.Context(), "ws", c.ID, later); err != nil {
				t.Fatal(err)
			}
			later = later.Add(time.Hour)
		}
		c.RevokedAt = at().Add(time.Hour)
		same(t, "revoked", must(s.Connection(t.Context(), "ws", c.ID)), c)
		wantCode(t, "change a revoked one", s.UpdateConnection(t.Context(), c, c), flow.CodeNotFound)
		again := flow.Connection{ID: "con_2", Workspace: "ws", Vault: c.Vault, Agent: c.Agent, Scopes: []string{"default"}, GrantedBy: "p", CreatedAt: later}
		got := must(s.Connect(t.Context(), again))
		again.ID = c.ID
		same(t, "granted again", got, again)
		same(t, "all", must(s.Connections(t.Context(), "ws", c.Vault)), []flow.Connection{again})
	})
}

func TestAppendNumbersEvents(t *testing.T) {
	onEach(t, func(t *testing.T, db Options) {
		s, v, _ := vaulted(t, db)
		const n = 200
		var wg sync.WaitGroup
		for i := range n {
			wg.Go(func() {
				if _, err := s.AppendEvent(t.Context(), flow.VaultAppend{Event: event(fmt.Sprintf("evt_%d", i))}); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		all := must(s.VaultEvents(t.Context(), flow.EventFilter{Vault: v.ID, Limit: 2 * n}))
		if len(all) != n {
			t.Fatalf("got %d events, want %d", len(all), n)
		}
		for i, e := range all {
			if e.Seq != int64(i+1) {
				t.Fatalf("event %d has the number %d", i, e.Seq)
			}
		}
		if got := must(s.Vault(t.Context(), "ws", v.ID)).Seq; got != n {
			t.Errorf("the vault is at %d, want %d", got, n)
		}
	})
}

func TestAppendOnce(t *testing.T) {
	onEach(t, func(t *testing.T, db Options) {
		s, _, _ := vaulted(t, db)
		first := must(s.AppendEvent(t.Context(), flow.VaultAppend{Event: event("evt_1"), Key: "k", Digest: "d"}))
		again := must(s.AppendEvent(t.Context(), flow.VaultAppend{Event: event("evt_2"), Key: "k", Digest: "d"}))
		if !again.Again || first.Again || again.Events[0].ID != "evt_1" || again.Events[0].Seq != 1 {
			t.Errorf("the same again: %+v", again)
		}
		_, err := s.AppendEvent(t.Context(), flow.VaultAppend{Event: event("evt_3"), Key: "k", Digest: "other"})
		wantCode(t, "another content", err, flow.CodeConflict)
		second := must(s.AppendEvent(t.Context(), flow.VaultAppend{Event: event("evt_4"), Key: "k2", Digest: "d"}))
		if second.Events[0].Seq != 2 {
			t.Errorf("the next event has the number %d, want 2", second.Events[0].Seq)
		}
	})
}

func TestEventsAreFound(t *testing.T) {
	onEach(t, func(t *testing.T, db Options) {
		s, v, _ := vaulted(t, db)
		add := func(e flow.VaultEvent) flow.VaultEvent {
			return must(s.AppendEvent(t.Context(), flow.VaultAppend{Event: e})).Events[0]
		}
		one := add(event("evt_1"))
		child := event("evt_2")
		child.Parents, child.Type, child.Scope, child.Metadata = []string{"evt_1"}, "note", "mail", json.RawMessage(`{"correlation":{"run":"r","step":2}}`)
		two := add(child)
		plain := event("evt_3")
		plain.Metadata = nil
		three := add(plain)
		same(t, "by id", must(s.VaultEvent(t.Context(), "ws", v.ID, "evt_2")), two)
		for name, c := range map[string]struct {
			f    flow.EventFilter
			want []flow.VaultEvent
		}{
			"all":              {flow.EventFilter{}, []flow.VaultEvent{one, two, three}},
			"after":            {flow.EventFilter{After: 1}, []flow.VaultEvent{two, three}},
			"a page":           {flow.EventFilter{Limit: 1}, []flow.VaultEvent{one}},
			"type":             {flow.EventFilter{Type: "note"}, []flow.VaultEvent{two}},
			"scope":            {flow.EventFilter{Scope: "mail"}, []flow.VaultEvent{two}},
			"correlation":      {flow.EventFilter{Correlation: "c1"}, []flow.VaultEvent{one}},
			"correlation JSON": {flow.EventFilter{Correlation: `{"run":"r","step":2}`}, []flow.VaultEvent{two}},
			"parent":           {flow.EventFilter{Parent: "evt_1"}, []flow.VaultEvent{two}},
			"parent and all":   {flow.EventFilter{Parent: "evt_1", Type: "note", Scope: "mail", Correlation: `{"run":"r","step":2}`}, []flow.VaultEvent{two}},
			"none":             {flow.EventFilter{Type: "note", Scope: "default"}, nil},
		} {
			c.f.Vault = v.ID
			if c.f.Limit == 0 {
				c.f.Limit = 10
			}
			same(t, name, must(s.VaultEvents(t.Context(), c.f)), c.want)
		}
		orphan := event("evt_4")
		orphan.Parents = []string{"evt_1", "evt_9"}
		_, err := s.AppendEvent(t.Context(), flow.VaultAppend{Event: orphan})
		wantCode(t, "an unknown parent", err, flow.CodeInvalid)
		if got := must(s.Vault(t.Context(), "ws", v.ID)).Seq; got != 3 {
			t.Errorf("a refused event took the number: the vault is at %d", got)
		}
	})
}

// An owner who let the new id in before the old one was moved keeps that
// connection, and the old one ends.
func TestMoveOntoAConnection(t *testing.T) {
	onEach(t, func(t *testing.T, db Options) {
		s, v, c := vaulted(t, db)
		fresh := must(s.Connect(t.Context(), flow.Connection{ID: "con_2", Workspace: "ws", Vault: v.ID, Agent: "cd:helper", Scopes: []string{"mail"}, GrantedBy: "p", CreatedAt: at()}))
		for range 2 { // a rotation that goes on
			if err := s.MoveConnections(t.Context(), "ws", agentID, "cd:helper", at().Add(time.Hour)); err != nil {
				t.Fatal(err)
			}
		}
		same(t, "the new one", must(s.Connection(t.Context(), "ws", fresh.ID)), fresh)
		if old := must(s.Connection(t.Context(), "ws", c.ID)); old.Agent != agentID || !old.RevokedAt.Equal(at().Add(time.Hour)) {
			t.Errorf("the old one: %+v", old)
		}
	})
}

// TestTargetedEvents: what the rule says of an event is written with it, and
// it is told what holds at that moment.
func TestTargetedEvents(t *testing.T) {
	onEach(t, func(t *testing.T, db Options) {
		s, v, c := vaulted(t, db)
		target := func(id string) flow.VaultEvent { e := event(id); e.Target = agentID; return e }
		var seen flow.Routing
		turn := func(id string, job *flow.Job) func(flow.Routing) flow.Routed {
			return func(r flow.Routing) flow.Routed {
				seen = r
				return flow.Routed{Job: job, Turn: &flow.Turn{ID: id, Workspace: "ws", Job: job.ID, Connection: c.ID, Vault: v.ID, Scope: "default", Agent: agentID,
					EventID: r.Event.ID, Status: flow.TurnQueued, Version: 1, CreatedAt: at()}}
			}
		}
		job := &flow.Job{ID: "job_1", Workspace: "ws", Connection: c.ID, Vault: v.ID, Scope: "default", Key: "talk", Idle: time.Hour, LastAt: at()}
		got := must(s.AppendEvent(t.Context(), flow.VaultAppend{Event: target("evt_1"), Conversation: "talk", Route: turn("turn_1", job)}))
		if seen.Agent == nil || seen.Agent.Manifest.Version != "1.1.0" || seen.Connection == nil || seen.Connection.ID != c.ID || seen.Job != nil || seen.Busy {
			t.Errorf("the first: the rule saw %+v", seen)
		}
		if got.Turn.EventSeq != 1 {
			t.Errorf("the turn is of event %d, want 1", got.Turn.EventSeq)
		}
		must(s.AppendEvent(t.Context(), flow.VaultAppend{Event: target("evt_2"), Conversation: "talk", Route: turn("turn_2", job)}))
		if seen.Job == nil || seen.Job.ID != "job_1" || !seen.Busy {
			t.Errorf("the second: the rule saw %+v", seen)
		}
		must(s.AppendEvent(t.Context(), flow.VaultAppend{Event: target("evt_3"), Conversation: "other", Route: func(r flow.Routing) flow.Routed { seen = r; return flow.Routed{} }}))
		if seen.Job != nil {
			t.Errorf("another conversation: the rule saw %+v", seen)
		}
		same(t, "the first to do", must(s.NextTurn(t.Context(), "job_1")), *got.Turn)
		open := must(s.OpenTurns(t.Context()))
		if len(open) != 1 || open[0].ID != "turn_1" {
			t.Errorf("open: %+v, want the first of each job", open)
		}
		answer := event("evt_4")
		refused := must(s.AppendEvent(t.Context(), flow.VaultAppend{Event: target("evt_5"), Route: func(flow.Routing) flow.Routed { return flow.Routed{Answer: &answer} }}))
		if len(refused.Events) != 2 || refused.Events[0].Seq != 4 || refused.Events[1].Seq != 5 || refused.Turn != nil {
			t.Errorf("answered at once: %+v", refused)
		}
	})
}

func TestWriteTurn(t *testing.T) {
	onEach(t, func(t *testing.T, db Options) {
		s, v, c := vaulted(t, db)
		job := flow.Job{ID: "job_1", Workspace: "ws", Connection: c.ID, Vault: v.ID, Scope: "default", Idle: time.Hour, LastAt: at()}
		e := event("evt_1")
		e.Target = agentID
		turn := flow.Turn{ID: "turn_1", Workspace: "ws", Job: job.ID, Connection: c.ID, Vault: v.ID, Scope: "default", Agent: agentID, EventID: e.ID, Status: flow.TurnQueued, Version: 1, CreatedAt: at()}
		must(s.AppendEvent(t.Context(), flow.VaultAppend{Event: e, Route: func(flow.Routing) flow.Routed { return flow.Routed{Job: &job, Turn: &turn} }}))
		turn.Version, turn.Status, turn.NextAt = 2, flow.TurnWaiting, at().Add(time.Second)
		turn.Progress = flow.TurnProgress{Try: 1, MessageID: "m", TaskID: "t", Route: json.RawMessage(`{"url":"u"}`), Deadline: at().Add(flow.TurnTimeout), Poll: time.Second}
		if _, err := s.WriteTurn(t.Context(), flow.TurnWrite{Turn: turn}); err != nil {
			t.Fatal(err)
		}
		same(t, "waiting", must(s.NextTurn(t.Context(), job.ID)), turn)
		stale := turn
		_, err := s.WriteTurn(t.Context(), flow.TurnWrite{Turn: stale, Events: []flow.VaultEvent{event("evt_2")}, Spent: 5})
		wantCode(t, "of an older version", err, flow.CodeStale)
		turn.Version, turn.Status, turn.NextAt, turn.FinishedAt = 3, flow.TurnDone, time.Time{}, at().Add(time.Minute)
		job.ContextID, job.LastAt = "ctx", turn.FinishedAt
		events, err := s.WriteTurn(t.Context(), flow.TurnWrite{Turn: turn, Job: &job, Events: []flow.VaultEvent{event("evt_3")}, Spent: 81,
			Close: func(c flow.Connection) ([]flow.VaultEvent, bool) {
				if c.Spent != 81 || c.Ceiling != 100 {
					t.Errorf("the connection when the turn ends: %+v", c)
				}
				return []flow.VaultEvent{event("evt_4")}, true
			}})
		if err != nil || len(events) != 2 || events[0].Seq != 2 || events[1].Seq != 3 {
			t.Fatalf("done: %+v, %v", events, err)
		}
		same(t, "turn", must(s.Turns(t.Context(), "ws", job.ID, 10)), []flow.Turn{turn})
		same(t, "job", must(s.Job(t.Context(), "ws", job.ID)), job)
		same(t, "jobs", must(s.Jobs(t.Context(), "ws", v.ID, "", 10)), []flow.Job{job})
		if got := must(s.Connection(t.Context(), "ws", c.ID)); got.Spent != 81 || !got.Warned {
			t.Errorf("spent: %+v", got)
		}
		if _, err := s.NextTurn(t.Context(), job.ID); flow.CodeOf(err) != flow.CodeNotFound {
			t.Errorf("nothing to do: %v", err)
		}
		raised := c
		raised.Ceiling = 500
		if err := s.UpdateConnection(t.Context(), c, raised); err != nil {
			t.Fatal(err)
		}
		if got := must(s.Connection(t.Context(), "ws", c.ID)); got.Warned || got.Spent != 81 {
			t.Errorf("a ceiling that was raised: %+v", got)
		}
	})
}

// Lists read what is asked for, not the vault: the plan names the index.
func TestListsOfEventsUseIndexes(t *testing.T) {
	t.Parallel()
	s := open(t, Options{Path: filepath.Join(t.TempDir(), "t.db")})
	for index, f := range map[string]flow.EventFilter{
		"e USING INDEX vault_events_by_correlation": {Correlation: "c"},
		"e USING INDEX vault_events_by_scope":       {Scope: "mail"},
		"e USING INDEX vault_events_by_type":        {Type: "note"},
		"p USING COVERING INDEX":                    {Parent: "evt_1"},
		"p USING COVERING INDEX ":                   {Parent: "evt_1", Type: flow.EventAgentAnswered, Correlation: "c"},
	} {
		f.Vault, f.Limit = "vault_1", 10
		q, args := eventsQuery(f)
		rs, err := s.db.query(t.Context(), "EXPLAIN QUERY PLAN "+q, args...)
		plan, err := collect(rs, err, func(r row) (string, error) {
			var id, parent, unused int64
			var detail string
			err := r.Scan(&id, &parent, &unused, &detail)
			return detail, err
		})
		if err != nil || len(plan) == 0 || !strings.Contains(plan[0], strings.TrimSpace(index)) {
			t.Errorf("%+v: plan %q, %v; want %s first", f, plan, err, index)
		}
	}
}

// What is stored of one turn does not keep the others from going on.
func TestADamagedTurn(t *testing.T) {
	onEach(t, func(t *testing.T, db Options) {
		s, v, c := vaulted(t, db)
		for i := range 2 {
			e := event(fmt.Sprintf("evt_%d", i))
			e.Target = agentID
			job := flow.Job{ID: fmt.Sprintf("job_%d", i), Workspace: "ws", Connection: c.ID, Vault: v.ID, Scope: "default", Key: e.ID, Idle: time.Hour, LastAt: at()}
			turn := flow.Turn{ID: fmt.Sprintf("turn_%d", i), Workspace: "ws", Job: job.ID, Connection: c.ID, Vault: v.ID, Scope: "default", Agent: agentID, EventID: e.ID,
				Status: flow.TurnWaiting, Version: 1, CreatedAt: at()}
			must(s.AppendEvent(t.Context(), flow.VaultAppend{Event: e, Conversation: e.ID, Route: func(flow.Routing) flow.Routed { return flow.Routed{Job: &job, Turn: &turn} }}))
		}
		if err := s.write(t.Context(), func(ctx context.Context, x tx) error {
			return x.send(ctx, nil, `UPDATE turns SET progress = $1 WHERE id = $2`, `{"try":`, "turn_1")
		}); err != nil {
			t.Fatal(err)
		}
		open := must(s.OpenTurns(t.Context()))
		if len(open) != 2 || open[0].Status != flow.TurnWaiting || open[1].Status != flow.TurnSending || open[1].Progress.Try != flow.TurnTries {
			t.Errorf("open: %+v, want the second as one whose tries are over", open)
		}
	})
}

// A correlation is found whatever its length: an index has a bound of its own.
func TestLongCorrelations(t *testing.T) {
	onEach(t, func(t *testing.T, db Options) {
		s, v, _ := vaulted(t, db)
		long := make([]string, 3)
		for i := range long {
			raw := make([]byte, 20_000)
			if _, err := rand.Read(raw); err != nil { // what an index cannot press together
				t.Fatal(err)
			}
			long[i] = base64.StdEncoding.EncodeToString(raw)
			e := event(fmt.Sprintf("evt_%d", i))
			e.Metadata = fmt.Appendf(nil, `{"correlation":%q}`, long[i])
			must(s.AppendEvent(t.Context(), flow.VaultAppend{Event: e}))
		}
		got := must(s.VaultEvents(t.Context(), flow.EventFilter{Vault: v.ID, Correlation: long[1], Limit: 10}))
		if len(got) != 1 || got[0].ID != "evt_1" {
			t.Errorf("got %+v, want the second", got)
		}
	})
}

// What an agent reports is its own word: however much it is, the count stays a
// count, the turn ends, and the connection can be read and revoked.
func TestUsageOfNoEnd(t *testing.T) {
	onEach(t, func(t *testing.T, db Options) {
		s, v, c := vaulted(t, db)
		job := flow.Job{ID: "job_1", Workspace: "ws", Connection: c.ID, Vault: v.ID, Scope: "default", Idle: time.Hour, LastAt: at()}
		e := event("evt_1")
		e.Target = agentID
		turn := flow.Turn{ID: "turn_1", Workspace: "ws", Job: job.ID, Connection: c.ID, Vault: v.ID, Scope: "default", Agent: agentID, EventID: e.ID, Status: flow.TurnQueued, Version: 1, CreatedAt: at()}
		must(s.AppendEvent(t.Context(), flow.VaultAppend{Event: e, Route: func(flow.Routing) flow.Routed { return flow.Routed{Job: &job, Turn: &turn} }}))
		spent := int64(0)
		for i, more := range []int64{7, math.MaxInt64 - 8, 1, 1, math.MaxInt64} {
			if turn.Version++; spent > math.MaxInt64-more {
				spent = math.MaxInt64
			} else {
				spent += more
			}
			told := int64(-1)
			_, err := s.WriteTurn(t.Context(), flow.TurnWrite{Turn: turn, Spent: more, Close: func(c flow.Connection) ([]flow.VaultEvent, bool) {
				told = c.Spent
				return nil, false
			}})
			if err != nil {
				t.Fatalf("write %d: %v", i, err)
			}
			if got := must(s.Connection(t.Context(), "ws", c.ID)); got.Spent != spent || told != spent {
				t.Errorf("write %d: spent %d, told %d, want %d", i, got.Spent, told, spent)
			}
		}
	})
}

func TestAgentsServicesAndBuckets(t *testing.T) {
	onEach(t, func(t *testing.T, db Options) {
		s, _, _ := vaulted(t, db)
		versions := must(s.AgentVersions(t.Context(), "ws", agentID))
		if len(versions) != 2 || must(s.Agent(t.Context(), "ws", agentID)).Manifest.Version != "1.1.0" || len(must(s.Agents(t.Context(), "ws"))) != 1 {
			t.Errorf("versions: %+v", versions)
		}
		if err := s.DeleteAgent(t.Context(), "ws", agentID); err != nil {
			t.Fatal(err)
		}
		_, err := s.Agent(t.Context(), "ws", agentID)
		wantCode(t, "a removed agent", err, flow.CodeNotFound)
		for i, key := range []string{"aa", "bb"} {
			v := flow.AgentService{PublicKey: key, Workspace: "ws", Name: key, Sealed: []byte{1, 0, 2}, Bucket: "b", Default: true, CreatedAt: at().Add(time.Duration(i) * time.Second)}
			if err := s.CreateService(t.Context(), v); err != nil {
				t.Fatal(err)
			}
			wantCode(t, "the same key", s.CreateService(t.Context(), v), flow.CodeConflict)
			b := flow.Bucket{ID: "b" + key, Workspace: "ws", URL: "file:///x", Default: true, CreatedAt: at().Add(time.Duration(i) * time.Second)}
			if err := s.PutBucket(t.Context(), b); err != nil {
				t.Fatal(err)
			}
			b.Workspace = "other"
			wantCode(t, "a bucket of another workspace", s.PutBucket(t.Context(), b), flow.CodeConflict)
		}
		services, buckets := must(s.Services(t.Context(), "ws")), must(s.Buckets(t.Context(), "ws"))
		if len(services) != 2 || services[0].Default || !services[1].Default || string(services[1].Sealed) != "\x01\x00\x02" {
			t.Errorf("services: %+v", services)
		}
		if len(buckets) != 2 || buckets[0].Default || !buckets[1].Default {
			t.Errorf("buckets: %+v", buckets)
		}
		_, err = s.Service(t.Context(), "other", "aa")
		wantCode(t, "another workspace's service", err, flow.CodeNotFound)
	})
}
