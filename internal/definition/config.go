package definition

import (
	"slices"
	"strconv"
	"strings"
)

// config checks a step's config against its type's schema, takes the nested
// lists of steps out of it and reads them.
func (c *checker) config(n *node, depth int) {
	v, field := n.source.get("config"), n.field+".config"
	line := n.source.line
	if v == nil || v.kind == null {
		v = &value{kind: object, line: line}
	}
	if !c.object(v, field, "config") {
		return
	}
	lists := nestedLists(v, n.kind.Nested)
	c.schema(n, v, field, lists)
	taken := map[*value]bool{}
	for _, l := range lists {
		taken[l.list] = true
		n.branches = append(n.branches, branch{name: l.name, nodes: c.list(l.list, fieldPath(field, l.where), depth+1)})
	}
	n.config = without(v, taken)
	n.step.Config = n.config.json()
}

// nested is a list of steps within a config.
type nested struct {
	name  string
	where []string
	list  *value
}

// nestedLists finds the lists that the patterns name ("then",
// "cases.*.steps"), in the order written. A list is called by its place; a
// last .steps is left out of the name.
func nestedLists(config *value, patterns []string) []nested {
	var found []nested
	for _, pattern := range patterns {
		findLists(config, strings.Split(pattern, "."), nil, &found)
	}
	slices.SortStableFunc(found, func(a, b nested) int { return a.list.order - b.list.order })
	return found
}

func findLists(v *value, pattern, where []string, found *[]nested) {
	if len(pattern) == 0 {
		if v.kind == list {
			name := where
			if last := len(name) - 1; last > 0 && name[last] == "steps" {
				name = name[:last]
			}
			*found = append(*found, nested{name: strings.Join(name, "."), where: slices.Clone(where), list: v})
		}
		return
	}
	if pattern[0] != "*" {
		if next := v.get(pattern[0]); next != nil {
			findLists(next, pattern[1:], append(where, pattern[0]), found)
		}
		return
	}
	for i, one := range v.items {
		findLists(one, pattern[1:], append(where, strconv.Itoa(i)), found)
	}
	for _, m := range v.members {
		findLists(m.value, pattern[1:], append(where, m.key), found)
	}
}

// without copies a value without what is taken out of it.
func without(v *value, taken map[*value]bool) *value {
	c := *v
	c.items, c.members = nil, nil
	for _, one := range v.items {
		if !taken[one] {
			c.items = append(c.items, without(one, taken))
		}
	}
	for _, m := range v.members {
		if !taken[m.value] {
			c.members = append(c.members, entry{m.key, m.line, without(m.value, taken)})
		}
	}
	return &c
}

// schema checks the config as a whole; of the nested lists only that they
// hold objects.
func (c *checker) schema(n *node, v *value, field string, lists []nested) {
	compiled := c.schemas[n.kind.Name]
	if compiled == nil {
		return
	}
	s, err := compiled()
	if err != nil {
		c.wrong(n.source.line, field, "the step type "+n.kind.Name+" cannot be checked", "")
		return
	}
	stubs := map[*value]bool{}
	for _, l := range lists {
		for _, one := range l.list.items {
			stubs[one] = one.kind == object
		}
	}
	for _, p := range s.check(stubbed(v, stubs).native()) {
		_, line := v.at(p.where)
		c.wrong(line, fieldPath(field, p.where), p.message, p.fix)
	}
}

// stubbed copies a value with empty objects in place of some of its own.
func stubbed(v *value, stubs map[*value]bool) *value {
	if stubs[v] {
		return &value{kind: object, line: v.line}
	}
	c := *v
	c.items, c.members = nil, nil
	for _, one := range v.items {
		c.items = append(c.items, stubbed(one, stubs))
	}
	for _, m := range v.members {
		c.members = append(c.members, entry{m.key, m.line, stubbed(m.value, stubs)})
	}
	return &c
}
