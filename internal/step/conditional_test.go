package step

import (
	"strings"
	"testing"

	"github.com/longstop-dev/longstop/internal/flow"
)

func TestConditional(t *testing.T) {
	t.Parallel()
	table := NewTable(Deps{})
	for config, want := range map[string]string{
		`{"if": true}`:                         "then",
		`{"if": false}`:                        "else",
		`{"if": "input.n == 2"}`:               "then",
		`{"if": "input.n > 2"}`:                "else",
		`{"if": "{{ input.yes }}"}`:            "then",
		`{"if": "steps.user.output.id == 7"}`:  "then",
		`{"if": "has(input.nothing)"}`:         "else",
		`{"if": "input.n == 2", "then": [{}]}`: "then",
		`{"cases": [{"when": "input.n == 1"}, {"when": "input.n == 2"}, {"when": true}]}`:                "cases.1",
		`{"cases": [{"when": "input.n == 1"}, {"when": false}]}`:                                         "else",
		`{"cases": [{"when": true}, {"when": "input.nothing"}]}`:                                         "cases.0",
		`{"cases": [{"when": "input.n == 1", "steps": [{}]}, {"when": "{{ input.yes }}", "steps": []}]}`: "cases.1",
	} {
		for range 2 {
			out, err := table.Run(t.Context(), "conditional", scoped(t, config))
			if err != nil {
				t.Errorf("%s: %v", config, err)
			} else if out.Branch != want || out.Value != nil || !out.Until.IsZero() {
				t.Errorf("%s: got %+v, want branch %s alone", config, out, want)
			}
		}
	}
}

func TestConditionalFailures(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		config string
		kind   flow.ErrorKind
		names  string
	}{
		{`{"if": "input.n ="}`, flow.KindConfig, "config.if: "},
		{`{"cases": [{"when": true}, {"when": 3}]}`, flow.KindConfig, "config.cases[1].when: "},
		{`{"cases": [{"when": false}, {"when": "input.missing == 1"}]}`, flow.KindTemplate, "config.cases[1].when: "},
		{`{"if": "input.n"}`, flow.KindTemplate, "config.if: "},
		{`{"if": "{{ input.n }}"}`, flow.KindTemplate, "config.if: its template gives neither true nor false"},
		{`{"if": "{{ input.n }} == 2"}`, flow.KindTemplate, "config.if: its template gives neither true nor false"},
	} {
		_, err := NewTable(Deps{}).Run(t.Context(), "conditional", scoped(t, c.config))
		if e := failedAs(t, err, c.kind); !strings.HasPrefix(e.Message, c.names) {
			t.Errorf("%s: got %q, want it to begin with %q", c.config, e.Message, c.names)
		}
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	table := NewTable(Deps{})
	for _, c := range []struct{ name, config, field string }{
		{"http_request", `{"url": "https://a.example/{{ input.id }}", "headers": {"X-A": "{{ input.a }}"}, "expect": "{{ input.expect }}"}`, ""},
		{"http_request", `{"url": "{{ input.url }}", "headers": "{{ input.headers }}"}`, ""},
		{"http_request", `{"url": "/users/7"}`, "config.url"},
		{"http_request", `{"url": "{{ input.url }}", "headers": {"host": "x"}}`, "config.headers.host"},
		{"wait", `{"for": "{{ input.pause }}"}`, ""},
		{"wait", `{"for": "40d"}`, "config.for"},
		{"wait", `{"until": "2026-13-01"}`, "config.until"},
		{"conditional", `{"if": "input.a &&"}`, "config.if"},
		{"conditional", `{"if": "input.a && input.b"}`, ""},
		{"transform", `{"value": [{"$cel": "input.a +"}]}`, "config.value[0].$cel"},
		{"transform", `{"value": "{{ input.a }}"}`, ""},
		{"mcp_call", `{}`, ""},
		{"nothing", `{}`, ""},
	} {
		problems := table.Check(c.name, []byte(c.config))
		switch {
		case c.field == "" && len(problems) > 0:
			t.Errorf("%s %s: got %+v, want no problem", c.name, c.config, problems)
		case c.field != "" && (len(problems) != 1 || problems[0].Field != c.field || problems[0].Message == ""):
			t.Errorf("%s %s: got %+v, want one at %s", c.name, c.config, problems, c.field)
		}
	}
}
