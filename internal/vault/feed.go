package vault

import "sync"

// feed wakes whoever waits for a vault to grow. It hands out no events: a
// reader reads them by sequence number, so that none is missed and none is
// kept here.
type feed struct {
	mu     sync.Mutex
	vaults map[string]chan struct{} // closed and forgotten when the vault grows
}

func newFeed() *feed { return &feed{vaults: map[string]chan struct{}{}} }

// grown is closed as soon as the vault has grown.
func (f *feed) grown(vault string) <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.vaults[vault]
	if c == nil {
		c = make(chan struct{})
		f.vaults[vault] = c
	}
	return c
}

func (f *feed) publish(vault string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c := f.vaults[vault]; c != nil {
		close(c)
		delete(f.vaults, vault)
	}
}
