package step

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/longstop-dev/longstop/internal/flow"
)

// scoped is a call with a scope as a run has it.
func scoped(t testing.TB, config string) flow.Call {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(`{
		"input": {"n": 2, "big": 9007199254740993, "price": 1.10, "yes": true, "name": "<Ada & co>", "list": [1, 2, 3], "tricky": "{{ input.n }}", "evil": {"$cel": "1 + 1"}, "none": null},
		"steps": {"0": {"output": {"id": 7}}, "user": {"output": {"id": 7}}},
		"run": {"id": "run_1"}}`))
	d.UseNumber()
	c := callOf(config)
	if err := d.Decode(&c.Scope); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestTransform(t *testing.T) {
	t.Parallel()
	table := NewTable(Deps{})
	for value, want := range map[string]string{
		`null`:                            `null`,
		`7`:                               `7`,
		`"a <b>"`:                         `"a <b>"`,
		`{"b": [1, {"c": 1.50}], "a": 2}`: `{"a":2,"b":[1,{"c":1.50}]}`,
		`"{{ input.big }}"`:               `9007199254740993`,
		`"{{ input.price }}"`:             `1.10`,
		`"Dear {{ input.name }}"`:         `"Dear <Ada & co>"`,
		`{"id": "{{ steps.user.output.id }}", "list": "{{ input.list }}"}`: `{"id":7,"list":[1,2,3]}`,
		`"{{ input.tricky }}"`:                               `"{{ input.n }}"`,
		`["{{ input.evil }}", {"$cel": "input.n + 1"}]`:      `[{"$cel":"1 + 1"},3]`,
		`{"$cel": "input.n * 2"}`:                            `4`,
		`{"\u0024cel": "input.n * 2"}`:                       `4`,
		`{"$cel": "input.list.map(x, x * 2)"}`:               `[2,4,6]`,
		`{"$cel": "{'a': input.yes, 'b': [input.none]}"}`:    `{"a":true,"b":[null]}`,
		`{"$cel": "input.name + '!'"}`:                       `"<Ada & co>!"`,
		`{"$cel": "steps.user.output.id"}`:                   `7`,
		`{"$cel": "steps['0'].output.id == 7"}`:              `true`,
		`{"deep": [{"x": {"$cel": "1 + 1"}, "y": "$cel"}]}`:  `{"deep":[{"x":2,"y":"$cel"}]}`,
		`{"text": "costs $cel 3", "n": "{{ input.n }}"}`:     `{"n":2,"text":"costs $cel 3"}`,
		`{"a": {"$cel": "input.n"}, "b": "x{{ input.n }}y"}`: `{"a":2,"b":"x2y"}`,
	} {
		for range 2 { // compiled, then out of the cache
			out, err := table.Run(t.Context(), "transform", scoped(t, `{"value": `+value+`}`))
			if err != nil {
				t.Errorf("%s: %v", value, err)
			} else if string(out.Value) != want {
				t.Errorf("%s: got %s, want %s", value, out.Value, want)
			}
		}
	}
}

func TestTransformFailures(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		config string
		kind   flow.ErrorKind
		names  string // what the message must name
	}{
		{`{"value": {"a": [{"$cel": "input.n + "}]}}`, flow.KindConfig, "config.value.a[0].$cel"},
		{`{"value": {"a": {"$cel": "1", "b": 2}}}`, flow.KindConfig, "config.value.a"},
		{`{"value": {"a": {"$cel": "input.missing"}}}`, flow.KindTemplate, "config.value.a.$cel"},
		{`{"value": {"a": "{{ input.missing }}"}}`, flow.KindTemplate, "input.missing"},
		{`{"value": {"$cel": "input.n / 0"}}`, flow.KindTemplate, "config.value.$cel"},
	} {
		_, err := NewTable(Deps{}).Run(t.Context(), "transform", scoped(t, c.config))
		if e := failedAs(t, err, c.kind); !strings.Contains(e.Message, c.names) {
			t.Errorf("%s: got %q, want %q in it", c.config, e.Message, c.names)
		}
	}
}

func TestCacheIsBounded(t *testing.T) {
	t.Parallel()
	var c cache[int]
	made := 0
	compile := func([]byte) (int, error) { made++; return made, nil }
	for i := range 3 * maxCached {
		if _, err := c.get([]byte(fmt.Sprint(i)), compile); err != nil {
			t.Fatal(err)
		}
	}
	if len(c.made) > maxCached || len(c.made) == 0 {
		t.Errorf("got %d entries, want 1 to %d", len(c.made), maxCached)
	}
	before := made
	for range 2 {
		if _, err := c.get([]byte("again"), compile); err != nil {
			t.Fatal(err)
		}
	}
	if made != before+1 {
		t.Errorf("compiled %d times, want once", made-before)
	}
	if _, err := c.get(make([]byte, maxCachedBytes+1), compile); err != nil {
		t.Fatal(err)
	}
	if c.bytes > maxCachedBytes {
		t.Errorf("got %d bytes of keys, want at most %d", c.bytes, maxCachedBytes)
	}
}

func BenchmarkTransform(b *testing.B) {
	table := NewTable(Deps{})
	for name, value := range map[string]string{
		"constant": `{"ok": true}`,
		"template": `{"id": "{{ steps.user.output.id }}", "text": "n is {{ input.n }}"}`,
		"cel":      `{"twice": {"$cel": "input.n * 2"}}`,
	} {
		c := scoped(b, `{"value": `+value+`}`)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := table.Run(b.Context(), "transform", c); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
