package expr_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/longstop-dev/longstop/internal/expr"
)

func TestFunctions(t *testing.T) {
	t.Parallel()
	for src, want := range map[string]string{
		`"AbÄ".lowerAscii()`:                           `"abÄ"`,
		`"aBä".upperAscii()`:                           `"ABä"`,
		`" a ".trim()`:                                 `"a"`,
		`"a,b,".split(",")`:                            `["a","b",""]`,
		`["a", "b"].join("-")`:                         `"a-b"`,
		`[].join("-")`:                                 `""`,
		`"aXbX".replace("X", "--")`:                    `"a--b--"`,
		`input.?nope.orValue("de")`:                    `"de"`,
		`input.?name.orValue("de")`:                    `"Ann"`,
		`input.l.map(i, string(i)).join(",")`:          `"1,2"`,
		`input.l.filter(item, item > 1)`:               `[2]`,
		`timestamp("2026-01-02T03:04:05+01:00")`:       `"2026-01-02T02:04:05Z"`,
		`duration("90s")`:                              `"1m30s"`,
		`b"ab"`:                                        `"YWI="`,
		`1.0`:                                          `1`,
		`1e300 * 10.0`:                                 `1e+301`,
		`uint(7)`:                                      `7`,
		`steps.user.output`:                            `{"n":5,"vip":true}`,
		`input["odd key"]["a.b"]`:                      `true`,
		`input.x == 1.0 && input.x < 1.5`:              `true`,
		`{"a": [input.l, {"b": input.n}]}`:             `{"a":[[1,2],{"b":null}]}`,
		`input.big > 1.0`:                              `true`,
		`timestamp("2026-01-02T03:04:05Z").getHours()`: `3`,
	} {
		c, err := expr.CompileCondition(src)
		if err != nil {
			t.Errorf("%s: %v", src, err)
			continue
		}
		v, err := c.Value(t.Context(), scope(t))
		if got, _ := json.Marshal(v); err != nil || string(got) != want {
			t.Errorf("%s: got %s, %v, want %s", src, got, err, want)
		}
	}
}

// TestConditionsCannotTakeTheMachine: each of these would take all memory or
// hours if it were let.
func TestConditionsCannotTakeTheMachine(t *testing.T) {
	t.Parallel()
	ten := `[0,1,2,3,4,5,6,7,8,9]`
	loop := func(body string) string {
		for _, v := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
			body = ten + ".map(" + v + ", " + body + ")"
		}
		return body
	}
	for src, want := range map[string]string{
		loop("1"): "too much work",
		`"0123456789".replace("", "0123456789")` + strings.Repeat(`.replace("0", "00000000000000000000")`, 20): "grows over 8 MiB",
		`input.long` + strings.Repeat(`.replace("x", "xx")`, 30):                                               "too much work",
		ten + `.map(x, input.long).join(input.long)`:                                                           "grows over 8 MiB",
		ten + `.map(x, ` + ten + `.map(y, input.long))`:                                                        "too large",
		strings.Repeat("(", 500) + "1" + strings.Repeat(")", 500):                                              "not valid CEL",
		strings.Repeat("1+", 6000) + "1":                                                                       "too long",
		`1.0 / 0.0`:                                                                                            "a number that JSON does not have",
		`{1: 2}`:                                                                                               "an object with a number as a key",
		`type(1)`:                                                                                              "no JSON value",
	} {
		c, err := expr.CompileCondition(src)
		if err == nil {
			s := expr.Scope{"input": map[string]any{"long": strings.Repeat("x", 1<<20)}}
			_, err = c.Value(t.Context(), s)
		}
		if err == nil || !strings.Contains(err.Error(), want) || len(err.Error()) > 1000 {
			t.Errorf("%.60s: got %v, want something short with %q", src, err, want)
		}
	}
}

func TestConditionsStopWithTheirContext(t *testing.T) {
	t.Parallel()
	c, err := expr.CompileCondition(`input.l.all(a, input.l.all(b, a >= 0 && b >= 0))`)
	if err != nil {
		t.Fatal(err)
	}
	l := make([]any, 300)
	for i := range l {
		l[i] = json.Number("1")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Bool(ctx, expr.Scope{"input": map[string]any{"l": l}}); err == nil || !strings.Contains(err.Error(), "stopped before it had an answer") {
		t.Errorf("got %v, want that it was stopped", err)
	}
}

func TestTemplatesAreBounded(t *testing.T) {
	t.Parallel()
	long := expr.Scope{"input": map[string]any{"x": strings.Repeat("x", 1<<20), "l": []any{strings.Repeat("y", 1<<20)}}}
	for _, one := range []string{`"{{ input.x }}"`, `"a {{ input.x }}"`, `"{{ input.l }}"`, `"a {{ input.l }}"`} {
		src := "[" + strings.Repeat(one+",", 100) + "1]"
		tmpl, err := expr.Compile(json.RawMessage(src))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tmpl.Eval(long); err == nil || !strings.Contains(err.Error(), "too large (at most 64 MiB)") {
			t.Errorf("%s a hundred times: got %v, want too large", one, err)
		}
	}
	if _, err := expr.Compile(json.RawMessage("[" + strings.Repeat(`"{{ run.id }}",`, 10_001) + "1]")); err == nil || !strings.Contains(err.Error(), "too many templates") {
		t.Errorf("10,001 templates: got %v, want too many", err)
	}
}

func TestComputedValues(t *testing.T) {
	t.Parallel()
	tmpl, err := expr.CompileComputed(json.RawMessage(`{"a":[{"$cel":"input.x + 1"},"{{ input.name }}"],"b":{"c":1}}`))
	if err != nil {
		t.Fatal(err)
	}
	v, err := tmpl.EvalContext(t.Context(), scope(t))
	if got, _ := json.Marshal(v); err != nil || string(got) != `{"a":[2,"Ann"],"b":{"c":1}}` {
		t.Errorf("got %s, %v", got, err)
	}
	if got := fmt.Sprint(tmpl.Filled()); got != "[/a/0/$cel /a/1]" {
		t.Errorf("filled: got %s", got)
	}
	for src, want := range map[string]string{
		`{"a":{"$cel":"1","b":2}}`: "/a/$cel: $cel must be a text and the only member",
		`{"$cel":"1 +"}`:           "/$cel: not valid CEL",
	} {
		if _, err := expr.CompileComputed(json.RawMessage(src)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", src, err, want)
		}
	}
	plain, err := expr.Compile(json.RawMessage(`{"$cel":"1 +"}`))
	if err != nil || len(plain.Filled()) != 0 {
		t.Errorf("Compile takes $cel as data: got %v, %v", plain, err)
	}
}

func TestErrorsShowNoSecret(t *testing.T) {
	t.Parallel()
	const secret = "k-123456" // of scope
	for _, src := range []string{
		`int(secrets.api) > 1`, `timestamp(secrets.api) > timestamp(0)`, `duration(secrets.api) > duration("1s")`,
		`secrets.api.matches(secrets.api + "(")`, `input[secrets.api] == 1`, `secrets.api`, `secrets.api + 1 > 2`, `secrets.api.x == 1`,
		`input.l[int(secrets.api)] == 1`, `bool(secrets.api)`, `{secrets.api: 1, secrets.api: 2}[secrets.api + "x"] == 1`,
	} {
		c, err := expr.CompileCondition(src)
		if err == nil {
			_, err = c.Bool(t.Context(), scope(t))
		}
		if err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: got %v, want an error without the secret", src, err)
		}
	}
	for _, src := range []string{`"{{ secrets.api ?? 1 }} {{ input.n }}"`, `"{{ secrets.api }}{{ secrets.other }}"`} {
		tmpl, err := expr.Compile(json.RawMessage(src))
		if err == nil {
			_, err = tmpl.Eval(scope(t))
		}
		if err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: got %v, want an error without the secret", src, err)
		}
	}
}

func TestOneConditionServesManyAtOnce(t *testing.T) {
	t.Parallel()
	good, err := expr.CompileCondition(`input.x + 1 == 2`)
	if err != nil {
		t.Fatal(err)
	}
	wrong, err := expr.CompileCondition(`input.x + input.name == 2`)
	if err != nil {
		t.Fatal(err)
	}
	s := scope(t)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 50 {
				if ok, err := good.Bool(t.Context(), s); !ok || err != nil {
					t.Errorf("got %v, %v, want true", ok, err)
				}
				if _, err := wrong.Bool(t.Context(), s); err == nil {
					t.Error("got no error for a sum of a number and a text")
				}
			}
		})
	}
	all.Wait()
}

// FuzzTemplate: any JSON either does not compile or evaluates to JSON or to an
// error, and what holds no template comes out as it went in but for escapes.
func FuzzTemplate(f *testing.F) {
	for _, s := range []string{`"{{ input.x }}"`, `{"a":["x {{ input.l.1 ?? [1] }} y",{"b":"\\{{"}]}`, `"{{ input[\"odd key\"][\"a.b\"]? }}"`, `"\\\\{{ item }}"`, `{"{{ x }}":1}`, `"{{ secrets.api }}{{steps.0.output}}"`, `{"$cel":"input.x"}`, `"{{"`, `"{{ input.x ?? {\"a\":1}}}"`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, src string) {
		for _, compile := range []func(json.RawMessage) (*expr.Template, error){expr.Compile, expr.CompileComputed} {
			tmpl, err := compile(json.RawMessage(src))
			if err != nil {
				continue
			}
			v, err := tmpl.EvalContext(t.Context(), scope(t))
			if err != nil {
				if len(tmpl.Filled()) == 0 {
					t.Fatalf("%q holds no template and fails: %v", src, err)
				}
				continue
			}
			if _, err := json.Marshal(v); err != nil {
				t.Fatalf("%q gives %#v: %v", src, v, err)
			}
		}
	})
}

// FuzzCondition: any text either does not compile or ends with JSON or with an
// error that does not show the secret.
func FuzzCondition(f *testing.F) {
	for _, s := range []string{`steps.user.output.vip && input.x > 0`, `input.l.map(i, i * 2).exists(i, i == 4)`, `has(input.nope) ? input.nope : "x".replace("x", "y")`, `{"a": [1, 2.5, b"x", null]}`, `steps["0"].output.?x.orValue(secrets.api)`, `timestamp("2026-01-01T00:00:00Z") + duration("1h")`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, src string) {
		c, err := expr.CompileCondition(src)
		if err == nil {
			var v any
			if v, err = c.Value(t.Context(), scope(t)); err == nil {
				if _, err := json.Marshal(v); err != nil {
					t.Fatalf("%q gives %#v: %v", src, v, err)
				}
			}
		}
		if err != nil && strings.Contains(err.Error(), "k-123456") && !strings.Contains(src, "k-123456") {
			t.Fatalf("%q shows the secret: %v", src, err)
		}
	})
}
