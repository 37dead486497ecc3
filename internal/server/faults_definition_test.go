package server_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/longstop-dev/longstop/internal/server"
)

// refusedDefinition is a definition that is not taken, the status of its
// refusal, and what that must say.
type refusedDefinition struct {
	yaml   string
	status int
	why    string
}

// within makes a definition with this value in its one step.
func within(value string) string {
	return "name: x\nsteps:\n  - {id: a, type: transform, config: {value: " + value + "}}\n"
}

func refusedDefinitions() map[string]refusedDefinition {
	bomb := "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c < 'k'; c++ {
		bomb += fmt.Sprintf("%c: &%c [%s]\n", c, c, strings.Repeat("*"+string(c-1)+",", 10))
	}
	return map[string]refusedDefinition{
		"a step that needs itself":   {within(`"{{ steps.a.output }}"`), 422, "steps.a"},
		"two that need each other":   {"name: x\nsteps:\n  - {id: a, type: transform, config: {value: \"{{ steps.b.output }}\"}}\n  - {id: b, type: transform, config: {value: \"{{ steps.a.output }}\"}}\n", 422, "steps.b"},
		"an anchor within itself":    {"name: x\nsteps: &a [*a]\n", 422, "alias"},
		"an alias bomb":              {bomb + within("1"), 422, "alias"},
		"10 MB":                      {"name: x\n#" + strings.Repeat("x", 10<<20), 413, "bytes"},
		"unknown type":               {"name: x\nsteps:\n  - {type: http_requst, config: {}}\n", 422, "http_request"},
		"a path that cannot be":      {within(`"{{ steps.nobody.output.x }}"`), 422, "nobody"},
		"an index out of range":      {within(`"{{ steps.7.output }}"`), 422, "steps.7"},
		"a template in a key":        {"name: x\nsteps:\n  - {type: http_request, config: {url: \"https://x\", headers: {\"{{ input.x }}\": a}}}\n", 422, "key"},
		"a path below a secret":      {within(`"{{ secrets.api.x }}"`), 422, "secrets.<name>"},
		"a template that is not one": {within(`"{{ input.x "`), 422, "}}"},
		"no YAML":                    {"name: x\n\tsteps: {", 422, "line"},
		"binary":                     {"\x00\x01\x02name: x", 422, ""},
		"no UTF-8":                   {"name: \xff", 400, "UTF-8"},
		"nothing":                    {"", 400, "needs a body"},
		"20,000 levels":              {"name: x\nsteps: " + strings.Repeat("[", 20_000), 422, "deep"},
	}
}

// TestFaultsOfDefinitions holds that a wrong definition is told where it is
// wrong, and leaves nothing behind.
func TestFaultsOfDefinitions(t *testing.T) {
	t.Parallel()
	st := begin(t)
	for name, d := range refusedDefinitions() {
		t.Run(name, func(t *testing.T) {
			for _, path := range []string{"/v1/workflows", "/v1/workflows/validate"} {
				code, b := st.call("POST", path, d.yaml, nil)
				if code != d.status || !strings.Contains(b, d.why) || len(b) > 16<<10 {
					t.Errorf("%s: got %d %.700s, want %d with %q", path, code, b, d.status, d.why)
				}
			}
		})
	}
	var list struct{ Items []any }
	st.must("GET", "/v1/workflows", nil, &list)
	if len(list.Items) != 0 {
		t.Errorf("workflows: got %v, want none", list.Items)
	}
}

// TestFaultsOfTemplatesInARun holds for what is wrong only once there is data:
// the step fails and says which name is missing, and a person is called.
func TestFaultsOfTemplatesInARun(t *testing.T) {
	onEach(t, func(t *testing.T, on func(*server.Config)) {
		type miss struct{ yaml, why string }
		one := func(config string) string {
			return "name: misses\nsteps:\n  - {id: list, type: transform, config: {value: [1]}}\n  - {id: a, type: transform, title: Fetch user profile, config: {value: " + config + "}}\n"
		}
		st := begin(t, on)
		table(st, map[string]miss{
			"a missing path":              {one(`"{{ input.user.name }}"`), "input.user"},
			"an index out of range":       {one(`"{{ steps.list.output.3 }}"`), "steps.list.output"},
			"a path into a number":        {one(`"{{ steps.list.output.0.x }}"`), "steps.list.output.0"},
			"a secret that is not there":  {one(`"{{ secrets.nobody }}"`), `no secret "nobody"`},
			"a condition on what is none": {one(`{$cel: "input.user.name == 'x'"}`), "user"},
		}, func(_ string, m miss) string { return st.run(m.yaml, map[string]any{"present": 1}) }, func(t *testing.T, id string, m miss) {
			r, _ := st.outcome(id)
			if r.Status != "waiting" || len(r.Gates) != 1 || r.Gates[0].Kind != "needs_human" || !strings.Contains(r.Steps[1].Error, m.why) {
				t.Errorf("got %s with gates %+v and %q, want a person called and told of %q", r.Status, r.Gates, r.Steps[1].Error, m.why)
			}
		})
	})
}
