package expr

import (
	"slices"
	"strconv"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
)

// use is a path that a condition follows, as far as its source names it.
type use struct {
	path path
	open bool // goes on with something computed
	test bool // inside has(), or by ?. : may be missing
}

// tracer finds the uses in a CEL tree.
type tracer struct{ uses []use }

// visit looks at an expression; bound are the variables of the loops round
// it, which hide roots of the same name.
func (t *tracer) visit(e ast.Expr, bound []string) {
	if p, test, ok := chain(e); ok && !slices.Contains(bound, p[0].name) {
		if isRoot(p[0].name) {
			t.uses = append(t.uses, use{path: p, test: test})
		}
		return
	}
	switch e.Kind() {
	case ast.SelectKind:
		t.open(e.AsSelect().Operand(), bound)
	case ast.CallKind:
		call := e.AsCall()
		if call.IsMemberFunction() {
			t.visit(call.Target(), bound)
		}
		for i, arg := range call.Args() {
			if i == 0 && (call.FunctionName() == operators.Index || call.FunctionName() == operators.OptIndex) {
				t.open(arg, bound)
				continue
			}
			t.visit(arg, bound)
		}
	case ast.ListKind:
		for _, one := range e.AsList().Elements() {
			t.visit(one, bound)
		}
	case ast.MapKind:
		for _, entry := range e.AsMap().Entries() {
			t.visit(entry.AsMapEntry().Key(), bound)
			t.visit(entry.AsMapEntry().Value(), bound)
		}
	case ast.StructKind:
		for _, f := range e.AsStruct().Fields() {
			t.visit(f.AsStructField().Value(), bound)
		}
	case ast.ComprehensionKind:
		t.loop(e.AsComprehension(), bound)
	}
}

func (t *tracer) loop(c ast.ComprehensionExpr, bound []string) {
	t.visit(c.IterRange(), bound)
	t.visit(c.AccuInit(), bound)
	inner := append(slices.Clone(bound), c.AccuVar())
	t.visit(c.Result(), inner)
	inner = append(inner, c.IterVar(), c.IterVar2())
	t.visit(c.LoopCondition(), inner)
	t.visit(c.LoopStep(), inner)
}

// open visits what a computed key or a further member is taken of.
func (t *tracer) open(e ast.Expr, bound []string) {
	n := len(t.uses)
	t.visit(e, bound)
	if p, _, ok := chain(e); ok && len(t.uses) == n+1 && len(p) == len(t.uses[n].path) {
		t.uses[n].open = true
	}
}

// chain reads a.b["c"][0] as a path.
func chain(e ast.Expr) (p path, test, ok bool) {
	switch e.Kind() {
	case ast.IdentKind:
		return path{newSegment(e.AsIdent())}, false, true
	case ast.SelectKind:
		s := e.AsSelect()
		if p, test, ok = chain(s.Operand()); ok {
			return append(p, newSegment(s.FieldName())), test || s.IsTestOnly(), true
		}
	case ast.CallKind:
		call := e.AsCall()
		switch call.FunctionName() {
		case operators.Index, operators.OptIndex, operators.OptSelect:
		default:
			return nil, false, false
		}
		args := call.Args()
		if len(args) != 2 || args[1].Kind() != ast.LiteralKind {
			return nil, false, false
		}
		var name string
		switch key := args[1].AsLiteral().(type) {
		case types.String:
			name = string(key)
		case types.Int:
			name = strconv.FormatInt(int64(key), 10)
		default:
			return nil, false, false
		}
		if p, test, ok = chain(args[0]); ok {
			return append(p, newSegment(name)), test || call.FunctionName() != operators.Index, true
		}
	}
	return nil, false, false
}

// check refuses conditions that could look at any secret.
func (t *tracer) check() *Error {
	for _, u := range t.uses {
		if u.path[0].name == "secrets" && len(u.path) != 2 {
			return &Error{Path: u.path.String(), Message: u.path.String() + " does not name one secret", Fix: "secrets.<name>"}
		}
		if len(u.path) > maxSegments {
			return &Error{Message: "a path is too long"}
		}
	}
	return nil
}

func (t *tracer) refs() []Ref {
	var refs []Ref
	for _, u := range t.uses {
		if r := newRef(u.path, "", u.test); !slices.Contains(refs, r) {
			refs = append(refs, r)
		}
	}
	return refs
}
