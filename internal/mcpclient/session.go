package mcpclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os/exec"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// session is an open session with one server.
type session struct {
	cs    *mcp.ClientSession
	watch *watch
	used  atomic.Int64
}

// close ends the session without waiting long for the server to agree.
func (s *session) close() { _ = s.cs.Close() }

// broken reports whether a session is of no use after err.
func (s *session) broken(err error) bool { return !errors.Is(err, ErrNoTool) }

// connect opens a session, over the transport that the server names or, when
// it names none, over streamable HTTP and then SSE.
func (p *Pool) connect(ctx context.Context, srv Server) (*session, error) {
	switch srv.Transport {
	case "stdio":
		return p.start(ctx, srv)
	case "sse":
		return p.dial(ctx, srv, p.sse)
	case "streamable-http":
		return p.dial(ctx, srv, p.streamable)
	case "":
		s, err := p.dial(ctx, srv, p.streamable)
		if old := (*oldServer)(nil); errors.As(err, &old) && ctx.Err() == nil {
			if s, sseErr := p.dial(ctx, srv, p.sse); sseErr == nil {
				return s, nil
			}
			return nil, old.err
		}
		return s, err
	}
	return nil, fmt.Errorf("%w: unknown transport %q", ErrProtocol, srv.Transport)
}

// oldServer is the error of a server that may speak SSE only.
type oldServer struct{ err error }

// Error is the error of the streamable transport.
func (e *oldServer) Error() string { return e.err.Error() }

// Unwrap gives it.
func (e *oldServer) Unwrap() error { return e.err }

func (p *Pool) streamable(srv Server, c *http.Client) mcp.Transport {
	return &mcp.StreamableClientTransport{Endpoint: srv.URL, HTTPClient: c, DisableStandaloneSSE: true, MaxRetries: -1, MaxEventSize: int(p.o.MaxBytes)}
}

func (p *Pool) sse(srv Server, c *http.Client) mcp.Transport {
	return &mcp.SSEClientTransport{Endpoint: srv.URL, HTTPClient: c, MaxEventSize: int(p.o.MaxBytes)}
}

// dial opens a session over HTTP.
func (p *Pool) dial(ctx context.Context, srv Server, transport func(Server, *http.Client) mcp.Transport) (*session, error) {
	u, err := url.Parse(srv.URL)
	if err != nil || u.Host == "" {
		return nil, fmt.Errorf("%w: its URL cannot be read", ErrUnreachable)
	}
	w := &watch{}
	client := *p.o.HTTP
	if client.Transport == nil {
		client.Transport = http.DefaultTransport
	}
	client.Transport = &guarded{base: client.Transport, origin: originOf(u), headers: srv.Headers, max: p.o.MaxBytes, watch: w}
	s, err := p.open(ctx, transport(srv, &client), w)
	if err == nil {
		return s, nil
	}
	sorted := failed(ctx, err, w)
	switch w.status.Load() {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotAcceptable:
		return nil, &oldServer{sorted}
	}
	return nil, sorted
}

// open connects within ctx. A connection that comes later is closed.
func (p *Pool) open(ctx context.Context, t mcp.Transport, w *watch) (*session, error) {
	type result struct {
		cs  *mcp.ClientSession
		err error
	}
	done := make(chan result, 1)
	client := mcp.NewClient(&mcp.Implementation{Name: "longstop", Version: "1"}, &mcp.ClientOptions{Capabilities: &mcp.ClientCapabilities{}})
	// The session outlives this call: it keeps the values of ctx and not its end.
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	go func() {
		cs, err := client.Connect(life, t, nil)
		done <- result{cs, err}
	}()
	select {
	case r := <-done:
		if r.err != nil {
			end()
			return nil, r.err
		}
		s := &session{cs: r.cs, watch: w}
		s.used.Store(time.Now().UnixNano())
		go func() { _ = r.cs.Wait(); end() }()
		return s, nil
	case <-ctx.Done():
		end()
		go func() {
			if r := <-done; r.err == nil {
				_ = r.cs.Close()
			}
		}()
		return nil, ctx.Err()
	}
}

// start runs a command and speaks with it over stdio. No shell is involved.
func (p *Pool) start(ctx context.Context, srv Server) (*session, error) {
	if len(srv.Command) == 0 {
		return nil, fmt.Errorf("%w: it names no command", ErrUnreachable)
	}
	cmd := exec.Command(srv.Command[0], srv.Command[1:]...)
	cmd.Stderr = io.Discard
	w := &watch{}
	s, err := p.open(ctx, &mcp.CommandTransport{Command: cmd, TerminateDuration: time.Second}, w)
	if err != nil {
		if errors.Is(err, exec.ErrNotFound) {
			return nil, fmt.Errorf("%w: the command %q is not found", ErrUnreachable, srv.Command[0])
		}
		return nil, failed(ctx, err, w)
	}
	return s, nil
}
