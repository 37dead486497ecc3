package expr

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// Bounds of a template as a whole.
const (
	maxSource    = 4 << 20  // bytes of JSON
	maxTemplates = 10_000   // in one JSON value
	maxResult    = 64 << 20 // bytes of JSON that an evaluation may come to, about
)

// Template is a JSON value whose texts may hold templates, ready to be
// evaluated. It is immutable and safe for concurrent use.
type Template struct {
	root   node
	filled []string
	refs   []Ref
}

// node is a JSON value within a template: exactly one of its forms.
type node struct {
	value   any      // a value without templates
	members []member // an object
	items   []node   // a list
	parts   []part   // a text
	cond    *Condition
	pointer string // of a text or condition
	plain   bool   // only value
}

type member struct {
	key  string
	node node
}

// Compile reads a JSON value whose texts may hold templates. Empty raw is
// null. Errors are an [*Error] with the place.
func Compile(raw json.RawMessage) (*Template, error) { return compile(raw, false) }

// CompileComputed is Compile for values that may also compute: an object whose
// only member is "$cel" stands for what that CEL expression gives.
func CompileComputed(raw json.RawMessage) (*Template, error) { return compile(raw, true) }

func compile(raw json.RawMessage, computed bool) (*Template, error) {
	v, err := decode(raw)
	if err != nil {
		return nil, err
	}
	c := compiler{computed: computed}
	root, bad := c.node(v, "", 0)
	if bad != nil {
		return nil, bad
	}
	return &Template{root: root, filled: c.filled, refs: c.refs}, nil
}

func decode(raw json.RawMessage) (any, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	if len(raw) > maxSource {
		return nil, &Error{Message: fmt.Sprintf("%d bytes of JSON are too many", len(raw)), Fix: fmt.Sprintf("at most %d", maxSource)}
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, &Error{Message: "not valid JSON"}
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, &Error{Message: "more than one JSON value"}
	}
	return v, nil
}

// Filled gives the JSON pointers (RFC 6901) of the texts that hold a template
// and of computed values, in order; the pointer of a computed value ends in
// /$cel.
func (t *Template) Filled() []string { return slices.Clone(t.filled) }

// Refs gives every use of a name of the scope, in order.
func (t *Template) Refs() []Ref { return slices.Clone(t.refs) }

// Eval gives the value with every template filled in: decoded JSON with
// [json.Number]. It must not be changed: what holds no template is the same
// value each time, and what is filled in is the scope's own. Errors are an
// [*Error].
func (t *Template) Eval(scope Scope) (any, error) { return t.EvalContext(context.Background(), scope) }

// EvalContext is Eval for values that compute: they stop with the context.
func (t *Template) EvalContext(ctx context.Context, scope Scope) (any, error) {
	if t.root.plain {
		return t.root.value, nil
	}
	e := evaluation{ctx: ctx, scope: scope, left: maxResult}
	v, err := e.node(&t.root)
	if err != nil {
		return nil, err
	}
	return v, nil
}
