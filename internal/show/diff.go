package show

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
)

// Diff writes what differs between two JSON values, a line for each member:
// what went, what came.
func Diff(w io.Writer, ink Ink, indent string, before, after any) {
	diff(w, ink, indent, "", before, after)
}

func diff(w io.Writer, ink Ink, indent, path string, a, b any) {
	x, xok := a.(map[string]any)
	y, yok := b.(map[string]any)
	if xok && yok {
		names := map[string]bool{}
		for k := range x {
			names[k] = true
		}
		for k := range y {
			names[k] = true
		}
		for _, k := range slices.Sorted(maps.Keys(names)) {
			under := k
			if path != "" {
				under = path + "." + k
			}
			va, had := x[k]
			vb, has := y[k]
			switch {
			case had && has:
				diff(w, ink, indent, under, va, vb)
			case had:
				side(w, ink.Bad, indent, "-", under, va)
			default:
				side(w, ink.Good, indent, "+", under, vb)
			}
		}
		return
	}
	if compact(a) != compact(b) {
		side(w, ink.Bad, indent, "-", path, a)
		side(w, ink.Good, indent, "+", path, b)
	}
}

func side(w io.Writer, paint func(string) string, indent, sign, path string, v any) {
	fmt.Fprintf(w, "%s%s\n", indent, paint(fmt.Sprintf("%s %s: %s", sign, Clean(path), Line(compact(v), 160))))
}

func compact(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(b)
}
