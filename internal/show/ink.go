// Package show renders runs, cases and tables for people at a terminal. It
// asks nobody anything: callers give it what it shows.
package show

import (
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// Ink colours text, or leaves it as it is.
type Ink struct{ On bool }

// InkFor colours on a terminal, unless NO_COLOR is set.
func InkFor(w io.Writer) Ink {
	return Ink{On: Terminal(w) && os.Getenv("NO_COLOR") == ""}
}

// Terminal reports whether w is one.
func Terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

func (i Ink) paint(code, s string) string {
	if !i.On || s == "" {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

// Good is for what went right.
func (i Ink) Good(s string) string { return i.paint("32", s) }

// Bad is for what went wrong.
func (i Ink) Bad(s string) string { return i.paint("31", s) }

// Warn is for what wants attention.
func (i Ink) Warn(s string) string { return i.paint("33", s) }

// Faint is for what is said beside.
func (i Ink) Faint(s string) string { return i.paint("2", s) }

// Bold is for names.
func (i Ink) Bold(s string) string { return i.paint("1", s) }

// Clean makes text from outside safe for a terminal: control characters, by
// which it could move the cursor or hide itself, become visible.
func Clean(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r < 0x20, r == 0x7f, r >= 0x80 && r < 0xa0, r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069:
			return '\uFFFD'
		}
		return r
	}, s)
}

// Line is the first line of text, at most n characters, cleaned.
func Line(s string, n int) string {
	s, _, _ = strings.Cut(Clean(s), "\n")
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}
