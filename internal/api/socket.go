package api

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/coder/websocket"

	"github.com/longstop-dev/longstop/internal/flow"
)

// eventProtocol is the WebSocket subprotocol that is chosen if it is offered:
// one event a text message.
const eventProtocol = "longstop.v1"

// socket follows a log over a WebSocket. It closes with 1000 after a run's
// last event, or when the vault is removed, 1001 when the process ends, 1008 when the key holds no longer
// and 1011 when reading fails; a follower resumes with ?after=.
func (f *feed) socket(w http.ResponseWriter, r *http.Request) {
	c, err := websocket.Accept(&handshake{ResponseWriter: w}, r, &websocket.AcceptOptions{Subprotocols: []string{eventProtocol}, OriginPatterns: f.a.origins()})
	if err != nil {
		f.a.log.LogAttrs(r.Context(), slog.LevelDebug, "no websocket", slog.String("error", err.Error()))
		return // it has answered
	}
	defer c.CloseNow()
	// A follower sends nothing: reading only notices that it leaves.
	ctx := c.CloseRead(context.WithoutCancel(r.Context()))
	s := &socket{c: c, within: f.a.c.Limits.WriteTime}
	switch err := f.follow(ctx, s); {
	case err == nil:
		c.Close(websocket.StatusNormalClosure, "the run has ended")
	case flow.CodeOf(err) == flow.CodeNotFound:
		c.Close(websocket.StatusNormalClosure, "it is not there any more")
	case errors.Is(err, errLeaving):
		c.Close(websocket.StatusGoingAway, "come back with ?after=")
	case flow.CodeOf(err) == flow.CodeUnauthenticated:
		c.Close(websocket.StatusPolicyViolation, "the key holds no longer")
	case ctx.Err() != nil || s.failed:
		// It has gone, or takes nothing: CloseNow.
	default:
		f.a.problem(ctx, f.from.op(), f.by, err)
		c.Close(websocket.StatusInternalError, "come back with ?after=")
	}
}

// origins are the hosts whose pages may open a socket, beside the one that is
// asked.
func (a *API) origins() []string {
	if u, err := url.Parse(a.c.PublicURL); err == nil && u.Host != "" {
		return []string{u.Host}
	}
	return nil
}

type socket struct {
	c      *websocket.Conn
	within time.Duration
	failed bool
}

func (s *socket) send(ctx context.Context, r record) error {
	b, err := json.Marshal(r.body)
	if err != nil {
		return err
	}
	return s.timed(ctx, func(ctx context.Context) error { return s.c.Write(ctx, websocket.MessageText, b) })
}

func (s *socket) rest(ctx context.Context) error { return s.timed(ctx, s.c.Ping) }

func (s *socket) timed(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, s.within)
	defer cancel()
	err := do(ctx)
	s.failed = err != nil
	return err
}

// handshake words the library's refusals of a handshake as ours.
type handshake struct {
	http.ResponseWriter
	refused bool
}

// WriteHeader answers a refusal whole.
func (h *handshake) WriteHeader(status int) {
	if status < 400 {
		h.ResponseWriter.WriteHeader(status)
		return
	}
	h.refused = true
	what, fix := "this is no WebSocket handshake", "send one of version 13, or leave Upgrade out and ask for text/event-stream"
	if status == http.StatusForbidden {
		what, fix = "pages of this origin may not follow events here", "call from a page of this server's public URL, or from outside a browser"
	}
	refuse(status, what, "", fix).write(h.ResponseWriter)
}

// Write drops the library's own words.
func (h *handshake) Write(b []byte) (int, error) {
	if h.refused {
		return len(b), nil
	}
	return h.ResponseWriter.Write(b)
}

// Unwrap lets the socket behind be reached.
func (h *handshake) Unwrap() http.ResponseWriter { return h.ResponseWriter }
