package expr

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Scope is what templates and conditions see. Its roots are input, steps,
// secrets, item and run; each holds decoded JSON with [json.Number] for
// numbers. steps maps ids and index texts to {"output": value}, secrets names
// to texts. A root that is not there is missing.
type Scope map[string]any

// Bounds of what an author may write.
const (
	maxPath     = 1000 // bytes
	maxSegments = 64
	maxDepth    = 100 // of a config, and of a default
)

// Roots lists the names that a path may begin with.
func Roots() []string { return []string{"input", "steps", "secrets", "item", "run"} }

func isRoot(name string) bool {
	switch name {
	case "input", "steps", "secrets", "item", "run":
		return true
	}
	return false
}

// segment is one part of a path. index is -1 unless the name is a number.
type segment struct {
	name  string
	index int
}

func newSegment(name string) segment {
	s := segment{name: name, index: -1}
	if len(name) == 0 || len(name) > 9 || len(name) > 1 && name[0] == '0' {
		return s
	}
	if n, err := strconv.ParseUint(name, 10, 31); err == nil {
		s.index = int(n)
	}
	return s
}

// path leads to a value in a scope. The first segment is a root.
type path []segment

// String writes the path as an author would.
func (p path) String() string {
	var b strings.Builder
	for i, s := range p {
		switch {
		case i == 0:
			b.WriteString(s.name)
		case isWord(s.name):
			b.WriteString("." + s.name)
		default:
			b.WriteString("[" + strconv.Quote(s.name) + "]")
		}
	}
	return b.String()
}

func isWord(s string) bool {
	if s == "" {
		return false
	}
	for _, r := range s {
		if !wordRune(r) {
			return false
		}
	}
	return true
}

func wordRune(r rune) bool {
	return r == '_' || r == '-' || r == '$' || unicode.IsLetter(r) || unicode.IsDigit(r)
}

// parsePath reads a path at the start of s and gives what follows it.
func parsePath(s string) (p path, rest string, err *Error) {
	whole := s
	word, s := cutWord(s)
	switch {
	case word == "":
		return nil, s, &Error{Message: fmt.Sprintf("a template must begin with a name, not with %s", begins(s)), Fix: rootsFix()}
	case !isRoot(word):
		return nil, s, &Error{Message: fmt.Sprintf("unknown name %q in a template", cut(word)), Fix: rootsFix()}
	}
	p = path{newSegment(word)}
	for s != "" && (s[0] == '.' || s[0] == '[') {
		if len(whole)-len(s) > maxPath || len(p) >= maxSegments {
			return nil, s, &Error{Message: fmt.Sprintf("the path %s is too long", cut(whole)), Fix: fmt.Sprintf("at most %d bytes and %d parts", maxPath, maxSegments)}
		}
		var name string
		if s[0] == '.' {
			name, s = cutWord(s[1:])
			if name == "" {
				return nil, s, &Error{Message: fmt.Sprintf("after %s. a name must follow, not %s", p, begins(s)), Fix: fmt.Sprintf("a name, an index, or %s[\"odd key\"]", p)}
			}
		} else if name, s, err = bracket(p, s[1:]); err != nil {
			return nil, s, err
		}
		p = append(p, newSegment(name))
	}
	return p, s, p.check()
}

// bracket reads what follows an opening bracket: a JSON string or an index.
func bracket(p path, s string) (name, rest string, err *Error) {
	bad := &Error{Message: fmt.Sprintf("%s[ is not followed by a key in quotes or an index and ]", p), Fix: fmt.Sprintf("%s[\"odd key\"] or %s[3]", p, p)}
	end := 0
	if strings.HasPrefix(s, `"`) {
		for end = 1; end < len(s) && s[end] != '"'; end++ {
			if s[end] == '\\' {
				end++
			}
		}
		if end >= len(s) || json.Unmarshal([]byte(s[:end+1]), &name) != nil {
			return "", s, bad
		}
		end++
	} else {
		for end < len(s) && s[end] >= '0' && s[end] <= '9' {
			end++
		}
		if name = s[:end]; newSegment(name).index < 0 {
			return "", s, bad
		}
	}
	if end >= len(s) || s[end] != ']' {
		return "", s, bad
	}
	return name, s[end+1:], nil
}

// check refuses paths that cannot lead anywhere.
func (p path) check() *Error {
	switch root := p[0].name; {
	case len(p.String()) > maxPath:
		return &Error{Message: "a path is too long", Fix: fmt.Sprintf("at most %d bytes", maxPath)}
	case root == "secrets" && len(p) != 2:
		return &Error{Path: p.String(), Message: fmt.Sprintf("%s does not name one secret", p), Fix: "secrets.<name>"}
	case root == "steps" && (len(p) < 3 || p[2].name != "output"):
		fix := "steps.<id>.output"
		if len(p) > 1 {
			fix = p[:2].String() + ".output"
		}
		return &Error{Path: p.String(), Message: fmt.Sprintf("%s does not name a step's output", p), Fix: fix}
	}
	return nil
}

func cutWord(s string) (word, rest string) {
	for i, r := range s {
		if !wordRune(r) {
			return s[:i], s[i:]
		}
	}
	return s, ""
}

func rootsFix() string {
	return "one of " + strings.Join(Roots(), ", ") + `; write \{{ for braces that are no template`
}

// begins says how a text begins, for a message.
func begins(s string) string {
	if s == "" {
		return "its end"
	}
	r, _ := utf8.DecodeRuneInString(s)
	return strconv.QuoteRune(r)
}

// cut shortens a text for a message, on a character.
func cut(s string) string {
	const most = 60
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "..."
}
