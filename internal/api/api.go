package api

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"

	"github.com/longstop-dev/longstop/internal/access"
	"github.com/longstop-dev/longstop/internal/flow"
)

// Config is what an API is made of. An operation whose service is nil answers
// unavailable.
type Config struct {
	Engine    Engine
	Recovery  Recovery
	Notices   Notices
	Access    Access
	Vaults    Vaults
	Registry  Registry
	Bridges   Bridges
	Guard     Guard                                          // default access.Guard
	Ready     func(context.Context) error                    // whether the database answers; nil for always
	JWKS      func(context.Context) (json.RawMessage, error) // the keys to verify execution tokens with; nil for none
	Version   string                                         // of the binary
	PublicURL string                                         // where outsiders reach this server; "" leaves it out
	Clock     flow.Clock                                     // default the machine's
	Log       *slog.Logger                                   // default none
	Limits    Limits
}

// Guard lets a caller through to an operation, or says why not.
type Guard interface {
	Check(by flow.Caller, op flow.Op) error
}

// Limits bound what outsiders may ask for. The zero value of a member means
// its default.
type Limits struct {
	DefinitionBytes int64         // of a definition sent; default 1 MiB
	BodyBytes       int64         // of any other body; default 4 MiB
	BodyTime        time.Duration // for a body to arrive; default 30 s
	Followers       int           // events followed at the same time; default 2000
	WriteTime       time.Duration // for a follower to take an event; default 10 s
	PingEvery       time.Duration // of a quiet follower; default 20 s
	FailedKeys      int           // wrong keys that an address may send at once; default 20
	FailedKeyEvery  time.Duration // and then one in this time; default 3 s
}

func (l Limits) withDefaults() Limits {
	orElse := func(v *int64, def int64) {
		if *v <= 0 {
			*v = def
		}
	}
	orElse(&l.DefinitionBytes, 1<<20)
	orElse(&l.BodyBytes, 4<<20)
	orElse((*int64)(&l.BodyTime), int64(30*time.Second))
	orElse((*int64)(&l.WriteTime), int64(10*time.Second))
	orElse((*int64)(&l.PingEvery), int64(20*time.Second))
	orElse((*int64)(&l.FailedKeyEvery), int64(3*time.Second))
	if l.Followers <= 0 {
		l.Followers = 2000
	}
	if l.FailedKeys <= 0 {
		l.FailedKeys = 20
	}
	return l
}

// API is the face. It is an [http.Handler], safe for concurrent use.
type API struct {
	c        Config
	log      *slog.Logger
	router   *chi.Mux
	huma     huma.API
	mounted  []Operation
	failures *failures
	seats    chan struct{} // one for each follower

	closing sync.Once
	closed  chan struct{}
}

// Operation is a mounted operation and where it is.
type Operation struct {
	flow.Op
	Method string
	Path   string // with {name} for what varies
}

// New makes the face of the services.
func New(c Config) *API {
	a := &API{c: c, log: c.Log, router: chi.NewRouter(), closed: make(chan struct{})}
	if a.log == nil {
		a.log = slog.New(slog.DiscardHandler)
	}
	if a.c.Guard == nil {
		a.c.Guard = access.Guard{}
	}
	if a.c.Clock == nil {
		a.c.Clock = flow.SystemClock{}
	}
	a.c.Limits = c.Limits.withDefaults()
	a.failures = newFailures(a.c.Clock, a.c.Limits)
	a.seats = make(chan struct{}, a.c.Limits.Followers)
	a.router.Use(a.observe, a.recover, middleware.GetHead)
	a.router.NotFound(a.notFound)
	a.router.MethodNotAllowed(a.notAllowed)
	a.huma = newHuma(a.router, c)
	a.mount()
	a.serveOpenAPI()
	return a
}

// mount mounts every resource.
func (a *API) mount() {
	mountHealth(a, a.c.Ready)
	mountJWKS(a, a.c.JWKS)
	mountWorkflows(a, a.c.Engine)
	mountVersions(a, a.c.Engine)
	mountRuns(a, a.c.Engine)
	mountLooks(a, a.c.Engine)
	mountGates(a, a.c.Recovery, a.c.Engine)
	mountCases(a, a.c.Recovery)
	mountInbox(a, a.c.Engine)
	mountSettings(a, a.c.Access)
	mountNotices(a, a.c.Notices)
	mountServers(a, a.c.Access)
	mountSecrets(a, a.c.Access)
	mountKeys(a, a.c.Access)
	mountVaults(a, a.c.Vaults)
	mountAgents(a, a.c.Registry)
	mountAgentServices(a, a.c.Registry)
	mountBridges(a, a.c.Bridges)
	mountPeople(a, a.c.Access)
	mountWorkspaces(a, a.c.Access)
	mountAudit(a, a.c.Access)
}

// ServeHTTP answers a request.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) { a.router.ServeHTTP(w, r) }

// Close ends whoever follows a run's events, telling them to come back later.
// Every other request goes on to its end.
func (a *API) Close() { a.closing.Do(func() { close(a.closed) }) }

// Operations lists what is mounted.
func (a *API) Operations() []Operation { return a.mounted }

// Ops describes all operations of this face.
func Ops() []flow.Op {
	var out []flow.Op
	for _, o := range New(Config{}).mounted {
		out = append(out, o.Op)
	}
	return out
}
