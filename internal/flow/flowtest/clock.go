// Package flowtest has what tests of flow's users share.
package flowtest

import (
	"sync"
	"time"
)

// Clock is a clock that stands still until a test moves it.
type Clock struct {
	mu      sync.Mutex
	now     time.Time
	waiters map[chan time.Time]time.Time
	changed chan struct{}
}

// NewClock makes a clock that shows start.
func NewClock(start time.Time) *Clock {
	return &Clock{now: start.UTC(), waiters: map[chan time.Time]time.Time{}, changed: make(chan struct{})}
}

// Now is the instant that the test has set.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// After sends once when the test has moved the clock by d.
func (c *Clock) After(d time.Duration) (<-chan time.Time, func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	ch := make(chan time.Time, 1)
	if d <= 0 {
		ch <- c.now
		return ch, func() {}
	}
	c.waiters[ch] = c.now.Add(d)
	c.announce()
	return ch, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.waiters, ch)
		c.announce()
	}
}

// Advance moves the clock and wakes whoever waited for that; d may be
// negative, as a machine's clock may be set back.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	for ch, at := range c.waiters {
		if !at.After(c.now) {
			ch <- c.now
			delete(c.waiters, ch)
		}
	}
	c.announce()
}

// AwaitWaiters blocks until at least n callers wait on the clock.
func (c *Clock) AwaitWaiters(n int) {
	for {
		c.mu.Lock()
		if len(c.waiters) >= n {
			c.mu.Unlock()
			return
		}
		changed := c.changed
		c.mu.Unlock()
		<-changed
	}
}

// Waiters says how many callers wait on the clock.
func (c *Clock) Waiters() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.waiters)
}

func (c *Clock) announce() {
	close(c.changed)
	c.changed = make(chan struct{})
}
