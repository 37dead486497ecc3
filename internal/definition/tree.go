package definition

import (
	"bytes"
	"encoding/json"
	"strconv"
)

// Bounds of a source.
const (
	maxSource = 1 << 20 // bytes
	maxDepth  = 100     // levels
	maxNodes  = 200_000 // values, aliases expanded
)

// shape is the kind of a JSON value.
type shape byte

const (
	null shape = iota
	boolean
	number
	text
	list
	object
)

func (k shape) String() string {
	return [...]string{"null", "a boolean", "a number", "a text", "a list", "an object"}[k]
}

// value is a JSON value that remembers where it stands.
type value struct {
	kind    shape
	line    int
	order   int    // position in the source, aliases expanded
	text    string // of a text or a number; "true" or "false"
	items   []*value
	members []entry
}

// entry is a member of an object.
type entry struct {
	key   string
	line  int
	value *value
}

// get gives a member, nil if there is none.
func (v *value) get(key string) *value {
	if v == nil {
		return nil
	}
	for i := range v.members {
		if v.members[i].key == key {
			return v.members[i].value
		}
	}
	return nil
}

// at follows a JSON pointer's tokens as far as they lead. It gives the last
// value there is, and the line of its key.
func (v *value) at(tokens []string) (found *value, line int) {
	found, line = v, v.line
	for _, t := range tokens {
		switch found.kind {
		case object:
			next := -1
			for i := range found.members {
				if found.members[i].key == t {
					next = i
				}
			}
			if next < 0 {
				return found, line
			}
			found, line = found.members[next].value, found.members[next].line
		case list:
			i, err := strconv.Atoi(t)
			if err != nil || i < 0 || i >= len(found.items) {
				return found, line
			}
			found = found.items[i]
			line = found.line
		default:
			return found, line
		}
	}
	return found, line
}

// json writes the value: members in the order written, numbers as they are.
func (v *value) json() json.RawMessage {
	var b bytes.Buffer
	v.write(&b)
	return b.Bytes()
}

func (v *value) write(b *bytes.Buffer) {
	switch v.kind {
	case null:
		b.WriteString("null")
	case boolean, number:
		b.WriteString(v.text)
	case text:
		writeText(b, v.text)
	case list:
		b.WriteByte('[')
		for i, one := range v.items {
			if i > 0 {
				b.WriteByte(',')
			}
			one.write(b)
		}
		b.WriteByte(']')
	case object:
		b.WriteByte('{')
		for i, m := range v.members {
			if i > 0 {
				b.WriteByte(',')
			}
			writeText(b, m.key)
			b.WriteByte(':')
			m.value.write(b)
		}
		b.WriteByte('}')
	}
}

func writeText(b *bytes.Buffer, s string) {
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a text always encodes, a Buffer always takes it
	b.Truncate(b.Len() - 1)
}

// native gives the value as package jsonschema takes it.
func (v *value) native() any {
	switch v.kind {
	case boolean:
		return v.text == "true"
	case number:
		return json.Number(v.text)
	case text:
		return v.text
	case list:
		items := make([]any, len(v.items))
		for i, one := range v.items {
			items[i] = one.native()
		}
		return items
	case object:
		members := make(map[string]any, len(v.members))
		for _, m := range v.members {
			members[m.key] = m.value.native()
		}
		return members
	}
	return nil
}
