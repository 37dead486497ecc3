package mcpclient

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"net/http"
	"sync"
	"time"
)

// Server is an MCP server to be called.
type Server struct {
	ID        string
	URL       string            // absolute; for HTTP
	Transport string            // "" tries streamable HTTP, then SSE; "streamable-http", "sse", "stdio"
	Headers   map[string]string // sent with every request, to the URL's own origin only
	Command   []string          // for stdio: the program and its arguments
}

// Options shape a Pool. HTTP is required.
type Options struct {
	HTTP       *http.Client  // its Transport is used, the egress guard's; redirects are never followed
	AllowStdio bool          // servers may be commands on this machine
	MaxBytes   int64         // of one answer; default 4 MiB
	Idle       time.Duration // after which a session that nobody uses is closed; default 5 minutes
	Sessions   int           // kept open at most; default 64
}

// Pool keeps a session with each server, so that a call after the first costs
// one round trip. It is safe for concurrent use.
type Pool struct {
	o    Options
	life context.Context // ends with Close, and with it every call
	end  context.CancelCauseFunc

	mu      sync.Mutex
	entries map[key]*entry
	closing sync.WaitGroup // sessions being closed
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
	life, end := context.WithCancelCause(context.Background())
	return &Pool{o: o, life: life, end: end, entries: map[key]*entry{}}
}

// Close ends the calls under way with [ErrClosed], every session and every
// command that was started, and waits for them a few seconds at most.
func (p *Pool) Close() {
	p.end(ErrClosed)
	p.mu.Lock()
	for _, e := range p.entries {
		p.closing.Go(func() {
			if <-e.ready; e.session != nil {
				p.drop(e)
			}
		})
	}
	p.mu.Unlock()
	done := make(chan struct{})
	go func() { p.closing.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(5 * goodbye):
	}
}

// key names a session: another configuration is another session.
type key [sha256.Size]byte

// entry is a session, or one that a call is opening for all that want it.
type entry struct {
	key   key
	ready chan struct{} // closed when session or err is set

	session *session
	err     error

	// Guarded by the pool's mutex.
	used time.Time
	idle *time.Timer // drops the session; nil until it is open
}

// session gives an open session with a server. made says that it is new. It
// fails with one of this package's errors.
func (p *Pool) session(ctx context.Context, srv Server) (e *entry, made bool, err error) {
	b, err := json.Marshal(srv)
	if err != nil {
		return nil, false, fail(ErrProtocol, err, "its configuration cannot be read")
	}
	k := key(sha256.Sum256(b))
	for {
		e, mine, err := p.entry(k)
		if err != nil {
			return nil, false, err
		}
		if mine {
			p.fill(ctx, e, srv)
			return e, true, e.err
		}
		select {
		case <-e.ready:
		case <-ctx.Done():
			return nil, false, sorted(ctx, ctx.Err(), newLink(0, nil))
		}
		if e.err == nil || !errors.Is(e.err, ErrTimeout) && !errors.Is(e.err, context.Canceled) {
			return e, false, e.err
		} // else it was the patience of the call that opened it
	}
}

// entry gives the entry of a key; mine says that it is new and for the caller
// to fill.
func (p *Pool) entry(k key) (e *entry, mine bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.life.Err() != nil {
		return nil, false, ErrClosed
	}
	if e = p.entries[k]; e != nil {
		e.used = time.Now()
		if e.idle != nil {
			e.idle.Reset(p.o.Idle)
		}
		return e, false, nil
	}
	if len(p.entries) >= p.o.Sessions {
		p.evict()
	}
	e = &entry{key: k, ready: make(chan struct{}), used: time.Now()}
	p.entries[k] = e
	return e, true, nil
}

// evict drops the open session that was not used for the longest time. The
// caller holds the lock.
func (p *Pool) evict() {
	var oldest *entry
	for _, e := range p.entries {
		if e.idle != nil && (oldest == nil || e.used.Before(oldest.used)) {
			oldest = e
		}
	}
	if oldest != nil {
		p.remove(oldest)
	}
}

// fill opens the session of an entry.
func (p *Pool) fill(ctx context.Context, e *entry, srv Server) {
	s, err := p.connect(ctx, srv)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		delete(p.entries, e.key)
	} else {
		e.idle = time.AfterFunc(p.o.Idle, func() { p.drop(e) })
	}
	e.session, e.err = s, err
	close(e.ready)
}

// drop takes a session out, if it is still in, and closes it when the calls
// under way are over.
func (p *Pool) drop(e *entry) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.entries[e.key] == e {
		p.remove(e)
	}
}

// remove is drop for who holds the lock.
func (p *Pool) remove(e *entry) {
	delete(p.entries, e.key)
	e.idle.Stop()
	p.closing.Go(e.session.close)
}
