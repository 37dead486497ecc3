package mcpclient_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/longstop-dev/longstop/internal/egress"
	"github.com/longstop-dev/longstop/internal/mcpclient"
)

// answer is a server that gives every request the same answer.
func answer(status int, kind, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	}
}

// drip sends one byte and then, now and then, another, until the client goes.
func drip(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		fmt.Fprint(w, " ")
		w.(http.Flusher).Flush()
		select {
		case <-tick.C:
		case <-r.Context().Done():
			return
		}
	}
}

func hang(_ http.ResponseWriter, r *http.Request) {
	buf := make([]byte, 1)
	for _, err := r.Body.Read(buf); err == nil; _, err = r.Body.Read(buf) { // only then is a client that goes noticed
	}
	<-r.Context().Done()
}

// inCalls is a good server that opens sessions and lists tools, where h
// answers the calls of tools.
func inCalls(name string, h http.HandlerFunc) http.Handler {
	good := handlers(newServer(hooks{}))[name]
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(b))
		if bytes.Contains(b, []byte(`"tools/call"`)) {
			h(w, r)
			return
		}
		good.ServeHTTP(w, r)
	})
}

// What a server may do wrong when a session is opened, and when a tool is
// called. Each is sorted, within the caller's time, and says no secret.
func TestFaults(t *testing.T) {
	t.Parallel()
	const key = "s3cr3t-t0ken"
	deep := `{"jsonrpc":"2.0","id":1,"result":` + strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000) + `}`
	for name, c := range map[string]struct {
		h    http.HandlerFunc
		want error
		says string
	}{
		"401":             {answer(401, "text/plain", "no"), mcpclient.ErrUnauthorized, "401"},
		"401 JSON-RPC":    {answer(401, "application/json", `{"jsonrpc":"2.0","id":1,"error":{"code":-32001,"message":"key expired"}}`), mcpclient.ErrUnauthorized, "401 Unauthorized: key expired"},
		"403":             {answer(403, "text/plain", "no"), mcpclient.ErrUnauthorized, "403"},
		"404":             {answer(404, "text/plain", "no"), mcpclient.ErrUnreachable, "404"},
		"429":             {answer(429, "text/plain", "no"), mcpclient.ErrUnreachable, "429"},
		"500":             {answer(500, "text/plain", "no"), mcpclient.ErrUnreachable, "500"},
		"503":             {answer(503, "text/html", "no"), mcpclient.ErrUnreachable, "503"},
		"HTML":            {answer(200, "text/html", "<html>hello"), mcpclient.ErrProtocol, "text/html"},
		"no JSON":         {answer(200, "application/json", "hello"), mcpclient.ErrProtocol, ""},
		"empty":           {answer(200, "application/json", ""), mcpclient.ErrProtocol, ""},
		"empty events":    {answer(200, "text/event-stream", ""), mcpclient.ErrUnreachable, "before it answered"},
		"20 MB":           {answer(200, "application/json", strings.Repeat(" ", 20<<20)), mcpclient.ErrTooLarge, "4194304 bytes"},
		"20 MB of events": {answer(200, "text/event-stream", strings.Repeat(": "+strings.Repeat("x", 1020)+"\n\n", 20<<10)), mcpclient.ErrTooLarge, ""},
		"20 MB event":     {answer(200, "text/event-stream", "data: "+strings.Repeat(" ", 20<<20)), mcpclient.ErrTooLarge, ""},
		"deep":            {answer(200, "application/json", deep), mcpclient.ErrTooDeep, "200 levels"},
		"deep event":      {answer(200, "text/event-stream", "data: "+deep+"\n\n"), mcpclient.ErrTooDeep, ""},
		"hang":            {hang, mcpclient.ErrTimeout, ""},
		"hang in body": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			w.(http.Flusher).Flush()
			hang(w, r)
		}, mcpclient.ErrTimeout, ""},
		"drip":   {drip, mcpclient.ErrTimeout, ""},
		"aborts": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, mcpclient.ErrUnreachable, ""},
	} {
		for when, h := range map[string]http.Handler{"at once": c.h, "stateful": inCalls("stateful", c.h), "stateless JSON": inCalls("stateless JSON", c.h)} {
			t.Run(name+", "+when, func(t *testing.T) {
				t.Parallel()
				p, _ := newPool(t, mcpclient.Options{})
				ctx, began := patient(t), time.Now()
				if errors.Is(c.want, mcpclient.ErrTimeout) {
					ctx = within(t, 300*time.Millisecond)
				}
				srv := mcpclient.Server{ID: "a", URL: serve(t, h) + "/mcp?token=" + key, Headers: map[string]string{"Authorization": "Bearer " + key}}
				_, err := p.Call(ctx, srv, "x", nil)
				if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), key) || len(err.Error()) > 300 {
					t.Errorf("got %v, want %v with %q", err, c.want, c.says)
				}
				if took := time.Since(began); errors.Is(c.want, mcpclient.ErrTimeout) && took > 2*time.Second {
					t.Errorf("it took %v, want about 300 ms", took)
				}
			})
		}
	}
}

// Some servers repeat what they were sent.
func TestEchoedHeadersAreMasked(t *testing.T) {
	t.Parallel()
	echo := func(status int) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			answer(status, "application/json", `{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"what is `+r.Header.Get("Authorization")+`?"}}`)(w, r)
		}
	}
	p, _ := newPool(t, mcpclient.Options{})
	for _, status := range []int{401, 404, 422, 500} {
		for when, h := range map[string]http.Handler{"at once": echo(status), "in calls": inCalls("stateful", echo(status))} {
			r, err := p.Call(patient(t), mcpclient.Server{URL: serve(t, h), Headers: map[string]string{"Authorization": "Bearer s3cr3t-t0ken"}}, "x", nil)
			said := fmt.Sprint(err, r.Text)
			if err == nil && !r.IsError || strings.Contains(said, "s3cr3t") || !strings.Contains(said, "what is") && !errors.Is(err, mcpclient.ErrTimeout) {
				t.Errorf("%d %s: got %s, %v", status, when, said, r.IsError)
			}
		}
	}
}

func TestNobodyThere(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.NotFoundHandler())
	s.Close()
	p, _ := newPool(t, mcpclient.Options{})
	for url, says := range map[string]string{s.URL + "/?token=s3cr3t-t0ken": "connection refused", "not a url": "absolute", "://": "absolute", "http://": "absolute"} {
		_, err := p.Tools(patient(t), mcpclient.Server{URL: url, Headers: map[string]string{"X": "s3cr3t-t0ken\n"}})
		if !errors.Is(err, mcpclient.ErrUnreachable) || strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("%q: got %v", url, err)
		}
		_, err = p.Tools(patient(t), mcpclient.Server{URL: url})
		if !errors.Is(err, mcpclient.ErrUnreachable) || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("%q: got %v, want %v with %q", url, err, mcpclient.ErrUnreachable, says)
		}
	}
}

// A refusal of the guard's can be told from a server that is down.
func TestRefusedByTheGuard(t *testing.T) {
	t.Parallel()
	g, err := egress.New(egress.Policy{})
	if err != nil {
		t.Fatal(err)
	}
	p := mcpclient.New(mcpclient.Options{HTTP: g.Client(egress.ClientOptions{})})
	t.Cleanup(p.Close)
	for _, transport := range []string{"", "streamable-http", "sse"} {
		for _, url := range []string{"https://127.0.0.1:1/mcp", "http://127.0.0.1:1/mcp", "https://169.254.169.254/"} {
			_, err = p.Call(patient(t), mcpclient.Server{URL: url, Transport: transport}, "x", nil)
			if !errors.Is(err, egress.ErrRefused) || !errors.Is(err, mcpclient.ErrUnreachable) {
				t.Errorf("%s over %q: got %v, want %v and %v", url, transport, err, mcpclient.ErrUnreachable, egress.ErrRefused)
			}
		}
	}
}

// Neither a redirect nor an endpoint of the old transport leads to another
// origin.
func TestOtherOrigins(t *testing.T) {
	t.Parallel()
	var reached atomic.Int32
	elsewhere := serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	p, _ := newPool(t, mcpclient.Options{})
	for _, status := range []int{301, 302, 303, 307, 308} {
		url := serve(t, http.RedirectHandler(elsewhere, status))
		for _, transport := range []string{"", "streamable-http", "sse"} {
			_, err := p.Call(patient(t), mcpclient.Server{URL: url, Transport: transport, Headers: map[string]string{"Authorization": "Bearer s3cr3t"}}, "x", nil)
			if !errors.Is(err, mcpclient.ErrUnreachable) || !strings.Contains(err.Error(), "redirects are not followed") {
				t.Errorf("%d over %q: got %v, want %v", status, transport, err, mcpclient.ErrUnreachable)
			}
		}
	}
	url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "event: endpoint\ndata: %s/x\n\n", elsewhere)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}))
	_, err := p.Call(patient(t), mcpclient.Server{URL: url, Transport: "sse"}, "x", nil)
	if !errors.Is(err, mcpclient.ErrProtocol) || !strings.Contains(err.Error(), "another origin") {
		t.Errorf("an endpoint elsewhere: got %v, want %v", err, mcpclient.ErrProtocol)
	}
	if n := reached.Load(); n != 0 {
		t.Errorf("the other origin got %d requests, want none", n)
	}
}

// many is a server of n tools.
func many(n int) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "many", Version: "1"}, &mcp.ServerOptions{PageSize: 300})
	for i := range n {
		s.AddTool(&mcp.Tool{Name: fmt.Sprintf("tool%d", i), InputSchema: json.RawMessage(`{"type":"object"}`)}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{}, nil
		})
	}
	return s
}

func TestManyTools(t *testing.T) {
	t.Parallel()
	p, _ := newPool(t, mcpclient.Options{})
	for _, n := range []int{0, 1, 1000, 1001} {
		tools, err := p.Tools(patient(t), mcpclient.Server{URL: serve(t, handlers(many(n))["stateful"])})
		if n <= 1000 && (err != nil || len(tools) != n) {
			t.Errorf("%d tools: got %d, %v", n, len(tools), err)
		}
		if n > 1000 && !errors.Is(err, mcpclient.ErrTooLarge) {
			t.Errorf("%d tools: got %d, %v, want %v", n, len(tools), err, mcpclient.ErrTooLarge)
		}
	}
}

// A server whose list has no end is left.
func TestEndlessPages(t *testing.T) {
	t.Parallel()
	url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m struct {
			ID     json.RawMessage
			Method string
		}
		_ = json.NewDecoder(r.Body).Decode(&m)
		result := map[string]string{
			"initialize": `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}}`,
			"tools/list": `{"tools":[],"nextCursor":"again"}`,
		}[m.Method]
		switch {
		case m.ID == nil:
			w.WriteHeader(http.StatusAccepted)
		case result == "":
			answer(http.StatusOK, "application/json", fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}`, m.ID))(w, r)
		default:
			answer(http.StatusOK, "application/json", fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result))(w, r)
		}
	}))
	p, _ := newPool(t, mcpclient.Options{})
	if tools, err := p.Tools(patient(t), mcpclient.Server{URL: url}); !errors.Is(err, mcpclient.ErrTooLarge) {
		t.Errorf("got %d tools, %v, want %v", len(tools), err, mcpclient.ErrTooLarge)
	}
}

// An answer over the bound fails its own call and nothing else.
func TestTooLargeFailsItsOwnCallOnly(t *testing.T) {
	t.Parallel()
	for name, h := range handlers(newServer(hooks{})) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, _ := newPool(t, mcpclient.Options{MaxBytes: 64 << 10})
			srv := mcpclient.Server{URL: serve(t, h)}
			for range 2 {
				if _, err := p.Call(patient(t), srv, "huge", nil); !errors.Is(err, mcpclient.ErrTooLarge) {
					t.Errorf("got %v, want %v", err, mcpclient.ErrTooLarge)
				}
				if _, err := p.Call(patient(t), srv, "text", nil); err != nil {
					t.Errorf("a call after: %v", err)
				}
			}
		})
	}
}

// Nothing that a hostile server does leaves a goroutine behind. Not parallel:
// it counts those of the whole process.
func TestNoGoroutineStays(t *testing.T) {
	before := runtime.NumGoroutine()
	func() {
		base := &http.Transport{}
		defer base.CloseIdleConnections()
		for name, h := range map[string]http.HandlerFunc{"hang": hang, "drip": drip} {
			s := httptest.NewServer(h)
			p := mcpclient.New(mcpclient.Options{HTTP: &http.Client{Transport: base}})
			for range 5 {
				if _, err := p.Call(within(t, 50*time.Millisecond), mcpclient.Server{URL: s.URL}, "x", nil); !errors.Is(err, mcpclient.ErrTimeout) {
					t.Errorf("%s: got %v, want %v", name, err, mcpclient.ErrTimeout)
				}
			}
			p.Close()
			s.CloseClientConnections()
			s.Close()
		}
	}()
	left := 0
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); runtime.Gosched() {
		if left = runtime.NumGoroutine() - before; left <= 0 {
			return
		}
	}
	buf := make([]byte, 1<<16)
	t.Errorf("%d goroutines stay:\n%s", left, buf[:runtime.Stack(buf, true)])
}
