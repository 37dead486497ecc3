package expr

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// compiler gathers what a template holds.
type compiler struct {
	computed bool
	filled   []string
	refs     []Ref
}

func (c *compiler) node(v any, pointer string, depth int) (node, *Error) {
	if depth > maxDepth {
		return node{}, &Error{Pointer: cut(pointer), Message: "nested too deep", Fix: fmt.Sprintf("at most %d levels", maxDepth)}
	}
	switch v := v.(type) {
	case string:
		return c.text(v, pointer)
	case []any:
		return c.list(v, pointer, depth)
	case map[string]any:
		return c.object(v, pointer, depth)
	}
	return node{value: v, plain: true}, nil
}

// list and object give a plain node where nothing in it is a template. As
// escapes may have changed texts, that is not always what was decoded.
func (c *compiler) list(v []any, pointer string, depth int) (node, *Error) {
	n, plain := node{items: make([]node, len(v))}, true
	fixed := make([]any, len(v))
	for i := range v {
		one, err := c.node(v[i], pointer+"/"+strconv.Itoa(i), depth+1)
		if err != nil {
			return node{}, err
		}
		n.items[i], fixed[i] = one, one.value
		plain = plain && one.plain
	}
	if plain {
		return node{value: fixed, plain: true}, nil
	}
	return n, nil
}

func (c *compiler) object(v map[string]any, pointer string, depth int) (node, *Error) {
	if source, ok := v["$cel"]; ok && c.computed {
		return c.computation(v, source, pointer+"/$cel")
	}
	n, plain := node{members: make([]member, 0, len(v))}, true
	fixed := make(map[string]any, len(v))
	for _, key := range slices.Sorted(maps.Keys(v)) {
		place := pointer + "/" + escapePointer(key)
		name, err := keyText(key)
		if err != nil {
			return node{}, err.at(place)
		}
		one, err := c.node(v[key], place, depth+1)
		if err != nil {
			return node{}, err
		}
		n.members = append(n.members, member{name, one})
		fixed[name] = one.value
		plain = plain && one.plain
	}
	if plain {
		return node{value: fixed, plain: true}, nil
	}
	return n, nil
}

func (c *compiler) computation(v map[string]any, source any, pointer string) (node, *Error) {
	text, ok := source.(string)
	if !ok || len(v) != 1 {
		return node{}, &Error{Pointer: pointer, Message: "$cel must be a text and the only member of its object", Fix: `{"$cel": "input.a + 1"}`}
	}
	cond, err := compileCondition(text)
	if err != nil {
		return node{}, err.at(pointer)
	}
	for _, r := range cond.refs {
		r.Pointer = pointer
		c.refs = append(c.refs, r)
	}
	return node{cond: cond, pointer: pointer}, c.count(pointer)
}

func (c *compiler) text(s, pointer string) (node, *Error) {
	if !strings.Contains(s, "{{") {
		return node{value: s, plain: true}, nil
	}
	parts, err := scan(s)
	if err != nil {
		return node{}, err.at(pointer)
	}
	if len(parts) == 1 && parts[0].path == nil {
		return node{value: parts[0].text, plain: true}, nil
	}
	for _, p := range parts {
		if p.path != nil {
			c.refs = append(c.refs, newRef(p.path, pointer, p.optional || p.fallback))
		}
	}
	return node{parts: parts, pointer: pointer}, c.count(pointer)
}

// count notes a place that is filled in, and refuses too many.
func (c *compiler) count(pointer string) *Error {
	if c.filled = append(c.filled, pointer); max(len(c.filled), len(c.refs)) > maxTemplates {
		return &Error{Message: "too many templates", Fix: fmt.Sprintf("at most %d", maxTemplates)}
	}
	return nil
}

func keyText(key string) (string, *Error) {
	if !strings.Contains(key, "{{") {
		return key, nil
	}
	parts, err := scan(key)
	if err == nil && len(parts) == 1 && parts[0].path == nil {
		return parts[0].text, nil
	}
	return "", &Error{Message: "a key holds no templates", Fix: `a fixed key; write \{{ for braces`}
}

func escapePointer(key string) string {
	return strings.ReplaceAll(strings.ReplaceAll(key, "~", "~0"), "/", "~1")
}
