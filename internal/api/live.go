package api

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/secret"
)

// errLeaving ends a follower because this process ends.
var errLeaving = errors.New("the server is going away")

// record is an entry of a log that is followed. Last tells that none comes
// after it.
type record struct {
	seq  int64
	body any
	last bool
}

// followed is a log that can be followed.
type followed interface {
	// page reads records behind a sequence number, and whether there are more.
	page(ctx context.Context, after int64, limit int) (records []record, more bool, err error)
	// watch signals that the log may have grown, until stop is called.
	watch() (changed <-chan struct{}, stop func())
	// over tells whether there is nothing more to come behind a sequence number.
	over(ctx context.Context, after int64) (bool, error)
	// op names the operation.
	op() string
}

// follower takes records one by one. Send must not wait longer than the limits
// allow; rest is called when nothing has come for a while.
type follower interface {
	send(ctx context.Context, r record) error
	rest(ctx context.Context) error
}

// live answers a request for events that asks for more than a page. Open makes
// the source of a request; nil if there is none.
func (a *API) live(open func(r *http.Request, by flow.Caller) followed) func(http.ResponseWriter, *http.Request, *call) bool {
	return func(w http.ResponseWriter, r *http.Request, c *call) bool {
		upgrade := isUpgrade(r)
		if !upgrade && !wantsStream(r) {
			return false
		}
		from := open(r, c.by)
		if from == nil {
			return false
		}
		f := &feed{a: a, from: from, bearer: c.bearer, by: c.by}
		if p := f.begin(r); p != nil {
			p.write(w)
			return true
		}
		select {
		case a.seats <- struct{}{}:
			defer func() { <-a.seats }()
		default:
			refuse(http.StatusServiceUnavailable, "too many follow events already", "", "come back later, or read pages with ?after=").write(w)
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

// feed brings the records of one log to one follower.
type feed struct {
	a      *API
	from   followed
	bearer string
	by     flow.Caller
	after  int64
}

// begin reads from where on, and whether there is such a log.
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
	if _, _, err := f.from.page(r.Context(), f.after, 1); err != nil {
		return f.a.problem(r.Context(), f.from.op(), f.by, err)
	}
	return nil
}

// pageSize is how many events are held in memory for one follower.
const pageSize = 200

// follow sends every record after f.after, in order, none twice, until the log
// has ended (nil), the follower fails, ctx ends or the process ends. Signals
// carry no data: what is sent is what the store has.
func (f *feed) follow(ctx context.Context, to follower) error {
	changed, stop := f.from.watch()
	defer stop()
	first := true
	for {
		ended, sent, err := f.drain(ctx, to)
		if err != nil {
			return err
		}
		if first && !sent {
			if ended, err = f.from.over(ctx, f.after); err != nil {
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

// drain sends what there is. Ended tells that the last of it was the log's end.
func (f *feed) drain(ctx context.Context, to follower) (ended, sent bool, err error) {
	for {
		if _, err := f.a.c.Access.Authenticate(ctx, f.bearer); err != nil { // however much there is to catch up with
			return false, sent, err
		}
		page, more, err := f.from.page(ctx, f.after, pageSize)
		if err != nil {
			return false, sent, err
		}
		m, err := f.a.masker(ctx, f.from.op(), f.by)
		if err != nil {
			return false, sent, err
		}
		for _, r := range page {
			r.body = secret.Masked(m, r.body)
			if err := to.send(ctx, r); err != nil {
				return false, sent, err
			}
			f.after, sent, ended = r.seq, true, r.last
		}
		if !more || len(page) == 0 {
			return ended, sent, nil
		}
	}
}

// wait returns when the log has moved. While it does not, the follower is
// pinged; it is sent away once its key holds no longer.
func (f *feed) wait(ctx context.Context, to follower, changed <-chan struct{}) error {
	for {
		revoked := f.a.c.Access.Revocations()
		if _, err := f.a.c.Access.Authenticate(ctx, f.bearer); err != nil {
			return err
		}
		tick, stop := f.a.c.Clock.After(f.a.c.Limits.PingEvery)
		select {
		case <-revoked:
			stop()
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
			if err := to.rest(ctx); err != nil {
				return err
			}
		}
	}
}
