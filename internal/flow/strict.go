package flow

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// StrictJSON says what is wrong with JSON that readers understand differently,
// so that what is stored, shown and sent to an agent is the same to all: a
// member twice, half of a surrogate pair, a null character, a number beyond a
// double, bytes that are no UTF-8; "" for none of it. The JSON must be valid and
// within its depth.
func StrictJSON(raw json.RawMessage) string {
	if !utf8.Valid(raw) {
		return "it is not UTF-8"
	}
	if why := escapes(raw); why != "" {
		return why
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	return strictValue(d)
}

// strictValue reads one value.
func strictValue(d *json.Decoder) string {
	tok, err := d.Token()
	if err != nil {
		return "it is no JSON"
	}
	switch v := tok.(type) {
	case json.Number:
		if _, err := strconv.ParseFloat(v.String(), 64); err != nil {
			return fmt.Sprintf("the number %s cannot be held by readers; send it as a text", brief(v.String()))
		}
	case json.Delim:
		return strictList(d, v == '{')
	}
	return ""
}

// strictList reads the rest of an object or a list.
func strictList(d *json.Decoder, object bool) string {
	seen := map[string]bool{}
	for d.More() {
		if object {
			tok, err := d.Token()
			name, ok := tok.(string)
			if err != nil || !ok {
				return "it is no JSON"
			}
			if seen[name] {
				return fmt.Sprintf("the member %q is there twice", brief(name))
			}
			seen[name] = true
		}
		if why := strictValue(d); why != "" {
			return why
		}
	}
	if _, err := d.Token(); err != nil {
		return "it is no JSON"
	}
	return ""
}

// escapes looks at the \u escapes of texts.
func escapes(raw []byte) string {
	for i := 0; i+1 < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		if i++; raw[i] != 'u' {
			continue
		}
		n := hex4(raw, i+1)
		switch i += 4; {
		case n == 0:
			return `it holds the null character \u0000`
		case n >= 0xdc00 && n < 0xe000:
			return "it holds the second half of a surrogate pair alone"
		case n >= 0xd800 && n < 0xdc00:
			if i+2 >= len(raw) || raw[i+1] != '\\' || raw[i+2] != 'u' || hex4(raw, i+3)&0xfc00 != 0xdc00 {
				return "it holds the first half of a surrogate pair alone"
			}
			i += 6
		}
	}
	return ""
}

// hex4 reads four hexadecimal digits; -1 if they are not there.
func hex4(raw []byte, at int) int {
	if at+4 > len(raw) {
		return -1
	}
	n, err := strconv.ParseUint(string(raw[at:at+4]), 16, 16)
	if err != nil {
		return -1
	}
	return int(n)
}

// brief is the beginning of a text.
func brief(text string) string {
	if r := []rune(text); len(r) > 60 {
		return string(r[:60]) + "…"
	}
	return text
}

// ReadableJSON is an outsider's JSON as every reader understands it. It is given
// itself, unless [StrictJSON] has something against it: then the last value of a
// member counts, a number beyond a double is a text, and U+FFFD stands for what
// is no character. The JSON must be valid and within its depth.
func ReadableJSON(raw json.RawMessage) json.RawMessage {
	if StrictJSON(raw) == "" {
		return raw
	}
	d := json.NewDecoder(strings.NewReader(strings.ToValidUTF8(string(raw), "\uFFFD")))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return raw // it was to be valid
	}
	out, err := PlainJSON(readable(v))
	if err != nil {
		return raw // what was decoded can be encoded
	}
	return out
}

func readable(v any) any {
	switch v := v.(type) {
	case json.Number:
		if _, err := v.Float64(); err != nil {
			return v.String()
		}
	case string:
		return PlainText(v)
	case []any:
		for i := range v {
			v[i] = readable(v[i])
		}
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, value := range v {
			out[PlainText(name)] = readable(value)
		}
		return out
	}
	return v
}

// PlainText is an outsider's text as every database and reader takes it: U+FFFD
// stands for what is no character, and for the null character.
func PlainText(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}
