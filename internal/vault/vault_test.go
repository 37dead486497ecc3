package vault_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/flow/flowtest"
	"github.com/longstop-dev/longstop/internal/ident"
	"github.com/longstop-dev/longstop/internal/store"
	"github.com/longstop-dev/longstop/internal/vault"
)

const agentID = "abababababababababababababababababababababababababababababababab:helper"

// bed is a service over a real store, in a workspace with two people, Ada who
// owns the vault notes, and Bob.
type bed struct {
	t        *testing.T
	clock    *flowtest.Clock
	store    *store.Store
	s        *vault.Service
	ada, bob flow.Caller

	mu      sync.Mutex
	turns   []flow.Turn
	events  []flow.VaultEvent
	revoked []string
}

func (b *bed) Turn(t flow.Turn) { b.mu.Lock(); defer b.mu.Unlock(); b.turns = append(b.turns, t) }
func (b *bed) Appended(e []flow.VaultEvent) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.events = append(b.events, e...)
}

func (b *bed) Revoked(id string) { b.mu.Lock(); defer b.mu.Unlock(); b.revoked = append(b.revoked, id) }

func newBed(t *testing.T) *bed {
	t.Helper()
	b := &bed{t: t, clock: flowtest.NewClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))}
	var err error
	if b.store, err = store.Open(t.Context(), store.Options{Path: filepath.Join(t.TempDir(), "t.db")}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.store.Close() })
	if _, err := b.store.Found(t.Context(), flow.Workspace{ID: "ws", Name: "w"}, flow.Person{ID: "ada", Name: "Ada", PublicKey: []byte{0xad, 0xa0}},
		flow.Key{ID: "key", Workspace: "ws", Person: "ada", Role: flow.RoleOwner, Hash: []byte{1}}); err != nil {
		t.Fatal(err)
	}
	b.s = vault.New(vault.Config{Vaults: b.store, Events: b.store, Connections: b.store, Jobs: b.store, Agents: b.store, People: b.store, Clock: b.clock, NewID: ident.New}, b)
	b.ada, b.bob = flow.Caller{Workspace: "ws", Person: "ada", Role: flow.RoleOwner}, flow.Caller{Workspace: "ws", Person: "bob", Role: flow.RoleOwner}
	in := &vault.CreateIn{}
	in.Body.Name, in.Body.Scopes = "notes", []string{"mail", "mail"}
	v := must(b.s.Create(t.Context(), b.ada, in))
	if strings.Join(v.Scopes, " ") != "default mail" || v.Owner != "ada" {
		t.Errorf("created: %+v", v)
	}
	return b
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// agent registers the agent.
func (b *bed) agent(scopes ...string) {
	b.t.Helper()
	err := b.store.PutAgent(b.t.Context(), flow.Agent{ID: agentID, Workspace: "ws", Manifest: flow.Manifest{Kind: flow.KindExternal, Alias: "helper", AgentID: agentID,
		Version: "1.0.0", Scopes: scopes, IdleTimeout: 600}}, slices.Max[[]string])
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *bed) connect(scopes ...string) *vault.ConnectionView {
	b.t.Helper()
	in := &vault.ConnectIn{ID: "notes"}
	in.Body.Agent, in.Body.Scopes = agentID, scopes
	return must(b.s.Connect(b.t.Context(), b.ada, in))
}

func (b *bed) append(e vault.NewEvent) *flow.VaultEvent {
	b.t.Helper()
	return must(b.s.Append(b.t.Context(), b.ada, &vault.AppendIn{ID: "notes", Body: e}))
}

// ask appends an event that asks the agent.
func (b *bed) ask(metadata string) *flow.VaultEvent {
	b.t.Helper()
	return b.append(vault.NewEvent{Type: "question.asked", Target: agentID, Payload: json.RawMessage(`{"text":"hi"}`), Metadata: json.RawMessage(metadata)})
}

func wantCode(t *testing.T, what string, err error, want flow.Code, parts ...string) {
	t.Helper()
	if got := flow.CodeOf(err); got != want {
		t.Errorf("%s: got %q (%v), want %q", what, got, err, want)
		return
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			t.Errorf("%s: %v does not say %q", what, err, p)
		}
	}
}

func TestOnlyTheOwner(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.agent("default")
	ctx := t.Context()
	in := &vault.ConnectIn{ID: "notes"}
	in.Body.Agent = agentID
	_, err := b.s.Connect(ctx, b.bob, in)
	wantCode(t, "connect", err, flow.CodeForbidden, "belongs to somebody else")
	c := b.connect()
	_, err = b.s.UpdateConnection(ctx, b.bob, &vault.UpdateConnectionIn{ID: c.ID})
	wantCode(t, "change", err, flow.CodeForbidden)
	_, err = b.s.RevokeConnection(ctx, b.bob, &vault.ConnectionIn{ID: c.ID})
	wantCode(t, "revoke", err, flow.CodeForbidden)
	_, err = b.s.Update(ctx, b.bob, &vault.UpdateIn{ID: "notes"})
	wantCode(t, "update", err, flow.CodeForbidden)
	_, err = b.s.Delete(ctx, b.bob, &vault.In{ID: "notes"})
	wantCode(t, "delete", err, flow.CodeForbidden)
	stranger := flow.Caller{Workspace: "other", Person: "ada"}
	_, err = b.s.Get(ctx, stranger, &vault.In{ID: "notes"})
	wantCode(t, "another workspace", err, flow.CodeNotFound)
	_, err = b.s.GetConnection(ctx, stranger, &vault.ConnectionIn{ID: c.ID})
	wantCode(t, "another workspace's connection", err, flow.CodeNotFound)
	must(b.s.Delete(ctx, b.ada, &vault.In{ID: "notes"}))
	_, err = b.s.Get(ctx, b.ada, &vault.In{ID: "notes"})
	wantCode(t, "after the end", err, flow.CodeNotFound)
}

func TestEventsThatAreRefused(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	ok := func() vault.NewEvent {
		return vault.NewEvent{Type: "note", Payload: json.RawMessage(`{"a":1}`)}
	}
	for name, c := range map[string]struct {
		change func(*vault.NewEvent)
		code   flow.Code
		want   string
	}{
		"no type":          {func(e *vault.NewEvent) { e.Type = "" }, flow.CodeInvalid, "type"},
		"a type of ours":   {func(e *vault.NewEvent) { e.Type = "agent.answered" }, flow.CodeInvalid, "published for agents only"},
		"progress":         {func(e *vault.NewEvent) { e.Type = "agent.progress" }, flow.CodeInvalid, "published for agents only"},
		"a warning":        {func(e *vault.NewEvent) { e.Type = "agent.ceiling_warning" }, flow.CodeInvalid, "published for agents only"},
		"a long type":      {func(e *vault.NewEvent) { e.Type = strings.Repeat("x", 201) }, flow.CodeInvalid, "type"},
		"spaces in a type": {func(e *vault.NewEvent) { e.Type = "a b" }, flow.CodeInvalid, "type"},
		"no such scope":    {func(e *vault.NewEvent) { e.Scope = "nope" }, flow.CodeInvalid, "one of default, mail"},
		"a list":           {func(e *vault.NewEvent) { e.Payload = json.RawMessage(`[1]`) }, flow.CodeInvalid, "payload"},
		"no JSON":          {func(e *vault.NewEvent) { e.Payload = json.RawMessage(`{`) }, flow.CodeInvalid, "payload"},
		"too deep": {func(e *vault.NewEvent) {
			e.Payload = json.RawMessage(`{"a":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `}`)
		}, flow.CodeInvalid, "levels"},
		"too large":     {func(e *vault.NewEvent) { e.Payload = json.RawMessage(`{"a":"` + strings.Repeat("x", 2<<20) + `"}`) }, flow.CodeTooLarge, "payload"},
		"no agent's id": {func(e *vault.NewEvent) { e.Target = "helper" }, flow.CodeInvalid, "<pubkey>:<alias>"},
		"a short key":   {func(e *vault.NewEvent) { e.Target = agentID[2:] }, flow.CodeInvalid, "<pubkey>:<alias>"},
		"many parents":  {func(e *vault.NewEvent) { e.Parents = slices.Repeat([]string{"evt_x"}, 65) }, flow.CodeInvalid, "at most 64"},
		"a long name": {func(e *vault.NewEvent) {
			e.Metadata = json.RawMessage(`{"conversation":"` + strings.Repeat("x", 201) + `"}`)
		}, flow.CodeInvalid, "metadata.conversation"},
		"nothing to ask":  {func(e *vault.NewEvent) { e.Target, e.Payload = agentID, nil }, flow.CodeInvalid, "asked nothing"},
		"an odd metadata": {func(e *vault.NewEvent) { e.Metadata = json.RawMessage(`{"conversation":7}`) }, flow.CodeInvalid, "metadata.conversation"},
		"a stranger":      {func(e *vault.NewEvent) { e.Parents = []string{"evt_x"} }, flow.CodeInvalid, "evt_x"},
	} {
		e := ok()
		c.change(&e)
		_, err := b.s.Append(t.Context(), b.ada, &vault.AppendIn{ID: "notes", Body: e})
		wantCode(t, name, err, c.code, c.want)
	}
	in := &vault.AppendIn{ID: "notes", Body: ok()}
	in.Key = vault.StepKeys + "run_1/0//a1"
	_, err := b.s.Append(t.Context(), b.ada, in)
	wantCode(t, "a step's key", err, flow.CodeInvalid, "Idempotency-Key")
	if got := must(b.s.Get(t.Context(), b.ada, &vault.In{ID: "notes"})).Seq; got != 0 || len(b.events) != 0 {
		t.Errorf("refused events were written: seq %d, %d heard of", got, len(b.events))
	}
}

func TestWhoIsBehindAnEvent(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	if e := b.append(vault.NewEvent{Type: "note"}); e.OnBehalfOf != "ada0" || e.Author != (flow.EventAuthor{Kind: flow.AuthorPerson, ID: "ada"}) || e.Scope != "default" {
		t.Errorf("a person's event: %+v", e)
	}
	e := must(b.s.Publish(t.Context(), "ws", "notes", vault.NewEvent{Type: "note"}, flow.EventAuthor{Kind: flow.AuthorSchedule, ID: "s"}, "", ""))
	if e.OnBehalfOf != "" {
		t.Errorf("a schedule's event is on behalf of %q", e.OnBehalfOf)
	}
}

func TestAppendOnce(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.agent("default")
	b.connect()
	in := &vault.AppendIn{ID: "notes", Key: "k", Body: vault.NewEvent{Type: "question.asked", Target: agentID, Payload: json.RawMessage(`{"text":"hi"}`)}}
	first := must(b.s.Append(t.Context(), b.ada, in))
	in.Body.Payload = json.RawMessage(`{ "text": "hi" }`) // the same, written otherwise
	again := must(b.s.Append(t.Context(), b.ada, in))
	if again.ID != first.ID || len(b.turns) != 1 || len(b.events) != 1 {
		t.Errorf("again: %s after %s, %d turns, %d events", again.ID, first.ID, len(b.turns), len(b.events))
	}
	in.Body.Payload = json.RawMessage(`{"text":"other"}`)
	_, err := b.s.Append(t.Context(), b.ada, in)
	wantCode(t, "another content", err, flow.CodeConflict)
}

// answered gives the answer to an event, as its payload.
func (b *bed) answered(e *flow.VaultEvent) (payload map[string]any, metadata string) {
	b.t.Helper()
	list := must(b.s.ListEvents(b.t.Context(), b.ada, &vault.EventsIn{ID: "notes", Parent: e.ID}))
	if len(list.Items) != 1 || list.Items[0].Type != "agent.answered" {
		b.t.Fatalf("answers: %+v", list.Items)
	}
	if err := json.Unmarshal(list.Items[0].Payload, &payload); err != nil {
		b.t.Fatal(err)
	}
	return payload, string(list.Items[0].Metadata)
}

func TestAgentsWithoutAccess(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		set  func(*bed)
		want string
	}{
		"not registered": {func(*bed) {}, "not registered"},
		"not connected":  {func(b *bed) { b.agent("default") }, "not connected"},
		"another scope":  {func(b *bed) { b.agent("default"); b.connect("mail") }, "does not grant the scope default"},
		"revoked": {func(b *bed) {
			b.agent("default")
			must(b.s.RevokeConnection(b.t.Context(), b.ada, &vault.ConnectionIn{ID: b.connect().ID}))
		}, "revoked"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t)
			c.set(b)
			e := b.ask(`{"correlation":{"n":9007199254740993},"conversation":"x"}`)
			payload, metadata := b.answered(e)
			if payload["code"] != "not_connected" || payload["agentId"] != agentID || payload["agent"] != "helper" || !strings.Contains(payload["error"].(string), c.want) {
				t.Errorf("answer: %v", payload)
			}
			if metadata != `{"correlation":{"n":9007199254740993}}` {
				t.Errorf("metadata: %s, want the correlation unchanged", metadata)
			}
			if len(b.turns) != 0 || len(b.events) != 2 {
				t.Errorf("%d turns, %d events heard of; want 0 and 2", len(b.turns), len(b.events))
			}
		})
	}
}

func TestJobs(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.agent("default")
	b.connect()
	b.append(vault.NewEvent{Type: "note", Payload: json.RawMessage(`{"text":"for nobody"}`)})
	if len(b.turns) != 0 {
		t.Fatal("an event without a target began a turn")
	}
	b.ask("")
	b.ask("")
	b.ask(`{"conversation":"other"}`)
	if b.turns[0].Job != b.turns[1].Job || b.turns[0].Job == b.turns[2].Job {
		t.Errorf("jobs: %s %s %s, want one for each conversation", b.turns[0].Job, b.turns[1].Job, b.turns[2].Job)
	}
	b.clock.Advance(20 * time.Minute) // a turn is not done: its Job's idle clock stands still
	b.ask("")
	if b.turns[3].Job != b.turns[0].Job {
		t.Error("a Job with a turn under way was ended")
	}
	for i, turn := range b.turns {
		turn.Version, turn.Status, turn.FinishedAt = 2, flow.TurnDone, b.clock.Now()
		if _, err := b.store.WriteTurn(t.Context(), flow.TurnWrite{Turn: turn}); err != nil {
			t.Fatalf("turn %d: %v", i, err)
		}
	}
	b.clock.Advance(9 * time.Minute)
	b.ask("")
	if b.turns[4].Job != b.turns[0].Job {
		t.Error("a Job ended before its idle timeout of 10 minutes")
	}
	done := b.turns[4]
	done.Version, done.Status = 2, flow.TurnDone
	if _, err := b.store.WriteTurn(t.Context(), flow.TurnWrite{Turn: done}); err != nil {
		t.Fatal(err)
	}
	b.clock.Advance(10 * time.Minute)
	b.ask("")
	if b.turns[5].Job == b.turns[0].Job {
		t.Error("a Job outlived its idle timeout")
	}
	old := must(b.store.Job(t.Context(), "ws", b.turns[0].Job))
	if old.EndedAt.IsZero() {
		t.Error("the Job that was silent has no end")
	}
}

// TestPagesOfJobs: each Job is on one page.
func TestPagesOfJobs(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.agent("default")
	b.connect()
	want := map[string]bool{}
	for _, name := range []string{"a", "b", "c"} {
		b.ask(`{"conversation":"` + name + `"}`)
		want[b.turns[len(b.turns)-1].Job] = true
	}
	in := &vault.JobsIn{ID: "notes", Limit: 1}
	for range 3 {
		l := must(b.s.ListJobs(t.Context(), b.ada, in))
		if len(l.Items) != 1 || !want[l.Items[0].ID] {
			t.Fatalf("a page after %q: %+v, want one Job that was not on another", in.Before, l.Items)
		}
		delete(want, l.Items[0].ID)
		in.Before = l.Next
	}
	if in.Before != "" {
		t.Errorf("the last page goes on after %s", in.Before)
	}
}

// TestTooManyScopes: a vault has at most 100.
func TestTooManyScopes(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	in := &vault.UpdateIn{ID: "notes"}
	for i := range 98 { // beside default and mail
		in.Body.AddScopes = append(in.Body.AddScopes, fmt.Sprint("s", i))
	}
	must(b.s.Update(t.Context(), b.ada, in))
	in.Body.AddScopes = []string{"more"}
	_, err := b.s.Update(t.Context(), b.ada, in)
	wantCode(t, "one more", err, flow.CodeInvalid, "at most 100")
}

func TestConnectionGrants(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.agent("mail", "unknown")
	c := b.connect()
	if strings.Join(c.Scopes, " ") != "mail" {
		t.Errorf("granted %v, want what the agent asks for and the vault has", c.Scopes)
	}
	in := &vault.UpdateConnectionIn{ID: c.ID}
	in.Body.Scopes = []string{"nope"}
	_, err := b.s.UpdateConnection(t.Context(), b.ada, in)
	wantCode(t, "a scope that is not there", err, flow.CodeInvalid, "one of default, mail")
	in.Body.Scopes, in.Body.Ceilings = []string{"default"}, &vault.Ceilings{A2ATokens: 500}
	got := must(b.s.UpdateConnection(t.Context(), b.ada, in))
	if got.Ceilings.A2ATokens != 500 || strings.Join(got.Scopes, " ") != "default" {
		t.Errorf("changed: %+v", got)
	}
	in.Body.Ceilings.A2ATokens = -1
	_, err = b.s.UpdateConnection(t.Context(), b.ada, in)
	wantCode(t, "a ceiling below nothing", err, flow.CodeInvalid, "a2aTokens")
	must(b.s.RevokeConnection(t.Context(), b.ada, &vault.ConnectionIn{ID: c.ID}))
	if !slices.Equal(b.revoked, []string{c.ID}) {
		t.Errorf("heard of the end of %v, want %s", b.revoked, c.ID)
	}
	again := &vault.ConnectIn{ID: "notes"}
	again.Body.Agent, again.Body.Ceilings.A2ATokens = agentID, -1
	_, err = b.s.Connect(t.Context(), b.ada, again)
	wantCode(t, "a new connection's", err, flow.CodeInvalid, "a2aTokens")
}

// TestTwoChangesAtOnce: neither takes the other back.
func TestTwoChangesAtOnce(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.agent("mail")
	c := b.connect()
	var wg sync.WaitGroup
	for i := range 6 {
		wg.Go(func() {
			in := &vault.UpdateIn{ID: "notes"}
			in.Body.AddScopes = []string{fmt.Sprintf("more%d", i)}
			if _, err := b.s.Update(context.Background(), b.ada, in); err != nil {
				t.Error(err)
			}
		})
	}
	for _, change := range []func(*vault.UpdateConnectionIn){
		func(in *vault.UpdateConnectionIn) { in.Body.Scopes = []string{"default"} },
		func(in *vault.UpdateConnectionIn) { in.Body.Ceilings = &vault.Ceilings{A2ATokens: 9} },
	} {
		wg.Go(func() {
			in := &vault.UpdateConnectionIn{ID: c.ID}
			change(in)
			if _, err := b.s.UpdateConnection(context.Background(), b.ada, in); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if got := must(b.s.Get(t.Context(), b.ada, &vault.In{ID: "notes"})); len(got.Scopes) != 8 {
		t.Errorf("scopes: %v, want default, mail and six more", got.Scopes)
	}
	if got := must(b.s.GetConnection(t.Context(), b.ada, &vault.ConnectionIn{ID: c.ID})); got.Ceilings.A2ATokens != 9 || len(got.Scopes) != 1 || got.Scopes[0] != "default" {
		t.Errorf("connection: %+v", got)
	}
}

// TestPagesOfLargeEvents: a page is bounded in bytes, too, and goes on; what is
// in it is as long as what was sent.
func TestPagesOfLargeEvents(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	payload := `{"a":"` + strings.Repeat("<", 1<<20-100) + `"}`
	for range 20 {
		b.append(vault.NewEvent{Type: "x", Payload: json.RawMessage(payload)})
	}
	in, pages, seq := &vault.EventsIn{ID: "notes", Limit: 1000}, 0, int64(0)
	for {
		l := must(b.s.ListEvents(t.Context(), b.ada, in))
		pages++
		size := 0
		for _, e := range l.Items {
			if seq++; e.Seq != seq || string(e.Payload) != payload {
				t.Fatalf("event %d of %d bytes, want %d of %d", e.Seq, len(e.Payload), seq, len(payload))
			}
			size += len(e.Payload)
		}
		if size > flow.MaxEventPage+len(payload) {
			t.Errorf("a page of %d bytes", size)
		}
		if l.Next == "" {
			break
		}
		in.After = seq
	}
	if seq != 20 || pages < 3 {
		t.Errorf("%d events in %d pages", seq, pages)
	}
}

func TestWatch(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	v := must(b.s.Get(t.Context(), b.ada, &vault.In{ID: "notes"}))
	grown, stop := b.s.Watch(v.ID)
	b.append(vault.NewEvent{Type: "note"})
	b.append(vault.NewEvent{Type: "note"})
	<-grown // several may be one
	stop()
	b.append(vault.NewEvent{Type: "note"})
	select {
	case <-grown:
		t.Error("a watcher that has gone is told")
	default:
	}
	page := must(b.s.ListEvents(t.Context(), b.ada, &vault.EventsIn{ID: "notes", Limit: 2}))
	if len(page.Items) != 2 || page.Next != "2" {
		t.Errorf("page: %d items, next %q", len(page.Items), page.Next)
	}
}

// TestPayloadsThatReadersUnderstandDifferently are refused with the reason.
func TestPayloadsThatReadersUnderstandDifferently(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	for payload, why := range map[string]string{
		`{"a":1,"a":2}`:               "twice",
		`{"x":[{"b":1,"c":2,"b":3}]}`: "twice",
		`{"a":"\ud800"}`:              "surrogate",
		`{"a":"\udc00"}`:              "second half of a surrogate",
		`{"a":"\udc00\ud800"}`:        "surrogate",
		`{"a":"\ud800\u0041"}`:        "surrogate",
		`{"\u0000":1}`:                "null character",
		`{"a":1e999999}`:              "number",
		`{"a":-1e400}`:                "number",
		"{\"a\":\"\xff\"}":            "UTF-8",
	} {
		_, err := b.s.Append(t.Context(), b.ada, &vault.AppendIn{ID: "notes", Body: vault.NewEvent{Type: "note", Payload: json.RawMessage(payload)}})
		wantCode(t, payload, err, flow.CodeInvalid, why)
		_, err = b.s.Append(t.Context(), b.ada, &vault.AppendIn{ID: "notes", Body: vault.NewEvent{Type: "note", Metadata: json.RawMessage(payload)}})
		wantCode(t, payload+" as metadata", err, flow.CodeInvalid, why)
	}
	for _, payload := range []string{`{"a":"\ud83d\ude00 \\u0000","b":[1e308,-0,{}],"c":{"a":1}}`, `{}`} {
		b.append(vault.NewEvent{Type: "note", Payload: json.RawMessage(payload)})
	}
}

// TestTheSameEventInAnotherOrder is the same to its idempotency key.
func TestTheSameEventInAnotherOrder(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	send := func(payload string) (*flow.VaultEvent, error) {
		return b.s.Append(t.Context(), b.ada, &vault.AppendIn{ID: "notes", Key: "k", Body: vault.NewEvent{Type: "note", Payload: json.RawMessage(payload)}})
	}
	one := must(send(`{"a":1,"b":{"c":2,"d":3}}`))
	two, err := send(`{ "b": {"d":3,"c":2}, "a":1 }`)
	if err != nil || two.ID != one.ID {
		t.Errorf("got %+v, %v; want the same event", two, err)
	}
	_, err = send(`{"a":1,"b":{"c":2,"d":4}}`)
	wantCode(t, "another content", err, flow.CodeConflict)
}
