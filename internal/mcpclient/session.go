package mcpclient

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// session is an open session with one server.
type session struct {
	*mcp.ClientSession
	link *link
	end  context.CancelFunc // of what the session runs on
}

// close ends the session once the calls under way are over.
func (s *session) close() {
	_ = s.Close() // what a server says to a goodbye changes nothing
	s.end()
}

// connect opens a session, over the transport that the server names or, when
// it names none, over streamable HTTP and then SSE.
func (p *Pool) connect(ctx context.Context, srv Server) (*session, error) {
	switch srv.Transport {
	case "stdio":
		return p.start(ctx, srv)
	case "sse":
		return p.dial(ctx, srv, true)
	case "streamable-http":
		return p.dial(ctx, srv, false)
	case "":
		s, err := p.dial(ctx, srv, false)
		if !mayBeOld(err) {
			return s, err
		}
		if s, sseErr := p.dial(ctx, srv, true); sseErr == nil {
			return s, nil
		} else if ctx.Err() != nil {
			return nil, sseErr
		}
		return nil, err
	}
	return nil, fail(ErrProtocol, nil, "unknown transport %q", srv.Transport)
}

// mayBeOld reports whether a server that answers streamable HTTP like this may
// speak SSE only.
func mayBeOld(err error) bool {
	var s *statusError
	if !errors.As(err, &s) {
		return false
	}
	switch s.status {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotAcceptable, http.StatusUnsupportedMediaType:
		return true
	}
	return false
}

// dial opens a session over HTTP: over the old SSE transport, or streamable.
func (p *Pool) dial(ctx context.Context, srv Server, sse bool) (*session, error) {
	u, err := url.Parse(srv.URL)
	if err != nil || u.Host == "" {
		return nil, fail(ErrUnreachable, nil, "its URL cannot be read; an absolute one is needed, such as https://tools.example.com/mcp")
	}
	l := newLink(p.o.MaxBytes, srv.Headers)
	base := p.o.HTTP.Transport
	if base == nil {
		return nil, fail(ErrUnreachable, nil, "the way out, through the egress guard, is not set")
	}
	client := &http.Client{
		Transport:     &door{base: base, origin: originOf(u), link: l, sse: sse},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	var t mcp.Transport = &mcp.StreamableClientTransport{Endpoint: srv.URL, HTTPClient: client,
		DisableStandaloneSSE: true, MaxRetries: -1, MaxEventSize: 2 * int(p.o.MaxBytes)}
	if sse {
		t = &mcp.SSEClientTransport{Endpoint: srv.URL, HTTPClient: client, MaxEventSize: 2 * int(p.o.MaxBytes)}
	}
	return p.open(ctx, l, func(context.Context) (mcp.Transport, error) { return t, nil })
}

// open makes a session on a transport that lives until the session's end. The
// SDK may overrun ctx by seconds, so it is left behind at ctx's end; what it
// brings later is closed.
func (p *Pool) open(ctx context.Context, l *link, transport func(context.Context) (mcp.Transport, error)) (*session, error) {
	l.begin()
	defer l.end()
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	t, err := transport(life)
	if err != nil {
		end()
		return nil, err
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "longstop", Version: "1"},
		&mcp.ClientOptions{Capabilities: &mcp.ClientCapabilities{}})
	s, err := within(ctx, func() (*session, error) {
		cs, err := client.Connect(life, t, nil)
		if err != nil {
			end()
			return nil, err
		}
		return &session{cs, l, end}, nil
	}, func(late *session) { late.close() })
	if err != nil {
		end()
		return nil, sorted(ctx, err, l)
	}
	return s, nil
}

// within gives up on f at ctx's end. What f brings after that goes to late.
func within[T any](ctx context.Context, f func() (T, error), late func(T)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		v, err := f()
		done <- result{v, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		go func() {
			if r := <-done; r.err == nil {
				late(r.value)
			}
		}()
		var none T
		return none, ctx.Err()
	}
}
