// Package turn drives turns: what a targeted event asks of an agent that is
// hosted elsewhere, from the first byte sent to the answer in the vault. A
// turn is durable before anything is sent, waits as a row and an entry of a
// heap, and is answered exactly once. Source: the external-agent
// specification, from "How the platform calls it" on.
package turn

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/longstop-dev/longstop/internal/a2a"
	"github.com/longstop-dev/longstop/internal/agent/token"
	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/ident"
	"github.com/longstop-dev/longstop/internal/secret"
)

// Store keeps turns and what they need to know.
type Store interface {
	// OpenTurns lists the first turn that is not done of every Job.
	OpenTurns(ctx context.Context) ([]flow.Turn, error)
	// NextTurn reads the first turn of a Job that is not done; not_found.
	NextTurn(ctx context.Context, job string) (flow.Turn, error)
	// WriteTurn writes a step of a turn; stale if it has moved since.
	WriteTurn(ctx context.Context, w flow.TurnWrite) ([]flow.VaultEvent, error)
	Job(ctx context.Context, workspace, id string) (flow.Job, error)
	Connection(ctx context.Context, workspace, id string) (flow.Connection, error)
	Agent(ctx context.Context, workspace, id string) (flow.Agent, error)
	VaultEvent(ctx context.Context, workspace, vault, id string) (flow.VaultEvent, error)
}

// Wire calls agents. The errors are those of package a2a.
type Wire interface {
	// Card reads an agent's card, which is never kept.
	Card(ctx context.Context, workspace, url string) (*a2a.Card, error)
	Send(ctx context.Context, workspace string, t a2a.Target, o a2a.Out) (*a2a.Answer, a2a.Route, error)
	GetTask(ctx context.Context, workspace string, t a2a.Target, r a2a.Route, taskID string) (*a2a.Answer, error)
	CancelTask(ctx context.Context, workspace string, t a2a.Target, r a2a.Route, taskID string) (*a2a.Answer, error)
}

// Tokens makes execution tokens, one for each request.
type Tokens interface {
	Token(ctx context.Context, c token.Claims) (string, error)
}

// Feed tells whoever follows a vault of events that were committed.
type Feed interface {
	Published(events []flow.VaultEvent)
}

// Secrets gives what takes a workspace's secrets out of what agents are sent.
type Secrets interface {
	Masker(ctx context.Context, workspace string) (*secret.Masker, error)
}

// Config is what a Driver is made of. All but Secrets, without which nothing
// is masked, and Limits is required.
type Config struct {
	Store   Store
	Wire    Wire
	Tokens  Tokens
	Feed    Feed
	Secrets Secrets
	Clock   flow.Clock
	NewID   ident.Generator
	Jitter  func() float64 // from 0 to 1: spreads retries
	Log     *slog.Logger
	Limits  Limits
}

// Limits bound what is asked of agents at the same time, of sends and of polls
// each: an agent that hangs keeps its own places only. The zero value of a
// member means its default.
type Limits struct {
	All       int // default 512
	Workspace int // default 128
	Agent     int // default 32
}

func (l Limits) withDefaults() Limits {
	for p, def := range map[*int]int{&l.All: 512, &l.Workspace: 128, &l.Agent: 32} {
		if *p <= 0 {
			*p = def
		}
	}
	return l
}

// Driver drives every turn that is not done. A turn that waits costs an entry
// of a heap; no goroutine and no timer of its own. It is safe for concurrent
// use.
type Driver struct {
	c    Config
	poke chan struct{}
	rest func() // called whenever a step has ended; nil outside of tests

	cancels chan struct{} // a place for each task that is being cancelled

	ctx    context.Context // of whatever is under way; ended by Stop
	cancel context.CancelFunc
	loops  sync.WaitGroup
	work   sync.WaitGroup

	mu      sync.Mutex
	stopped bool
	jobs    map[string]*entry
	due     heapOf
	sends   *lanes
	polls   *lanes
}

// New makes a Driver that has not started.
func New(c Config) *Driver {
	l := c.Limits.withDefaults()
	return &Driver{c: c, poke: make(chan struct{}, 1), cancels: make(chan struct{}, maxCancels), jobs: map[string]*entry{}, sends: newLanes(l), polls: newLanes(l)}
}

// Start takes up every turn that is not done and drives from then on.
func (d *Driver) Start(ctx context.Context) error {
	open, err := d.c.Store.OpenTurns(ctx)
	if err != nil {
		return err
	}
	d.ctx, d.cancel = context.WithCancel(context.WithoutCancel(ctx))
	d.mu.Lock()
	for _, t := range open {
		e, known := d.jobs[t.Job]
		if !known {
			e = &entry{job: t.Job, index: -1}
			d.jobs[t.Job] = e
		}
		if e.index < 0 && !e.busy {
			e.turn, e.due = t, t.NextAt
			if t.Status != flow.TurnQueued || t.NextAt.Sub(d.c.Clock.Now()) > maxPause { // or the clock was set back
				e.due = time.Time{} // what was under way is looked at again at once
			}
			d.due.put(e)
		}
	}
	d.mu.Unlock()
	d.loops.Add(1)
	go d.loop()
	return nil
}

// Stop takes up nothing more and gives what is under way until ctx ends, or
// two seconds, to come to its next checkpoint; then it is broken off, and goes
// on at the next start.
func (d *Driver) Stop(ctx context.Context) {
	if d.cancel == nil {
		return
	}
	d.mu.Lock()
	d.stopped = true
	d.mu.Unlock()
	d.wake()
	d.loops.Wait()
	done := make(chan struct{})
	go func() { d.work.Wait(); close(done) }()
	grace, release := d.c.Clock.After(2 * time.Second)
	defer release()
	select {
	case <-done:
	case <-ctx.Done():
	case <-grace:
	}
	d.cancel()
	<-done
}

// Turn is told of a turn that was appended; it belongs to vault.Listener.
func (d *Driver) Turn(t flow.Turn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if e, known := d.jobs[t.Job]; known {
		e.more = true
		return
	}
	e := &entry{job: t.Job, index: -1, turn: flow.Turn{Job: t.Job, Workspace: t.Workspace, Agent: t.Agent}}
	d.jobs[t.Job] = e
	d.due.put(e)
	d.wake()
}

// Appended hears of events and does nothing; it belongs to vault.Listener.
func (*Driver) Appended([]flow.VaultEvent) {}

// Revoked hurries the turns of a connection, which are then answered with
// connection_revoked; it belongs to vault.Listener.
func (d *Driver) Revoked(connection string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, e := range d.jobs {
		switch {
		case e.index >= 0 && e.turn.Connection == connection:
			d.due.move(e, time.Time{})
		case e.giveUp != nil && e.connection == connection:
			e.giveUp(errRevoked)
		}
	}
	d.wake()
}

// Waiting is how many Jobs have a turn that is not done.
func (d *Driver) Waiting() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.jobs)
}

// wake has the loop look again.
func (d *Driver) wake() {
	select {
	case d.poke <- struct{}{}:
	default:
	}
}
