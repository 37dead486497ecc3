// Package ident makes the ids of everything that Longstop keeps.
package ident

import (
	"encoding/hex"

	"github.com/google/uuid"
)

// Generator makes a new id that starts with prefix and an underscore. [New]
// is the real one; tests may give their own.
type Generator func(prefix string) string

// New makes an id: prefix, an underscore and a UUIDv7 as 32 hexadecimal
// digits. Ids of one prefix that one process makes sort, as text, in the order
// in which they were made; those of several processes sort by their clocks.
func New(prefix string) string {
	id := uuid.Must(uuid.NewV7()) // fails only without randomness, which ends the process anyway
	out := make([]byte, len(prefix)+1+2*len(id))
	n := copy(out, prefix)
	out[n] = '_'
	hex.Encode(out[n+1:], id[:])
	return string(out)
}
