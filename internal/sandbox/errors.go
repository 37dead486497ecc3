package sandbox

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Kind says what stopped a program.
type Kind string

// The kinds.
const (
	KindSyntax   Kind = "syntax"   // the code cannot be parsed
	KindThrown   Kind = "thrown"   // the code threw, or awaits what cannot come
	KindTimeout  Kind = "timeout"  // it took longer than Options.Timeout
	KindMemory   Kind = "memory"   // it, or its input, needs more than Options.Memory
	KindOutput   Kind = "output"   // the result is not JSON, too large or nested too deep
	KindInternal Kind = "internal" // ours: the engine could not be started or broke
)

// maxMessage bounds the bytes of Error.Message.
const maxMessage = 1000

// Error is why a program gave no result.
type Error struct {
	Kind    Kind
	Message string // at most 1,000 bytes, for the code's author; may quote what the program saw, so mask it before it is stored
	Line    int    // of the code, from 1; 0 when not known
	Err     error  // the cause within the engine, for the log; mostly nil
}

// Error gives line and message.
func (e *Error) Error() string {
	if e.Line > 0 {
		return fmt.Sprintf("line %d: %s", e.Line, e.Message)
	}
	return e.Message
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// outside tells that the caller's own context ended the call.
func outside(ctx context.Context) error {
	return fmt.Errorf("sandbox: %w", context.Cause(ctx))
}

// cut shortens text to n bytes at the border of a character, and replaces
// what is not UTF-8: half a surrogate pair, for one.
func cut(text string, n int) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}

// lineOf finds the first place within the user's code that a stack names.
func lineOf(stack string) int {
	m := regexp.MustCompile(fileName + `:(\d+)`).FindStringSubmatch(stack)
	if m == nil {
		return 0
	}
	n, err := strconv.Atoi(m[1])
	if err != nil {
		return 0
	}
	return n
}
