package web

import (
	"context"
	"embed"
	"log/slog"
	"net/http"
	"time"

	"github.com/longstop-dev/longstop/internal/access"
	"github.com/longstop-dev/longstop/internal/engine"
	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/recovery"
	"github.com/longstop-dev/longstop/internal/secret"
)

// Runs reads runs.
type Runs interface {
	GetRun(context.Context, flow.Caller, *engine.RunIn) (*engine.RunView, error)
	ListLogs(context.Context, flow.Caller, *engine.RecordsIn) (*engine.List[flow.Log], error)
}

// Cases reads what recovery made of a run.
type Cases interface {
	CasesList(context.Context, flow.Caller, *recovery.CasesListIn) (*recovery.List[flow.Case], error)
	GatesList(context.Context, flow.Caller, *recovery.GatesListIn) (*recovery.List[flow.Gate], error)
}

// Keys says whose an API key is.
type Keys interface {
	Authenticate(ctx context.Context, bearer string) (flow.Caller, error)
}

// Secrets gives what takes a workspace's secrets out of all that is shown.
type Secrets interface {
	Masker(ctx context.Context, workspace string) (*secret.Masker, error)
}

// Guard lets a caller through to an operation, or says why not.
type Guard interface {
	Check(by flow.Caller, op flow.Op) error
}

// Config is what the face is made of.
type Config struct {
	Ops     []flow.Op // as the other faces declare them
	Runs    Runs
	Cases   Cases
	Keys    Keys
	Secrets Secrets // masks what is shown
	Guard   Guard   // default access.Guard
	Clock   flow.Clock
	Secure  bool         // outsiders reach this server by https: the cookie goes over nothing else
	Log     *slog.Logger // default none
}

//go:embed assets
var assets embed.FS

// Face serves the pages. It is safe for concurrent use.
type Face struct {
	c        Config
	log      *slog.Logger
	ops      map[string]flow.Op
	sessions *sessions
	mux      *http.ServeMux
}

// Paths are the beginnings of the paths that the face serves.
func Paths() []string { return []string{"/login", "/logout", "/runs/*", "/assets/*"} }

// New makes the face of the services.
func New(c Config) *Face {
	f := &Face{c: c, log: c.Log, ops: map[string]flow.Op{}, sessions: newSessions(c.Clock), mux: http.NewServeMux()}
	if f.log == nil {
		f.log = slog.New(slog.DiscardHandler)
	}
	if f.c.Guard == nil {
		f.c.Guard = access.Guard{}
	}
	for _, op := range c.Ops {
		f.ops[op.Name] = op
	}
	f.mux.HandleFunc("GET /login", f.askKey)
	f.mux.HandleFunc("POST /login", f.login)
	f.mux.HandleFunc("POST /logout", f.logout)
	f.mux.HandleFunc("GET /runs/{id}", f.run)
	f.mux.Handle("GET /assets/", cached(http.FileServerFS(assets)))
	return f
}

// ServeHTTP answers a browser.
func (f *Face) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
	f.mux.ServeHTTP(w, r)
}

// cached lets browsers keep what is the same in every page of this binary.
func cached(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "public, max-age=3600")
		next.ServeHTTP(w, r)
	})
}

// may says whether a caller may do all of some operations.
func (f *Face) may(by flow.Caller, names ...string) error {
	for _, name := range names {
		if err := f.c.Guard.Check(by, f.ops[name]); err != nil {
			return err
		}
	}
	return nil
}

// now is the present instant.
func (f *Face) now() time.Time { return f.c.Clock.Now() }
