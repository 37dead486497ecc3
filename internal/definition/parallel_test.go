package definition_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/longstop-dev/longstop/internal/definition"
	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/step"
)

// parseAll checks a definition with every step type there is.
func parseAll(src string) (*flow.Definition, error) {
	return definition.Parse("x.yaml", []byte(src), step.NewTable(step.Deps{}).Types())
}

// branching is a definition whose parallel step p has branches a, b and c-d,
// with the value of one of the steps put in by the test.
func branching(values map[string]string) string {
	var lines []any
	for _, id := range []string{"before", "a", "b", "inner", "c", "d", "after"} {
		value := values[id]
		if value == "" {
			value = "1"
		}
		lines = append(lines, fmt.Sprintf("{id: %s, type: transform, config: {value: %s}}", id, value))
	}
	return fmt.Sprintf(`name: x
steps:
  - %s
  - id: p
    type: parallel
    config:
      branches:
        - [%s]
        - - %s
          - id: q
            type: parallel
            config: {branches: [[%s], []]}
        - [%s, %s]
  - %s
`, lines...)
}

func TestAStepSeesItsOwnBranchAndWhatRanBefore(t *testing.T) {
	t.Parallel()
	d, err := parseAll(branching(map[string]string{
		"a": `"{{ steps.before.output }}"`, "inner": `"{{ steps.b.output }}"`, "d": `"{{ steps.c.output }} {{ steps.0.output }}"`,
		"after": `["{{ steps.p.output }}", "{{ steps.a.output }}", "{{ steps.inner.output }}", {$cel: steps.d.output}]`,
	}))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, b := range d.Steps[1].Nested {
		names = append(names, fmt.Sprint(b.Name, "=", len(b.Steps)))
	}
	if got := strings.Join(names, " "); got != "branches.0=1 branches.1=2 branches.2=2" {
		t.Errorf("branches: got %s", got)
	}
}

// A reference into a branch that runs at the same time would be there or not
// by chance.
func TestAStepCannotReferToAnotherBranch(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ in, value, want string }{
		{"a", `"{{ steps.b.output }}"`, "steps.b.output: steps a and b stand in different branches of p, which run at the same time"},
		{"c", `{$cel: "steps.a.output + 1"}`, "steps.a.output: steps c and a stand in different branches of p, which run at the same time"},
		{"a", `"{{ steps.inner.output }}"`, "steps.inner.output: steps a and inner stand in different branches of p, which run at the same time"},
		{"d", `"{{ steps.q.output }}"`, "steps.q.output: steps d and q stand in different branches of p, which run at the same time"},
		{"inner", `"{{ steps.7.output }}"`, "steps.7.output: steps inner and 7 stand in different branches of p, which run at the same time"},
		{"c", `"{{ steps.d.output }}"`, "steps.d.output: step d runs after this one"},
		{"b", `"{{ steps.p.output }}"`, "steps.p.output: step p is not done: this one runs inside of it"},
	} {
		_, err := parseAll(branching(map[string]string{c.in: c.value}))
		var e *flow.Error
		if !errors.As(err, &e) || len(e.Problems) != 1 || e.Problems[0].Message != c.want {
			t.Errorf("%s in %s: got %v, want %q", c.value, c.in, err, c.want)
		}
	}
}

func TestBranchesAreBounded(t *testing.T) {
	t.Parallel()
	src := "name: x\nsteps:\n  - type: parallel\n    config:\n      branches: [" + strings.Repeat("[{type: wait, config: {for: 1s}}], ", 65) + "]\n"
	var e *flow.Error
	if _, err := parseAll(src); !errors.As(err, &e) || !strings.Contains(err.Error(), "64") {
		t.Errorf("65 branches: got %v, want a problem that names 64", err)
	}
}
