package definition

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/longstop-dev/longstop/internal/flow"
)

// Bounds of a definition.
const (
	maxSteps  = 1000 // nested ones included
	maxNested = 20   // lists of steps in lists of steps
	maxTitle  = 200
	maxText   = 2000
)

var (
	goodName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`)
	goodID   = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]{0,63}$`)
)

// Parser checks definitions against step types. The schema of a type's config
// is compiled when the first step of that type is seen, which costs
// milliseconds, and kept. A Parser is safe for concurrent use.
type Parser struct {
	types   []flow.StepType
	schemas map[string]func() (*Schema, error) // by step type; nil for any config
}

// NewParser makes a Parser. It is cheap: nothing is compiled yet.
func NewParser(types []flow.StepType) *Parser {
	p := &Parser{types: types, schemas: make(map[string]func() (*Schema, error), len(types))}
	for _, t := range types {
		if len(t.Config) > 0 {
			p.schemas[t.Name] = sync.OnceValues(func() (*Schema, error) { return CompileSchema(t.Config) })
		}
	}
	return p
}

// Parse checks one definition as [Parser.Parse] does. Who checks many keeps a
// Parser.
func Parse(name string, src []byte, types []flow.StepType) (*flow.Definition, error) {
	return NewParser(types).Parse(name, src)
}

// Parse checks a definition written in YAML or JSON. name is the file's, for
// errors and to tell the language. The error is a [*flow.Error] of code
// invalid with a problem for everything that is wrong, each with its line.
func (p *Parser) Parse(name string, src []byte) (*flow.Definition, error) {
	root, wrong := read(name, src)
	if wrong != nil {
		return nil, invalid(name, []flow.Problem{wrong.Problem})
	}
	c := checker{types: p.types, schemas: p.schemas, ids: map[string]place{}}
	d := c.definition(root)
	if len(c.problems) > 0 {
		return nil, invalid(name, c.problems)
	}
	return d, nil
}

func invalid(name string, problems []flow.Problem) error {
	seen := map[string]bool{}
	problems = slices.DeleteFunc(problems, func(p flow.Problem) bool { // one a place, the first
		place := fmt.Sprint(p.Line, " ", p.Field)
		again := seen[place] && p.Field != ""
		seen[place] = true
		return again
	})
	slices.SortStableFunc(problems, func(a, b flow.Problem) int { return a.Line - b.Line })
	e := flow.Errorf(flow.CodeInvalid, "the definition is not valid").At(name)
	e.Problems = problems[:min(len(problems), maxProblems)]
	if more := len(problems) - maxProblems; more > 0 {
		e.Fix = fmt.Sprintf("%d more problems are not shown", more)
	}
	return e
}

// checker gathers what is wrong while it builds a definition.
type checker struct {
	types    []flow.StepType
	schemas  map[string]func() (*Schema, error) // the parser's
	ids      map[string]place                   // of the ids that are given
	steps    int                                // numbered so far
	problems []flow.Problem
}

// place is where something stands.
type place struct {
	line  int
	field string
}

func (c *checker) wrong(line int, field, message, fix string) {
	c.problems = append(c.problems, flow.Problem{Line: line, Field: field, Message: message, Fix: fix})
}

func (c *checker) definition(root *value) *flow.Definition {
	d := &flow.Definition{}
	if !c.object(root, "", "the definition") {
		return d
	}
	c.members(root, "", []string{"name", "description", "input", "recovery", "steps", "output", "$schema"})
	d.Name = c.name(root)
	d.Description = c.text(root, "", "description", maxText)
	if v := root.get("input"); v != nil {
		c.contract(v, "input")
		d.Input = v.json()
	}
	d.Recovery = c.recovery(root.get("recovery"), "recovery")
	var nodes []*node
	switch v := root.get("steps"); {
	case v == nil:
		c.wrong(root.line, "steps", "steps is missing", "a list of steps, each with a type")
	case v.kind == list && len(v.items) == 0:
		c.wrong(v.line, "steps", "there is no step", "at least one, such as {type: transform, config: {value: 1}}")
	default:
		nodes = c.list(v, "steps", 0)
	}
	c.defaultIDs(nodes)
	c.references(nodes, root.get("output"))
	for _, n := range nodes {
		d.Steps = append(d.Steps, n.flow())
	}
	if v := root.get("output"); v != nil {
		d.Output = v.json()
	}
	return d
}

func (c *checker) name(root *value) string {
	v := root.get("name")
	const form = "letters, digits, . _ and -, at most 100, such as nightly-sync"
	switch {
	case v == nil:
		c.wrong(root.line, "name", "name is missing", form)
	case v.kind != text || !goodName.MatchString(v.text):
		c.wrong(v.line, "name", "is not a name", form)
	default:
		return v.text
	}
	return ""
}

// object reports whether v is an object, and what is wrong if not.
func (c *checker) object(v *value, field, what string) bool {
	if v.kind == object {
		return true
	}
	c.wrong(v.line, field, fmt.Sprintf("%s is %s", what, v.kind), "an object: members, each with its value")
	return false
}

// members refuses members that are not known.
func (c *checker) members(v *value, field string, known []string) {
	for _, m := range v.members {
		if !slices.Contains(known, m.key) {
			c.wrong(m.line, fieldPath(field, []string{m.key}), fmt.Sprintf("unknown member %q", clip(m.key)), suggest(m.key, slices.DeleteFunc(slices.Clone(known), func(k string) bool { return k[0] == '$' })))
		}
	}
}

// text gives a member that is a text of at most most characters.
func (c *checker) text(v *value, field, key string, most int) string {
	m := v.get(key)
	if m == nil || m.kind == null {
		return ""
	}
	if m.kind != text || len([]rune(m.text)) > most {
		c.wrong(m.line, fieldPath(field, []string{key}), fmt.Sprintf("is %s", describe(m)), fmt.Sprintf("a text of at most %d characters", most))
		return ""
	}
	return m.text
}

func describe(v *value) string {
	if v.kind == text {
		return fmt.Sprintf("a text of %d characters", len([]rune(v.text)))
	}
	return v.kind.String()
}

// contract checks that a member is a JSON Schema.
func (c *checker) contract(v *value, field string) {
	_, problems := compileSchema(v.native())
	for _, p := range problems {
		_, line := v.at(p.where)
		c.wrong(line, fieldPath(field, p.where), strings.TrimSpace(p.message), p.fix)
	}
}
