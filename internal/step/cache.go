package step

import "sync"

// The bounds of a cache: of entries, and of the bytes of their keys.
const (
	maxCached      = 1024
	maxCachedBytes = 8 << 20
)

// cache keeps what was compiled out of a text, so that a step that runs a
// thousand times is compiled once. It is bounded: when it is full it starts
// afresh, which costs a compilation and no bookkeeping on each hit.
type cache[T any] struct {
	mu    sync.RWMutex
	made  map[string]T
	bytes int
}

// get gives what compile makes out of the text; what cannot be made is not kept.
func (c *cache[T]) get(text []byte, compile func([]byte) (T, error)) (T, error) {
	c.mu.RLock()
	v, ok := c.made[string(text)]
	c.mu.RUnlock()
	if ok {
		return v, nil
	}
	v, err := compile(text)
	if err != nil {
		return v, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.made == nil || len(c.made) >= maxCached || c.bytes+len(text) > maxCachedBytes {
		c.made, c.bytes = map[string]T{}, 0
	}
	if _, there := c.made[string(text)]; !there && len(text) <= maxCachedBytes {
		c.made[string(text)] = v
		c.bytes += len(text)
	}
	return v, nil
}
