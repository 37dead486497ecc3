// Package dispatch decides which node advances which run, and when.
package dispatch

import (
	"container/heap"
	"context"
	"sync"
	"time"

	"github.com/longstop-dev/longstop/internal/flow"
)

// Source gives the wake-ups that were committed before this process started.
type Source interface {
	Wakeups(ctx context.Context) ([]flow.Wakeup, error)
}

// Local dispatches inside one process: wake-ups are rows of parked runs, and
// this is the heap of them in memory, rebuilt from the rows at start. One
// goroutine serves all of them; a parked run costs an entry.
type Local struct {
	clock  flow.Clock
	source Source

	mu    sync.Mutex
	heap  wakeups
	poke  chan struct{}
	stop  context.CancelFunc
	ended chan struct{}
}

// NewLocal makes a dispatcher that has not started.
func NewLocal(clock flow.Clock, source Source) *Local {
	return &Local{clock: clock, source: source, heap: wakeups{at: map[string]int{}}, poke: make(chan struct{}, 1)}
}

// Start loads the wake-ups and from then on calls fire for each when it is
// due, from one goroutine: fire must not block for long.
func (l *Local) Start(ctx context.Context, fire func(flow.Wakeup)) error {
	stored, err := l.source.Wakeups(ctx)
	if err != nil {
		return err
	}
	l.mu.Lock()
	for _, w := range stored {
		l.heap.put(w)
	}
	l.mu.Unlock()
	ctx, l.stop = context.WithCancel(context.WithoutCancel(ctx))
	l.ended = make(chan struct{})
	go l.loop(ctx, fire)
	return nil
}

// Stop ends the dispatcher; no wake-up fires after it returns. A dispatcher
// that never started stops at once.
func (l *Local) Stop() {
	if l.stop == nil {
		return
	}
	l.stop()
	<-l.ended
}

// Schedule sets the run's wake-up in the place of the one it had; one without
// a time removes it.
func (l *Local) Schedule(w flow.Wakeup) {
	l.mu.Lock()
	if w.At.IsZero() {
		l.heap.drop(w.RunID)
	} else {
		l.heap.put(w)
	}
	l.mu.Unlock()
	select {
	case l.poke <- struct{}{}:
	default:
	}
}

// Waiting gives the number of wake-ups.
func (l *Local) Waiting() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.heap.Len()
}

func (l *Local) loop(ctx context.Context, fire func(flow.Wakeup)) {
	defer close(l.ended)
	for {
		due, next := l.due()
		for _, w := range due {
			if ctx.Err() != nil {
				return
			}
			fire(w)
		}
		if len(due) > 0 {
			continue
		}
		var timer <-chan time.Time
		release := func() {}
		if next != nil {
			timer, release = l.clock.After(next.At.Sub(l.clock.Now()))
			if !next.At.After(l.clock.Now()) { // the clock was moved between the two looks at it
				release()
				continue
			}
		}
		select {
		case <-ctx.Done():
			release()
			return
		case <-timer:
		case <-l.poke:
		}
		release()
	}
}

// due takes the wake-ups that are due, at most a batch of them, and else
// shows the next.
func (l *Local) due() (due []flow.Wakeup, next *flow.Wakeup) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.clock.Now()
	for l.heap.Len() > 0 && !l.heap.items[0].At.After(now) && len(due) < 256 {
		due = append(due, heap.Pop(&l.heap).(flow.Wakeup))
	}
	if len(due) == 0 && l.heap.Len() > 0 {
		w := l.heap.items[0]
		next = &w
	}
	return due, next
}

// wakeups is a heap by time with each run's place in it.
type wakeups struct {
	items []flow.Wakeup
	at    map[string]int
}

func (h *wakeups) put(w flow.Wakeup) {
	if i, ok := h.at[w.RunID]; ok {
		h.items[i] = w
		heap.Fix(h, i)
		return
	}
	heap.Push(h, w)
}

func (h *wakeups) drop(runID string) {
	if i, ok := h.at[runID]; ok {
		heap.Remove(h, i)
	}
}

func (h *wakeups) Len() int           { return len(h.items) }
func (h *wakeups) Less(i, j int) bool { return h.items[i].At.Before(h.items[j].At) }
func (h *wakeups) Swap(i, j int) {
	h.items[i], h.items[j] = h.items[j], h.items[i]
	h.at[h.items[i].RunID], h.at[h.items[j].RunID] = i, j
}

func (h *wakeups) Push(x any) {
	w := x.(flow.Wakeup)
	h.at[w.RunID] = len(h.items)
	h.items = append(h.items, w)
}

func (h *wakeups) Pop() any {
	last := len(h.items) - 1
	w := h.items[last]
	h.items = h.items[:last]
	delete(h.at, w.RunID)
	return w
}
