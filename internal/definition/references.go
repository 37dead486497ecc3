package definition

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/longstop-dev/longstop/internal/expr"
	"github.com/longstop-dev/longstop/internal/flow"
)

// reference is a use of a name, and where it stands.
type reference struct {
	expr.Ref
	line  int
	field string
}

// maxConditions bounds how many different conditions a definition holds:
// compiling one takes a third of a millisecond.
const maxConditions = 1000

// found is what a walk over a value found in it.
type found struct {
	refs       []reference
	problems   []flow.Problem
	conditions map[string][]expr.Ref // compiled so far, in the whole definition
}

// walk compiles the templates and conditions in a value. lazy says that it
// belongs to a member that the step type evaluates itself.
func (f *found) walk(v *value, field string, lazy bool, key string) {
	switch v.kind {
	case text:
		switch {
		case strings.Contains(v.text, "{{"):
			f.template(v, field)
		case lazy && (key == "if" || key == "when"):
			f.condition(v, field)
		}
	case list:
		for i, one := range v.items {
			f.walk(one, field+"["+strconv.Itoa(i)+"]", lazy, "")
		}
	case object:
		if source := v.get("$cel"); lazy && source != nil {
			f.computed(v, source, field)
			return
		}
		for _, m := range v.members {
			here := fieldPath(field, []string{m.key})
			if strings.Contains(m.key, "{{") {
				raw, _ := json.Marshal(map[string]any{m.key: nil})
				if _, err := expr.Compile(raw); err != nil {
					f.wrong(m.line, here, err)
				}
			}
			f.walk(m.value, here, lazy, m.key)
		}
	}
}

func (f *found) template(v *value, field string) {
	t, err := expr.Compile(v.json())
	if err != nil {
		f.wrong(v.line, field, err)
		return
	}
	f.add(t.Refs(), v.line, field)
}

func (f *found) condition(v *value, field string) {
	refs, known := f.conditions[v.text]
	if !known {
		if len(f.conditions) >= maxConditions {
			f.problems = append(f.problems, flow.Problem{Line: v.line, Field: field, Message: "there are too many conditions", Fix: fmt.Sprintf("at most %d different ones", maxConditions)})
			return
		}
		f.conditions[v.text] = nil // a wrong one is told once
		c, err := expr.CompileCondition(v.text)
		if err != nil {
			f.wrong(v.line, field, err)
			return
		}
		refs = c.Refs()
		f.conditions[v.text] = refs
	}
	f.add(refs, v.line, field)
}

func (f *found) computed(v, source *value, field string) {
	if source.kind != text || len(v.members) != 1 {
		f.problems = append(f.problems, flow.Problem{Line: v.line, Field: field, Message: "$cel must be a text and the only member of its object", Fix: `{"$cel": "input.a + 1"}`})
		return
	}
	f.condition(source, field+".$cel")
}

func (f *found) add(refs []expr.Ref, line int, field string) {
	for _, r := range refs {
		f.refs = append(f.refs, reference{r, line, field})
	}
}

func (f *found) wrong(line int, field string, err error) {
	p := flow.Problem{Line: line, Field: field, Message: err.Error()}
	var e *expr.Error
	if errors.As(err, &e) {
		p.Message, p.Fix = e.Message, e.Fix
	}
	f.problems = append(f.problems, p)
}

// configFound walks a config member by member.
func configFound(config *value, lazy []string, field string, conditions map[string][]expr.Ref) found {
	f := found{conditions: conditions}
	if config == nil {
		return f
	}
	for _, m := range config.members {
		one := &value{kind: object, line: m.line, members: []entry{m}}
		if slices.Contains(lazy, m.key) {
			f.walk(m.value, fieldPath(field, []string{m.key}), true, m.key)
			continue
		}
		f.walk(one, field, false, "")
	}
	return f
}

// SecretRefs lists the secrets that a definition refers to, each once, in the
// order of their first use.
func SecretRefs(d *flow.Definition, types []flow.StepType) []string {
	var names []string
	conditions := map[string][]expr.Ref{}
	note := func(raw json.RawMessage, lazy []string) {
		v, err := readJSON(raw)
		if len(raw) == 0 || err != nil {
			return
		}
		f := configFound(&value{kind: object, members: []entry{{key: "output", value: v}}}, nil, "", conditions)
		if lazy != nil {
			f = configFound(v, lazy, "", conditions)
		}
		for _, r := range f.refs {
			if r.Root == "secrets" && !slices.Contains(names, r.Name) {
				names = append(names, r.Name)
			}
		}
	}
	d.Walk(func(s *flow.Step) {
		lazy := []string{}
		for _, t := range types {
			if t.Name == s.Type {
				lazy = append(lazy, t.Lazy...)
			}
		}
		note(s.Config, lazy)
	})
	note(d.Output, nil)
	return names
}

// references checks every template and condition, and that each refers only
// to steps that have run by then.
func (c *checker) references(nodes []*node, output *value) {
	r := referee{checker: c, state: map[string]standing{}, apart: map[string]string{}, conditions: map[string][]expr.Ref{}}
	r.collect(nodes)
	r.list(nodes)
	if output != nil {
		f := found{conditions: r.conditions}
		f.walk(output, "output", false, "")
		r.judge(f, nil)
	}
}

// standing is where a step stands as seen from the one that is looked at.
type standing byte

const (
	later standing = iota
	around
	before
	elsewhere // in another branch of a step that is around
	beside    // in one that runs at the same time
)

// referee knows, while it goes through the steps in order, which of them have
// run.
type referee struct {
	*checker
	state map[string]standing // by id and by index
	apart map[string]string   // of those beside: the id of the step whose branches run at the same time
	ids   []string
	loops int // steps around that give an item

	conditions map[string][]expr.Ref
}

func (r *referee) collect(nodes []*node) {
	for _, n := range nodes {
		r.set([]*node{n}, later)
		r.ids = append(r.ids, n.step.ID)
		for _, b := range n.branches {
			r.collect(b.nodes)
		}
	}
}

// set notes the standing of steps and of all that are nested in them.
func (r *referee) set(nodes []*node, s standing) {
	for _, n := range nodes {
		r.one(n, s)
		for _, b := range n.branches {
			r.set(b.nodes, s)
		}
	}
}

func (r *referee) one(n *node, s standing) {
	r.state[n.step.ID] = s
	r.state[strconv.Itoa(n.step.Index)] = s
}

// part notes that the branches of a step run at the same time.
func (r *referee) part(n *node, nodes []*node) {
	for _, one := range nodes {
		r.one(one, beside)
		r.apart[one.step.ID], r.apart[strconv.Itoa(one.step.Index)] = n.step.ID, n.step.ID
		for _, b := range one.branches {
			r.part(n, b.nodes)
		}
	}
}

func (r *referee) list(nodes []*node) {
	for _, n := range nodes {
		r.one(n, around)
		r.judge(configFound(n.config, n.kind.Lazy, n.field+".config", r.conditions), n)
		if n.kind.Name == "loop" {
			r.loops++
		}
		r.branches(n)
		if n.kind.Name == "loop" {
			r.loops--
		}
		r.set([]*node{n}, before)
	}
}

// branches goes through the nested lists of a step.
func (r *referee) branches(n *node) {
	for _, b := range n.branches {
		if n.kind.Concurrent {
			r.part(n, b.nodes)
		}
	}
	for _, b := range n.branches {
		if n.kind.Concurrent {
			r.set(b.nodes, later)
		}
		r.list(b.nodes)
		if n.kind.Concurrent {
			r.part(n, b.nodes)
		} else {
			r.set(b.nodes, elsewhere)
		}
	}
}

// judge tells what is wrong in a step, or in the output if n is nil.
func (r *referee) judge(f found, n *node) {
	r.problems = append(r.problems, f.problems...)
	for _, ref := range f.refs {
		switch {
		case ref.Root == "item" && r.loops == 0:
			r.wrong(ref.line, ref.field, "there is no item here", "item exists only inside of a loop")
		case ref.Root == "steps" && ref.Name != "":
			r.judgeStep(ref, n)
		}
	}
}

func (r *referee) judgeStep(ref reference, n *node) {
	s, known := r.state[ref.Name]
	var message, fix string
	switch {
	case !known:
		message, fix = fmt.Sprintf("%s: there is no step %q", ref.Path, clip(ref.Name)), r.instead(ref.Name)
	case s == before:
		return
	case s == later:
		message, fix = fmt.Sprintf("%s: step %s runs after this one", ref.Path, ref.Name), r.instead("")
	case s == elsewhere:
		message, fix = fmt.Sprintf("%s: step %s stands in another branch, which has not run", ref.Path, ref.Name), r.instead("")
	case s == beside:
		message = fmt.Sprintf("%s: steps %s and %s stand in different branches of %s, which run at the same time", ref.Path, n.step.ID, ref.Name, r.apart[ref.Name])
		fix = "a step of the same branch, or refer to it after " + r.apart[ref.Name] + "; " + r.instead("")
	case n != nil && (n.step.ID == ref.Name || strconv.Itoa(n.step.Index) == ref.Name):
		message, fix = fmt.Sprintf("%s: a step has no output of its own yet", ref.Path), r.instead("")
	default:
		message, fix = fmt.Sprintf("%s: step %s is not done: this one runs inside of it", ref.Path, ref.Name), r.instead("")
	}
	r.wrong(ref.line, ref.field, message, fix)
}

// instead names the steps that have run.
func (r *referee) instead(name string) string {
	var done []string
	for _, id := range r.ids {
		if r.state[id] == before {
			done = append(done, id)
		}
	}
	if len(done) == 0 {
		return "no step has run before this one"
	}
	if hint := suggest(name, done); name != "" && strings.HasPrefix(hint, "did you") {
		return hint
	}
	return "steps that have run: " + strings.Join(done[max(0, len(done)-20):], ", ")
}
