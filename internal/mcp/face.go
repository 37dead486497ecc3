package mcp

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/longstop-dev/longstop/internal/access"
	"github.com/longstop-dev/longstop/internal/fair"
	"github.com/longstop-dev/longstop/internal/flow"
)

// Config is what the face is made of. What needs a service that is nil is not
// offered.
type Config struct {
	Ops       []flow.Op // as the other faces declare them; those with the face mcp are offered here
	Workflows Workflows
	Versions  Versions
	Runs      Runs
	Inbox     Inbox
	Servers   Servers
	Tools     Tools
	Secrets   Secrets      // masks what is shown; nil masks nothing
	Guard     Guard        // default access.Guard
	Version   string       // of the binary
	PublicURL string       // where outsiders reach this server: pages from there may call it
	Log       *slog.Logger // default none
	Limits    Limits
}

// Limits bound what outsiders may ask for. The zero value of a member means
// its default.
type Limits struct {
	BodyBytes   int64         // of a message; default 4 MiB
	BodyTime    time.Duration // for a message to arrive; default 30 s
	CallTime    time.Duration // for an operation; default 60 s
	Batch       int           // messages in a batch of 2025-03-26; default 20
	Calls       int           // requests served at the same time, at most half of them of a workspace, a quarter of a key; default 256
	Sessions    int           // open sessions, at most half of them of a workspace; default 1024
	KeySessions int           // of one key, whose oldest is closed for a new one; default 32
	Idle        time.Duration // after which a session is closed; default 30 min
}

func (l Limits) withDefaults() Limits {
	l.BodyBytes = orElse(l.BodyBytes, 4<<20)
	l.BodyTime = orElse(l.BodyTime, 30*time.Second)
	l.CallTime = orElse(l.CallTime, time.Minute)
	l.Batch = orElse(l.Batch, 20)
	l.Calls = orElse(l.Calls, 256)
	l.Sessions = orElse(l.Sessions, 1024)
	l.KeySessions = orElse(l.KeySessions, 32)
	l.Idle = orElse(l.Idle, 30*time.Minute)
	return l
}

func orElse[N int | int64 | time.Duration](v, def N) N {
	if v <= 0 {
		return def
	}
	return v
}

// Guard lets a caller through to an operation, or says why not.
type Guard interface {
	Check(by flow.Caller, op flow.Op) error
}

// Face is the MCP server. It is safe for concurrent use.
type Face struct {
	c         Config
	log       *slog.Logger
	ops       map[string]flow.Op
	offered   map[string]bool
	servers   map[flow.Role]*sdk.Server // each lists what its role may use
	sessions  *sessions
	seats     *fair.Places // one for each request that is served
	stateless http.Handler
	stateful  http.Handler
}

// New makes the face of the services.
func New(c Config) *Face {
	c.Limits = c.Limits.withDefaults()
	f := &Face{c: c, log: c.Log, ops: map[string]flow.Op{}, offered: map[string]bool{}, servers: map[flow.Role]*sdk.Server{},
		seats: fair.New(fair.Limits{All: c.Limits.Calls, Group: max(c.Limits.Calls/2, 1), One: max(c.Limits.Calls/4, 1)})}
	if f.log == nil {
		f.log = slog.New(slog.DiscardHandler)
	}
	if f.c.Guard == nil {
		f.c.Guard = access.Guard{}
	}
	for _, op := range c.Ops {
		f.ops[op.Name] = op
	}
	for _, role := range []flow.Role{flow.RoleAgent, flow.RoleViewer, flow.RoleOperator, flow.RoleEditor, flow.RoleOwner} {
		f.servers[role] = f.server(role)
	}
	f.sessions = newSessions(c.Limits, f.live)
	f.stateless, f.stateful = f.handler(true), f.handler(false)
	return f
}

// Ops names the operations that are offered to some role.
func (f *Face) Ops() []string {
	var out []string
	for name := range f.offered {
		out = append(out, name)
	}
	return out
}

// Close ends the open sessions.
func (f *Face) Close() {
	for _, s := range f.live() {
		_ = s.Close()
	}
}

func (f *Face) live() map[string]*sdk.ServerSession {
	out := map[string]*sdk.ServerSession{}
	for _, server := range f.servers {
		for s := range server.Sessions() {
			if id := s.ID(); id != "" {
				out[id] = s
			}
		}
	}
	return out
}

// handler is one of the two. Both answer with plain JSON: nothing here takes
// long enough for a stream.
func (f *Face) handler(stateless bool) http.Handler {
	h := sdk.NewStreamableHTTPHandler(func(r *http.Request) *sdk.Server { return f.servers[callerIn(r.Context()).Role] },
		&sdk.StreamableHTTPOptions{Stateless: stateless, JSONResponse: true, SessionTimeout: f.c.Limits.Idle,
			MaxRequestBodyBytes: f.c.Limits.BodyBytes + 1, PropagateRequestCancellation: true,
			DisableLocalhostProtection: true}) // behind a proxy on this machine the name is another; sameSite checks the origin
	// The key has been checked; this hands who calls to every request of a
	// session, which then belongs to that key.
	return auth.RequireBearerToken(func(ctx context.Context, _ string, _ *http.Request) (*auth.TokenInfo, error) {
		by := callerIn(ctx)
		return &auth.TokenInfo{UserID: by.Workspace + "/" + by.KeyID, Extra: map[string]any{"caller": by}}, nil
	}, &auth.RequireBearerTokenOptions{AllowMissingExpiration: true})(h)
}

type callerKey struct{}

func callerIn(ctx context.Context) flow.Caller {
	by, _ := ctx.Value(callerKey{}).(flow.Caller)
	return by
}

// callerOf is who sent this request, whoever opened its session.
func callerOf(extra *sdk.RequestExtra) flow.Caller {
	if extra == nil || extra.TokenInfo == nil {
		return flow.Caller{}
	}
	by, _ := extra.TokenInfo.Extra["caller"].(flow.Caller)
	return by
}

// ServeAs answers a request of a caller whose key has been checked.
func (f *Face) ServeAs(w http.ResponseWriter, r *http.Request, by flow.Caller) {
	if !f.sameSite(r) {
		refuse(w, http.StatusForbidden, "a page of this origin may not call this server")
		return
	}
	if r.Method != http.MethodPost && r.Method != http.MethodDelete {
		w.Header().Set("Allow", "POST, DELETE")
		refuse(w, http.StatusMethodNotAllowed, "there is no stream from this server: send messages with POST, end a session with DELETE")
		return
	}
	key := fair.Place{Group: by.Workspace, One: by.KeyID}
	if !f.seats.Take(key) {
		w.Header().Set("Retry-After", "1")
		refuse(w, http.StatusTooManyRequests, "too many requests are being served, of all or of this key")
		return
	}
	defer f.seats.Give(key)
	body, ok := f.read(w, r)
	if !ok {
		return
	}
	r = r.WithContext(context.WithValue(r.Context(), callerKey{}, by))
	if r.Method == http.MethodPost && standsAlone(r, body) {
		f.stateless.ServeHTTP(w, r)
		return
	}
	if r.Method == http.MethodPost && r.Header.Get(sessionHeader) == "" {
		release, ok := f.sessions.open(key)
		if !ok {
			w.Header().Set("Retry-After", "60")
			refuse(w, http.StatusServiceUnavailable, "too many sessions are open, of all or of this workspace")
			return
		}
		defer func() { release(w.Header().Get(sessionHeader)) }()
	}
	f.stateful.ServeHTTP(w, r)
}

// sameSite refuses pages of other sites, whatever name they have made for this
// server: only a browser sends an origin. Pages of this machine are let in,
// where inspectors run.
func (f *Face) sameSite(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	if origin == "" {
		return true
	}
	u, err := url.Parse(origin)
	if err != nil || u.Host == "" {
		return false
	}
	if name := u.Hostname(); name == "localhost" || name == "127.0.0.1" || name == "::1" {
		return true
	}
	public, err := url.Parse(f.c.PublicURL)
	return err == nil && strings.EqualFold(u.Scheme, public.Scheme) && strings.EqualFold(u.Host, public.Host)
}
