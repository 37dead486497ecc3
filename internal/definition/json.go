package definition

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
)

// readJSON reads JSON by its tokens, for the lines.
func readJSON(src []byte) (*value, *bad) {
	var whole json.RawMessage
	if err := json.Unmarshal(src, &whole); err != nil {
		return nil, jsonError(src, err)
	}
	r := jsonReader{src: src, line: 1, tokens: json.NewDecoder(bytes.NewReader(src))}
	r.tokens.UseNumber()
	return r.value(0)
}

func jsonError(src []byte, err error) *bad {
	line, what := 0, strings.TrimPrefix(err.Error(), "json: ")
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		line = 1 + bytes.Count(src[:min(int(syntax.Offset), len(src))], []byte("\n"))
	}
	fix := "JSON has no comments and no comma after the last entry; keys and texts stand in double quotes"
	if strings.Contains(what, "max depth") {
		what, fix = "nested too deep", "at most 100 levels"
	}
	return badAt(line, "not valid JSON: "+what, fix)
}

type jsonReader struct {
	builder
	src    []byte
	line   int
	offset int
	tokens *json.Decoder
}

// next reads a token and moves the line to it.
func (r *jsonReader) next() (json.Token, *bad) {
	t, err := r.tokens.Token()
	if err != nil {
		return nil, jsonError(r.src, err)
	}
	// A token holds no line break: those in texts are escaped.
	end := int(r.tokens.InputOffset())
	r.line += bytes.Count(r.src[r.offset:end], []byte("\n"))
	r.offset = end
	return t, nil
}

func (r *jsonReader) value(depth int) (*value, *bad) {
	t, err := r.next()
	if err != nil {
		return nil, err
	}
	v, err := r.make(null, r.line, depth)
	if err != nil {
		return nil, err
	}
	switch t := t.(type) {
	case json.Delim:
		if t == '[' {
			return r.list(v, depth)
		}
		return r.object(v, depth)
	case string:
		v.kind, v.text = text, t
	case json.Number:
		v.kind, v.text = number, t.String()
	case bool:
		v.kind, v.text = boolean, map[bool]string{true: "true", false: "false"}[t]
	}
	return v, nil
}

func (r *jsonReader) list(v *value, depth int) (*value, *bad) {
	v.kind = list
	for r.tokens.More() {
		one, err := r.value(depth + 1)
		if err != nil {
			return nil, err
		}
		v.items = append(v.items, one)
	}
	_, err := r.next()
	return v, err
}

func (r *jsonReader) object(v *value, depth int) (*value, *bad) {
	v.kind = object
	seen := map[string]int{}
	for r.tokens.More() {
		key, err := r.next()
		if err != nil {
			return nil, err
		}
		line := r.line
		one, err := r.value(depth + 1)
		if err != nil {
			return nil, err
		}
		name, _ := key.(string)
		if err := v.add(name, line, one, seen); err != nil {
			return nil, err
		}
	}
	_, err := r.next()
	return v, err
}
