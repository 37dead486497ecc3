package expr

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// resolve follows the path. The error says what is missing and what is there
// instead; it is nil exactly when the value is there, which may be null.
func (p path) resolve(scope Scope) (any, *Error) {
	var at any = map[string]any(scope)
	for i, s := range p {
		switch v := at.(type) {
		case map[string]any:
			next, ok := v[s.name]
			if !ok {
				return nil, p.missing(i, v)
			}
			at = next
		case []any:
			if s.index < 0 || s.index >= len(v) {
				return nil, p.missing(i, v)
			}
			at = v[s.index]
		default:
			return nil, p.missing(i, at)
		}
	}
	return at, nil
}

// missing says that segment i of the path is not in the container.
func (p path) missing(i int, container any) *Error {
	whole, here := p.String(), p[:i].String()
	e := &Error{Path: whole, Message: whole + " is missing"}
	if i < len(p)-1 {
		e.Message = fmt.Sprintf("%s is missing: there is no %s", whole, p[:i+1])
	}
	switch v := container.(type) {
	case map[string]any:
		e.Fix = has(here, v, p[i].name)
	case []any:
		e.Fix = here + " is a list of " + entries(len(v))
		if p[i].index < 0 {
			e.Fix += ": give an index, from 0"
		} else if len(v) > 0 {
			e.Fix += fmt.Sprintf(": 0 to %d", len(v)-1)
		}
	default:
		e.Fix = here + " is " + kindOf(container)
	}
	switch {
	case i == 0 && p[0].name == "item":
		e.Message, e.Fix = "there is no item here", "item exists only inside of a loop"
	case i == 0:
		e.Message, e.Fix = fmt.Sprintf("%s is missing: there is no %s here", whole, p[0].name), ""
	case i == 1 && p[0].name == "secrets":
		e.Message, e.Fix = fmt.Sprintf("there is no secret %s", strconv.Quote(p[1].name)), "longstop secrets set "+p[1].name+", or correct the name"
	case i == 1 && p[0].name == "steps":
		e.Message = fmt.Sprintf("%s is missing: step %s has no output yet", whole, p[1].name)
	}
	return e
}

// has lists the keys of an object, those most like the wanted one first.
// Numbers beside names, as steps has them, are left out.
func has(where string, object map[string]any, wanted string) string {
	const most = 12
	keys := make([]string, 0, len(object))
	words := false
	for k := range object {
		keys = append(keys, k)
		words = words || newSegment(k).index < 0
	}
	if words {
		keys = slices.DeleteFunc(keys, func(k string) bool { return newSegment(k).index >= 0 })
	}
	if len(keys) == 0 {
		return where + " is empty"
	}
	if len(keys) > 10*most { // ranking a hundred thousand keys helps nobody
		slices.Sort(keys)
		keys = keys[:10*most]
	}
	slices.SortFunc(keys, func(a, b string) int {
		if d := unlike(a, wanted) - unlike(b, wanted); d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	rest := len(object) - most
	keys = keys[:min(len(keys), most)]
	for i, k := range keys {
		if keys[i] = cut(k); !isWord(k) {
			keys[i] = strconv.Quote(cut(k))
		}
	}
	list := where + " has: " + strings.Join(keys, ", ")
	if len(keys) == most && rest > 0 {
		list += ", ..."
	}
	return list
}

// unlike ranks how unlike two keys are: 0 the same but for case and
// punctuation, 1 one begins with or holds the other, 2 not alike.
func unlike(a, b string) int {
	plain := func(s string) string {
		return strings.Map(func(r rune) rune {
			if r == '_' || r == '-' || r == ' ' {
				return -1
			}
			return r
		}, strings.ToLower(cut(s)))
	}
	x, y := plain(a), plain(b)
	switch {
	case x == y:
		return 0
	case min(len(x), len(y)) > 2 && (strings.Contains(x, y) || strings.Contains(y, x)):
		return 1
	}
	return 2
}

func entries(n int) string {
	if n == 1 {
		return "1 entry"
	}
	return strconv.Itoa(n) + " entries"
}

// kindOf names the kind of a decoded JSON value.
func kindOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case string:
		return "a string"
	case bool:
		return "a boolean"
	case map[string]any:
		return "an object"
	case []any:
		return "a list"
	}
	return "a number"
}
