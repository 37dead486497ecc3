// Package registry keeps which agents there are: Agent Services with their
// keys, the buckets that hold manifests, and the index of those. Of an agent
// only the URL of its card is kept; the card itself is read whenever the agent
// is called. Source: the external-agent specification, "Register it".
package registry

import (
	"context"
	"net/http"
	"time"

	"github.com/longstop-dev/longstop/internal/a2a"
	"github.com/longstop-dev/longstop/internal/bucket"
	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/ident"
)

// Agents keeps the index.
type Agents interface {
	// PutAgent stores a version; newest says which one is called.
	PutAgent(ctx context.Context, a flow.Agent, newest func(versions []string) string, audit ...flow.Audit) error
	// Agent reads the version that is called; not_found.
	Agent(ctx context.Context, workspace, id string) (flow.Agent, error)
	AgentVersions(ctx context.Context, workspace, id string) ([]flow.Agent, error)
	Agents(ctx context.Context, workspace string) ([]flow.Agent, error)
	DeleteAgent(ctx context.Context, workspace, id string, audit ...flow.Audit) error
	MoveConnections(ctx context.Context, workspace, from, to string, at time.Time, audit ...flow.Audit) error
}

// Services keeps Agent Services and buckets.
type Services interface {
	CreateService(ctx context.Context, v flow.AgentService, audit ...flow.Audit) error
	Service(ctx context.Context, workspace, publicKey string) (flow.AgentService, error)
	Services(ctx context.Context, workspace string) ([]flow.AgentService, error)
	PutBucket(ctx context.Context, v flow.Bucket, audit ...flow.Audit) error
	Bucket(ctx context.Context, workspace, id string) (flow.Bucket, error)
	Buckets(ctx context.Context, workspace string) ([]flow.Bucket, error)
}

// People knows people.
type People interface {
	Person(ctx context.Context, id string) (flow.Person, error)
}

// Cards reads agent cards; the errors are those of package a2a.
type Cards interface {
	Card(ctx context.Context, workspace, url string) (*a2a.Card, error)
}

// Guard says whether a URL may be called from here.
type Guard interface {
	CheckURL(ctx context.Context, rawURL string) error
}

// Sealer seals keys.
type Sealer interface {
	Seal(workspace, name string, plain []byte) ([]byte, error)
}

// Config is what a Registry is made of. All members are required.
type Config struct {
	Agents   Agents
	Services Services
	People   People
	Cards    Cards
	Guard    Guard
	Sealer   Sealer
	HTTP     *http.Client // of buckets: goes through the egress guard
	Buckets  bucket.Options
	Clock    flow.Clock
	NewID    ident.Generator
}

// Registry has the operations of this package. It is safe for concurrent use.
type Registry struct{ c Config }

// New makes a Registry.
func New(c Config) *Registry {
	c.Buckets.HTTP, c.Buckets.Clock = c.HTTP, c.Clock
	return &Registry{c}
}

// List is a page of a list.
type List[T any] struct {
	Items []T    `json:"items"`
	Next  string `json:"next" doc:"Cursor of the next page; empty at the end."`
}

// None is the input of an operation that takes nothing, and the output of one
// that has nothing to say.
type None struct{}

// open opens a bucket of a workspace.
func (r *Registry) open(b flow.Bucket) (bucket.Bucket, error) {
	return bucket.Open(b.ID, b.URL, r.c.Buckets)
}
