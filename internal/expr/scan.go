package expr

import (
	"encoding/json"
	"fmt"
	"strings"
)

// part is a piece of a text: literal, or a path to fill in.
type part struct {
	text     string
	path     path // nil for literal text
	optional bool // null where it is missing
	fallback bool // standard where it is missing or null
	standard any
}

// scan takes a text apart. A text without templates gives one literal part,
// or none if it is empty.
func scan(s string) ([]part, *Error) {
	var parts []part
	literal := func(text string) {
		if text == "" {
			return
		}
		if n := len(parts); n > 0 && parts[n-1].path == nil {
			parts[n-1].text += text
			return
		}
		parts = append(parts, part{text: text})
	}
	for {
		open := strings.Index(s, "{{")
		if open < 0 {
			literal(s)
			return parts, nil
		}
		slashes := open - len(strings.TrimRight(s[:open], `\`))
		literal(s[:open-slashes] + strings.Repeat(`\`, slashes/2))
		s = s[open+2:]
		if slashes%2 == 1 {
			literal("{{")
			continue
		}
		one, rest, err := scanTemplate(s)
		if err != nil {
			return nil, err
		}
		parts, s = append(parts, one), rest
	}
}

// scanTemplate reads what follows two opening braces, up to and with the
// closing ones.
func scanTemplate(s string) (part, string, *Error) {
	p, rest, err := parsePath(space(s))
	if err != nil {
		return part{}, s, err
	}
	one := part{path: p}
	rest = space(rest)
	switch {
	case strings.HasPrefix(rest, "??"):
		one.fallback = true
		if one.standard, rest, err = standard(p, rest[2:]); err != nil {
			return part{}, s, err
		}
	case strings.HasPrefix(rest, "?"):
		one.optional = true
		rest = rest[1:]
	}
	rest = space(rest)
	if !strings.HasPrefix(rest, "}}") {
		fix := `a template is a path, then ? or ?? and a default, then }}`
		if rest == "" {
			fix = `close it with }}; write \{{ for braces that are no template`
		}
		return part{}, s, &Error{Path: p.String(), Message: fmt.Sprintf("after {{ %s comes %s, not }}", p, begins(rest)), Fix: fix}
	}
	return one, rest[2:], nil
}

// standard reads the JSON literal of a default.
func standard(p path, s string) (any, string, *Error) {
	const most = 10_000
	d := json.NewDecoder(strings.NewReader(s[:min(len(s), most)]))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil || deeper(v, maxDepth) {
		return nil, s, &Error{Path: p.String(), Message: fmt.Sprintf("after {{ %s ?? comes no JSON value", p),
			Fix: fmt.Sprintf(`such as "text", 3, true, null or [] (at most %d bytes, %d levels)`, most, maxDepth)}
	}
	return v, s[d.InputOffset():], nil
}

// space drops white space at the start.
func space(s string) string { return strings.TrimLeft(s, " \t\r\n") }

// deeper reports whether a value is nested more than n levels deep.
func deeper(v any, n int) bool {
	if n < 0 {
		return true
	}
	switch v := v.(type) {
	case map[string]any:
		for _, one := range v {
			if deeper(one, n-1) {
				return true
			}
		}
	case []any:
		for _, one := range v {
			if deeper(one, n-1) {
				return true
			}
		}
	}
	return false
}
