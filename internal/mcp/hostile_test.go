package mcp_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"sync"
	"testing"
	"time"

	"github.com/longstop-dev/longstop/internal/mcp"
)

// TestSlowMessagesLeaveRoomForOthers: who holds connections open takes no more
// than its share of the seats, be it one key or all of a workspace.
func TestSlowMessagesLeaveRoomForOthers(t *testing.T) {
	t.Parallel()
	url := alone(t, mcp.Limits{Calls: 16, BodyTime: time.Minute})
	pool := &http.Transport{ExpectContinueTimeout: time.Minute}
	t.Cleanup(pool.CloseIdleConnections)
	ctx, end := context.WithCancel(t.Context())
	var sent sync.WaitGroup
	t.Cleanup(func() { end(); sent.Wait() })
	seated := func(key string) bool { // one more message of the key, which never comes
		reads, answered := make(chan bool, 1), make(chan bool, 1)
		body, w := io.Pipe()
		context.AfterFunc(ctx, func() { w.Close() })
		req, err := http.NewRequestWithContext(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{Got100Continue: func() { reads <- true }}), "POST", url, body)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Expect", "100-continue") // the server asks for the message when it has a seat
		req.Header.Set("Authorization", "Bearer "+key)
		sent.Go(func() {
			if resp, err := pool.RoundTrip(req); err == nil {
				resp.Body.Close()
			}
			answered <- true
		})
		select {
		case <-reads:
			return true
		case <-answered:
			return false
		}
	}
	for _, key := range []string{"a", "b", "c"} {
		for n := 0; seated(key); n++ {
			if n >= 4 {
				t.Fatalf("%s: a key takes more than a quarter of the seats", key)
			}
		}
	}
	for _, key := range []string{"ws/quick", "other/quick"} {
		if status, _, body := post(t, url, key, initialize); status != http.StatusOK {
			t.Errorf("%s: got %d %s, want 200", key, status, body)
		}
	}
}

// TestSessionsOpenedAtOnceAreBoundedByKey: a key's sessions count while they
// are being opened, too.
func TestSessionsOpenedAtOnceAreBoundedByKey(t *testing.T) {
	t.Parallel()
	url := alone(t, mcp.Limits{Sessions: 60, KeySessions: 2})
	var mu sync.Mutex
	var ids []string
	for range 3 { // some requests of each burst open together
		var wg sync.WaitGroup
		for range 60 {
			wg.Go(func() {
				status, h, _ := post(t, url, "greedy", initialize)
				if id := h.Get("Mcp-Session-Id"); status == http.StatusOK && id != "" {
					mu.Lock()
					ids = append(ids, id)
					mu.Unlock()
				}
			})
		}
		wg.Wait()
	}
	alive := func() (n int) {
		for _, id := range ids {
			if status, _, _ := post(t, url, "greedy", `{"jsonrpc":"2.0","id":7,"method":"ping"}`, "Mcp-Session-Id", id); status == http.StatusOK {
				n++
			}
		}
		return n
	}
	for late := time.Now().Add(10 * time.Second); alive() > 2; { // the oldest are closed in the background
		if time.Now().After(late) {
			t.Fatalf("one key holds %d sessions, want at most 2", alive())
		}
	}
	if status, _, body := post(t, url, "other", initialize); status != http.StatusOK {
		t.Errorf("another key: got %d %s, want 200", status, body)
	}
}

// TestOddResources: odd URIs name nothing, and break nothing.
func TestOddResources(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	key, _ := b.key("agent")
	for _, uri := range []string{"cffbrw://recovery/../pending", "cffbrw://recovery/a%2Fb/0", "cffbrw://recovery/r/-1", "cffbrw://recovery/r/99999999999999999999",
		"cffbrw://recovery/r/0?iteration=%zz", "cffbrw://recovery/%00/0", "cffbrw://recovery//0", "file:///etc/passwd", "cffbrw://recovery/r/0#x", "CFFBRW://recovery/r/0", ""} {
		status, _, body := post(t, b.s.URL()+"/mcp", key, fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":%q,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`, uri),
			"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "resources/read", "Mcp-Name", uri)
		if status >= 500 {
			t.Errorf("%q: got %d %s", uri, status, body)
		}
	}
}

// TestASessionBelongsToItsKey: another's key neither uses nor ends it.
func TestASessionBelongsToItsKey(t *testing.T) {
	t.Parallel()
	url := alone(t, mcp.Limits{})
	id := opened(t, url, "a")
	if status, _, body := post(t, url, "b", `{"jsonrpc":"2.0","id":7,"method":"ping"}`, "Mcp-Session-Id", id); status < 400 {
		t.Errorf("another's ping: got %d %s", status, body)
	}
	if status, _, body := send(t, "DELETE", url, "b", "", "Mcp-Session-Id", id); status < 400 {
		t.Errorf("another's end: got %d %s", status, body)
	}
	if status, _, body := post(t, url, "a", `{"jsonrpc":"2.0","id":7,"method":"ping"}`, "Mcp-Session-Id", id); status != http.StatusOK {
		t.Errorf("its own ping after that: got %d %s", status, body)
	}
}
