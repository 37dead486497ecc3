package expr

// Ref is one use of a name of the scope.
type Ref struct {
	Pointer  string // JSON pointer to where it stands; "" in a condition
	Path     string // as far as it is known: "steps.user.output.id"
	Root     string // one of Roots
	Name     string // what follows the root: a step's id or index, a secret; "" if that is computed or is all of it
	Optional bool   // may be missing
}

func newRef(p path, pointer string, optional bool) Ref {
	r := Ref{Pointer: pointer, Path: p.String(), Root: p[0].name, Optional: optional}
	if len(p) > 1 {
		r.Name = p[1].name
	}
	return r
}
