package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/coder/websocket"

	"github.com/longstop-dev/longstop/internal/access"
	"github.com/longstop-dev/longstop/internal/engine"
	"github.com/longstop-dev/longstop/internal/flow"
)

// The pace of a live feed.
const (
	writeTimeout = 10 * time.Second // a reader slower than this is let go; it may resume by ?after
	keepAlive    = 20 * time.Second
	livePage     = 500
)

// live takes requests for a run's events that want them as they come; all
// else goes on to next. A browser cannot set headers on a WebSocket: it may
// send its key as the subprotocol "bearer.<key>".
func (f *face) live(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, ok := eventsOf(r.URL.Path)
		socket := strings.EqualFold(r.Header.Get("Upgrade"), "websocket")
		stream := strings.Contains(r.Header.Get("Accept"), "text/event-stream")
		if !ok || r.Method != http.MethodGet || (!socket && !stream) {
			next.ServeHTTP(w, r)
			return
		}
		by, run, after, err := f.mayWatch(r, id)
		switch {
		case err != nil:
			write(w, r, err)
		case socket:
			f.overSocket(w, r, by, run, after)
		default:
			f.overSSE(w, r, by, run, after)
		}
	})
}

// eventsOf takes the run's id out of /v1/runs/{id}/events.
func eventsOf(path string) (string, bool) {
	rest, ok := strings.CutPrefix(path, "/v1/runs/")
	if !ok {
		return "", false
	}
	id, ok := strings.CutSuffix(rest, "/events")
	return id, ok && id != "" && !strings.Contains(id, "/")
}

// mayWatch authenticates, authorises and reads where to begin.
func (f *face) mayWatch(r *http.Request, id string) (by flow.Caller, run string, after int64, err error) {
	authorization := r.Header.Get("Authorization")
	for _, p := range strings.Split(r.Header.Get("Sec-WebSocket-Protocol"), ",") {
		if key, ok := strings.CutPrefix(strings.TrimSpace(p), "bearer."); ok && authorization == "" {
			authorization = "Bearer " + key
		}
	}
	if by, err = f.caller(r.Context(), authorization, r.RemoteAddr); err != nil {
		return by, "", 0, err
	}
	if err := (access.Guard{}).Check(by, runEvents()); err != nil {
		return by, "", 0, err
	}
	from := r.URL.Query().Get("after")
	if from == "" {
		from = r.Header.Get("Last-Event-ID")
	}
	if from != "" {
		if after, err = strconv.ParseInt(from, 10, 64); err != nil || after < 0 {
			return by, "", 0, flow.Errorf(flow.CodeInvalid, "after is not a sequence number").At("after").Right("give a number from 0 on")
		}
	}
	v, err := f.Engine.GetRun(r.Context(), by, &engine.RunIn{ID: id})
	if err != nil {
		return by, "", 0, err
	}
	return by, v.ID, after, nil
}

// follow sends a run's events from after on, each once and in order, until
// the run has ended, send fails or ctx ends. Events are read from the store by
// number after each signal, so that none is lost however slow the reader is.
func (f *face) follow(ctx context.Context, by flow.Caller, run string, after int64, send func(flow.Event) error, idle func() error) error {
	changed, stop := f.Engine.Watch(run)
	defer stop()
	tick := time.NewTicker(keepAlive)
	defer tick.Stop()
	for {
		page, err := f.Engine.ListEvents(ctx, by, &engine.RecordsIn{ID: run, After: after, Limit: livePage})
		if err != nil {
			return err
		}
		for _, e := range page.Items {
			if err := send(e); err != nil {
				return err
			}
			after = e.Seq
		}
		if page.Next != "" {
			continue
		}
		if n := len(page.Items); n == 0 || last(page.Items[n-1].Type) {
			v, err := f.Engine.GetRun(ctx, by, &engine.RunIn{ID: run})
			if err != nil {
				return err
			}
			if v.Status.Finished() && v.Seq <= after {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		case <-tick.C:
			if err := idle(); err != nil {
				return err
			}
		}
	}
}

// last reports whether a run may have ended with an event of this type.
func last(kind string) bool {
	return kind == flow.EventRunSucceeded || kind == flow.EventRunFailed || kind == flow.EventRunCancelled
}

func (f *face) overSocket(w http.ResponseWriter, r *http.Request, by flow.Caller, run string, after int64) {
	var chosen []string
	for _, p := range strings.Split(r.Header.Get("Sec-WebSocket-Protocol"), ",") {
		if p = strings.TrimSpace(p); strings.HasPrefix(p, "bearer.") {
			chosen = []string{p}
		}
	}
	c, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: chosen})
	if err != nil {
		return // Accept has answered
	}
	defer c.CloseNow()
	ctx := c.CloseRead(r.Context())
	send := func(e flow.Event) error {
		b, err := json.Marshal(e)
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(ctx, writeTimeout)
		defer cancel()
		return c.Write(ctx, websocket.MessageText, b)
	}
	ping := func() error {
		ctx, cancel := context.WithTimeout(ctx, writeTimeout)
		defer cancel()
		return c.Ping(ctx)
	}
	switch err := f.follow(ctx, by, run, after, send, ping); {
	case err == nil:
		_ = c.Close(websocket.StatusNormalClosure, "the run has ended")
	case ctx.Err() == nil:
		_ = c.Close(websocket.StatusTryAgainLater, "resume with ?after")
	}
}

func (f *face) overSSE(w http.ResponseWriter, r *http.Request, by flow.Caller, run string, after int64) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	out := http.NewResponseController(w)
	_ = out.SetReadDeadline(time.Time{}) // the server's limit is for requests, and this one has been read
	line := func(format string, args ...any) error {
		_ = out.SetWriteDeadline(time.Now().Add(writeTimeout))
		if _, err := fmt.Fprintf(w, format, args...); err != nil {
			return err
		}
		return out.Flush()
	}
	send := func(e flow.Event) error {
		b, err := json.Marshal(e)
		if err != nil {
			return err
		}
		return line("id: %d\nevent: %s\ndata: %s\n\n", e.Seq, e.Type, b)
	}
	if err := line(": run %s\n\n", run); err != nil {
		return
	}
	if err := f.follow(r.Context(), by, run, after, send, func() error { return line(": still here\n\n") }); err == nil {
		_ = line("event: end\ndata: {}\n\n")
	}
}
