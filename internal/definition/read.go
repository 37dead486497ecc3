package definition

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/longstop-dev/longstop/internal/flow"
)

// bad is one thing wrong with a source that keeps it from being read.
type bad struct{ flow.Problem }

func (b *bad) Error() string { return b.Message }

func badAt(line int, message, fix string) *bad {
	return &bad{flow.Problem{Line: line, Message: message, Fix: fix}}
}

// read parses YAML or JSON. A source that begins with a brace is JSON unless
// its name says YAML.
func read(name string, src []byte) (*value, *bad) {
	if len(src) > maxSource {
		return nil, badAt(0, fmt.Sprintf("%d bytes are too many", len(src)), fmt.Sprintf("a definition has at most %d bytes", maxSource))
	}
	if !utf8.Valid(src) {
		return nil, badAt(badLine(src), "not UTF-8", "save the file as UTF-8")
	}
	src = bytes.TrimPrefix(src, []byte("\ufeff"))
	start := bytes.TrimLeft(src, " \t\r\n")
	if len(start) == 0 {
		return nil, badAt(1, "the definition is empty", "it needs name and steps")
	}
	lower := strings.ToLower(name)
	isYAML := strings.HasSuffix(lower, ".yaml") || strings.HasSuffix(lower, ".yml")
	if strings.HasSuffix(lower, ".json") || start[0] == '{' && !isYAML {
		return readJSON(src)
	}
	return readYAML(src)
}

func badLine(src []byte) int {
	line := 1
	for len(src) > 0 {
		r, n := utf8.DecodeRune(src)
		if r == utf8.RuneError && n == 1 {
			break
		}
		if r == '\n' {
			line++
		}
		src = src[n:]
	}
	return line
}

// builder counts what it makes.
type builder struct{ nodes int }

func (b *builder) make(k shape, line, depth int) (*value, *bad) {
	b.nodes++
	switch {
	case b.nodes > maxNodes:
		return nil, badAt(line, "the definition holds too many values, its aliases expanded", fmt.Sprintf("at most %d", maxNodes))
	case depth > maxDepth:
		return nil, badAt(line, "nested too deep, or an alias holds itself", fmt.Sprintf("at most %d levels", maxDepth))
	}
	return &value{kind: k, line: line, order: b.nodes}, nil
}

// add puts a member into an object, unless it is there.
func (v *value) add(key string, line int, member *value, seen map[string]int) *bad {
	if first, twice := seen[key]; twice {
		return badAt(line, fmt.Sprintf("%q is there twice", clip(key)), fmt.Sprintf("remove it here or in line %d", first))
	}
	seen[key] = line
	v.members = append(v.members, entry{key: key, line: line, value: member})
	return nil
}

// clip shortens a text of the author's for a message, on a character.
func clip(s string) string {
	const most = 60
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "..."
}
