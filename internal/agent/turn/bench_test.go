package turn_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/longstop-dev/longstop/internal/a2a"
	"github.com/longstop-dev/longstop/internal/agent/turn"
	"github.com/longstop-dev/longstop/internal/egress"
	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/ident"
	"github.com/longstop-dev/longstop/internal/store"
	"github.com/longstop-dev/longstop/internal/vault"
)

// ground is what a benchmark of turns stands on: a real store, the machine's
// clock, and an agent in this process.
type ground struct {
	b     *testing.B
	store *store.Store
	vault *vault.Service
	d     *turn.Driver
	url   string
	ended chan struct{} // one for each answer
}

// Turn, Appended and Revoked count answers.
func (g *ground) Turn(flow.Turn) {}
func (g *ground) Revoked(string) {}
func (g *ground) Appended(events []flow.VaultEvent) {
	for i := range events {
		if events[i].Type == flow.EventAgentAnswered {
			g.ended <- struct{}{}
		}
	}
}

func newGround(b *testing.B, state string) *ground {
	b.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			fmt.Fprintf(w, `{"name":"a","supportedInterfaces":[{"url":"http://%s/rpc","protocolBinding":"JSONRPC","protocolVersion":"1.0"}]}`, r.Host)
			return
		}
		_, _ = io.Copy(io.Discard, r.Body)
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":"x","result":{"task":{"id":"t-1","contextId":"","status":{"state":"TASK_STATE_%s"}}}}`, state)
	}))
	b.Cleanup(srv.Close)
	g := &ground{b: b, url: srv.URL, ended: make(chan struct{}, 1_000_000)}
	var err error
	if g.store, err = store.Open(context.Background(), emptyDatabase(b)); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = g.store.Close() })
	clock := flow.SystemClock{}
	if _, err := g.store.Found(b.Context(), flow.Workspace{ID: "ws"}, flow.Person{ID: "ada", PublicKey: []byte{1}}, flow.Key{ID: "key", Workspace: "ws", Person: "ada", Role: flow.RoleOwner, Hash: []byte{1}}); err != nil {
		b.Fatal(err)
	}
	if err := g.store.PutAgent(b.Context(), flow.Agent{ID: agentID, Workspace: "ws", Service: service, Manifest: flow.Manifest{Kind: flow.KindExternal, Card: srv.URL, Alias: "helper",
		AgentID: agentID, Version: "1.0.0", Scopes: []string{"default"}, IdleTimeout: 60}}, slices.Max[[]string]); err != nil {
		b.Fatal(err)
	}
	g.vault = vault.New(vault.Config{Vaults: g.store, Events: g.store, Connections: g.store, Jobs: g.store, Agents: g.store, People: g.store, Clock: clock, NewID: ident.New}, g)
	by := flow.Caller{Workspace: "ws", Person: "ada", Role: flow.RoleOwner}
	in := &vault.CreateIn{}
	in.Body.Name = "notes"
	if _, err := g.vault.Create(b.Context(), by, in); err != nil {
		b.Fatal(err)
	}
	con := &vault.ConnectIn{ID: "notes"}
	con.Body.Agent = agentID
	if _, err := g.vault.Connect(b.Context(), by, con); err != nil {
		b.Fatal(err)
	}
	g.d = turn.New(turn.Config{Store: g.store, Wire: wires{&a2a.Client{HTTP: outside(b)}}, Tokens: mints(nil), Feed: g.vault, Clock: clock, NewID: ident.New,
		Jitter: func() float64 { return 0 }, Log: slog.New(slog.DiscardHandler)})
	g.vault.Listen(g.d)
	if err := g.d.Start(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { g.d.Stop(context.Background()) })
	return g
}

func outside(b *testing.B) *http.Client {
	b.Helper()
	guard, err := egress.New(egress.Policy{AllowPrivate: true})
	if err != nil {
		b.Fatal(err)
	}
	return guard.Client(egress.ClientOptions{})
}

// ask asks n times, each in a conversation of its own.
func (g *ground) ask(n int) {
	var wg sync.WaitGroup
	var next atomic.Int64
	for range 64 {
		wg.Go(func() {
			for i := next.Add(1); i <= int64(n); i = next.Add(1) {
				_, err := g.vault.Publish(context.Background(), "ws", "notes", vault.NewEvent{Type: "asked", Target: agentID, Payload: json.RawMessage(`{"text":"hi"}`),
					Metadata: json.RawMessage(fmt.Sprintf(`{"conversation":"c%d"}`, i))}, flow.EventAuthor{Kind: flow.AuthorPerson, ID: "ada"}, "", "")
				if err != nil {
					g.b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// BenchmarkTurns is from the event to the answer, with an agent that answers
// at once, and beside it the same two calls in a bare loop of as many workers.
func BenchmarkTurns(b *testing.B) {
	g := newGround(b, "COMPLETED")
	b.ResetTimer()
	began := time.Now()
	g.ask(b.N)
	for range b.N {
		<-g.ended
	}
	b.ReportMetric(float64(b.N)/time.Since(began).Seconds(), "turns/s")
	b.StopTimer()
	wire := &a2a.Client{HTTP: outside(b)}
	began = time.Now()
	var wg sync.WaitGroup
	var next atomic.Int64
	for range 32 {
		wg.Go(func() {
			for next.Add(1) <= int64(b.N) {
				card, err := wire.FetchCard(context.Background(), g.url)
				if err != nil {
					b.Error(err)
					return
				}
				if _, _, err := wire.Send(context.Background(), a2a.Target{URL: g.url, Card: card}, a2a.Out{ID: "1", MessageID: "m", Text: "hi"}); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.ReportMetric(float64(b.N)/time.Since(began).Seconds(), "bare-turns/s")
}

// BenchmarkAppend is events without a target, from 64 who append.
func BenchmarkAppend(b *testing.B) {
	g := newGround(b, "COMPLETED")
	b.ResetTimer()
	began := time.Now()
	var wg sync.WaitGroup
	var next atomic.Int64
	for range 64 {
		wg.Go(func() {
			for next.Add(1) <= int64(b.N) {
				if _, err := g.vault.Publish(context.Background(), "ws", "notes", vault.NewEvent{Type: "note", Payload: json.RawMessage(`{"text":"hello"}`)}, flow.EventAuthor{Kind: flow.AuthorPerson, ID: "ada"}, "", ""); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.ReportMetric(float64(b.N)/time.Since(began).Seconds(), "events/s")
}

// BenchmarkWaiting is what a turn that waits costs in memory, of 5,000.
func BenchmarkWaiting(b *testing.B) {
	const n = 5000
	g := newGround(b, "WORKING")
	heap := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before, routines := heap(), runtime.NumGoroutine()
	g.ask(n)
	for {
		if _, _, busy := g.d.Next(); busy == 0 && g.d.Waiting() == n {
			break
		}
		runtime.Gosched()
	}
	after := heap()
	b.ReportMetric(float64(after-min(before, after))/n, "B/turn")
	b.ReportMetric(float64(runtime.NumGoroutine()-routines), "more-goroutines")
}
