package definition_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/longstop-dev/longstop/internal/definition"
	"github.com/longstop-dev/longstop/internal/flow"
)

func parse(t *testing.T, src string) *flow.Definition {
	t.Helper()
	d, err := definition.Parse("x.yaml", []byte(src), types())
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestStepsAreNumberedAsWritten(t *testing.T) {
	t.Parallel()
	d := parse(t, `name: x
steps:
  - &w {type: wait, config: {for: 1s}}
  - type: conditional
    config:
      else: [*w, *w]
      cases:
        - {when: "true", steps: [*w]}
        - {when: "true", steps: []}
  - *w
`)
	var got []string
	d.Walk(func(s *flow.Step) { got = append(got, fmt.Sprintf("%d:%s:%s", s.Index, s.ID, s.Type)) })
	want := "0:s0:wait 1:s1:conditional 2:s2:wait 3:s3:wait 4:s4:wait 5:s5:wait"
	if g := strings.Join(got, " "); g != want {
		t.Errorf("got %s, want %s", g, want)
	}
	var branches []string
	for _, b := range d.Steps[1].Nested {
		branches = append(branches, fmt.Sprintf("%s=%d", b.Name, len(b.Steps)))
	}
	if g := strings.Join(branches, " "); g != "else=2 cases.0=1 cases.1=0" {
		t.Errorf("branches: got %s, want else=2 cases.0=1 cases.1=0", g)
	}
	if g := string(d.Steps[1].Config); g != `{"cases":[{"when":"true"},{"when":"true"}]}` {
		t.Errorf("config: got %s", g)
	}
}

func TestListsInListsAreBranches(t *testing.T) {
	t.Parallel()
	kinds := append(types(), flow.StepType{Name: "both", Nested: []string{"branches.*"}})
	src := "name: x\nsteps:\n  - type: both\n    config: {branches: [[{type: wait, config: {for: 1s}}], []], n: 1}\n"
	d, err := definition.Parse("x.yaml", []byte(src), kinds)
	if err != nil {
		t.Fatal(err)
	}
	s := d.Steps[0]
	if len(s.Nested) != 2 || s.Nested[0].Name != "branches.0" || len(s.Nested[0].Steps) != 1 || s.Nested[1].Name != "branches.1" || string(s.Config) != `{"branches":[],"n":1}` {
		t.Errorf("got %+v with config %s", s.Nested, s.Config)
	}
}

func TestWhatMayBeReferredTo(t *testing.T) {
	t.Parallel()
	parse(t, `name: x
steps:
  - {id: a, type: transform, config: {value: 1}}
  - id: b
    type: conditional
    config:
      if: steps.a.output == 1 && steps["0"].output == 1
      then:
        - {id: c, type: transform, config: {value: "{{ steps.a.output }}"}}
        - {id: d-e, type: transform, config: {value: "{{ steps.c.output }} {{ steps.2.output }}"}}
  - {type: transform, config: {value: {$cel: 'steps["d-e"].output + steps.b.output'}}}
  - {type: transform, config: {value: '\{{ steps.nobody.output }}'}}
output: {all: "{{ steps.s4.output }}", d: "{{ steps.d-e.output? }}"}
`)
}

func TestSecretsAreListedOnce(t *testing.T) {
	t.Parallel()
	d := parse(t, `name: x
steps:
  - {type: http_request, config: {url: "https://x/{{ secrets.b }}", headers: {A: "{{ secrets.a }} {{ secrets.b }}"}}}
  - type: conditional
    config:
      if: secrets.c == "x"
      then: [{type: transform, config: {value: {$cel: "secrets.d"}}}]
output: "{{ secrets.e }}"
`)
	if g := strings.Join(definition.SecretRefs(d, types()), " "); g != "b a c d e" {
		t.Errorf("got %s, want b a c d e", g)
	}
}

func TestTotalTimeoutHoldsOneAttempt(t *testing.T) {
	t.Parallel()
	d := parse(t, "name: x\nsteps: [{type: transform, config: {value: 1}, timeout: 1h, retry: {attempts: 2, backoff: 1m}}]")
	if s := d.Steps[0]; s.TotalTimeout != s.Timeout || s.Retry.MaxBackoff != s.Retry.Backoff {
		t.Errorf("got %+v, want a total time-out of one attempt's, and a longest pause of the first one's", s)
	}
}

func TestConditionsAreBounded(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("name: x\nsteps:\n  - type: transform\n    config:\n      value:\n")
	for i := range 1001 {
		fmt.Fprintf(&b, "        - {$cel: \"%d\"}\n        - {$cel: \"%d\"}\n", i, i)
	}
	got := problems(t, "x.yaml", b.String())
	if len(got) != 2 || got[0].Message != "there are too many conditions" || got[0].Line != 2006 {
		t.Errorf("got %+v, want too many conditions in lines 2006 and 2007", got)
	}
}
