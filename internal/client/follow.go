package client

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/coder/websocket"

	"github.com/longstop-dev/longstop/internal/flow"
)

// maxEvent is the most that one event may hold, in bytes.
const maxEvent = 16 << 20

// A connection that brought an event or held longEnough was of use: after it
// the waits between tries start again at firstWait.
const (
	firstWait  = 100 * time.Millisecond
	longEnough = 5 * time.Second
)

// Follow calls each with every event of a run that has a higher sequence
// number than after, in order, each once, and returns nil after the run's last
// one. A connection that breaks is taken up again where it was. It returns
// each's error, ctx's, and what the server refuses; unavailable if a server
// that did answer has not come back within [Options.Patience].
func (c *Client) Follow(ctx context.Context, runID string, after int64, each func(flow.Event) error) error {
	return follow(ctx, &following[flow.Event]{c: c, path: at("/v1/runs/", runID, "/events"), after: after, each: each, seq: func(e *flow.Event) int64 { return e.Seq }})
}

// FollowVault is [Client.Follow] for the events of a vault, which have no last
// one: it returns nil when the vault is removed.
func (c *Client) FollowVault(ctx context.Context, vault string, after int64, each func(flow.VaultEvent) error) error {
	return follow(ctx, &following[flow.VaultEvent]{c: c, path: at("/v1/vaults/", vault, "/events"), after: after, each: each, seq: func(e *flow.VaultEvent) int64 { return e.Seq }})
}

func follow[E any](ctx context.Context, f *following[E]) error {
	c := f.c
	broke := c.o.Clock.Now() // when a connection was lost that had been of use
	wait := firstWait
	for {
		began, opened, had := c.o.Clock.Now(), f.opened, f.after
		err := f.once(ctx)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case f.final(err):
			return err
		}
		now := c.o.Clock.Now()
		if f.opened > opened && (f.after > had || now.Sub(began) > longEnough) {
			broke, wait = now, firstWait
		}
		if now.Sub(broke) > c.o.Patience {
			return err
		}
		tick, stop := c.o.Clock.After(wait)
		select {
		case <-tick:
		case <-ctx.Done():
		}
		stop()
		wait = min(2*wait, 5*time.Second)
	}
}

// following is one call of Follow.
type following[E any] struct {
	c      *Client
	path   string
	after  int64
	each   func(E) error
	seq    func(*E) int64
	opened int   // connections that were made
	given  error // what each returned
}

// final tells an error that trying again would not mend.
func (f *following[E]) final(err error) bool {
	if f.given != nil || f.opened == 0 {
		return true
	}
	var e *Error
	if !errors.As(err, &e) {
		return false
	}
	return e.Status >= 400 && e.Status < 500 && e.Status != http.StatusTooManyRequests && e.Status != http.StatusRequestTimeout
}

// once follows over one connection: nil after the run's last event.
func (f *following[E]) once(ctx context.Context) error {
	live := make(chan struct{}, 1)
	seen := func() {
		select {
		case live <- struct{}{}:
		default:
		}
	}
	conn, err := f.dial(ctx, seen)
	if err != nil {
		return err
	}
	defer conn.CloseNow()
	f.opened++
	conn.SetReadLimit(maxEvent)
	done := make(chan struct{})
	defer close(done)
	go f.watch(conn, live, done)
	for {
		kind, data, err := conn.Read(ctx)
		if err != nil {
			return f.closed(err)
		}
		seen()
		var e E
		if kind != websocket.MessageText || json.Unmarshal(data, &e) != nil {
			return foreign(http.StatusSwitchingProtocols, nil)
		}
		if f.seq(&e) <= f.after {
			continue
		}
		if err := f.each(e); err != nil {
			f.given = err
			return err
		}
		f.after = f.seq(&e)
	}
}

func (f *following[E]) dial(ctx context.Context, seen func()) (*websocket.Conn, error) {
	q := url.Values{"after": {strconv.FormatInt(f.after, 10)}}
	conn, resp, err := websocket.Dial(ctx, f.c.url(f.path, q), &websocket.DialOptions{
		HTTPClient: f.c.o.HTTP, HTTPHeader: f.c.header(), Subprotocols: []string{"longstop.v1"},
		OnPingReceived: func(context.Context, []byte) bool { seen(); return true },
	})
	if err == nil {
		return conn, nil
	}
	if resp == nil || resp.StatusCode == http.StatusSwitchingProtocols {
		return nil, f.c.unreachable(ctx, err)
	}
	data, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	return nil, errorOf(resp, data)
}

// closed reads why a connection ended.
func (f *following[E]) closed(err error) error {
	switch websocket.CloseStatus(err) {
	case websocket.StatusNormalClosure:
		return nil
	case websocket.StatusPolicyViolation:
		return &Error{Status: http.StatusUnauthorized, Code: flow.CodeUnauthenticated, Message: "the API key holds no longer", cause: err}
	}
	return &Error{Code: flow.CodeUnavailable, Field: "endpoint", Message: "the connection to " + f.c.base + " is lost", cause: err}
}

// watch breaks a connection over which nothing comes: the server pings a
// follower that has nothing to read.
func (f *following[E]) watch(conn *websocket.Conn, live, done <-chan struct{}) {
	for {
		tick, stop := f.c.o.Clock.After(f.c.o.Quiet)
		select {
		case <-live:
			stop()
		case <-done:
			stop()
			return
		case <-tick:
			stop()
			conn.CloseNow()
			return
		}
	}
}
