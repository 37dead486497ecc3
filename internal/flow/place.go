package flow

import (
	"bytes"
	"unicode/utf8"
)

// Place is where a byte of a text stands: its line, and its column in
// characters, both from 1.
func Place(text []byte, at int) (line, column int) {
	before := text[:min(max(at, 0), len(text))]
	return bytes.Count(before, []byte("\n")) + 1, utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:]) + 1
}
