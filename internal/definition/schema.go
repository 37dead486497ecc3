package definition

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/longstop-dev/longstop/internal/flow"
)

// Schema is a compiled JSON Schema: a contract of an input or of an output.
// It is safe for concurrent use; nil allows everything.
type Schema struct {
	compiled *jsonschema.Schema
	doc      any
}

// maxProblems bounds how many problems are told at once.
const maxProblems = 50

// CompileSchema reads a JSON Schema, draft 2020-12 unless its $schema says
// otherwise. References lead only inside of it: nothing is fetched and no file
// is read. Patterns are Go's regular expressions. The error is a [*flow.Error]
// of code invalid.
func CompileSchema(raw json.RawMessage) (*Schema, error) {
	doc, err := decode(raw)
	if err == nil {
		var s *Schema
		var problems []problem
		if s, problems = compileSchema(doc); len(problems) == 0 {
			return s, nil
		}
		bad := flow.Errorf(flow.CodeInvalid, "the JSON Schema is not valid")
		for _, p := range problems {
			bad.Problems = append(bad.Problems, p.public(""))
		}
		return nil, bad
	}
	return nil, flow.Errorf(flow.CodeInvalid, "the JSON Schema is not valid JSON").Because(err)
}

// schemaBase is where a schema says that it is: no file, no host.
const schemaBase = "https://schema.invalid/"

// noLoader fetches nothing.
type noLoader struct{}

func (noLoader) Load(string) (any, error) { return nil, errNoLoader }

var errNoLoader = errors.New("references lead only inside of the schema")

func compileSchema(doc any) (s *Schema, problems []problem) {
	defer func() {
		if p := recover(); p != nil {
			s, problems = nil, []problem{{message: "this JSON Schema cannot be read"}}
		}
	}()
	switch doc.(type) {
	case map[string]any, bool:
	default:
		return nil, []problem{{message: "a JSON Schema is an object", fix: "such as {type: object, required: [id]}"}}
	}
	if p := tame(doc, nil); p != nil {
		return nil, []problem{*p}
	}
	if weigh(doc) > maxWeight {
		return nil, []problem{{message: "the JSON Schema combines too many alternatives", fix: fmt.Sprintf("at most %d through $ref, allOf, anyOf and oneOf", maxWeight)}}
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(noLoader{})
	if err := c.AddResource(schemaBase, doc); err != nil {
		return nil, schemaProblems(err, doc)
	}
	compiled, err := c.Compile(schemaBase)
	if err != nil {
		return nil, schemaProblems(err, doc)
	}
	return &Schema{compiled: compiled, doc: doc}, nil
}

// schemaProblems tells what is wrong with a schema itself.
func schemaProblems(err error, doc any) []problem {
	var wrong *jsonschema.SchemaValidationError
	var inner *jsonschema.ValidationError
	var pattern *jsonschema.InvalidRegexError
	var load *jsonschema.LoadURLError
	var pointer *jsonschema.JSONPointerNotFoundError
	switch {
	case errors.As(err, &wrong) && errors.As(wrong.Err, &inner):
		return explain(inner, nil)
	case errors.As(err, &pattern):
		return []problem{{message: fmt.Sprintf("the pattern %q is no regular expression that is understood here", clip(pattern.Regex)), fix: "RE2: no look-around, no back references"}}
	case errors.As(err, &load):
		return []problem{{message: fmt.Sprintf("the reference to %s leads out of the schema", clip(strings.TrimPrefix(load.URL, schemaBase))), fix: "copy what it refers to into $defs and write #/$defs/<name>"}}
	case errors.As(err, &pointer):
		_, fragment, _ := strings.Cut(pointer.URL, "#")
		return []problem{{message: fmt.Sprintf("the reference to #%s leads nowhere", clip(fragment)), fix: "#/$defs/<name>"}}
	}
	return []problem{{message: "this JSON Schema cannot be read"}}
}

// Check tells how a value breaks the schema, never what the value is: nil if
// it does not. Fields are paths such as items[2].id, "" for the value itself.
// value is decoded JSON, or JSON as json.RawMessage or []byte.
func (s *Schema) Check(v any) (problems []flow.Problem) {
	if s == nil {
		return nil
	}
	defer func() {
		if p := recover(); p != nil {
			problems = []flow.Problem{{Message: "the value cannot be checked against its JSON Schema"}}
		}
	}()
	raw, isRaw := v.(json.RawMessage)
	if b, ok := v.([]byte); ok {
		raw, isRaw = b, true
	}
	if isRaw {
		var err error
		if v, err = decode(raw); err != nil {
			return []flow.Problem{{Message: "not valid JSON"}}
		}
	}
	for _, p := range s.check(v) {
		problems = append(problems, p.public(""))
	}
	return problems
}

func (s *Schema) check(v any) []problem {
	if p := tame(v, nil); p != nil {
		return []problem{*p}
	}
	err := s.compiled.Validate(v)
	var wrong *jsonschema.ValidationError
	if errors.As(err, &wrong) {
		return explain(wrong, s.doc)
	}
	return nil
}

func decode(raw json.RawMessage) (any, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if d.More() {
		return nil, errors.New("more than one JSON value")
	}
	return v, nil
}

// tame refuses numbers that would take long to compare: they are made exact,
// and 1e999999 has a million digits.
func tame(v any, where []string) *problem {
	switch v := v.(type) {
	case json.Number:
		if f, err := v.Float64(); err == nil && len(v) < 400 && (f != 0 || !strings.ContainsAny(v.String(), "eE")) {
			return nil
		}
		return &problem{where: append([]string(nil), where...), message: "a number is out of range", fix: "at most 1.8e308, not nearer to 0 than 5e-324"}
	case []any:
		for i, one := range v {
			if p := tame(one, append(where, strconv.Itoa(i))); p != nil {
				return p
			}
		}
	case map[string]any:
		for k, one := range v {
			if p := tame(one, append(where, k)); p != nil {
				return p
			}
		}
	}
	return nil
}
