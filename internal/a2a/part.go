package a2a

import (
	"encoding/json"
	"strings"
)

// Part is one piece of an answer: a text, a JSON value, or a file whose
// content is not read.
type Part struct {
	Text string
	Data json.RawMessage // verbatim; not null
	File bool
}

// readParts reads the parts of a message or an artifact and leaves out those
// it cannot read. The gRPC-born JSON of 0.3 calls the list "content" and
// wraps data once more.
func readParts(o object) []Part {
	list, wrapped := asList(o["parts"]), false
	if list == nil {
		list, wrapped = asList(o["content"]), true
	}
	var parts []Part
	for _, raw := range list {
		p := asObject(raw)
		inner := asObject(p["data"])
		var text string
		switch {
		case wrapped && inner.has("data") && len(inner) == 1:
			parts = append(parts, Part{Data: inner["data"]})
		case p.has("data"):
			parts = append(parts, Part{Data: p["data"]})
		case p.has("text") && json.Unmarshal(p["text"], &text) == nil:
			parts = append(parts, Part{Text: text})
		case p.has("file"), p.has("url"), p.has("raw"):
			parts = append(parts, Part{File: true})
		}
	}
	return parts
}

func joinText(parts []Part) string {
	var texts []string
	for _, p := range parts {
		if strings.TrimSpace(p.Text) != "" {
			texts = append(texts, p.Text)
		}
	}
	return strings.Join(texts, "\n")
}
