package flow

import "errors"

// What the database may do to those who rely on it, as the cause in the chain
// of an [Error].
var (
	// ErrUnreadable means that a row is there and what stands in it cannot be
	// read. It will not be better the next time.
	ErrUnreadable = errors.New("a row of the database is damaged")
	// ErrLater means that the database did not take a write, kept nothing of
	// it, and may take it later: it is full, locked or short of something.
	ErrLater = errors.New("the database may take it later")
)
