package step

import (
	"encoding/json"
	"reflect"
	"strings"
)

// schemaOf generates the JSON Schema (2020-12) of a config struct, so that
// validation, reference and forms come from one place. Members are the
// exported fields with a json tag; these tags say more:
//
//	doc:"..."      description
//	required:"yes" the member must be there
//	enum:"a,b"     the values of a string
//	default:"..."  the default, as JSON
//
// Every member that is not a plain string may also be a string that holds a
// template. A struct with schemaRules adds what tags cannot say, and a type
// with schema writes its own.
func schemaOf[T any]() json.RawMessage {
	schema := structSchema(reflect.TypeFor[T]())
	raw, err := json.Marshal(schema)
	if err != nil {
		panic(err) // maps, strings and numbers only
	}
	return raw
}

// object is a JSON object.
type object = map[string]any

// ownSchema is a member type that writes its own schema, templates included.
type ownSchema interface{ schema() object }

// ruled is a config struct with rules over several of its members.
type ruled interface{ schemaRules() object }

func structSchema(t reflect.Type) object {
	members, required := object{}, []string{}
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" || name == "-" {
			continue
		}
		members[name] = memberSchema(f)
		if f.Tag.Get("required") != "" {
			required = append(required, name)
		}
	}
	schema := object{"type": "object", "properties": members, "additionalProperties": false}
	if len(required) > 0 {
		schema["required"] = required
	}
	if r, ok := reflect.Zero(t).Interface().(ruled); ok {
		for k, v := range r.schemaRules() {
			schema[k] = v
		}
	}
	return schema
}

func memberSchema(f reflect.StructField) object {
	s := typeSchema(f.Type)
	if enum := f.Tag.Get("enum"); enum != "" {
		s = orTemplate(object{"enum": strings.Split(enum, ",")})
	}
	if doc := f.Tag.Get("doc"); doc != "" {
		s["description"] = doc
	}
	if def := f.Tag.Get("default"); def != "" {
		s["default"] = json.RawMessage(def)
	}
	return s
}

func typeSchema(t reflect.Type) object {
	if own, ok := reflect.Zero(t).Interface().(ownSchema); ok {
		return own.schema()
	}
	if t == reflect.TypeFor[json.RawMessage]() {
		return object{} // any JSON
	}
	switch t.Kind() {
	case reflect.String:
		return object{"type": "string"}
	case reflect.Bool:
		return orTemplate(object{"type": "boolean"})
	case reflect.Int, reflect.Int64:
		return orTemplate(object{"type": "integer"})
	case reflect.Slice:
		return orTemplate(object{"type": "array", "items": typeSchema(t.Elem())})
	case reflect.Map:
		return orTemplate(object{"type": "object", "additionalProperties": typeSchema(t.Elem())})
	case reflect.Struct:
		return structSchema(t)
	}
	panic("step: no schema for " + t.String()) // seen by the first test that makes a table
}

// orTemplate allows a string with a template beside what s allows.
func orTemplate(s object) object {
	return object{"anyOf": []any{s, object{"type": "string", "pattern": `\{\{`}}}
}
