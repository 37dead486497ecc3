package vault

import "sync"

// feed tells whoever watches a vault that it has grown. It hands out no
// events: a reader reads them by sequence number, so that none is missed and
// none is kept here.
type feed struct {
	mu       sync.Mutex
	watchers map[string]map[chan struct{}]bool
}

func newFeed() *feed { return &feed{watchers: map[string]map[chan struct{}]bool{}} }

// watch signals each growth of a vault, several perhaps as one, until stop is
// called.
func (f *feed) watch(vault string) (grown <-chan struct{}, stop func()) {
	c := make(chan struct{}, 1)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.watchers[vault] == nil {
		f.watchers[vault] = map[chan struct{}]bool{}
	}
	f.watchers[vault][c] = true
	return c, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.watchers[vault], c)
		if len(f.watchers[vault]) == 0 {
			delete(f.watchers, vault)
		}
	}
}

func (f *feed) publish(vault string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for c := range f.watchers[vault] {
		select {
		case c <- struct{}{}:
		default: // it has not looked yet
		}
	}
}

// Watch signals on grown after each append to the vault with an id; signals
// that nobody has taken yet become one. The watcher must call stop.
func (s *Service) Watch(id string) (grown <-chan struct{}, stop func()) { return s.feed.watch(id) }
