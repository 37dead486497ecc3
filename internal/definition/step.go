package definition

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/longstop-dev/longstop/internal/flow"
)

// Bounds of a step.
const (
	maxAttempts = 100
	maxTimeout  = 24 * time.Hour
	maxTotal    = 30 * 24 * time.Hour
)

// node is a step with the source that it comes from.
type node struct {
	step     flow.Step
	kind     flow.StepType
	source   *value
	field    string
	config   *value // without the nested lists, or nil
	branches []branch
}

type branch struct {
	name  string
	nodes []*node
}

func (n *node) flow() flow.Step {
	s := n.step
	for _, b := range n.branches {
		nested := flow.Branch{Name: b.name, Steps: []flow.Step{}}
		for _, one := range b.nodes {
			nested.Steps = append(nested.Steps, one.flow())
		}
		s.Nested = append(s.Nested, nested)
	}
	return s
}

// list reads a list of steps.
func (c *checker) list(v *value, field string, depth int) []*node {
	switch {
	case v.kind != list:
		c.wrong(v.line, field, fmt.Sprintf("is %s", v.kind), "a list of steps, each with a type")
		return nil
	case depth > maxNested:
		c.wrong(v.line, field, "lists of steps are nested too deep", fmt.Sprintf("at most %d", maxNested))
		return nil
	}
	var nodes []*node
	for i, one := range v.items {
		if c.steps == maxSteps {
			c.wrong(one.line, field, "there are too many steps", fmt.Sprintf("at most %d, nested ones included", maxSteps))
			c.steps++
		}
		if c.steps > maxSteps {
			return nodes
		}
		nodes = append(nodes, c.step(one, field+"["+strconv.Itoa(i)+"]", depth))
	}
	return nodes
}

func (c *checker) step(v *value, field string, depth int) *node {
	n := &node{source: v, field: field}
	n.step.Index = c.steps
	c.steps++
	if !c.object(v, field, "a step") {
		return n
	}
	c.members(v, field, []string{"id", "type", "title", "intent", "config", "retry", "timeout", "total_timeout", "output", "recovery"})
	n.step.ID = c.id(v, field)
	n.step.Title = c.text(v, field, "title", maxTitle)
	n.step.Intent = c.text(v, field, "intent", maxText)
	c.clocks(n, v)
	if out := v.get("output"); out != nil && out.kind != null {
		c.contract(out, field+".output")
		n.step.Output = out.json()
	}
	n.step.Recovery = c.recovery(v.get("recovery"), field+".recovery")
	if c.kind(n) {
		c.config(n, depth)
	}
	return n
}

func (c *checker) id(v *value, field string) string {
	m := v.get("id")
	if m == nil {
		return ""
	}
	const form = "a letter or _, then letters, digits, _ and -, at most 64"
	field += ".id"
	switch {
	case m.kind == number || m.kind == text && isIndex(m.text):
		c.wrong(m.line, field, "looks like an index", form+"; templates reach every step by its index as it is")
	case m.kind != text || !goodID.MatchString(m.text):
		c.wrong(m.line, field, "is not an id", form)
	case c.ids[m.text].line > 0:
		c.wrong(m.line, field, fmt.Sprintf("the id %q is there twice", m.text), fmt.Sprintf("another one; line %d has it", c.ids[m.text].line))
	default:
		c.ids[m.text] = place{m.line, field}
		return m.text
	}
	return ""
}

// defaultIDs gives the steps without an id theirs, s<index>.
func (c *checker) defaultIDs(nodes []*node) {
	for _, n := range nodes {
		if n.step.ID == "" {
			n.step.ID = "s" + strconv.Itoa(n.step.Index)
			if at, taken := c.ids[n.step.ID]; taken {
				c.wrong(at.line, at.field, fmt.Sprintf("the id %q is what the step in line %d, which has none, is called", n.step.ID, n.source.line), "another one, or give that step one too")
			}
		}
		for _, b := range n.branches {
			c.defaultIDs(b.nodes)
		}
	}
}

// kind finds the step's type.
func (c *checker) kind(n *node) bool {
	var names []string
	for _, t := range c.types {
		names = append(names, t.Name)
	}
	m, field := n.source.get("type"), n.field+".type"
	switch {
	case m == nil:
		c.wrong(n.source.line, field, "type is missing", "one of "+strings.Join(names, ", "))
		return false
	case m.kind != text:
		c.wrong(m.line, field, fmt.Sprintf("is %s", m.kind), "one of "+strings.Join(names, ", "))
		return false
	}
	n.step.Type = m.text
	i := slices.IndexFunc(c.types, func(t flow.StepType) bool { return t.Name == m.text })
	if i < 0 {
		c.wrong(m.line, field, fmt.Sprintf("there is no step type %q", clip(m.text)), suggestValue(m.text, names))
		return false
	}
	n.kind = c.types[i]
	return true
}

// clocks reads retry and the two time-outs.
func (c *checker) clocks(n *node, v *value) {
	n.step.Retry = c.retry(v.get("retry"), n.field+".retry")
	n.step.Timeout = c.duration(v, n.field, "timeout", flow.DefaultTimeout, maxTimeout)
	total := max(flow.DefaultTotalTimeout, n.step.Timeout)
	n.step.TotalTimeout = c.duration(v, n.field, "total_timeout", total, maxTotal)
	if m := v.get("total_timeout"); m != nil && n.step.TotalTimeout < n.step.Timeout {
		c.wrong(m.line, n.field+".total_timeout", fmt.Sprintf("is shorter than one attempt may take, %s", spell(n.step.Timeout)),
			"at least that, or a shorter timeout: total_timeout bounds all attempts together")
	}
}

func (c *checker) retry(v *value, field string) flow.Retry {
	r := flow.Retry{Attempts: 1, Backoff: flow.DefaultBackoff, MaxBackoff: flow.DefaultMaxBackoff}
	if v == nil || v.kind == null || !c.object(v, field, "retry") {
		return r
	}
	c.members(v, field, []string{"attempts", "backoff", "max_backoff"})
	fix := fmt.Sprintf("how often in all, 1 to %d", maxAttempts)
	if m := v.get("attempts"); m == nil {
		c.wrong(v.line, field+".attempts", "attempts is missing", fix)
	} else if i, err := strconv.Atoi(m.text); m.kind != number || err != nil || i < 1 || i > maxAttempts {
		c.wrong(m.line, field+".attempts", "is not a number of attempts", fix)
	} else {
		r.Attempts = i
	}
	r.Backoff = c.duration(v, field, "backoff", r.Backoff, time.Hour)
	r.MaxBackoff = c.duration(v, field, "max_backoff", max(r.Backoff, r.MaxBackoff), maxTimeout)
	if m := v.get("max_backoff"); m != nil && r.MaxBackoff < r.Backoff {
		c.wrong(m.line, field+".max_backoff", "is shorter than backoff", "at least "+spell(r.Backoff))
	}
	return r
}

// duration gives a member that is a duration, or what holds without it.
func (c *checker) duration(v *value, field, key string, standard, most time.Duration) time.Duration {
	m := v.get(key)
	if m == nil || m.kind == null {
		return standard
	}
	field += "." + key
	if m.kind == number {
		fix := "with its unit: " + clip(m.text) + "s or " + clip(m.text) + "ms"
		if f, err := strconv.ParseFloat(m.text, 64); err != nil || f <= 0 || math.IsInf(f, 0) {
			fix = "such as 500ms, 30s, 5m"
		}
		c.wrong(m.line, field, "a duration needs a unit", fix)
		return standard
	}
	d, err := parseDuration(m.text, most)
	switch {
	case m.kind != text:
		c.wrong(m.line, field, fmt.Sprintf("is %s", m.kind), "a duration such as 500ms, 30s, 5m")
	case err != nil:
		c.wrong(m.line, field, err.Error(), "such as 500ms, 30s, 5m, 2h, 1d")
	default:
		return d
	}
	return standard
}
