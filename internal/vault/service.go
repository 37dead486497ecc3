package vault

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/ident"
	"github.com/longstop-dev/longstop/internal/watch"
)

// Store keeps vaults.
type Store interface {
	CreateVault(ctx context.Context, v flow.Vault, audit ...flow.Audit) error
	// UpdateVault changes a vault as it was read; stale if it is another now.
	UpdateVault(ctx context.Context, was, v flow.Vault, audit ...flow.Audit) error
	DeleteVault(ctx context.Context, workspace, id string, audit ...flow.Audit) error
	// Vault finds by id or by name; not_found.
	Vault(ctx context.Context, workspace, id string) (flow.Vault, error)
	Vaults(ctx context.Context, workspace string) ([]flow.Vault, error)
}

// Events keeps what is in vaults.
type Events interface {
	// AppendEvent writes an event with what its Route says, whole or not at all.
	AppendEvent(ctx context.Context, a flow.VaultAppend, audit ...flow.Audit) (flow.VaultAppended, error)
	VaultEvents(ctx context.Context, f flow.EventFilter) ([]flow.VaultEvent, error)
	VaultEvent(ctx context.Context, workspace, vault, id string) (flow.VaultEvent, error)
	// Forget removes events past their retention, batch by batch, and says how
	// many.
	Forget(ctx context.Context, nowMicros int64, batch int) (int64, error)
}

// Connections keeps who was let in.
type Connections interface {
	Connect(ctx context.Context, c flow.Connection, audit ...flow.Audit) (flow.Connection, error)
	// UpdateConnection changes a connection as it was read; stale if it is
	// another now.
	UpdateConnection(ctx context.Context, was, c flow.Connection, audit ...flow.Audit) error
	RevokeConnection(ctx context.Context, workspace, id string, at time.Time, audit ...flow.Audit) error
	Connection(ctx context.Context, workspace, id string) (flow.Connection, error)
	Connections(ctx context.Context, workspace, vault string) ([]flow.Connection, error)
}

// Jobs keeps conversations and their turns.
type Jobs interface {
	Jobs(ctx context.Context, workspace, vault, before string, limit int) ([]flow.Job, error)
	Job(ctx context.Context, workspace, id string) (flow.Job, error)
	Turns(ctx context.Context, workspace, job string, limit int) ([]flow.Turn, error)
}

// Agents knows the registry.
type Agents interface {
	// Agent gives the version that is called; not_found.
	Agent(ctx context.Context, workspace, id string) (flow.Agent, error)
}

// People knows people.
type People interface {
	// Person answers not_found.
	Person(ctx context.Context, id string) (flow.Person, error)
}

// Listener hears of what was appended, after the commit. It must not block.
type Listener interface {
	// Turn is told of a turn that has to be done.
	Turn(t flow.Turn)
	// Appended is told of events of one vault, in order.
	Appended(events []flow.VaultEvent)
	// Revoked is told of a connection that holds no longer.
	Revoked(connection string)
}

// Config is what a Service is made of. All members are required.
type Config struct {
	Vaults      Store
	Events      Events
	Connections Connections
	Jobs        Jobs
	Agents      Agents
	People      People
	Clock       flow.Clock
	NewID       ident.Generator
}

// Service has the operations of this package. It is safe for concurrent use.
type Service struct {
	c         Config
	feed      *watch.Feed
	listeners []Listener
	swept     atomic.Int64 // when events past their retention were removed last, in microseconds
}

// New makes a Service. The listeners are told of every append.
func New(c Config, listeners ...Listener) *Service {
	return &Service{c: c, feed: watch.NewFeed(), listeners: listeners}
}

// Listen adds a listener. It is called before the first append.
func (s *Service) Listen(l Listener) { s.listeners = append(s.listeners, l) }

// List is a page of a list.
type List[T any] struct {
	Items []T    `json:"items"`
	Next  string `json:"next" doc:"Cursor of the next page; empty at the end."`
}

// pageSize is how many items a page has that was asked for with a limit: from 1
// to 1000, and 100 for 0.
func pageSize(limit int) int {
	if limit == 0 {
		return 100
	}
	return min(max(limit, 1), 1000)
}

// None is the input of an operation that takes nothing, and the output of one
// that has nothing to say.
type None struct{}

// Published tells whoever listens of events that were appended elsewhere: the
// answers of agents.
func (s *Service) Published(events []flow.VaultEvent) {
	if len(events) == 0 {
		return
	}
	s.feed.Moved(events[0].Vault)
	for _, l := range s.listeners {
		l.Appended(events)
	}
}

// Watch signals on grown after each append to the vault with an id; signals
// that nobody has taken yet become one. The watcher must call stop.
func (s *Service) Watch(id string) (grown <-chan struct{}, stop func()) { return s.feed.Watch(id) }
