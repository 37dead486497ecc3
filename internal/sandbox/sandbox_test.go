package sandbox_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/longstop-dev/longstop/internal/sandbox"
)

func args(input string) map[string]json.RawMessage {
	return map[string]json.RawMessage{
		"input": json.RawMessage(input),
		"steps": json.RawMessage(`{"0":{"output":{"token":"t1"}}}`),
		"none":  nil,
	}
}

// TestValues is what an honest program gives.
func TestValues(t *testing.T) {
	t.Parallel()
	s := sandbox.New(sandbox.Options{Timeout: time.Minute, CacheDir: cacheDir()})
	for _, c := range []struct{ code, want string }{
		{"", "null"},
		{"return", "null"},
		{"return input.a + 1", "2"},
		{"return await Promise.resolve(steps['0'].output.token)", `"t1"`},
		{"return steps[0].output", `{"token":"t1"}`},
		{"return none", "null"},
		{"return [NaN, Infinity, -0, undefined, 1e21, 0.1]", "[null,null,0,null,1e+21,0.1]"},
		{"return {a: undefined, b: 1}", `{"b":1}`},
		{"return new Date(0)", `"1970-01-01T00:00:00.000Z"`},
		{"return new Date(2026, 0, 1).toISOString()", `"2026-01-01T00:00:00.000Z"`},
		{"return Math.abs(Date.now() - input.now) < 60000", "true"},
		{"const {a, ...r} = {a: 1, b: 2}; class X { #p = 1; get p() { return this.#p } } return [r, new X().p, [1, 2].at(-1), null ?? 3, [3, 1].toSorted()]", `[{"b":2},1,2,3,[1,3]]`},
		{"let n = 0; for (let i = 0; i < 1000; i++) n += await i; return n", "499500"},
		{"return typeof this + typeof arguments[0]", `"undefinedobject"`},
	} {
		got, err := s.Run(context.Background(), sandbox.Program{
			Code: c.code, Args: args(fmt.Sprintf(`{"a":1,"now":%d}`, time.Now().UnixMilli())),
		})
		if err != nil || string(got.Value) != c.want {
			t.Errorf("%s: got %s, %v, want %s", c.code, got.Value, err, c.want)
		}
	}
}

// TestErrors is what the author of the code reads.
func TestErrors(t *testing.T) {
	t.Parallel()
	s := sandbox.New(sandbox.Options{Timeout: time.Minute, CacheDir: cacheDir()})
	for _, c := range []struct {
		code string
		kind sandbox.Kind
		want string
	}{
		{"\n\nlet x = ;", sandbox.KindSyntax, "line 3: SyntaxError: unexpected token in expression: ';'"},
		{"return 1 }", sandbox.KindSyntax, "SyntaxError"},
		{"const a = 1;\n\nreturn input.b.c", sandbox.KindThrown, "line 3: TypeError: cannot read property 'c' of undefined"},
		{"const f = () => {\n  throw new RangeError('boom')\n};\nf()", sandbox.KindThrown, "line 2: RangeError: boom"},
		{"await null;\nthrow new Error('late')", sandbox.KindThrown, "line 2: Error: late"},
		{"undeclared = 1", sandbox.KindThrown, "line 1: ReferenceError: undeclared is not defined"},
		{"throw 'text'", sandbox.KindThrown, "text"},
		{"throw {code: 7}", sandbox.KindThrown, `{"code":7}`},
		{"throw undefined", sandbox.KindThrown, "undefined"},
		{"await new Promise(() => {})", sandbox.KindThrown, "the code awaits a promise that nothing can settle: there are no timers and no network here"},
		{"return () => 1", sandbox.KindOutput, "the result cannot be written as JSON: TypeError: the result is a function"},
		{"return {a: {f() {}}}", sandbox.KindOutput, `the result cannot be written as JSON: TypeError: member "f" of the result is a function`},
		{"return [Symbol('x')]", sandbox.KindOutput, `the result cannot be written as JSON: TypeError: member "0" of the result is a symbol`},
		{"return {n: 1n}", sandbox.KindOutput, `the result cannot be written as JSON: TypeError: member "n" of the result is a BigInt: use Number(x) or String(x)`},
		{"return {p: Promise.resolve(1)}", sandbox.KindOutput, `the result cannot be written as JSON: TypeError: member "p" of the result is a promise: await it first`},
		{"return new Map([[1, 2]])", sandbox.KindOutput, "the result cannot be written as JSON: TypeError: the result is a Map: use Object.fromEntries(map)"},
		{"const a = {}; a.a = a; return a", sandbox.KindOutput, "the result cannot be written as JSON: TypeError: circular reference"},
		{"return 'x'.repeat(1 << 20)", sandbox.KindOutput, "the result has more than 1048576 bytes of JSON"},
	} {
		_, err := s.Run(context.Background(), sandbox.Program{Code: c.code, Args: args(`{"a":1}`)})
		var failed *sandbox.Error
		if !errors.As(err, &failed) || failed.Kind != c.kind || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: got %T %v, want %s: %s", c.code, err, err, c.kind, c.want)
		}
	}
}

// TestInput is what a program cannot be given.
func TestInput(t *testing.T) {
	t.Parallel()
	s := patient()
	for _, c := range []struct {
		name, value string
		kind        sandbox.Kind
	}{
		{"a b", "1", sandbox.KindInternal},
		{"a){},b", "1", sandbox.KindInternal},
		{"input", "{", sandbox.KindInternal},
		{"input", `"` + strings.Repeat("x", memory) + `"`, sandbox.KindMemory},
		{"input", strings.Repeat("[", 9000) + strings.Repeat("]", 9000), ""},
	} {
		_, err := s.Run(context.Background(), sandbox.Program{Code: "return 1", Args: map[string]json.RawMessage{c.name: json.RawMessage(c.value)}})
		var failed *sandbox.Error
		switch {
		case c.kind == "" && err != nil, c.kind != "" && (!errors.As(err, &failed) || failed.Kind != c.kind):
			t.Errorf("%.20s = %.20s: got %v, want kind %q", c.name, c.value, err, c.kind)
		}
	}
}

// TestConsole keeps 100 lines of 1 KiB, also of a program that fails.
func TestConsole(t *testing.T) {
	t.Parallel()
	s := sandbox.New(sandbox.Options{Timeout: time.Second, CacheDir: cacheDir()})
	for _, end := range []string{"return 1", "throw 1", "for(;;){}", "return () => 1", "for(;;) await null"} {
		got, _ := s.Run(context.Background(), sandbox.Program{Code: `
			const o = {}; o.o = o;
			console.log('saw', {a: 1}, [2], null, undefined, new Error('no'), o, 3n, () => 4);
			console.error('é'.repeat(1e4)); console.warn(''); console.info('\ud800');
			for (let i = 0; i < 200; i++) console.debug(i);` + end})
		want := []string{
			`saw {"a":1} [2] null undefined Error: no [object Object] 3 () => 4`,
			strings.Repeat("é", 512), "", "\ufffd", "0",
		}
		if len(got.Console) != 100 || !slices.Equal(got.Console[:5], want) || got.Console[99] != "105 more lines were not kept" {
			t.Errorf("%s: got %d lines %.300q, want %q", end, len(got.Console), got.Console, want)
		}
	}
}

// TestRandomDiffers between programs, although all begin from one memory.
func TestRandomDiffers(t *testing.T) {
	t.Parallel()
	s := sandbox.New(sandbox.Options{Timeout: time.Minute, CacheDir: cacheDir()})
	seen := map[string]bool{}
	for range 20 {
		got, err := s.Run(context.Background(), sandbox.Program{Code: `
			let low = 0; for (let i = 0; i < 1000; i++) { const x = Math.random(); if (!(x >= 0 && x < 1)) throw x; if (x < 0.5) low++ }
			if (low < 400 || low > 600) throw low;
			return Math.random()`})
		if err != nil || seen[string(got.Value)] {
			t.Errorf("got %s, %v, want a number not seen before", got.Value, err)
		}
		seen[string(got.Value)] = true
	}
}

// TestTheCallersContextEndsTheCall while the program runs and while it waits
// for a place.
func TestTheCallersContextEndsTheCall(t *testing.T) {
	t.Parallel()
	s := sandbox.New(sandbox.Options{Parallel: 1, Timeout: time.Minute, CacheDir: cacheDir()})
	checkAlive(t, s)
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	ended := make(chan error)
	for range 2 {
		go func() {
			_, err := s.Run(ctx, sandbox.Program{Code: "for(;;){}"})
			ended <- err
		}()
	}
	for range 2 {
		err := <-ended
		var failed *sandbox.Error
		if !errors.Is(err, context.DeadlineExceeded) || errors.As(err, &failed) {
			t.Errorf("got %T %v, want the context's error", err, err)
		}
	}
	checkAlive(t, s)
}

// TestClosed refuses programs and may be asked twice.
func TestClosed(t *testing.T) {
	t.Parallel()
	s := sandbox.New(sandbox.Options{Timeout: time.Minute, CacheDir: cacheDir()})
	for range 2 {
		if err := s.Close(context.Background()); err != nil {
			t.Errorf("closing: %v", err)
		}
	}
	_, err := s.Run(context.Background(), sandbox.Program{})
	var failed *sandbox.Error
	if !errors.As(err, &failed) || failed.Kind != sandbox.KindInternal {
		t.Errorf("got %v, want an internal error", err)
	}
}
