package sandbox

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/tetratelabs/wazero/api"
)

// fileName is how the engine's stacks name the user's code.
const fileName = "code.js"

// call is one program on its way.
type call struct {
	*instance
	options Options
	stop    time.Time // when the interpreter is asked to give up
	late    bool      // it was
	reading bool      // the program has ended, what it left is being read
}

// callKey finds the call in the context of the engine's questions.
type callKey struct{}

// interrupt answers the engine's question whether the program must stop. It
// comes from loops and calls of the language, not from within long work of the
// engine itself: that is ended by the context, a little later.
func interrupt(ctx context.Context, stack []uint64) {
	stack[0] = 0
	c, ok := ctx.Value(callKey{}).(*call)
	if ok && !c.reading && !time.Now().Before(c.stop) {
		c.late = true
		stack[0] = 1
	}
}

// grace is how much longer than its time the engine is left alive, to tell
// where the program was and what it had written.
func (o Options) grace() time.Duration { return min(o.Timeout/10, 250*time.Millisecond) }

// run runs one program in an engine of its own.
func (e *engine) run(ctx context.Context, p Program) (Result, error) {
	source, args, err := p.text()
	if err != nil {
		return Result{}, err
	}
	c := &call{options: e.options, stop: time.Now().Add(e.options.Timeout)}
	inner, cancel := context.WithDeadline(context.WithValue(ctx, callKey{}, c), c.stop.Add(e.options.grace()))
	defer cancel()
	if c.instance, err = e.instantiate(inner); err != nil {
		if ctx.Err() != nil {
			return Result{}, outside(ctx)
		}
		return Result{}, broken("the engine could not be started", err)
	}
	defer c.close()
	c.restore(inner)
	value, failed := c.program(inner, source, args)
	c.reading = true
	result := Result{Console: c.console(inner)}
	switch {
	case ctx.Err() != nil:
		return result, outside(ctx)
	case failed != nil:
		return result, failed
	}
	result.Value = value
	return result, nil
}

// text gives the program as the source of a function expression whose lines
// are those of the code, and its arguments as a JSON array.
func (p Program) text() (source, args string, err error) {
	names := slices.Sorted(maps.Keys(p.Args))
	identifier := regexp.MustCompile(`^[A-Za-z_$][A-Za-z0-9_$]*$`)
	values := make([]string, len(names))
	for i, name := range names {
		if !identifier.MatchString(name) {
			return "", "", broken(fmt.Sprintf("the argument name %.40q is no identifier", name), nil)
		}
		values[i] = "null"
		if raw := p.Args[name]; raw != nil {
			if !json.Valid(raw) {
				return "", "", broken("the argument "+name+" is not valid JSON", nil)
			}
			values[i] = string(raw)
		}
	}
	return `(async function (` + strings.Join(names, ", ") + `) {"use strict";` +
		strings.ToValidUTF8(p.Code, "\uFFFD") + "\n})", "[" + strings.Join(values, ",") + "]", nil
}

// program takes the code from its text to the JSON of its result.
func (c *call) program(ctx context.Context, source, args string) (json.RawMessage, error) {
	function := c.eval(ctx, source, fileName)
	if thrown := c.thrown(ctx, function); thrown != nil {
		return nil, c.explain(thrown)
	}
	values := c.invoke(ctx, c.engine.doors.read, c.newText(ctx, args))
	if thrown := c.thrown(ctx, values); thrown != nil {
		thrown.message = "the input cannot be read: " + thrown.message
		return nil, c.explain(thrown)
	}
	begin := []uint64{function, values, c.number(ctx, float64(units(source)-len("()")))}
	for range 4 {
		begin = append(begin, c.number(ctx, float64(seed())))
	}
	promise := c.invoke(ctx, c.engine.doors.start, begin...)
	if thrown := c.thrown(ctx, promise); thrown != nil {
		return nil, c.explain(thrown)
	}
	settled, err := c.settle(ctx, promise)
	if err != nil {
		return nil, err
	}
	return c.result(ctx, settled)
}

// number makes a number of the language.
func (c *call) number(ctx context.Context, n float64) uint64 {
	return c.handle(c.call(ctx, "qjs_new_number", api.EncodeF64(n)))
}

// settle runs what is due until the promise is settled, and gives its value.
// Nothing here can settle one later: without timers and hosts, a promise that
// is pending when nothing is due stays so.
func (c *call) settle(ctx context.Context, promise uint64) (uint64, error) {
	// The questions are short: asking them without a deadline saves the
	// runtime a watcher for each.
	brief := context.WithoutCancel(ctx)
	for {
		state := int32(c.call(brief, "qjs_promise_state", promise))
		switch {
		case c.err != nil || c.late || !time.Now().Before(c.stop):
			c.late = c.late || c.err == nil
			return 0, c.explain(nil)
		case state == 1:
			return c.handle(c.call(brief, "qjs_promise_result", promise)), nil
		case state == 2:
			return 0, c.explain(c.describe(ctx, c.handle(c.call(brief, "qjs_promise_result", promise))))
		case c.call(brief, "qjs_is_job_pending") == 0 && c.err == nil:
			return 0, &Error{Kind: KindThrown, Message: "the code awaits a promise that nothing can settle: there are no timers and no network here"}
		}
		c.call(ctx, "qjs_execute_pending_job")
	}
}

// result writes the value as JSON, in bounds.
func (c *call) result(ctx context.Context, value uint64) (json.RawMessage, error) {
	text := c.invoke(ctx, c.engine.doors.finish, value)
	if thrown := c.thrown(ctx, text); thrown != nil {
		failed := c.explain(thrown)
		if failed.Kind == KindThrown {
			failed.Kind, failed.Message = KindOutput, cut("the result cannot be written as JSON: "+failed.Message, maxMessage)
		}
		return nil, failed
	}
	out, fits := c.bytes(ctx, text, c.options.MaxOutput)
	if c.err != nil || c.late {
		return nil, c.explain(nil)
	}
	if !fits {
		return nil, &Error{Kind: KindOutput, Message: fmt.Sprintf("the result has more than %d bytes of JSON", c.options.MaxOutput)}
	}
	return checked(out)
}

// units counts text as the language does, in UTF-16.
func units(text string) int {
	n := 0
	for _, r := range text {
		n++
		if r > 0xFFFF {
			n++
		}
	}
	return n
}

// seed gives a random number for the program's generator.
func seed() int32 {
	var b [4]byte
	_, _ = rand.Read(b[:]) // it never fails: the standard library says so
	return int32(binary.LittleEndian.Uint32(b[:]))
}

// exhausted tells whether an error of the engine means too deep recursion.
func exhausted(err error) bool {
	return err != nil && !errors.Is(err, errFull) && strings.Contains(err.Error(), "stack overflow")
}
