// Package watch tells whoever waits for something named that it has moved. It
// carries no data: a watcher reads what was committed, by sequence number, so
// that nothing is lost or seen twice however slow it is.
package watch

import "sync"

// Feed is safe for concurrent use.
type Feed struct {
	mu       sync.Mutex
	watchers map[string]map[chan struct{}]struct{}
}

// NewFeed makes a feed that nobody watches.
func NewFeed() *Feed { return &Feed{watchers: map[string]map[chan struct{}]struct{}{}} }

// Watch signals on changed after each move of what has a name; signals that
// nobody has taken yet become one. The watcher must call stop.
func (f *Feed) Watch(name string) (changed <-chan struct{}, stop func()) {
	ch := make(chan struct{}, 1)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.watchers[name] == nil {
		f.watchers[name] = map[chan struct{}]struct{}{}
	}
	f.watchers[name][ch] = struct{}{}
	return ch, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.watchers[name], ch)
		if len(f.watchers[name]) == 0 {
			delete(f.watchers, name)
		}
	}
}

// Moved signals to all who watch a name. It does not wait.
func (f *Feed) Moved(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for ch := range f.watchers[name] {
		select {
		case ch <- struct{}{}:
		default: // it has not looked since the last one
		}
	}
}
