package notify

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/secret"
)

// Outbox is where notices wait.
type Outbox interface {
	// NoticesDue lists the workspaces of which notices are due at now.
	NoticesDue(ctx context.Context, now time.Time) ([]string, error)
	// NoticesOf lists those of a workspace that are due, the longest due first.
	NoticesOf(ctx context.Context, workspace string, now time.Time, limit int) ([]flow.Notice, error)
	// NextNotice gives when the next after now is due; zero if there is none.
	NextNotice(ctx context.Context, now time.Time) (time.Time, error)
	SettleNotice(ctx context.Context, n flow.Notice) error
	// SweepNotices removes what was settled before an instant.
	SweepNotices(ctx context.Context, before time.Time) error
	// Notices lists a workspace's, newest first.
	Notices(ctx context.Context, workspace, before string, limit int) ([]flow.Notice, error)
}

// Targets says where a workspace's notices go.
type Targets interface {
	NoticeTarget(ctx context.Context, workspace string) (flow.NoticeTarget, error)
	// Masker takes out of a notice what has become a secret since it was written.
	Masker(ctx context.Context, workspace string) (*secret.Masker, error)
}

// Config is what a Courier is made of. All members but Timeout are required.
type Config struct {
	Outbox  Outbox
	Targets Targets
	HTTP    *http.Client // through the egress guard, following no redirects
	Clock   flow.Clock
	NewID   func(prefix string) string
	Log     *slog.Logger
	Timeout time.Duration // of one try; default 10 s
}

const (
	maxLanes = 16               // workspaces served at the same time
	perLane  = 4                // tries of one workspace at the same time
	trouble  = 30 * time.Second // after the database has refused
	batch    = 64               // notices of one workspace before others have their turn
	keep     = 7 * 24 * time.Hour
)

// Courier sends what waits in the outbox. One goroutine looks for what is due;
// a bounded number send. Nobody waits for it.
type Courier struct {
	c      Config
	poke   chan struct{}
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu    sync.Mutex
	lanes map[string]bool // the workspaces that are served now
}

// New makes a Courier that sends nothing until it is started.
func New(c Config) *Courier {
	if c.Timeout <= 0 {
		c.Timeout = 10 * time.Second
	}
	ctx, cancel := context.WithCancel(context.Background())
	return &Courier{c: c, poke: make(chan struct{}, 1), ctx: ctx, cancel: cancel, lanes: map[string]bool{}}
}

// Start begins to send, first what was left by the process before.
func (c *Courier) Start() { c.wg.Go(c.loop) }

// Stop interrupts what is being sent, which is sent again at the next start.
func (c *Courier) Stop() {
	c.cancel()
	c.wg.Wait()
}

// Poke says that a notice has been written. It does not block.
func (c *Courier) Poke() {
	select {
	case c.poke <- struct{}{}:
	default:
	}
}

func (c *Courier) loop() {
	var swept time.Time
	for c.ctx.Err() == nil {
		now := c.c.Clock.Now()
		if now.Sub(swept) >= time.Hour {
			swept = now
			c.complain("the outbox cannot be swept", c.c.Outbox.SweepNotices(c.ctx, now.Add(-keep)))
		}
		var pause time.Duration // 0 until somebody pokes
		due, err := c.c.Outbox.NoticesDue(c.ctx, now)
		if err == nil {
			c.serve(due)
			var next time.Time
			if next, err = c.c.Outbox.NextNotice(c.ctx, now); err == nil && !next.IsZero() {
				pause = next.Sub(now)
			}
		}
		if err != nil {
			c.complain("the outbox cannot be read", err)
			pause = trouble
		}
		c.rest(now, pause)
	}
}

// rest waits until something may be due: for so long, or with 0 until somebody
// pokes.
func (c *Courier) rest(since time.Time, pause time.Duration) {
	var timer <-chan time.Time
	if pause > 0 {
		var release func()
		timer, release = c.c.Clock.After(pause)
		defer release()
		if c.c.Clock.Now().Sub(since) >= pause { // the clock was moved before the timer was set
			return
		}
	}
	select {
	case <-timer:
	case <-c.poke:
	case <-c.ctx.Done():
	}
}

// serve opens a lane for each of the workspaces that has none, as far as there
// is room; which of them go first is left to chance, so that none is always
// the last.
func (c *Courier) serve(workspaces []string) {
	rand.Shuffle(len(workspaces), func(i, j int) { workspaces[i], workspaces[j] = workspaces[j], workspaces[i] })
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, w := range workspaces {
		if c.lanes[w] || len(c.lanes) >= maxLanes {
			continue
		}
		c.lanes[w] = true
		c.wg.Go(func() { c.lane(w) })
	}
}

// lane sends a batch of a workspace's notices, and has the loop look again.
// If the database does not take down what was tried, the lane stays closed for
// a while: the receiver must not get the same again and again.
func (c *Courier) lane(workspace string) {
	if err := c.batch(workspace); err != nil {
		c.complain("the outbox cannot be used; what was sent is sent again", err)
		timer, release := c.c.Clock.After(trouble)
		select {
		case <-timer:
		case <-c.ctx.Done():
		}
		release()
	}
	c.mu.Lock()
	delete(c.lanes, workspace)
	c.mu.Unlock()
	c.Poke()
}

// batch makes a try of each of a workspace's next notices.
func (c *Courier) batch(workspace string) error {
	list, err := c.c.Outbox.NoticesOf(c.ctx, workspace, c.c.Clock.Now(), batch)
	if err != nil {
		return err
	}
	next := make(chan flow.Notice, len(list))
	for _, n := range list {
		next <- n
	}
	close(next)
	errs := make([]error, perLane)
	began := time.Now() // a receiver that hangs gives its lane to others after a time-out
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() {
			for n := range next {
				if errs[i] = c.deliver(n); errs[i] != nil || time.Since(began) >= c.c.Timeout {
					return
				}
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// deliver makes a try and keeps what it came to. Its error is the outbox's.
func (c *Courier) deliver(n flow.Notice) error {
	if c.ctx.Err() != nil {
		return nil
	}
	to, err := c.c.Targets.NoticeTarget(c.ctx, n.Workspace)
	var masker *secret.Masker
	if err == nil {
		masker, err = c.c.Targets.Masker(c.ctx, n.Workspace)
	}
	n.Body = masker.JSON(n.Body)
	var t tried
	switch {
	case err != nil:
		t = tried{wrong: "the workspace's settings cannot be read"}
	case !to.Ready():
		t = tried{wrong: "notify.url or notify.secret is not set any more", never: true}
	default:
		t = c.send(c.ctx, to, n)
	}
	if c.ctx.Err() != nil && t.wrong != "" {
		return nil // interrupted: nothing is known of this try
	}
	n = settle(n, t, c.c.Clock.Now(), rand.Float64())
	level, what := slog.LevelDebug, "a notice was sent"
	switch {
	case n.State == flow.NoticeGivenUp:
		level, what = slog.LevelWarn, "a notice is given up"
	case t.wrong != "":
		level, what = slog.LevelInfo, "a notice could not be sent; it is tried again"
	}
	c.c.Log.LogAttrs(c.ctx, level, what, slog.String("notice", n.ID), slog.String("workspace", n.Workspace), slog.String("type", n.Type),
		slog.String("run", n.RunID), slog.Int("tries", n.Tries), slog.String("error", n.Error))
	// What has been sent has to be noted, also when the process is about to end.
	return c.c.Outbox.SettleNotice(context.WithoutCancel(c.ctx), n)
}

func (c *Courier) complain(what string, err error) {
	if err != nil && c.ctx.Err() == nil {
		c.c.Log.Error(what, "error", err)
	}
}
