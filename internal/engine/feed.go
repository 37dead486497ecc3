package engine

import "context"

// Watch signals on changed after each commit of the run; signals that nobody
// has taken yet become one. The watcher must call stop.
func (e *Engine) Watch(runID string) (changed <-chan struct{}, stop func()) {
	return e.feed.Watch(runID)
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
