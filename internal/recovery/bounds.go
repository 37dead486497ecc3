package recovery

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"unicode/utf8"

	"github.com/longstop-dev/longstop/internal/flow"
)

const (
	maxDepth     = 200     // levels of an answer
	maxModDepth  = 32      // levels of its modifications
	maxModBytes  = 1 << 20 // of its modifications
	maxNumber    = 400     // characters of a number
	maxDiagnosis = 2000    // characters
	maxName      = 200     // characters of a server or tool
)

// bounded checks that raw is one JSON value of at most limit bytes, in UTF-8,
// and not nested too deeply.
func bounded(raw []byte, limit int64) *Rejection {
	depth, _ := flow.JSONSize(raw)
	switch {
	case limit > 0 && int64(len(raw)) > limit:
		return reject("", fmt.Sprintf("the answer is %d bytes", len(raw)), fmt.Sprintf("at most %d, the limit of limits.answer_bytes", limit))
	case len(bytes.TrimSpace(raw)) == 0:
		return reject("", "the answer is empty", "one recovery action as a JSON object")
	case !utf8.Valid(raw):
		return reject("", "the answer is not UTF-8", "JSON in UTF-8")
	case depth > maxDepth:
		return reject("", fmt.Sprintf("the answer is nested more than %d levels deep", maxDepth), "")
	}
	if json.Valid(raw) {
		return nil
	}
	if start := bytes.TrimSpace(raw); start[0] == '<' {
		return reject("", "the answer is an HTML or XML page, not JSON", "one recovery action as a JSON object")
	}
	return reject("", "the answer is not JSON: "+syntax(raw), "one recovery action as a JSON object")
}

// syntax says what is wrong with text that is not JSON.
func syntax(raw []byte) string {
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		return oneLine(err.Error(), 100)
	}
	return "it cannot be read"
}

// decoded reads valid JSON with its numbers as they were written.
func decoded(raw []byte) any {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil {
		return nil
	}
	return v
}

// encoded writes decoded JSON, without escaping for HTML.
func encoded(v any) json.RawMessage {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if enc.Encode(v) != nil {
		return json.RawMessage("null") // cannot happen to decoded JSON
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}

// find looks through decoded JSON for the first member or element that bad has
// something against, and gives its path. key is "" for an element.
func find(v any, bad func(key string, v any) string) *Rejection {
	switch v := v.(type) {
	case map[string]any:
		for key, member := range v {
			if why := bad(key, member); why != "" {
				return reject(oneLine(key, 60), why, "")
			}
			if r := find(member, bad); r != nil {
				return r.under(oneLine(key, 60))
			}
		}
	case []any:
		for i, element := range v {
			at := "[" + strconv.Itoa(i) + "]"
			if why := bad("", element); why != "" {
				return reject(at, why, "")
			}
			if r := find(element, bad); r != nil {
				return r.under(at)
			}
		}
	}
	return nil
}

// impossible says what is wrong with a number that no double holds.
func impossible(_ string, v any) string {
	n, ok := v.(json.Number)
	if !ok {
		return ""
	}
	if len(n) > maxNumber {
		return fmt.Sprintf("a number of %d characters", len(n))
	}
	if _, err := strconv.ParseFloat(string(n), 64); err != nil {
		return "the number " + quoted(string(n)) + " is out of range"
	}
	return ""
}

// polluting says what is wrong with a member by which JavaScript programs are
// attacked.
func polluting(key string, _ any) string {
	switch key {
	case "__proto__", "constructor", "prototype":
		return "a member of this name is refused"
	}
	return ""
}

// members reads an object's members as they were written. It refuses one that
// stands there twice: readers differ in which of them counts.
func members(raw []byte) (map[string]json.RawMessage, *Rejection) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, reject("", "must be an object, got "+kindOf(raw), "")
	}
	out := map[string]json.RawMessage{}
	for dec.More() {
		t, err := dec.Token()
		key, ok := t.(string)
		if err != nil || !ok {
			return nil, reject("", "cannot be read", "")
		}
		if _, twice := out[key]; twice {
			return nil, reject(oneLine(key, 60), "stands there twice", "once")
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil && err != io.EOF {
			return nil, reject(oneLine(key, 60), "cannot be read", "")
		}
		out[key] = value
	}
	return out, nil
}

// kindOf names the type of a JSON value.
func kindOf(raw []byte) string {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 {
		return "nothing"
	}
	switch raw[0] {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	}
	return "a number"
}
