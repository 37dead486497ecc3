package expr

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
)

// evaluation is one Eval on its way. left is how many bytes the result may
// still grow by: a small config can name a large value ten thousand times.
type evaluation struct {
	ctx   context.Context //nolint:containedctx // lives for one call only
	scope Scope
	left  int
}

func (e *evaluation) node(n *node) (any, *Error) {
	switch {
	case n.plain:
		return n.value, nil
	case n.cond != nil:
		v, err := n.cond.value(e.ctx, e.scope, &e.left)
		if err != nil {
			return nil, err.at(n.pointer)
		}
		return v, nil
	case n.parts != nil:
		v, err := e.text(n.parts)
		if err != nil {
			return nil, err.at(n.pointer)
		}
		return v, nil
	case n.members != nil:
		object := make(map[string]any, len(n.members))
		for i := range n.members {
			v, err := e.node(&n.members[i].node)
			if err != nil {
				return nil, err
			}
			object[n.members[i].key] = v
		}
		return object, nil
	}
	list := make([]any, len(n.items))
	for i := range n.items {
		v, err := e.node(&n.items[i])
		if err != nil {
			return nil, err
		}
		list[i] = v
	}
	return list, nil
}

func (e *evaluation) text(parts []part) (any, *Error) {
	if len(parts) == 1 {
		v, err := e.fill(&parts[0])
		if err != nil {
			return nil, err
		}
		return v, e.spend(v)
	}
	var b strings.Builder
	for i := range parts {
		p := &parts[i]
		if p.path == nil {
			b.WriteString(p.text)
			continue
		}
		v, err := e.fill(p)
		if err == nil {
			err = e.spend(v)
		}
		if err == nil {
			err = interpolate(&b, p, v)
		}
		if err != nil {
			return nil, err
		}
	}
	return b.String(), nil
}

// fill gives the value that a template stands for.
func (e *evaluation) fill(p *part) (any, *Error) {
	v, err := p.path.resolve(e.scope)
	switch {
	case p.fallback && (err != nil || v == nil):
		return p.standard, nil
	case p.optional && err != nil:
		return nil, nil
	case err != nil && err.Fix == "":
		err.Fix = fmt.Sprintf("{{ %s? }} allows it to be missing", p.path)
	}
	return v, err
}

func (e *evaluation) spend(v any) *Error {
	if !spend(v, &e.left) {
		return tooLarge()
	}
	return nil
}

func tooLarge() *Error {
	return &Error{Message: "what the templates come to is too large", Fix: fmt.Sprintf("at most %d MiB", maxResult>>20)}
}

// spend takes the size of a value, about what it is as JSON, from left and
// reports whether it was enough.
func spend(v any, left *int) bool {
	switch v := v.(type) {
	case string:
		*left -= len(v) + 2
	case json.Number:
		*left -= len(v)
	case map[string]any:
		*left -= 2
		for k, one := range v {
			if *left -= len(k) + 4; *left < 0 || !spend(one, left) {
				return false
			}
		}
	case []any:
		*left -= 2
		for _, one := range v {
			if *left--; *left < 0 || !spend(one, left) {
				return false
			}
		}
	default:
		*left -= 5
	}
	return *left >= 0
}

// interpolate puts a value into a text.
func interpolate(b *strings.Builder, p *part, v any) *Error {
	switch v := v.(type) {
	case nil:
		if p.optional {
			return nil
		}
		return &Error{Path: p.path.String(), Message: fmt.Sprintf("%s is null and cannot stand in a text", p.path),
			Fix: fmt.Sprintf(`{{ %s? }} for nothing, {{ %s ?? "" }} for a default`, p.path, p.path)}
	case string:
		b.WriteString(v)
		return nil
	case json.Number:
		b.WriteString(v.String())
		return nil
	}
	var out bytes.Buffer
	j := json.NewEncoder(&out)
	j.SetEscapeHTML(false)
	if err := j.Encode(v); err != nil {
		return &Error{Path: p.path.String(), Message: fmt.Sprintf("%s is no JSON value", p.path)}
	}
	b.Write(bytes.TrimSuffix(out.Bytes(), []byte("\n")))
	return nil
}
