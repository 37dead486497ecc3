package expr_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/longstop-dev/longstop/internal/expr"
)

func scope(t testing.TB) expr.Scope {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(`{"input":{"x":1,"name":"Ann","big":12345678901234567890,"n":null,"l":[1,2],"odd key":{"a.b":true}},
		"steps":{"user":{"output":{"vip":true,"n":5}},"0":{"output":{"vip":true,"n":5}}},"secrets":{"api":"k-123456"},"run":{"id":"run_1"}}`))
	dec.UseNumber()
	var s expr.Scope
	if err := dec.Decode(&s); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestTemplates(t *testing.T) {
	t.Parallel()
	for src, want := range map[string]string{
		`"plain"`:                                     `"plain"`,
		`"{{ input.x }}"`:                             `1`,
		`"{{input.big}}"`:                             `12345678901234567890`,
		`"{{ input.l }}"`:                             `[1,2]`,
		`"{{ input.l.1 }}"`:                           `2`,
		`"id-{{ input.x }}/{{ input.name }}"`:         `"id-1/Ann"`,
		`"{{ input.l }} in text"`:                     `"[1,2] in text"`,
		`"{{ input.nope? }}"`:                         `null`,
		`"a{{ input.nope? }}b"`:                       `"ab"`,
		`"{{ input.nope ?? \"de\" }}"`:                `"de"`,
		`"{{ input.n ?? 7 }}"`:                        `7`,
		`"{{ input[\"odd key\"][\"a.b\"] }}"`:         `true`,
		`"\\{{ input.x }}"`:                           `"{{ input.x }}"`,
		`{"a":["{{ steps.user.output.n }}",{"b":1}]}`: `{"a":[5,{"b":1}]}`,
		`"{{ steps.0.output.vip }}"`:                  `true`,
		`"{{ run.id }}"`:                              `"run_1"`,
		`{"n":1.50,"t":[true,null]}`:                  `{"n":1.50,"t":[true,null]}`,
		`"Bearer {{ secrets.api }}"`:                  `"Bearer k-123456"`,
		`"{{ input.q ?? \"}}\" }}"`:                   `"}}"`,
	} {
		tmpl, err := expr.Compile(json.RawMessage(src))
		if err != nil {
			t.Errorf("%s: %v", src, err)
			continue
		}
		v, err := tmpl.Eval(scope(t))
		if err != nil {
			t.Errorf("%s: %v", src, err)
			continue
		}
		got, _ := json.Marshal(v)
		if string(got) != want {
			t.Errorf("%s: got %s, want %s", src, got, want)
		}
	}
}

func TestMissingPathsNameWhatThereIs(t *testing.T) {
	t.Parallel()
	for src, want := range map[string]string{
		`{"u":"{{ input.nope }}"}`:        `/u: input.nope is missing (input has: big, l, n, name, "odd key", x)`,
		`"{{ input.Name }}"`:              `input.Name is missing (input has: name, big, l, n, "odd key", x)`,
		`"{{ input.a.b.c }}"`:             `input.a.b.c is missing: there is no input.a (input has: big, l, n, name, "odd key", x)`,
		`"{{ input.l.2 }}"`:               `input.l.2 is missing (input.l is a list of 2 entries: 0 to 1)`,
		`"{{ input.l.x }}"`:               `input.l.x is missing (input.l is a list of 2 entries: give an index, from 0)`,
		`"{{ input.x.y }}"`:               `input.x.y is missing (input.x is a number)`,
		`"{{ input.n.y }}"`:               `input.n.y is missing (input.n is null)`,
		`"{{ input[\"odd key\"].nope }}"`: `input["odd key"].nope is missing (input["odd key"] has: "a.b")`,
		`"{{ steps.vip.output }}"`:        `steps.vip.output is missing: step vip has no output yet (steps has: user)`,
		`"{{ steps.user.output.n.id }}"`:  `steps.user.output.n.id is missing (steps.user.output.n is a number)`,
		`"{{ secrets.nope }}"`:            `there is no secret "nope" (longstop secrets set nope, or correct the name)`,
		`"{{ item }}"`:                    `there is no item here (item exists only inside of a loop)`,
		`{"a~/b":["x {{ input.n }}"]}`:    `/a~0~1b/0: input.n is null and cannot stand in a text ({{ input.n? }} for nothing, {{ input.n ?? "" }} for a default)`,
	} {
		tmpl, err := expr.Compile(json.RawMessage(src))
		if err != nil {
			t.Errorf("%s: %v", src, err)
			continue
		}
		if _, err = tmpl.Eval(scope(t)); err == nil || err.Error() != want {
			t.Errorf("%s:\n got %v\nwant %s", src, err, want)
		}
	}
}

func TestTemplatesThatCannotBeRead(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("[", 200) + strings.Repeat("]", 200)
	for src, want := range map[string]string{
		`{"a":"{{ input.x"}`:                              `/a: after {{ input.x comes its end, not }} (close it with }}`,
		`"{{ }}"`:                                         "must begin with a name, not with '}' (one of input, steps",
		`"{{ imput.x }}"`:                                 `unknown name "imput" in a template (one of input, steps`,
		`{"{{ input.x }}":1}`:                             "/{{ input.x }}: a key holds no templates",
		`"{{ input.x ?? de }}"`:                           `no JSON value (such as "text"`,
		`"{{ input.x ?? ` + deep + ` }}"`:                 "no JSON value",
		`"{{ input..x }}"`:                                "after input. a name must follow, not '.'",
		`"{{ input.x + 1 }}"`:                             "after {{ input.x comes '+', not }}",
		`"{{ input[x] }}"`:                                `(input["odd key"] or input[3])`,
		`"{{ input[01] }}"`:                               `(input["odd key"] or input[3])`,
		`"{{ input[\"x }}"`:                               `(input["odd key"] or input[3])`,
		`"{{ secrets }}"`:                                 "secrets does not name one secret (secrets.<name>)",
		`"{{ secrets.a.b }}"`:                             "secrets.a.b does not name one secret",
		`"{{ steps }}"`:                                   "steps does not name a step's output (steps.<id>.output)",
		`"{{ steps.user.id }}"`:                           "steps.user.id does not name a step's output (steps.user.output)",
		`"{{ input` + strings.Repeat(".a", 64) + ` }}"`:   "too long (at most 1000 bytes and 64 parts)",
		`"{{ input.` + strings.Repeat("a", 1000) + ` }}"`: "too long",
		deep:                       "nested too deep (at most 100 levels)",
		strings.Repeat("[", 20000): "not valid JSON",
		`{`:                        "not valid JSON",
		`1 2`:                      "more than one JSON value",
	} {
		if _, err := expr.Compile(json.RawMessage(src)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40s: got %v, want something with %q", src, err, want)
		}
	}
}

func TestDataIsNeverEvaluatedAgain(t *testing.T) {
	t.Parallel()
	s := expr.Scope{"input": map[string]any{"x": "{{ secrets.api }}"}, "secrets": map[string]any{"api": "k"}}
	tmpl, err := expr.Compile(json.RawMessage(`["{{ input.x }}","a {{ input.x }}"]`))
	if err != nil {
		t.Fatal(err)
	}
	v, err := tmpl.Eval(s)
	if got, _ := json.Marshal(v); err != nil || string(got) != `["{{ secrets.api }}","a {{ secrets.api }}"]` {
		t.Errorf("got %s, %v", got, err)
	}
}

func TestFilledAndRefs(t *testing.T) {
	t.Parallel()
	tmpl, err := expr.Compile(json.RawMessage(`{"a/b":"{{ secrets.api }}","h":{"X":"v","Y":"{{ steps.user.output.n }} {{ input.x? }}"}}`))
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Join(tmpl.Filled(), " ")
	if got != "/a~1b /h/Y" {
		t.Errorf("filled: got %s", got)
	}
	want := []expr.Ref{
		{Pointer: "/a~1b", Path: "secrets.api", Root: "secrets", Name: "api"},
		{Pointer: "/h/Y", Path: "steps.user.output.n", Root: "steps", Name: "user"},
		{Pointer: "/h/Y", Path: "input.x", Root: "input", Name: "x", Optional: true},
	}
	if got := tmpl.Refs(); !slices.Equal(got, want) {
		t.Errorf("refs:\n got %+v\nwant %+v", got, want)
	}
}

func TestConditions(t *testing.T) {
	t.Parallel()
	for src, want := range map[string]string{
		`steps.user.output.vip`:                          `true`,
		`steps["0"].output.n > 3 && input.name == "Ann"`: `true`,
		`input.x + 1`:                 `2`,
		`input.l.map(i, i * 2)`:       `[2,4]`,
		`{"a": input.name, "b": 1.5}`: `{"a":"Ann","b":1.5}`,
		`has(input.nope)`:             `false`,
		`input.n == null`:             `true`,
		`input.l.size()`:              `2`,
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

func TestConditionsThatFail(t *testing.T) {
	t.Parallel()
	for src, want := range map[string]string{
		`input.`:                        "not valid CEL at column 7",
		``:                              "a condition is empty",
		`nope.x`:                        "undeclared reference to 'nope' (names are input, steps",
		`input.nope > 1`:                "input.nope is missing (input has: big, l,",
		`steps.user.output.nope.x == 1`: "steps.user.output.nope.x is missing: there is no steps.user.output.nope (steps.user.output has: n, vip)",
		`steps.0.output`:                `steps["0"].output`,
		`steps.my-step.output`:          `steps["my-step"].output`,
		`{{ input.x }}`:                 "names values without braces",
		`input.x = 1`:                   "equality is ==",
		`input.l[5] == 1`:               "input.l.5 is missing (input.l is a list of 2 entries: 0 to 1)",
		`input.n.y == 1`:                "input.n.y is missing (input.n is null)",
		`item.x == 1`:                   "there is no item here",
		`input.x + 1.5 > 2`:             "both sides of + - * / must be of one kind",
		`secrets[input.name] == "x"`:    "does not name one secret",
		`secrets == {}`:                 "does not name one secret",
		`size(secrets.nope) > 1`:        `there is no secret "nope"`,
		`[{}].all(i, i.x)`:              "computes or reaches in a loop",
		`"a".replace("", "b").size() == 3 && timestamp(secrets.api) > timestamp(0)`: "a text is no instant such as",
		`input.name`:      "not true or false",
		`input.x / 0 > 1`: "zero",
		`[1,2,3,4,5,6,7,8,9,10].all(a, [1,2,3,4,5,6,7,8,9,10].all(b, [1,2,3,4,5,6,7,8,9,10].all(c, [1,2,3,4,5,6,7,8,9,10].all(d, [1,2,3,4,5,6,7,8,9,10].all(e, [1,2,3,4,5,6,7,8,9,10].all(f, [1,2,3,4,5,6,7,8,9,10].all(g, a+b+c+d+e+f+g > 0)))))))`: "too much work",
	} {
		c, err := expr.CompileCondition(src)
		if err == nil {
			_, err = c.Bool(t.Context(), scope(t))
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.50s: got %v, want something with %q", src, err, want)
		}
	}
}

func BenchmarkCompileCondition(b *testing.B) {
	for b.Loop() {
		if _, err := expr.CompileCondition(`steps.user.output.vip`); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEval(b *testing.B) {
	tmpl, err := expr.Compile(json.RawMessage(`{"method":"GET","url":"https://h/{{ input.x }}","headers":{"A":"b"}}`))
	if err != nil {
		b.Fatal(err)
	}
	s := scope(b)
	for b.Loop() {
		if _, err := tmpl.Eval(s); err != nil {
			b.Fatal(err)
		}
	}
}
