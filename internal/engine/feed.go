package engine

import (
	"context"
	"sync"
)

// feed tells watchers that a run has moved. It carries no data: a watcher
// reads what was committed, by sequence number, so that nothing is lost or
// seen twice however slow it is.
type feed struct {
	mu   sync.Mutex
	runs map[string]map[chan struct{}]struct{}
}

func newFeed() *feed { return &feed{runs: map[string]map[chan struct{}]struct{}{}} }

func (f *feed) watch(runID string) (<-chan struct{}, func()) {
	ch := make(chan struct{}, 1)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.runs[runID] == nil {
		f.runs[runID] = map[chan struct{}]struct{}{}
	}
	f.runs[runID][ch] = struct{}{}
	return ch, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.runs[runID], ch)
		if len(f.runs[runID]) == 0 {
			delete(f.runs, runID)
		}
	}
}

func (f *feed) moved(runID string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for ch := range f.runs[runID] {
		select {
		case ch <- struct{}{}:
		default:
		}
	}
}

// Watch signals on changed after each commit of the run; signals that nobody
// has taken yet become one. The watcher must call stop.
func (e *Engine) Watch(runID string) (changed <-chan struct{}, stop func()) {
	return e.feed.watch(runID)
}

// Settled waits until this engine does not drive the run any more: it has
// finished, or is parked, or was never driven here. It answers only ctx's
// error.
func (e *Engine) Settled(ctx context.Context, runID string) error {
	for d := e.driving(runID); d != nil; d = e.driving(runID) {
		select {
		case <-d.ended:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
