package mcpclient

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Server is an MCP server to be called.
type Server struct {
	ID        string
	URL       string
	Transport string            // "" tries streamable HTTP, then SSE; "streamable-http", "sse", "stdio"
	Headers   map[string]string // sent to the server's own origin only
	Command   []string          // for stdio
}

// Options shape a Pool. HTTP is required.
type Options struct {
	HTTP       *http.Client // goes through the egress guard and follows no redirects
	AllowStdio bool         // servers may be commands on this machine
	MaxBytes   int64        // of one answer; default 4 MiB
	Idle       time.Duration
	Sessions   int // kept open at most; default 64
}

// Pool keeps a session with each server, so that a call after the first costs
// one round trip. It is safe for concurrent use.
type Pool struct {
	o Options

	mu       sync.Mutex
	sessions map[[32]byte]*session
	closed   bool
}

// New makes a pool without sessions.
func New(o Options) *Pool {
	if o.MaxBytes <= 0 {
		o.MaxBytes = 4 << 20
	}
	if o.Idle <= 0 {
		o.Idle = 5 * time.Minute
	}
	if o.Sessions <= 0 {
		o.Sessions = 64
	}
	return &Pool{o: o, sessions: map[[32]byte]*session{}}
}

// Close ends every session and every command that was started.
func (p *Pool) Close() {
	p.mu.Lock()
	old := p.sessions
	p.sessions, p.closed = nil, true
	p.mu.Unlock()
	for _, s := range old {
		s.close()
	}
}

// key names a session: another configuration is another session.
func key(s Server) ([32]byte, error) {
	b, err := json.Marshal(s)
	return sha256.Sum256(b), err
}

// with runs f on a session with the server, made if there is none; a session
// that the server has forgotten is made anew once.
func (p *Pool) with(ctx context.Context, srv Server, f func(context.Context, *session) error) error {
	if srv.Transport == "stdio" && !p.o.AllowStdio {
		return ErrStdio
	}
	for again := false; ; again = true {
		s, fresh, err := p.session(ctx, srv)
		if err != nil {
			return err
		}
		s.watch.status.Store(0)
		err = within(ctx, func() error { return f(ctx, s) })
		if err == nil {
			return nil
		}
		gone := errors.Is(err, mcp.ErrSessionMissing) || errors.Is(err, mcp.ErrConnectionClosed)
		sorted := failed(ctx, err, s.watch)
		if s.broken(sorted) {
			p.drop(srv, s)
		}
		if fresh || again || !gone || ctx.Err() != nil {
			return sorted
		}
	}
}

// within has f give up with ctx: the SDK may overrun it by seconds.
func within(ctx context.Context, f func() error) error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// session gives the kept session with a server, or makes one.
func (p *Pool) session(ctx context.Context, srv Server) (s *session, fresh bool, err error) {
	k, err := key(srv)
	if err != nil {
		return nil, false, err
	}
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, false, ErrClosed
	}
	s = p.sessions[k]
	stale := p.stale(s)
	p.mu.Unlock()
	for _, old := range stale {
		old.close()
	}
	if s != nil {
		s.used.Store(time.Now().UnixNano())
		return s, false, nil
	}
	if s, err = p.connect(ctx, srv); err != nil {
		return nil, true, err
	}
	return p.keep(k, s)
}

// stale takes out the sessions that nobody has used for long, and, when there
// are too many, others too. The caller closes them and holds the lock.
func (p *Pool) stale(not *session) []*session {
	var out []*session
	old := time.Now().Add(-p.o.Idle).UnixNano()
	for k, s := range p.sessions {
		if s != not && (s.used.Load() < old || len(p.sessions) >= p.o.Sessions) {
			delete(p.sessions, k)
			out = append(out, s)
		}
	}
	return out
}

// keep stores a new session, unless another call was faster.
func (p *Pool) keep(k [32]byte, s *session) (*session, bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		go s.close()
		return nil, true, ErrClosed
	}
	if other := p.sessions[k]; other != nil {
		go s.close()
		return other, false, nil
	}
	p.sessions[k] = s
	return s, true, nil
}

func (p *Pool) drop(srv Server, s *session) {
	k, err := key(srv)
	if err != nil {
		return
	}
	p.mu.Lock()
	if p.sessions[k] == s {
		delete(p.sessions, k)
	}
	p.mu.Unlock()
	go s.close()
}
