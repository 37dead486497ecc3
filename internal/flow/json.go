package flow

import (
	"bytes"
	"encoding/json"
)

// PlainJSON is json.Marshal without the escapes that are meant for HTML: those
// make six bytes of one, and another text of the same value.
func PlainJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// JSONSize is how deep JSON is nested and how many commas stand between its
// values. It is for text from outside, before anything that recurses or builds
// reads it: it does neither, and counts in text that is no JSON, too.
func JSONSize(raw []byte) (depth, commas int) {
	now, text := 0, false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case text && c == '\\':
			i++
		case c == '"':
			text = !text
		case text:
		case c == '{' || c == '[':
			now++
			depth = max(depth, now)
		case c == '}' || c == ']':
			now = max(0, now-1)
		case c == ',':
			commas++
		}
	}
	return depth, commas
}
