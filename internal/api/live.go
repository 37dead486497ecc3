package api

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/longstop-dev/longstop/internal/engine"
	"github.com/longstop-dev/longstop/internal/flow"
)

// errLeaving ends a follower because this process ends.
var errLeaving = errors.New("the server is going away")

// follower takes a run's events one by one. Send must not wait longer than
// the limits allow; rest is called when nothing has come for a while.
type follower interface {
	send(ctx context.Context, e flow.Event) error
	rest(ctx context.Context) error
}

// live answers a request for events that asks for more than a page.
func (a *API) live(runs Runs) func(http.ResponseWriter, *http.Request, *call) bool {
	return func(w http.ResponseWriter, r *http.Request, c *call) bool {
		upgrade := isUpgrade(r)
		if runs == nil || !upgrade && !wantsStream(r) {
			return false
		}
		f := &feed{a: a, runs: runs, by: c.by, bearer: c.bearer, run: r.PathValue("id")}
		if p := f.begin(r); p != nil {
			p.write(w)
			return true
		}
		select {
		case a.seats <- struct{}{}:
			defer func() { <-a.seats }()
		default:
			refuse(http.StatusServiceUnavailable, "too many follow runs already", "", "come back later, or read pages with ?after=").write(w)
			return true
		}
		if upgrade {
			f.socket(w, r)
		} else {
			f.stream(w, r)
		}
		return true
	}
}

func isUpgrade(r *http.Request) bool {
	return strings.EqualFold(r.Header.Get("Upgrade"), "websocket")
}

func wantsStream(r *http.Request) bool {
	return strings.Contains(strings.ToLower(r.Header.Get("Accept")), "text/event-stream")
}

// feed brings the events of one run to one follower.
type feed struct {
	a      *API
	runs   Runs
	by     flow.Caller
	bearer string
	run    string
	after  int64
}

// begin reads from where on, and whether there is such a run.
func (f *feed) begin(r *http.Request) *Problem {
	for _, text := range []string{r.URL.Query().Get("after"), r.Header.Get("Last-Event-ID")} {
		if text == "" {
			continue
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 0 {
			return refuse(http.StatusUnprocessableEntity, "it is no sequence number", "after", "the seq of the last event that you have, or 0")
		}
		f.after = max(f.after, n)
	}
	if _, err := f.page(r.Context(), 1); err != nil {
		p := problemOf(err)
		f.a.explain(r.Context(), "runs.events", err, p)
		return p
	}
	return nil
}

func (f *feed) page(ctx context.Context, limit int) (*engine.List[flow.Event], error) {
	return f.runs.ListEvents(ctx, f.by, &engine.RecordsIn{ID: f.run, After: f.after, Limit: limit})
}

// pageSize is how many events are held in memory for one follower.
const pageSize = 200

// follow sends every event after f.after, in order, none twice, until the run
// has ended (nil), the follower fails, ctx ends or the process ends. Signals
// carry no data: what is sent is what the store has.
func (f *feed) follow(ctx context.Context, to follower) error {
	changed, stop := f.runs.Watch(f.run)
	defer stop()
	first := true
	for {
		ended, sent, err := f.drain(ctx, to)
		if err != nil {
			return err
		}
		if first && !sent {
			if ended, err = f.over(ctx); err != nil {
				return err
			}
		}
		if ended {
			return nil
		}
		first = false
		if err := f.wait(ctx, to, changed); err != nil {
			return err
		}
	}
}

// drain sends what there is. Ended tells that the last of it was a run's end.
func (f *feed) drain(ctx context.Context, to follower) (ended, sent bool, err error) {
	for {
		p, err := f.page(ctx, pageSize)
		if err != nil {
			return false, sent, err
		}
		for _, e := range p.Items {
			if err := to.send(ctx, e); err != nil {
				return false, sent, err
			}
			f.after, sent, ended = e.Seq, true, isEnd(e.Type)
		}
		if p.Next == "" || len(p.Items) == 0 {
			return ended, sent, nil
		}
	}
}

func isEnd(kind string) bool {
	return kind == flow.EventRunSucceeded || kind == flow.EventRunFailed || kind == flow.EventRunCancelled
}

// over tells whether a run of which nothing was sent has nothing more to send.
func (f *feed) over(ctx context.Context) (bool, error) {
	v, err := f.runs.GetRun(ctx, f.by, &engine.RunIn{ID: f.run})
	if err != nil {
		return false, err
	}
	return v.Status.Finished() && v.Seq <= f.after, nil
}

// wait returns when the run has moved. While it does not, the follower is
// pinged, and sent away if its key holds no longer.
func (f *feed) wait(ctx context.Context, to follower, changed <-chan struct{}) error {
	for {
		tick, stop := f.a.c.Clock.After(f.a.c.Limits.PingEvery)
		select {
		case <-changed:
			stop()
			return nil
		case <-ctx.Done():
			stop()
			return ctx.Err()
		case <-f.a.closed:
			stop()
			return errLeaving
		case <-tick:
			stop()
			if _, err := f.a.c.Access.Authenticate(ctx, f.bearer); err != nil {
				return err
			}
			if err := to.rest(ctx); err != nil {
				return err
			}
		}
	}
}
