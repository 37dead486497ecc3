package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/watch"
)

// maxPollers bounds who may wait for a change of an inbox at the same time.
// One costs a goroutine, its connection and nothing else.
const maxPollers = 512

// Pending lists the cases that wait in the workspace's inbox, oldest first,
// and may wait for a change. It answers rate_limited where too many wait
// already.
func (e *Engine) Pending(ctx context.Context, by flow.Caller, in *PendingIn) (*PendingOut, error) {
	changed, stop := e.inbox.feed.Watch(by.Workspace)
	defer stop()
	out, err := e.inboxPage(by.Workspace, in)
	if err != nil || in.Wait <= 0 || !out.same(in) {
		return out, err
	}
	select {
	case e.inbox.seats <- struct{}{}:
		defer func() { <-e.inbox.seats }()
	default:
		return nil, flow.Errorf(flow.CodeRateLimited, "too many wait for the inbox already").Right("ask again without wait, or later")
	}
	over, release := e.Clock.After(time.Duration(in.Wait) * time.Second)
	defer release()
	for {
		if !e.stir(ctx, out, changed, over) {
			return out, nil
		}
		if out, err = e.inboxPage(by.Workspace, in); err != nil || !out.same(in) {
			return out, err
		}
	}
}

// stir waits until the page may have changed, also because a claim on it has
// ended. It reports false when there is no time left to wait.
func (e *Engine) stir(ctx context.Context, out *PendingOut, changed <-chan struct{}, over <-chan time.Time) bool {
	var lapse <-chan time.Time
	if !out.until.IsZero() {
		var release func()
		lapse, release = e.Clock.After(out.until.Sub(e.Clock.Now()))
		defer release()
	}
	select {
	case <-changed:
		return true
	case <-lapse:
		return true
	case <-over:
	case <-ctx.Done():
	case <-e.ctx.Done():
	}
	return false
}

// same reports that there is nothing new for the caller on the page.
func (o *PendingOut) same(in *PendingIn) bool {
	if in.IfNoneMatch != "" {
		return o.unchanged
	}
	return len(o.Items) == 0
}

// inboxPage reads a page.
func (e *Engine) inboxPage(workspace string, in *PendingIn) (*PendingOut, error) {
	limit := Page{Limit: in.Limit}.limit()
	now := e.Clock.Now()
	page, err := e.inbox.page(workspace, pageKey{in.After, limit}, now, func() (*PendingOut, error) {
		gates, err := e.Config.Inbox.Inbox(e.ctx, workspace, in.After, limit+1, now)
		if err != nil {
			return nil, err
		}
		return pendingPage(gates, limit)
	})
	if err != nil {
		return nil, err
	}
	out := *page
	for _, tag := range strings.Split(in.IfNoneMatch, ",") {
		tag = strings.TrimPrefix(strings.TrimSpace(tag), "W/")
		out.unchanged = out.unchanged || tag == out.tag || tag == "*"
	}
	return &out, nil
}

func pendingPage(gates []flow.Gate, limit int) (*PendingOut, error) {
	out := &PendingOut{Items: make([]PendingItem, 0, min(len(gates), limit))}
	for i := range gates {
		if i == limit {
			out.Next = gates[i-1].ID
			break
		}
		g := &gates[i]
		out.Items = append(out.Items, PendingItem{RunID: g.RunID, StepIndex: g.StepIndex, Iteration: g.Iteration, Workflow: g.Workflow,
			Title: g.Title, Type: g.StepType, Error: beginning(g.Error, 199), OpenedAt: g.OpenedAt, ExpiresAt: g.ExpiresAt})
		if c := g.Claim; c != nil {
			who := c.By()
			out.Items[i].ClaimedBy = &who
			if out.until.IsZero() || c.ExpiresAt.Before(out.until) {
				out.until = c.ExpiresAt
			}
		}
	}
	text, err := json.Marshal(out)
	if err != nil {
		return nil, flow.Errorf(flow.CodeInternal, "the inbox cannot be written as JSON").Because(err)
	}
	sum := sha256.Sum256(text)
	out.tag = `"` + hex.EncodeToString(sum[:12]) + `"`
	return out, nil
}

// inbox tells pollers that a workspace's inbox has changed, and keeps each
// page that they read until it does, so that however many wait, a change
// costs one query.
type inbox struct {
	feed  *watch.Feed // by workspace
	seats chan struct{}

	mu    sync.Mutex
	pages map[string]map[pageKey]*sheet // by workspace
}

type pageKey struct {
	after string
	limit int
}

// sheet is a page that is read once.
type sheet struct {
	once sync.Once
	out  *PendingOut
	err  error
	over atomic.Int64 // when its first claim ends, in microseconds; 0 for never
}

// stale reports whether a claim on the page has ended since it was read.
func (s *sheet) stale(now time.Time) bool {
	over := s.over.Load()
	return over > 0 && now.UnixMicro() >= over
}

func newInbox() *inbox {
	return &inbox{feed: watch.NewFeed(), seats: make(chan struct{}, maxPollers), pages: map[string]map[pageKey]*sheet{}}
}

// changed forgets the workspace's pages and wakes its pollers. It is called
// after the commit: who reads before has a page of before, and is woken.
func (b *inbox) changed(workspace string) {
	b.mu.Lock()
	delete(b.pages, workspace)
	b.mu.Unlock()
	b.feed.Moved(workspace)
}

// keptPages bounds the pages that are kept, of a workspace and in all.
const keptPages = 64

// page gives a page that is kept, or has it read. Those who ask for it
// meanwhile wait for the same reading.
func (b *inbox) page(workspace string, key pageKey, now time.Time, read func() (*PendingOut, error)) (*PendingOut, error) {
	b.mu.Lock()
	if len(b.pages) > keptPages {
		clear(b.pages)
	}
	if b.pages[workspace] == nil || len(b.pages[workspace]) > keptPages {
		b.pages[workspace] = map[pageKey]*sheet{}
	}
	s := b.pages[workspace][key]
	if s == nil || s.stale(now) {
		s = &sheet{}
		b.pages[workspace][key] = s
	}
	b.mu.Unlock()
	s.once.Do(func() {
		if s.out, s.err = read(); s.err == nil && !s.out.until.IsZero() {
			s.over.Store(s.out.until.UnixMicro())
		}
	})
	if s.err != nil {
		b.mu.Lock()
		delete(b.pages, workspace) // the next one tries again
		b.mu.Unlock()
	}
	return s.out, s.err
}
