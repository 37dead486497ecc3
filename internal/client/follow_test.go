package client_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/longstop-dev/longstop/internal/client"
	"github.com/longstop-dev/longstop/internal/flow"
)

// sockets is a server of which visit answers each socket, told its number
// from 1 and where it starts.
func sockets(t *testing.T, visit func(ctx context.Context, c *websocket.Conn, n int64, after int)) (*httptest.Server, *atomic.Int64) {
	t.Helper()
	var n atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		i := n.Add(1)
		after, err := strconv.Atoi(r.URL.Query().Get("after"))
		if err != nil || r.Header.Get("Authorization") != "Bearer k" || r.URL.Path != "/v1/runs/run_1/events" {
			t.Errorf("got %s with %v", r.URL, r.Header)
		}
		if i == 3 { // between two servers
			http.Error(w, "bad gateway", http.StatusBadGateway)
			return
		}
		c, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer c.CloseNow()
		visit(c.CloseRead(r.Context()), c, i, after)
	}))
	t.Cleanup(s.Close)
	return s, &n
}

func sendEvent(ctx context.Context, c *websocket.Conn, seq int) {
	_ = c.Write(ctx, websocket.MessageText, fmt.Appendf(nil, `{"seq":%d,"type":"step:started","at":"2026-01-01T00:00:00Z"}`, seq))
}

// TestFollowResumes breaks the connection again and again, and repeats events
// that were seen.
func TestFollowResumes(t *testing.T) {
	t.Parallel()
	s, visits := sockets(t, func(ctx context.Context, c *websocket.Conn, n int64, after int) {
		if n > 1 {
			sendEvent(ctx, c, after) // once more
		}
		for i := after + 1; i <= after+3; i++ {
			sendEvent(ctx, c, i)
		}
		switch {
		case after+3 >= 12:
			c.Close(websocket.StatusNormalClosure, "")
		case n%2 == 0:
			c.Close(websocket.StatusGoingAway, "")
		}
	})
	var got []int64
	err := client.New(s.URL, "k", client.Options{}).Follow(t.Context(), "run_1", 0, func(e flow.Event) error {
		got = append(got, e.Seq)
		return nil
	})
	if want := []int64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
	if visits.Load() != 5 {
		t.Errorf("connections: got %d, want 5", visits.Load())
	}
}

func TestFollowGivesUp(t *testing.T) {
	t.Parallel()
	s, visits := sockets(t, func(context.Context, *websocket.Conn, int64, int) {}) // each breaks at once
	err := client.New(s.URL, "k", client.Options{Patience: 500 * time.Millisecond}).Follow(t.Context(), "run_1", 0, func(flow.Event) error { return nil })
	if flow.CodeOf(err) != flow.CodeUnavailable || visits.Load() < 2 {
		t.Errorf("got %v after %d connections, want unavailable after some", err, visits.Load())
	}
}

func TestFollowNoticesSilence(t *testing.T) {
	t.Parallel()
	s, _ := sockets(t, func(ctx context.Context, c *websocket.Conn, n int64, _ int) {
		if n == 1 {
			<-ctx.Done() // neither events nor pings: a cut cable
			return
		}
		c.Close(websocket.StatusNormalClosure, "")
	})
	if err := client.New(s.URL, "k", client.Options{Quiet: 100 * time.Millisecond}).Follow(t.Context(), "run_1", 0, nil); err != nil {
		t.Errorf("got %v, want the end over a second connection", err)
	}
}

func TestFollowStopsWhenTold(t *testing.T) {
	t.Parallel()
	open := func(ctx context.Context, c *websocket.Conn, _ int64, _ int) { sendEvent(ctx, c, 1); <-ctx.Done() }
	s, _ := sockets(t, open)
	c := client.New(s.URL, "k", client.Options{})
	enough := errors.New("enough")
	if err := c.Follow(t.Context(), "run_1", 0, func(flow.Event) error { return enough }); !errors.Is(err, enough) {
		t.Errorf("got %v, want what the caller gave", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if err := c.Follow(ctx, "run_1", 0, func(flow.Event) error { cancel(); return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
	s, _ = sockets(t, func(_ context.Context, c *websocket.Conn, _ int64, _ int) {
		c.Close(websocket.StatusPolicyViolation, "")
	})
	if err := client.New(s.URL, "k", client.Options{}).Follow(t.Context(), "run_1", 0, nil); flow.CodeOf(err) != flow.CodeUnauthenticated {
		t.Errorf("a key that holds no longer: got %v, want unauthenticated", err)
	}
	s, _ = sockets(t, func(ctx context.Context, c *websocket.Conn, _ int64, _ int) {
		_ = c.Write(ctx, websocket.MessageText, []byte("<html>"))
		<-ctx.Done()
	})
	if err := client.New(s.URL, "k", client.Options{Patience: time.Nanosecond}).Follow(t.Context(), "run_1", 0, nil); flow.CodeOf(err) != flow.CodeUnavailable {
		t.Errorf("what is no event: got %v, want unavailable", err)
	}
}
