package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/longstop-dev/longstop/internal/flow"
)

// shape is the arguments of a tool. Its schema and its check are one, so that
// what a model is told is what it is held to. Values stay the JSON that was
// sent: no number loses a digit.
type shape []member

// member is one argument.
type member struct {
	name     string
	kind     string // string, integer, object; "" for any JSON
	about    string
	required bool
	most     int      // of an integer; 0 for none. The least is given by least
	least    int      // of an integer
	oneOf    []string // of a string
}

// args are checked arguments.
type args map[string]json.RawMessage

func (s shape) schema() json.RawMessage {
	members, required := map[string]any{}, []string{}
	for _, m := range s {
		one := map[string]any{"description": m.about}
		if m.kind != "" {
			one["type"] = m.kind
		}
		if m.kind == "integer" {
			one["minimum"] = m.least
			if m.most > 0 {
				one["maximum"] = m.most
			}
		}
		if len(m.oneOf) > 0 {
			one["enum"] = m.oneOf
		}
		if m.required {
			required = append(required, m.name)
		}
		members[m.name] = one
	}
	out := map[string]any{"type": "object", "properties": members, "additionalProperties": false}
	if len(required) > 0 {
		out["required"] = required
	}
	raw, _ := json.Marshal(out) // texts and numbers only
	return raw
}

// read checks arguments and names everything that is wrong with them.
func (s shape) read(raw json.RawMessage) (args, error) {
	a := args{}
	if len(bytes.TrimSpace(raw)) > 0 {
		if err := json.Unmarshal(raw, &a); err != nil {
			return nil, flow.Errorf(flow.CodeInvalid, "the arguments are no JSON object").At("arguments").Right("send " + s.names())
		}
	}
	var wrong []flow.Problem
	for name := range a {
		if !slices.ContainsFunc(s, func(m member) bool { return m.name == name }) {
			wrong = append(wrong, flow.Problem{Field: clip(name), Message: "there is no such argument", Fix: "send " + s.names()})
		}
	}
	slices.SortFunc(wrong, func(a, b flow.Problem) int { return strings.Compare(a.Field, b.Field) })
	for _, m := range s {
		v, there := a[m.name]
		if there && string(v) == "null" && m.kind != "" {
			delete(a, m.name)
			there = false
		}
		switch what := m.wrong(v); {
		case !there && m.required:
			wrong = append(wrong, flow.Problem{Field: m.name, Message: "it is missing", Fix: "send " + m.right()})
		case there && what != "":
			wrong = append(wrong, flow.Problem{Field: m.name, Message: what, Fix: "send " + m.right()})
		}
	}
	if len(wrong) == 0 {
		return a, nil
	}
	e := flow.Errorf(flow.CodeInvalid, "the arguments are not valid")
	e.Problems = wrong[:min(len(wrong), 20)]
	return nil, e
}

// wrong says what is wrong with a value, "" if nothing is.
func (m member) wrong(v json.RawMessage) string {
	switch m.kind {
	case "string":
		var text string
		if json.Unmarshal(v, &text) != nil {
			return "it is no string"
		}
		if len(m.oneOf) > 0 && !slices.Contains(m.oneOf, text) {
			return "it is none of the values that there are"
		}
	case "integer":
		var n int
		if json.Unmarshal(v, &n) != nil {
			return "it is no whole number"
		}
		if n < m.least || m.most > 0 && n > m.most {
			return "it is out of range"
		}
	case "object":
		var o map[string]json.RawMessage
		if json.Unmarshal(v, &o) != nil {
			return "it is no object"
		}
	}
	return ""
}

func (m member) right() string {
	switch {
	case len(m.oneOf) > 0:
		return "one of " + strings.Join(m.oneOf, ", ")
	case m.kind == "integer" && m.most > 0:
		return fmt.Sprintf("a whole number from %d to %d", m.least, m.most)
	case m.kind == "integer":
		return fmt.Sprintf("a whole number from %d", m.least)
	case m.kind == "object":
		return "a JSON object: " + m.about
	case m.kind == "string":
		return "a string: " + m.about
	}
	return "JSON: " + m.about
}

func (s shape) names() string {
	if len(s) == 0 {
		return "no arguments"
	}
	var out []string
	for _, m := range s {
		out = append(out, m.name)
	}
	return "only " + strings.Join(out, ", ")
}

// text is a string argument, "" if it is absent.
func (a args) text(name string) string {
	var text string
	_ = json.Unmarshal(a[name], &text) // checked by read
	return text
}

// whole is an integer argument, 0 if it is absent.
func (a args) whole(name string) int {
	var n int
	_ = json.Unmarshal(a[name], &n) // checked by read
	return n
}

// clip bounds what is repeated of what was sent.
func clip(text string) string {
	text = strings.ToValidUTF8(text, "?")
	if len(text) <= 60 {
		return text
	}
	n := 60
	for !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n] + "..."
}
