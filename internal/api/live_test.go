package api_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/longstop-dev/longstop/internal/api"
	"github.com/longstop-dev/longstop/internal/flow"
)

func kind(k string) flow.Event { return flow.Event{Type: k} }

// dial opens a socket on a run's events.
func (b *bed) dial(query string, change ...func(*websocket.DialOptions)) (*websocket.Conn, *http.Response, error) {
	b.t.Helper()
	o := &websocket.DialOptions{HTTPClient: b.srv.Client(), HTTPHeader: http.Header{"Authorization": {"Bearer " + b.owner}}}
	for _, f := range change {
		f(o)
	}
	c, resp, err := websocket.Dial(b.t.Context(), b.srv.URL+"/v1/runs/run_1/events"+query, o)
	if err == nil {
		b.t.Cleanup(func() { c.CloseNow() })
	}
	return c, resp, err
}

func (b *bed) mustDial(query string, change ...func(*websocket.DialOptions)) *websocket.Conn {
	b.t.Helper()
	c, _, err := b.dial(query, change...)
	if err != nil {
		b.t.Fatalf("dial: %v", err)
	}
	return c
}

// rest reads a socket to its end: the sequence numbers, and how it closed.
func rest(ctx context.Context, c *websocket.Conn) ([]int64, websocket.StatusCode) {
	var out []int64
	for {
		_, b, err := c.Read(ctx)
		if err != nil {
			return out, websocket.CloseStatus(err)
		}
		var e flow.Event
		if err := json.Unmarshal(b, &e); err != nil {
			return out, -2
		}
		out = append(out, e.Seq)
	}
}

func upTo(from, to int64) []int64 {
	var out []int64
	for i := from; i <= to; i++ {
		out = append(out, i)
	}
	return out
}

// TestWatchersMissNothing has 200 sockets follow one run while its events
// happen, singly and in bursts over several pages.
func TestWatchersMissNothing(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.eng.happens("run_1", kind(flow.EventRunStarted))
	const watchers, bursts, each = 200, 12, 20
	var wg sync.WaitGroup
	for i := range watchers {
		after := int64(i % 3) // 0 and 1 catch up, 2 waits
		c := b.mustDial(fmt.Sprintf("?after=%d", after))
		wg.Go(func() {
			got, status := rest(t.Context(), c)
			if want := upTo(after+1, bursts*each+2); !slices.Equal(got, want) || status != websocket.StatusNormalClosure {
				t.Errorf("watcher %d: got %d events, closed with %d; want %d in order and 1000", i, len(got), status, len(want))
			}
		})
	}
	for i := range bursts {
		burst := slices.Repeat([]flow.Event{kind(flow.EventStepStarted)}, each)
		if i%2 == 0 {
			b.eng.happens("run_1", burst...)
			continue
		}
		for _, e := range burst {
			b.eng.happens("run_1", e)
		}
	}
	b.eng.happens("run_1", kind(flow.EventRunSucceeded))
	wg.Wait()
}

func TestASocketResumes(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.eng.happens("run_1", slices.Repeat([]flow.Event{kind(flow.EventStepStarted)}, 450)...)
	b.eng.happens("run_1", kind(flow.EventRunSucceeded))
	for after, want := range map[int64][]int64{0: upTo(1, 451), 200: upTo(201, 451), 450: {451}, 451: nil} {
		got, status := rest(t.Context(), b.mustDial(fmt.Sprintf("?after=%d", after)))
		if !slices.Equal(got, want) || status != websocket.StatusNormalClosure {
			t.Errorf("after %d: got %d events, closed with %d; want %d and 1000", after, len(got), status, len(want))
		}
	}
}

// TestARunThatWentOnIsFollowedOn: a person's retry goes on in a failed run.
func TestARunThatWentOnIsFollowedOn(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.eng.happens("run_1", kind(flow.EventRunStarted), kind(flow.EventRunFailed), kind(flow.EventRunResumed))
	c := b.mustDial("")
	b.eng.happens("run_1", kind(flow.EventRunSucceeded))
	if got, status := rest(t.Context(), c); !slices.Equal(got, upTo(1, 4)) || status != websocket.StatusNormalClosure {
		t.Errorf("got %v, closed with %d; want 1 to 4 and 1000", got, status)
	}
}

func TestASlowReaderIsLetGo(t *testing.T) {
	t.Parallel()
	b := newBed(t, func(c *api.Config) { c.Limits = api.Limits{WriteTime: 100 * time.Millisecond, Followers: 1} })
	big, _ := json.Marshal(strings.Repeat("x", 1<<20))
	b.eng.happens("run_1", slices.Repeat([]flow.Event{{Type: flow.EventStepStarted, Data: big}}, 16)...)
	b.mustDial("") // reads nothing
	a := b.do("GET", "/v1/runs/run_1/events", "", "", "Accept", "text/event-stream")
	if p := a.problem(t); a.status != 503 || p.Code != flow.CodeUnavailable {
		t.Errorf("one follower too many: got %d %s, want 503", a.status, a.body)
	}
	<-b.eng.gone // the handler of the slow one has left
	if a := b.do("GET", "/v1/runs/run_1/events?limit=1", "", ""); a.status != 200 {
		t.Errorf("a page: got %d, want 200", a.status)
	}
}

func TestASlowStreamIsLetGo(t *testing.T) {
	t.Parallel()
	b := newBed(t, func(c *api.Config) { c.Limits = api.Limits{WriteTime: 100 * time.Millisecond} })
	big, _ := json.Marshal(strings.Repeat("x", 1<<20))
	b.eng.happens("run_1", slices.Repeat([]flow.Event{{Type: flow.EventStepStarted, Data: big}}, 16)...)
	resp := b.stream("", nil)
	<-b.eng.gone
	resp.Body.Close()
}

func TestAQuietSocketIsPinged(t *testing.T) {
	t.Parallel()
	b := newBed(t, func(c *api.Config) { c.Limits.PingEvery = time.Minute })
	pings := make(chan struct{}, 10)
	c := b.mustDial("", func(o *websocket.DialOptions) {
		o.OnPingReceived = func(context.Context, []byte) bool { pings <- struct{}{}; return true }
	})
	ended := make(chan websocket.StatusCode, 1)
	go func() { _, status := rest(t.Context(), c); ended <- status }()
	for range 3 {
		b.clock.AwaitWaiters(1)
		b.clock.Advance(time.Minute)
		<-pings
	}
	b.eng.happens("run_1", kind(flow.EventRunSucceeded))
	if got := <-ended; got != websocket.StatusNormalClosure {
		t.Errorf("closed with %d, want 1000", got)
	}
}

func TestASocketEndsWithItsKey(t *testing.T) {
	t.Parallel()
	b := newBed(t) // whose clock stands: the key's end is told, not noticed at the next ping
	key, id := b.key(flow.RoleViewer)
	c := b.mustDial("", func(o *websocket.DialOptions) { o.HTTPHeader.Set("Authorization", "Bearer "+key) })
	if a := b.do("DELETE", "/v1/keys/"+id, "", ""); a.status != 204 {
		t.Fatalf("revoke: got %d", a.status)
	}
	if _, status := rest(t.Context(), c); status != websocket.StatusPolicyViolation {
		t.Errorf("closed with %d, want 1008", status)
	}
}

func TestCloseSendsFollowersAway(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	c := b.mustDial("")
	resp := b.stream("", nil)
	b.api.Close()
	b.api.Close()
	if _, status := rest(t.Context(), c); status != websocket.StatusGoingAway {
		t.Errorf("socket: closed with %d, want 1001", status)
	}
	if text := readAll(t, resp); strings.Contains(text, "event: end") {
		t.Errorf("stream: got %q, want no end: the run goes on", text)
	}
	if a := b.do("GET", "/v1/me", "", ""); a.status != 200 {
		t.Errorf("another request: got %d, want 200", a.status)
	}
}

func TestABrowsersSocket(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.eng.happens("run_1", kind(flow.EventRunSucceeded))
	browser := func(origin string) func(*websocket.DialOptions) {
		return func(o *websocket.DialOptions) {
			o.HTTPHeader = http.Header{"Origin": {origin}}
			o.Subprotocols = []string{"longstop.v1", "bearer." + b.owner}
		}
	}
	c, resp, err := b.dial("", browser("https://stop.example"))
	if err != nil {
		t.Fatalf("from the public URL: %v", err)
	}
	if got := c.Subprotocol(); got != "longstop.v1" || strings.Contains(fmt.Sprint(resp.Header), b.owner) {
		t.Errorf("subprotocol: got %q in %v, want longstop.v1 and no key", got, resp.Header)
	}
	if got, status := rest(t.Context(), c); len(got) != 1 || status != websocket.StatusNormalClosure {
		t.Errorf("got %v, %d; want one event and 1000", got, status)
	}
	if _, resp, err := b.dial("", browser("https://evil.example")); err == nil || resp.StatusCode != http.StatusForbidden {
		t.Errorf("from another site: got %v, want 403", err)
	}
	if _, resp, err := b.dial("?access_token="+b.owner, func(o *websocket.DialOptions) { o.HTTPHeader = nil }); err == nil || resp.StatusCode != 401 {
		t.Errorf("a key in the URL: got %v, want 401", err)
	}
	if strings.Contains(b.log.String(), b.owner) {
		t.Error("the key is in the log")
	}
}

func TestWhatCannotBeFollowed(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	for path, want := range map[string]int{"/v1/runs/none/events": 404, "/v1/runs/run_1/events?after=-1": 422, "/v1/runs/run_1/events?after=x": 422,
		"/v1/runs/run_1/events?after=99999999999999999999": 422} {
		for _, header := range [][2]string{{"Accept", "text/event-stream"}, {"Upgrade", "websocket"}} {
			a := b.do("GET", path, "", "", header[0], header[1], "Connection", "Upgrade")
			if a.problem(t); a.status != want {
				t.Errorf("%s with %v: got %d %s, want %d", path, header, a.status, a.body, want)
			}
		}
	}
	for _, tc := range []struct {
		header []string
		want   int
	}{
		{[]string{"Upgrade", "websocket", "Connection", "Upgrade"}, 400},
		{[]string{"Upgrade", "websocket"}, 426},
		{[]string{"Upgrade", "websocket", "Connection", "Upgrade", "Sec-WebSocket-Version", "13", "Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==", "Origin", "https://evil.example"}, 403},
	} {
		a := b.do("GET", "/v1/runs/run_1/events", "", "", tc.header...)
		if p := a.problem(t); a.status != tc.want || p.Fix == "" {
			t.Errorf("%v: got %d %s, want %d", tc.header, a.status, a.body, tc.want)
		}
	}
}

// stream asks for text/event-stream.
func (b *bed) stream(query string, header http.Header) *http.Response {
	b.t.Helper()
	req, err := http.NewRequestWithContext(b.t.Context(), "GET", b.srv.URL+"/v1/runs/run_1/events"+query, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	for name, v := range header {
		req.Header[name] = v
	}
	req.Header.Set("Authorization", "Bearer "+b.owner)
	req.Header.Set("Accept", "text/event-stream")
	resp, err := b.srv.Client().Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { resp.Body.Close() })
	if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "text/event-stream" {
		b.t.Fatalf("got %d, %q; want a stream", resp.StatusCode, resp.Header.Get("Content-Type"))
	}
	return resp
}

func readAll(t *testing.T, resp *http.Response) string {
	t.Helper()
	var out strings.Builder
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		out.WriteString(lines.Text() + "\n")
	}
	return out.String()
}

func TestAStream(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.eng.happens("run_1", kind(flow.EventRunStarted), kind(flow.EventStepStarted))
	first := b.stream("", nil)
	second := b.stream("?after=1", http.Header{"Last-Event-ID": {"2"}})
	b.eng.happens("run_1", kind(flow.EventRunSucceeded))
	message := func(seq int, k string) string {
		return fmt.Sprintf("id: %d\ndata: {\"seq\":%d,\"type\":%q,\"at\":\"0001-01-01T00:00:00Z\"}\n\n", seq, seq, k)
	}
	end := message(3, "run:succeeded") + "event: end\ndata: {}\n\n"
	if got, want := readAll(t, first), message(1, "run:started")+message(2, "step:started")+end; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := readAll(t, second); got != end {
		t.Errorf("resumed: got %q, want %q", got, end)
	}
	page := b.do("GET", "/v1/runs/run_1/events?after=1&limit=1", "", "")
	if want := `{"items":[{"seq":2,"type":"step:started","at":"0001-01-01T00:00:00Z"}],"next":"more"}` + "\n"; page.body != want {
		t.Errorf("a page: got %s, want %s", page.body, want)
	}
}

// TestAFollowerBehindEndsWithItsKey: a key that is revoked while its follower
// has much to catch up with ends it then, not after the last of it.
func TestAFollowerBehindEndsWithItsKey(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	big, _ := json.Marshal(strings.Repeat("x", 64<<10))
	const n = 1000
	b.eng.happens("run_1", slices.Repeat([]flow.Event{{Type: flow.EventStepStarted, Data: big}}, n)...)
	key, id := b.key(flow.RoleViewer)
	c := b.mustDial("?after=0", func(o *websocket.DialOptions) { o.HTTPHeader.Set("Authorization", "Bearer "+key) })
	c.SetReadLimit(1 << 20)
	if _, _, err := c.Read(t.Context()); err != nil {
		t.Fatal(err)
	}
	if a := b.do("DELETE", "/v1/keys/"+id, "", ""); a.status != 204 {
		t.Fatalf("revoke: got %d", a.status)
	}
	got, status := rest(t.Context(), c)
	if len(got) >= n-1 || status != websocket.StatusPolicyViolation {
		t.Errorf("after its key was revoked it got %d of %d events, closed with %d; want it to end within a page, with 1008", len(got), n-1, status)
	}
}
