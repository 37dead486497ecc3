package bridge_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/longstop-dev/longstop/internal/bridge"
	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/flow/flowtest"
	"github.com/longstop-dev/longstop/internal/nettest"
)

// bed is a hub behind a server, and an agent.
type bed struct {
	t     *testing.T
	hub   *bridge.Hub
	srv   *httptest.Server
	agent *httptest.Server
	holds func(context.Context) error
	conns chan *websocket.Conn
	begun chan struct{} // a request of /slow has begun
	ended chan error    // and was given up
}

func caller(key string) flow.Caller {
	return flow.Caller{Workspace: "ws", Person: key, Role: flow.RoleOperator}
}

func newBed(t *testing.T) *bed {
	t.Helper()
	b := &bed{t: t, hub: bridge.NewHub(flow.SystemClock{}), conns: make(chan *websocket.Conn, 16), begun: make(chan struct{}, 64), ended: make(chan error, 64),
		holds: func(context.Context) error { return nil }}
	b.srv = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		by, name := caller(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")), r.URL.Query().Get("name")
		if err := b.hub.Free(by, name); err != nil {
			w.WriteHeader(http.StatusConflict)
			fmt.Fprintf(w, `{"code":%q,"detail":%q}`, flow.CodeOf(err), err.Error())
			return
		}
		c, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{bridge.Subprotocol}})
		if err != nil {
			return
		}
		b.conns <- c
		_ = b.hub.Hold(context.WithoutCancel(r.Context()), c, by, name, b.holds)
		c.CloseNow()
	}))
	t.Cleanup(b.srv.Close)
	b.agent = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch r.URL.Path {
		case "/base/slow":
			b.begun <- struct{}{}
			<-r.Context().Done()
			b.ended <- r.Context().Err()
		case "/base/big":
			w.Write(bytes.Repeat([]byte("x"), 5<<20))
		case "/base/away":
			http.Redirect(w, r, "http://169.254.169.254/", http.StatusFound)
		default:
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Set-Cookie", "a=b")
			w.WriteHeader(http.StatusAccepted)
			fmt.Fprintf(w, "%s %s %s %s %s", r.Method, r.URL.RequestURI(), r.Header.Get("Authorization"), r.Header.Get("X-Other"), body)
		}
	}))
	t.Cleanup(b.agent.Close)
	return b
}

// side runs the agent's side until the test ends.
func (b *bed) side(name, key string) (told chan string, ended chan error) {
	ctx, cancel := context.WithCancel(context.Background())
	told, ended = make(chan string, 64), make(chan error, 1)
	s := bridge.Side{Server: b.srv.URL, Key: key, Name: name, To: b.agent.URL + "/base/", Clock: flow.SystemClock{}, Jitter: func() float64 { return 0 },
		Told: func(connected bool, _ error, _ time.Duration) { told <- fmt.Sprint(connected) }}
	done := make(chan struct{})
	go func() { defer close(done); ended <- s.Run(ctx) }()
	b.t.Cleanup(func() { cancel(); <-done })
	return told, ended
}

func await[T any](t *testing.T, ch <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(20 * time.Second):
		t.Fatalf("it never came: %s", what)
		panic("unreachable")
	}
}

func (b *bed) connected(told chan string) *websocket.Conn {
	b.t.Helper()
	if v := await(b.t, told, "a connection"); v != "true" {
		b.t.Fatalf("told %s, want connected", v)
	}
	c := await(b.t, b.conns, "the server's side of it")
	tick, late := time.NewTicker(5*time.Millisecond), time.After(20*time.Second)
	defer tick.Stop()
	for { // the hub takes it just after
		l, err := b.hub.Bridges(b.t.Context(), caller(""), nil)
		if err == nil && len(l.Items) > 0 {
			return c
		}
		select {
		case <-late:
			b.t.Fatal("the hub has not taken it")
		case <-tick.C:
		}
	}
}

func (b *bed) do(ctx context.Context, name, method, path, body string) (int, string, error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://anywhere.invalid"+path, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer tok")
	req.Header.Set("X-Other", "no")
	resp, err := b.hub.Do("ws", name, req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if resp.Header.Get("Set-Cookie") != "" {
		b.t.Errorf("a cookie came through")
	}
	return resp.StatusCode, string(raw), err
}

func TestWhatABridgeCarries(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	told, _ := b.side("desk", "ada")
	b.connected(told)
	code, body, err := b.do(t.Context(), "desk", "POST", "/a%2Fb/rpc?x=1", "hello")
	if err != nil || code != 202 || body != "POST /base/a%2Fb/rpc?x=1 Bearer tok  hello" {
		t.Errorf("got %d %q, %v", code, body, err)
	}
	for name, c := range map[string]struct{ method, path string }{
		"out of its path":       {"GET", "/../etc"},
		"out of it, encoded":    {"GET", "/x%2F..%2F..%2Fetc"},
		"out of it at the end":  {"GET", "/x/.."},
		"out of it backwards":   {"GET", "/x%5C..%5Cetc"},
		"another method":        {"DELETE", "/rpc"},
		"a large answer":        {"GET", "/big"},
		"a bridge nobody holds": {"GET", ""},
	} {
		to := "desk"
		if c.path == "" {
			to, c.path = "other", "/"
		}
		if code, body, err := b.do(t.Context(), to, c.method, c.path, ""); err == nil {
			t.Errorf("%s: got %d %.50q", name, code, body)
		}
	}
	if _, _, err := b.do(t.Context(), "desk", "POST", "/rpc", strings.Repeat("x", 4<<20+1)); flow.CodeOf(err) != flow.CodeTooLarge {
		t.Errorf("a large request: %v", err)
	}
	if code, _, err := b.do(t.Context(), "desk", "GET", "/away", ""); err != nil || code != http.StatusFound {
		t.Errorf("a redirect is handed on, not followed: %d, %v", code, err)
	}
	if _, err := b.hub.Do("elsewhere", "desk", httptest.NewRequest("GET", "/", nil)); !errors.Is(err, bridge.ErrAway) {
		t.Errorf("another workspace's: %v", err)
	}
	l, err := b.hub.Bridges(t.Context(), caller("eve"), nil)
	if err != nil || len(l.Items) != 1 || l.Items[0].Card != "bridge:desk" || l.Items[0].Person != "ada" {
		t.Errorf("list: %+v, %v", l, err)
	}
	l, err = b.hub.Bridges(t.Context(), flow.Caller{Workspace: "elsewhere", Person: "ada"}, nil)
	if err != nil || len(l.Items) != 0 {
		t.Errorf("another workspace's list: %+v, %v", l, err)
	}
}

func TestARequestThatIsGivenUp(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	told, _ := b.side("desk", "ada")
	b.connected(told)
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error, 1)
	go func() { _, _, err := b.do(ctx, "desk", "GET", "/slow", ""); failed <- err }()
	await(t, b.begun, "the request")
	cancel()
	if err := await(t, failed, "its end"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	await(t, b.ended, "the end of it at the agent")
}

// TestABridgeIsFull: 64 requests are under way at once, and no more.
func TestABridgeIsFull(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	told, _ := b.side("desk", "ada")
	b.connected(told)
	ctx, cancel := context.WithCancel(t.Context())
	const most = 64
	failed := make(chan error, most)
	for range most {
		go func() { _, _, err := b.do(ctx, "desk", "GET", "/slow", ""); failed <- err }()
	}
	for range most {
		await(t, b.begun, "a request")
	}
	if _, _, err := b.do(t.Context(), "desk", "GET", "/x", ""); err == nil || !strings.Contains(err.Error(), "under way over the bridge") {
		t.Errorf("one more: %v", err)
	}
	cancel()
	for range most {
		if err := await(t, failed, "the end of a request"); !errors.Is(err, context.Canceled) {
			t.Errorf("given up: %v", err)
		}
	}
	for range most {
		await(t, b.ended, "the end of it at the agent")
	}
}

// TestABridgeIsNotLedElsewhere: the key goes to the server and nowhere else.
func TestABridgeIsNotLedElsewhere(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	t.Cleanup(other.Close)
	srv := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	t.Cleanup(srv.Close)
	s := bridge.Side{Server: srv.URL, Key: "k", Name: "desk", To: "http://127.0.0.1:1", Clock: flow.SystemClock{}, Jitter: func() float64 { return 0 },
		Told: func(bool, error, time.Duration) {}}
	if err := s.Run(t.Context()); flow.CodeOf(err) != flow.CodeInvalid || !strings.Contains(err.Error(), "307") || asked.Load() != 0 {
		t.Errorf("got %v and %d requests elsewhere, want the answer told and none", err, asked.Load())
	}
}

// TestASilentServer is taken for dead after 25 seconds.
func TestASilentServer(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{bridge.Subprotocol}}); err == nil {
			_, _, _ = c.Read(r.Context()) // and says nothing
		}
	}))
	t.Cleanup(srv.Close)
	clock := flowtest.NewClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	told := make(chan bool, 64)
	s := bridge.Side{Server: srv.URL, Key: "k", Name: "desk", To: "http://127.0.0.1:1", Clock: clock, Jitter: func() float64 { return 0 },
		Told: func(connected bool, _ error, _ time.Duration) { told <- connected }}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); _ = s.Run(ctx) }()
	defer func() { stop(); <-done }()
	if !await(t, told, "a connection") {
		t.Fatal("it was not connected")
	}
	tick, late := time.NewTicker(5*time.Millisecond), time.After(20*time.Second)
	defer tick.Stop()
	for {
		select {
		case connected := <-told:
			if connected {
				t.Error("connected again before the loss was told")
			}
			return
		case <-late:
			t.Fatal("a server that says nothing is waited for")
		case <-tick.C: // the watch begins just after
			clock.Advance(25 * time.Second)
		}
	}
}

func TestABridgeIsHeldAgain(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	told, _ := b.side("desk", "ada")
	c := b.connected(told)
	failed := make(chan error, 1)
	go func() { _, _, err := b.do(t.Context(), "desk", "GET", "/slow", ""); failed <- err }()
	await(t, b.begun, "the request")
	c.CloseNow() // the connection is lost
	if err := await(t, failed, "its end"); err == nil {
		t.Error("a request that was on the way was answered")
	}
	if v := await(t, told, "the loss"); v != "false" {
		t.Errorf("told %s, want lost", v)
	}
	b.connected(told)
	if code, _, err := b.do(t.Context(), "desk", "GET", "/again", ""); err != nil || code != 202 {
		t.Errorf("afterwards: %d, %v", code, err)
	}
}

func TestWhoHoldsABridge(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	told, _ := b.side("desk", "ada")
	b.connected(told)
	_, ended := b.side("desk", "eve")
	if err := await(t, ended, "the refusal"); flow.CodeOf(err) != flow.CodeConflict || !strings.Contains(err.Error(), "ada") {
		t.Errorf("another person: %v", err)
	}
	_, ended = b.side("no/name", "eve")
	if err := await(t, ended, "the refusal"); flow.CodeOf(err) != flow.CodeInvalid {
		t.Errorf("no name: %v", err)
	}
	if code, _, err := b.do(t.Context(), "desk", "GET", "/still", ""); err != nil || code != 202 {
		t.Errorf("the holder: %d, %v", code, err)
	}
	for _, to := range []string{"", "x", "ftp://a", "http://u:p@a", "http://a?b=c"} {
		if err := (bridge.Side{To: to}).Run(t.Context()); flow.CodeOf(err) != flow.CodeInvalid {
			t.Errorf("to %q: %v", to, err)
		}
	}
}

// TestTwoSidesOfOnePerson: the newer one has the bridge, and the older one ends
// rather than take it back.
func TestTwoSidesOfOnePerson(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	told, ended := b.side("desk", "ada")
	b.connected(told)
	b.side("desk", "ada")
	if err := await(t, ended, "the end of the older"); flow.CodeOf(err) != flow.CodeConflict || !strings.Contains(err.Error(), "another connection of yours") {
		t.Errorf("the older: %v", err)
	}
	if code, _, err := b.do(t.Context(), "desk", "GET", "/x", ""); err != nil || code != 202 {
		t.Errorf("the newer: %d, %v", code, err)
	}
	if err := b.hub.Hold(t.Context(), nil, caller("eve"), "desk", nil); flow.CodeOf(err) != flow.CodeConflict {
		t.Errorf("another person who asked before it was taken: %v", err)
	}
	if err := b.hub.Hold(t.Context(), nil, caller("eve"), "no/name", nil); flow.CodeOf(err) != flow.CodeInvalid {
		t.Errorf("what is no name: %v", err)
	}
}

// dial is a side of ada's that the test plays.
func (b *bed) dial() *websocket.Conn {
	b.t.Helper()
	c, _, err := websocket.Dial(b.t.Context(), b.srv.URL+"/?name=desk", &websocket.DialOptions{HTTPClient: nettest.Client(), HTTPHeader: http.Header{"Authorization": {"Bearer ada"}}, Subprotocols: []string{bridge.Subprotocol}})
	if err != nil {
		b.t.Fatal(err)
	}
	c.SetReadLimit(16 << 20)
	b.t.Cleanup(func() { c.CloseNow() })
	await(b.t, b.conns, "the server's side")
	return c
}

// TestAConnectionThatIsDead does not hold up the one that comes after it.
func TestAConnectionThatIsDead(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.dial() // reads nothing, as a laptop that sleeps
	told, _ := b.side("desk", "ada")
	b.connected(told)
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second) // a goodbye is waited for longer
	defer cancel()
	for {
		code, _, err := b.do(ctx, "desk", "GET", "/x", "")
		if err == nil && code == 202 {
			return
		}
		if ctx.Err() != nil {
			t.Fatalf("the new connection carries nothing: %d, %v", code, err)
		}
	}
}

// TestACallGivenUpWhileItIsWritten takes no other along.
func TestACallGivenUpWhileItIsWritten(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	c := b.dial()
	first := make(chan string, 1)
	go func() {
		code, body, err := b.do(t.Context(), "desk", "POST", "/first", "x")
		first <- fmt.Sprint(code, body, err)
	}()
	_, frame, err := c.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var asked struct{ ID uint64 }
	if err := json.Unmarshal(frame, &asked); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond) // nobody reads: it is stuck in the middle of the frame
	defer cancel()
	if _, _, err := b.do(ctx, "desk", "POST", "/second", strings.Repeat("x", 4<<20)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the second: %v", err)
	}
	if err := c.Write(t.Context(), websocket.MessageText, fmt.Appendf(nil, `{"id":%d,"status":200,"body":"aGk="}`, asked.ID)); err != nil {
		t.Fatal(err)
	}
	if got := await(t, first, "the first's answer"); got != "200hi<nil>" {
		t.Errorf("the first: %s", got)
	}
}

// TestACallGivenUpWhileItIsAnswered leaves the connection to the others.
func TestACallGivenUpWhileItIsAnswered(t *testing.T) {
	t.Parallel()
	conns := make(chan *websocket.Conn, 1)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{bridge.Subprotocol}})
		if err == nil {
			c.SetReadLimit(16 << 20)
			conns <- c
			<-r.Context().Done()
		}
	}))
	t.Cleanup(srv.Close)
	agent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/big" {
			_, _ = w.Write(bytes.Repeat([]byte("x"), 4<<20))
		}
	}))
	t.Cleanup(agent.Close)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	s := bridge.Side{Server: srv.URL, Key: "k", Name: "desk", To: agent.URL, Clock: flow.SystemClock{}, Jitter: func() float64 { return 0 }, Told: func(bool, error, time.Duration) {}}
	go func() { defer close(done); _ = s.Run(ctx) }()
	defer func() { stop(); <-done }()
	c := await(t, conns, "the side")
	defer c.CloseNow()
	send := func(frame string) {
		if err := c.Write(t.Context(), websocket.MessageText, []byte(frame)); err != nil {
			t.Fatal(err)
		}
	}
	send(`{"id":1,"method":"GET","path":"/big"}`)
	_, big, err := c.Reader(t.Context()) // it begins to come, and does not fit what the wire holds
	if err != nil {
		t.Fatal(err)
	}
	send(`{"id":1,"cancel":true}`)
	send(`{"id":2,"method":"GET","path":"/small"}`)
	if n, err := io.Copy(io.Discard, big); err != nil || n < 4<<20 {
		t.Fatalf("the connection was dropped after %d bytes: %v", n, err)
	}
	if _, raw, err := c.Read(t.Context()); err != nil || !bytes.HasPrefix(raw, []byte(`{"id":2,`)) {
		t.Errorf("the other call: %.50s, %v", raw, err)
	}
}

// TestASideThatLies answers what nobody asked, and speaks nonsense.
func TestASideThatLies(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	dial := func() *websocket.Conn {
		c, _, err := websocket.Dial(t.Context(), b.srv.URL+"/?name=desk", &websocket.DialOptions{HTTPClient: nettest.Client(), HTTPHeader: http.Header{"Authorization": {"Bearer eve"}}})
		if err != nil {
			t.Fatal(err)
		}
		await(t, b.conns, "the server's side")
		return c
	}
	c := dial()
	defer c.CloseNow()
	for _, frame := range []string{`{"id":99,"status":200,"body":"AA=="}`, `{"id":0}`} {
		if err := c.Write(t.Context(), websocket.MessageText, []byte(frame)); err != nil {
			t.Fatal(err)
		}
	}
	got := make(chan string, 1)
	go func() {
		code, body, err := b.do(t.Context(), "desk", "GET", "/x", "")
		got <- fmt.Sprint(code, body, err)
	}()
	if _, _, err := c.Read(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := c.Write(t.Context(), websocket.MessageText, []byte(`{"id":1,"status":99999,"header":{"Set-Cookie":"a=b","Content-Type":"text/html"},"body":"aGk="}`)); err != nil {
		t.Fatal(err)
	}
	if v := await(t, got, "an answer"); v != "502hi<nil>" {
		t.Errorf("got %s, want a bad gateway", v)
	}
	if err := c.Write(t.Context(), websocket.MessageText, []byte("nonsense")); err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.Read(t.Context()); err == nil {
		t.Error("the server goes on with one who speaks nonsense")
	}
}
