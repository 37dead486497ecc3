package secret

import (
	"bytes"
	"encoding/json"
	"strings"
)

// edit gives the text that takes the place of another, if one does.
type edit func(text []byte) (string, bool)

// rewrite copies valid JSON with every string, keys included, put through str
// and every number through num, if there is one. What is not changed is copied
// byte for byte; if nothing is, raw itself comes back.
func rewrite(raw json.RawMessage, str, num edit) json.RawMessage {
	var out []byte
	from := 0 // what is before it has been copied, if anything has changed
	put := func(start, end int, text string) {
		out = append(out, raw[from:start]...)
		out = append(out, quote(text)...)
		from = end
	}
	for i := 0; i < len(raw); {
		switch c := raw[i]; {
		case c == '"':
			end := stringEnd(raw, i)
			if text, changed := str(unquote(raw[i:end])); changed {
				put(i, end, text)
			}
			i = end
		case num != nil && (c == '-' || '0' <= c && c <= '9'):
			end := i + 1
			for end < len(raw) && strings.IndexByte("+-.eE0123456789", raw[end]) >= 0 {
				end++
			}
			if text, changed := num(raw[i:end]); changed {
				put(i, end, text)
			}
			i = end
		default:
			i++
		}
	}
	if from == 0 {
		return raw
	}
	return append(out, raw[from:]...)
}

// stringEnd gives the place behind the string that starts at i.
func stringEnd(raw []byte, i int) int {
	for i++; i < len(raw); i++ {
		switch raw[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(raw)
}

// unquote reads a valid JSON string; the result may be a part of q.
func unquote(q []byte) []byte {
	if bytes.IndexByte(q, '\\') < 0 {
		return q[1 : len(q)-1]
	}
	var s string
	if json.Unmarshal(q, &s) != nil {
		return q // cannot happen to valid JSON
	}
	return []byte(s)
}

// quote writes a JSON string.
func quote(s string) []byte {
	return []byte(`"` + jsonEscape(s, false) + `"`)
}
