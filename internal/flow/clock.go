package flow

import "time"

// Clock is the one source of time. Everything that reads or waits for time
// takes it as a parameter, so that tests can move it.
type Clock interface {
	// Now is the present instant, in UTC.
	Now() time.Time
	// After sends once on the channel when d has passed; stop releases it.
	After(d time.Duration) (c <-chan time.Time, stop func())
}

// SystemClock is the machine's clock.
type SystemClock struct{}

// Now is the present instant, in UTC.
func (SystemClock) Now() time.Time { return time.Now().UTC() }

// After waits by the machine's clock.
func (SystemClock) After(d time.Duration) (<-chan time.Time, func()) {
	t := time.NewTimer(d)
	return t.C, func() { t.Stop() }
}
