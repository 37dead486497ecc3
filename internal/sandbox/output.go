package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/tetratelabs/wazero/sys"
)

const (
	maxDepth = 500  // levels of a result: what every reader of JSON can take
	maxLines = 100  // of the console, as in prelude.js
	maxLine  = 1024 // bytes of one
)

// exception is what the code threw.
type exception struct{ name, message, stack string }

// thrown gives what the code threw when value stands for that.
func (c *call) thrown(ctx context.Context, value uint64) *exception {
	if c.call(ctx, "qjs_is_exception", value) == 0 && c.err == nil {
		return nil
	}
	return c.describe(ctx, c.handle(c.call(ctx, "qjs_get_exception")))
}

// describe asks the engine what an error says. It never gives nil.
func (c *call) describe(ctx context.Context, value uint64) *exception {
	c.reading = c.reading || c.late
	told := c.invoke(ctx, c.engine.doors.describe, value)
	if c.call(ctx, "qjs_is_exception", told) != 0 {
		return &exception{message: "an error that cannot be shown"}
	}
	var parts [3]string
	if json.Unmarshal([]byte(c.text(ctx, told)), &parts) != nil {
		return &exception{message: "an error that cannot be shown"}
	}
	return &exception{name: parts[0], message: parts[1], stack: parts[2]}
}

// explain makes the error for the caller out of what was thrown and of what
// befell the engine.
func (c *call) explain(thrown *exception) *Error {
	line := 0
	if thrown != nil {
		line = lineOf(thrown.stack)
	}
	var exit *sys.ExitError
	switch {
	case c.late, errors.As(c.err, &exit), errors.Is(c.err, context.DeadlineExceeded):
		return &Error{Kind: KindTimeout, Line: line, Message: fmt.Sprintf("the code ran longer than %v and was stopped", c.options.Timeout)}
	case errors.Is(c.err, errFull), thrown != nil && thrown.name == "InternalError" && thrown.message == "out of memory":
		return &Error{Kind: KindMemory, Line: line, Message: fmt.Sprintf("the code needs more memory than the %d MiB it may use", c.options.Memory>>20)}
	case exhausted(c.err):
		return &Error{Kind: KindThrown, Line: line, Message: "RangeError: Maximum call stack size exceeded"}
	case c.err != nil || thrown == nil:
		return broken("the engine broke down", c.err)
	}
	kind, message := KindThrown, thrown.message
	if thrown.name == "SyntaxError" {
		kind = KindSyntax
	}
	if thrown.name != "" {
		message = thrown.name + ": " + message
	}
	return &Error{Kind: kind, Line: line, Message: cut(message, maxMessage)}
}

// console gives the lines that the program wrote, as far as the engine still
// answers.
func (c *call) console(ctx context.Context) []string {
	if c.err != nil {
		return nil
	}
	var written int
	var lines []string
	told := c.text(ctx, c.invoke(ctx, c.engine.doors.console))
	if json.Unmarshal([]byte(told), &[]any{&written, &lines}) != nil {
		return nil
	}
	lines = lines[:min(len(lines), maxLines)]
	for i, line := range lines {
		lines[i] = cut(line, maxLine)
	}
	if written > maxLines && len(lines) == maxLines {
		lines[maxLines-1] = fmt.Sprintf("%d more lines were not kept", written-maxLines+1)
	}
	return lines
}

// checked lets a result out when it is JSON that every reader can take.
func checked(text string) (json.RawMessage, error) {
	depth, deepest, quoted := 0, 0, false
	for i := 0; i < len(text); i++ {
		switch ch := text[i]; {
		case quoted && ch == '\\':
			i++
		case ch == '"':
			quoted = !quoted
		case quoted:
		case ch == '[' || ch == '{':
			depth++
			deepest = max(deepest, depth)
		case ch == ']' || ch == '}':
			depth--
		}
	}
	if deepest > maxDepth {
		return nil, &Error{Kind: KindOutput, Message: fmt.Sprintf("the result is nested %d deep, more than the %d levels allowed", deepest, maxDepth)}
	}
	if !json.Valid([]byte(text)) {
		return nil, &Error{Kind: KindOutput, Message: "the result is not valid JSON"}
	}
	return json.RawMessage(text), nil
}
