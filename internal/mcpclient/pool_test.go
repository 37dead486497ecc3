package mcpclient_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/longstop-dev/longstop/internal/mcpclient"
)

// speak has every kind of conversation with a server that newServer made.
func speak(t *testing.T, p *mcpclient.Pool, srv mcpclient.Server) {
	t.Helper()
	tools, err := p.Tools(patient(t), srv)
	if err != nil || len(tools) != toolCount {
		t.Fatalf("tools: got %d, %v, want %d", len(tools), err, toolCount)
	}
	i := slices.IndexFunc(tools, func(x mcpclient.Tool) bool { return x.Name == "structured" })
	if i < 0 || tools[i].Description != "tool structured" {
		t.Fatalf("tools: got %+v", tools)
	}
	same(t, "input schema", tools[i].InputSchema, `{"type":"object","properties":{"error":{"type":"string"}}}`)
	same(t, "output schema", tools[i].OutputSchema, `{"type":"object","required":["type"]}`)
	for tool, want := range map[string]struct {
		value   string
		isError bool
		err     error
	}{
		"structured": {value: `{"type":"fixed_output","id":` + bigID + `,"args":{"error":"x"}}`},
		"text":       {value: `{"type":"needs_human","id":` + bigID + `}`},
		"words":      {value: `"I am\nat a loss"`},
		"brackets":   {value: `{"s":"\"` + strings.Repeat("[{", 500) + `"}`},
		"failing":    {value: `"boom"`, isError: true},
		"deep":       {err: mcpclient.ErrTooDeep},
		"nope":       {err: mcpclient.ErrNoTool},
		"broken":     {value: `"it broke inside"`, isError: true},
	} {
		r, err := p.Call(patient(t), srv, tool, json.RawMessage(`{"error":"x"}`))
		if !errors.Is(err, want.err) || r.IsError != want.isError {
			t.Errorf("%s: got %+v, %v, want error %v, isError %v", tool, r, err, want.err, want.isError)
		}
		if want.err == nil && err == nil {
			same(t, tool, r.Value(), want.value)
		}
	}
}

func TestGoServers(t *testing.T) {
	t.Parallel()
	for name, h := range handlers(newServer(hooks{})) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, seen := newPool(t, mcpclient.Options{})
			srv := mcpclient.Server{ID: "a", URL: serve(t, h)}
			speak(t, p, srv)
			if _, err := p.Call(patient(t), srv, "text", nil); err != nil {
				t.Fatal(err)
			}
			seen.take()
			if _, err := p.Call(patient(t), srv, "text", nil); err != nil {
				t.Fatal(err)
			}
			if got := seen.take(); !slices.Equal(got, []string{"POST tools/call"}) {
				t.Errorf("a call on an open session: got %v, want one request", got)
			}
		})
	}
}

// Calls at the same time make one session, do not wait for each other, and do
// not fail with each other.
func TestCallsShareASession(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"stateful", "stateful JSON", "SSE only"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const n = 20
			var inside atomic.Int32
			all := make(chan struct{})
			h := handlers(newServer(hooks{block: func(ctx context.Context) {
				if inside.Add(1) == n {
					close(all)
				}
				select {
				case <-all:
				case <-ctx.Done():
				}
			}}))[name]
			p, seen := newPool(t, mcpclient.Options{})
			srv := mcpclient.Server{ID: "a", URL: serve(t, h)}
			ctx := patient(t)
			var wg sync.WaitGroup
			for range n {
				wg.Go(func() {
					if r, err := p.Call(ctx, srv, "block", nil); err != nil || r.IsError {
						t.Errorf("got %+v, %v", r, err)
					}
				})
			}
			wg.Wait()
			if got := count(seen.take(), "POST notifications/initialized"); got != 1 {
				t.Errorf("got %d sessions, want 1", got)
			}
		})
	}
}

func TestATimeoutFailsItsOwnCallOnly(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"stateful", "stateful JSON", "SSE only"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			entered, release := make(chan struct{}, 2), make(chan struct{})
			h := handlers(newServer(hooks{block: func(context.Context) { entered <- struct{}{}; <-release }}))[name]
			p, _ := newPool(t, mcpclient.Options{})
			srv := mcpclient.Server{ID: "a", URL: serve(t, h)}
			long, short := make(chan error, 1), make(chan error, 1)
			ctx, impatient := patient(t), within(t, 500*time.Millisecond)
			go func() { _, err := p.Call(ctx, srv, "block", nil); long <- err }()
			<-entered
			go func() { _, err := p.Call(impatient, srv, "block", nil); short <- err }()
			<-entered
			if err := <-short; !errors.Is(err, mcpclient.ErrTimeout) {
				t.Errorf("the short call: got %v, want %v", err, mcpclient.ErrTimeout)
			}
			close(release)
			if err := <-long; err != nil {
				t.Errorf("the long call: got %v", err)
			}
			if _, err := p.Call(ctx, srv, "text", nil); err != nil {
				t.Errorf("a call after: got %v", err)
			}
		})
	}
}

// swap serves whatever handler was set last.
type swap struct{ h atomic.Pointer[http.Handler] }

func (s *swap) set(h http.Handler) { s.h.Store(&h) }

func (s *swap) ServeHTTP(w http.ResponseWriter, r *http.Request) { (*s.h.Load()).ServeHTTP(w, r) }

func TestAForgottenSessionIsMadeAnew(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"stateful", "stateful JSON"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var calls atomic.Int32
			fresh := func() http.Handler {
				return handlers(newServer(hooks{block: func(context.Context) { calls.Add(1) }}))[name]
			}
			s := &swap{}
			s.set(fresh())
			p, _ := newPool(t, mcpclient.Options{})
			srv := mcpclient.Server{ID: "a", URL: serve(t, s)}
			for i := range 3 {
				if _, err := p.Call(patient(t), srv, "block", nil); err != nil || int(calls.Load()) != i+1 {
					t.Fatalf("call %d: got %v, %d calls arrived", i, err, calls.Load())
				}
				s.set(fresh())
			}
		})
	}
}

func TestUnusedSessionsEnd(t *testing.T) {
	t.Parallel()
	ended := make(chan struct{}, 1)
	h := handlers(newServer(hooks{}))["stateful"]
	url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(w, r)
		if r.Method == http.MethodDelete {
			ended <- struct{}{}
		}
	}))
	p, _ := newPool(t, mcpclient.Options{Idle: 20 * time.Millisecond})
	for range 2 {
		if _, err := p.Call(patient(t), mcpclient.Server{ID: "a", URL: url}, "text", nil); err != nil {
			t.Fatal(err)
		}
		select {
		case <-ended:
		case <-patient(t).Done():
			t.Fatal("the session was not ended")
		}
	}
}

// A new session puts out the one that nobody used for longest.
func TestSessionsAreBounded(t *testing.T) {
	t.Parallel()
	ended := make(chan string, 8)
	var servers []mcpclient.Server
	for _, id := range []string{"a", "b", "c"} {
		h := handlers(newServer(hooks{}))["stateful"]
		servers = append(servers, mcpclient.Server{ID: id, URL: serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			h.ServeHTTP(w, r)
			if r.Method == http.MethodDelete {
				ended <- id
			}
		}))})
	}
	p, _ := newPool(t, mcpclient.Options{Sessions: 2})
	for _, i := range []int{0, 1, 0, 2} {
		if _, err := p.Call(patient(t), servers[i], "text", nil); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case got := <-ended:
		if got != "b" {
			t.Errorf("got the session with %s ended, want that with b", got)
		}
	case <-patient(t).Done():
		t.Error("no session was ended")
	}
}

// The bound is on one answer, not on all that a session brings.
func TestSessionsMayBringMuchInSum(t *testing.T) {
	t.Parallel()
	servers := map[string]mcpclient.Server{"stdio": command(t, filepath.Join(t.TempDir(), "x"))}
	for name, h := range handlers(newServer(hooks{})) {
		servers[name] = mcpclient.Server{URL: serve(t, h)}
	}
	for name, srv := range servers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, _ := newPool(t, mcpclient.Options{MaxBytes: 64 << 10, AllowStdio: true})
			for range 5 {
				if r, err := p.Call(patient(t), srv, "half", nil); err != nil || len(r.Text) != 1 || len(r.Text[0]) != 40<<10 {
					t.Fatalf("got %d texts, %v", len(r.Text), err)
				}
			}
		})
	}
}

func TestHeaders(t *testing.T) {
	t.Parallel()
	h := handlers(newServer(hooks{}))["stateful"]
	url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer s3cr3t" || r.Header.Get("X-Team") != "ops" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		h.ServeHTTP(w, r)
	}))
	p, _ := newPool(t, mcpclient.Options{})
	srv := mcpclient.Server{ID: "a", URL: url, Headers: map[string]string{"Authorization": "Bearer s3cr3t", "x-team": "ops",
		"Content-Type": "text/plain", "accept": "image/png", "Mcp-Session-Id": "another's", "MCP-Protocol-Version": "1"}}
	if _, err := p.Call(patient(t), srv, "text", nil); err != nil {
		t.Errorf("with the key: %v", err)
	}
	srv.Headers = map[string]string{"Authorization": "Bearer wr0ng"} // another configuration, another session
	_, err := p.Call(patient(t), srv, "text", nil)
	if !errors.Is(err, mcpclient.ErrUnauthorized) || strings.Contains(err.Error(), "wr0ng") || !strings.Contains(err.Error(), "401") {
		t.Errorf("with a wrong key: got %v, want %v with its status", err, mcpclient.ErrUnauthorized)
	}
}

func TestArgumentsAreAnObject(t *testing.T) {
	t.Parallel()
	p, seen := newPool(t, mcpclient.Options{})
	for _, args := range []string{`[]`, `1`, `null`, `{`, `{} {}`, ` `} {
		if _, err := p.Call(t.Context(), mcpclient.Server{ID: "a", URL: "http://127.0.0.1:1"}, "x", json.RawMessage(args)); !errors.Is(err, mcpclient.ErrArguments) || len(seen.take()) > 0 {
			t.Errorf("arguments %q: got %v, want %v before anything is sent", args, err, mcpclient.ErrArguments)
		}
	}
}

func TestClose(t *testing.T) {
	t.Parallel()
	entered, release := make(chan struct{}), make(chan struct{})
	ended := make(chan struct{}, 8)
	h := handlers(newServer(hooks{block: func(context.Context) { close(entered); <-release }}))["stateful"]
	url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodDelete {
			ended <- struct{}{}
		}
		h.ServeHTTP(w, r)
	}))
	defer close(release)
	p, _ := newPool(t, mcpclient.Options{})
	srv := mcpclient.Server{ID: "a", URL: url}
	got := make(chan error, 1)
	go func() { _, err := p.Call(context.WithoutCancel(t.Context()), srv, "block", nil); got <- err }()
	<-entered
	p.Close()
	if err := <-got; !errors.Is(err, mcpclient.ErrClosed) {
		t.Errorf("the call under way: got %v, want %v", err, mcpclient.ErrClosed)
	}
	select {
	case <-ended:
	default:
		t.Error("the session was not ended by Close")
	}
	if _, err := p.Call(t.Context(), srv, "text", nil); !errors.Is(err, mcpclient.ErrClosed) {
		t.Errorf("a call after: got %v, want %v", err, mcpclient.ErrClosed)
	}
	p.Close()
}
