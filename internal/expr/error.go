package expr

import "strings"

// Error is a template or condition that does not compile or cannot be
// evaluated. It names places, keys and lengths, never a value.
type Error struct {
	Pointer string // JSON pointer to where the template stands, "" at the root
	Path    string // what could not be had: "input.userId", or ""
	Message string // what is wrong
	Fix     string // what would be right, or ""
}

// Error gives place, message and remedy in one line.
func (e *Error) Error() string {
	var b strings.Builder
	if e.Pointer != "" {
		b.WriteString(e.Pointer + ": ")
	}
	b.WriteString(e.Message)
	if e.Fix != "" {
		b.WriteString(" (" + e.Fix + ")")
	}
	return b.String()
}

// at returns the error with its place, unless it has one.
func (e *Error) at(pointer string) *Error {
	if e.Pointer != "" {
		return e
	}
	c := *e
	c.Pointer = pointer
	return &c
}
