package flow

import "time"

// OnceFor is how long a creation is remembered by the key that came with it.
const OnceFor = 24 * time.Hour

// Once is a creation that its client may send again under the same key: the
// first one is remembered with what it made, in the transaction that makes it,
// so that of two at the same instant one makes something.
type Once struct {
	Workspace string
	Key       string
	Digest    string // of what was asked, hex
	Made      string // what came of it, as the service that made it reads it
	At        time.Time
}

// Making is o with what it makes; nil for nil.
func (o *Once) Making(what string) *Once {
	if o == nil {
		return nil
	}
	made := *o
	made.Made = what
	return &made
}
