package turn_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/longstop-dev/longstop/internal/a2a"
	"github.com/longstop-dev/longstop/internal/agent/token"
	"github.com/longstop-dev/longstop/internal/agent/turn"
	"github.com/longstop-dev/longstop/internal/egress"
	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/flow/flowtest"
	"github.com/longstop-dev/longstop/internal/ident"
	"github.com/longstop-dev/longstop/internal/secret"
	"github.com/longstop-dev/longstop/internal/store"
	"github.com/longstop-dev/longstop/internal/vault"
)

const (
	service = "abababababababababababababababababababababababababababababababab"
	agentID = service + ":helper"
	adaKey  = "ada0"
)

// bed is a driver over a real store and a real vault, with a clock that the
// test moves.
type bed struct {
	masker *secret.Masker
	t      *testing.T
	clock  *flowtest.Clock
	db     store.Options
	store  *store.Store
	vault  *vault.Service
	d      *turn.Driver
	con    string
	ada    flow.Caller
	log    *logged
	mints  mints
	wrap   func(turn.Store) turn.Store
	guard  egress.Policy

	moved chan struct{}
}

// logged keeps what is logged.
type logged struct {
	mu sync.Mutex
	strings.Builder
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Builder.Write(b)
}

// mints makes tokens that say what they are for.
type mints func(token.Claims) (string, error)

func (m mints) Token(_ context.Context, c token.Claims) (string, error) { return m(c) }

// wires reads cards with the wire's client.
type wires struct{ *a2a.Client }

func (w wires) Send(ctx context.Context, _ string, t a2a.Target, o a2a.Out) (*a2a.Answer, a2a.Route, error) {
	return w.Client.Send(ctx, t, o)
}

func (w wires) GetTask(ctx context.Context, _ string, t a2a.Target, r a2a.Route, id string) (*a2a.Answer, error) {
	return w.Client.GetTask(ctx, t, r, id)
}

func (w wires) CancelTask(ctx context.Context, _ string, t a2a.Target, r a2a.Route, id string) (*a2a.Answer, error) {
	return w.Client.CancelTask(ctx, t, r, id)
}

func (w wires) Card(ctx context.Context, _, url string) (*a2a.Card, error) {
	return w.FetchCard(ctx, url)
}

// Masker knows what is a secret now.
func (b *bed) Masker(context.Context, string) (*secret.Masker, error) { return b.masker, nil }

// newBed makes a bed whose agent has its card at a URL.
func newBed(t *testing.T, card string, change ...func(*bed)) *bed {
	t.Helper()
	b := &bed{t: t, clock: flowtest.NewClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)), log: &logged{}, moved: make(chan struct{}, 1),
		db:    emptyDatabase(t),
		guard: egress.Policy{AllowPrivate: true},
		ada:   flow.Caller{Workspace: "ws", Person: "ada", Role: flow.RoleOwner},
		mints: func(token.Claims) (string, error) { return "", flow.Errorf(flow.CodeNotFound, "no service") }}
	for _, f := range change {
		f(b)
	}
	b.open()
	if _, err := b.store.Found(t.Context(), flow.Workspace{ID: "ws", Name: "w"}, flow.Person{ID: "ada", Name: "Ada", PublicKey: []byte{0xad, 0xa0}},
		flow.Key{ID: "key", Workspace: "ws", Person: "ada", Role: flow.RoleOwner, Hash: []byte{1}}); err != nil {
		t.Fatal(err)
	}
	in := &vault.CreateIn{}
	in.Body.Name, in.Body.Scopes = "notes", []string{"mail"}
	if _, err := b.vault.Create(t.Context(), b.ada, in); err != nil {
		t.Fatal(err)
	}
	b.register(card)
	b.con = b.connect(agentID)
	b.start()
	t.Cleanup(b.stop)
	return b
}

func (b *bed) register(card string) {
	b.t.Helper()
	if err := b.store.PutAgent(b.t.Context(), flow.Agent{ID: agentID, Workspace: "ws", Service: service, Manifest: flow.Manifest{Kind: flow.KindExternal, Card: card,
		Alias: "helper", AgentID: agentID, Version: "1.0.0", Scopes: []string{"default", "mail"}, IdleTimeout: 1800}}, slices.Max[[]string]); err != nil {
		b.t.Fatal(err)
	}
}

// open opens the store with a vault over it.
func (b *bed) open() {
	b.t.Helper()
	var err error
	if b.store, err = store.Open(context.Background(), b.db); err != nil {
		b.t.Fatal(err)
	}
	b.vault = vault.New(vault.Config{Vaults: b.store, Events: b.store, Connections: b.store, Jobs: b.store, Agents: b.store, People: b.store, Clock: b.clock, NewID: ident.New})
}

// start starts a driver, as a process does.
func (b *bed) start() {
	b.t.Helper()
	guard, err := egress.New(b.guard)
	if err != nil {
		b.t.Fatal(err)
	}
	var s turn.Store = b.store
	if b.wrap != nil {
		s = b.wrap(s)
	}
	b.d = turn.New(turn.Config{Store: s, Wire: wires{&a2a.Client{HTTP: guard.Client(egress.ClientOptions{})}}, Tokens: b.mints, Feed: b.vault, Secrets: b, Clock: b.clock,
		NewID: ident.New, Jitter: func() float64 { return 0 }, Log: slog.New(slog.NewJSONHandler(b.log, nil))})
	b.d.OnRest(func() {
		select {
		case b.moved <- struct{}{}:
		default:
		}
	})
	b.vault.Listen(b.d)
	if err := b.d.Start(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bed) stop() {
	if b.d == nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	b.d.Stop(ctx)
	b.d = nil
	_ = b.store.Close()
}

// restart ends the process, as a kill would between two checkpoints, and
// starts another.
func (b *bed) restart() {
	b.t.Helper()
	b.stop()
	b.open()
	b.start()
}

// connect lets an agent into the vault, with a ceiling of 100 tokens.
func (b *bed) connect(agent string) string {
	b.t.Helper()
	con := &vault.ConnectIn{ID: "notes"}
	con.Body.Agent, con.Body.Ceilings.A2ATokens = agent, 100
	v, err := b.vault.Connect(b.t.Context(), b.ada, con)
	if err != nil {
		b.t.Fatal(err)
	}
	return v.ID
}

// ask appends an event that asks the agent.
func (b *bed) ask(payload, metadata string) *flow.VaultEvent {
	b.t.Helper()
	return b.append(vault.NewEvent{Type: "question.asked", Target: agentID, Payload: json.RawMessage(payload), Metadata: json.RawMessage(metadata)})
}

// askOf appends an event that asks another agent.
func (b *bed) askOf(agent, payload string) *flow.VaultEvent {
	b.t.Helper()
	return b.append(vault.NewEvent{Type: "question.asked", Target: agent, Payload: json.RawMessage(payload)})
}

func (b *bed) append(in vault.NewEvent) *flow.VaultEvent {
	b.t.Helper()
	e, err := b.vault.Append(b.t.Context(), b.ada, &vault.AppendIn{ID: "notes", Body: in})
	if err != nil {
		b.t.Fatal(err)
	}
	return e
}

// events are those of a type that follow an event.
func (b *bed) events(kind, parent string) []flow.VaultEvent {
	b.t.Helper()
	l, err := b.vault.ListEvents(b.t.Context(), b.ada, &vault.EventsIn{ID: "notes", Type: kind, Parent: parent, Limit: 1000})
	if err != nil {
		b.t.Fatal(err)
	}
	return l.Items
}

// until moves the clock to whatever is due next until the condition holds.
func (b *bed) until(what string, holds func() bool) {
	b.t.Helper()
	late := time.After(30 * time.Second)
	for !holds() {
		if due, waits, busy := b.d.Next(); busy == 0 && waits && due.After(b.clock.Now()) {
			b.clock.Advance(due.Sub(b.clock.Now()))
		}
		select {
		case <-b.moved:
		case <-late:
			b.t.Fatalf("it never came to: %s; log %s", what, b.log.String())
		}
	}
}

// payload is that of an answer.
type payload struct {
	AgentID, Agent, Text, A2ATaskID, State, JobID, TaskID, Conversation, Error, Code string

	Data, Usage, Actions json.RawMessage
}

// answer waits for the answer to an event: there is one, and only one.
func (b *bed) answer(e *flow.VaultEvent) payload {
	b.t.Helper()
	b.until("an answer", func() bool { return len(b.events(flow.EventAgentAnswered, e.ID)) > 0 })
	all := b.events(flow.EventAgentAnswered, e.ID)
	if len(all) != 1 {
		b.t.Fatalf("%d answers: %+v", len(all), all)
	}
	var p payload
	if err := json.Unmarshal(all[0].Payload, &p); err != nil {
		b.t.Fatal(err)
	}
	return p
}
