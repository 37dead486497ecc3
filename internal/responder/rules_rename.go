package responder

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/longstop-dev/longstop/internal/flow"
)

// renamed explains an output that misses required members by members that go
// by another name now, and gives the output with the names that the contract
// asks for. Only one candidate, of the right type, counts as an explanation;
// the desk holds the result to the whole contract.
func renamed(q flow.Question, _ time.Time) (remedy, bool) {
	if q.Failed.Kind != flow.KindContract || q.Response == nil || len(q.Contract) == 0 {
		return remedy{}, false
	}
	output, okOutput := decode([]byte(q.Response.Body)).(map[string]any)
	contract, okContract := decode(q.Contract).(map[string]any)
	if !okOutput || !okContract {
		return remedy{}, false
	}
	var changes []string
	if !rename(output, contract, "", &changes, 0) || len(changes) == 0 {
		return remedy{}, false
	}
	raw, err := json.Marshal(output)
	if err != nil {
		return remedy{}, false
	}
	return remedy{action: flow.Action{Type: flow.ActionFixedOutput, Output: raw,
		Diagnosis: "The answer changed its shape: " + strings.Join(changes, ", ") + "."}}, true
}

// rename gives an object's members the names that the schema requires, at any
// depth. It reports whether every missing member was found.
func rename(object, schema map[string]any, at string, changes *[]string, depth int) bool {
	if depth > 20 {
		return false
	}
	properties, _ := schema["properties"].(map[string]any)
	required, _ := schema["required"].([]any)
	for _, r := range required {
		name, ok := r.(string)
		if _, has := object[name]; !ok || has {
			continue
		}
		from := candidate(object, properties, required, name)
		if from == "" {
			return false
		}
		object[name] = object[from]
		delete(object, from)
		*changes = append(*changes, fmt.Sprintf("%s is now called %s", at+name, at+from))
	}
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		inner, isObject := object[name].(map[string]any)
		innerSchema, isSchema := properties[name].(map[string]any)
		if isObject && isSchema && !rename(inner, innerSchema, at+name+".", changes, depth+1) {
			return false
		}
	}
	return true
}

// candidate finds the one member that may stand for the missing one: of the
// same name but for case and punctuation, else with one name ending in the
// other. A member that the schema knows stands for itself.
func candidate(object, properties map[string]any, required []any, missing string) string {
	schema, _ := properties[missing].(map[string]any)
	want := letters(missing)
	if want == "" {
		return ""
	}
	var same, similar []string
	for _, name := range slices.Sorted(maps.Keys(object)) {
		_, known := properties[name]
		if known || slices.Contains(required, any(name)) || !hasType(object[name], schema["type"]) {
			continue
		}
		have := letters(name)
		switch {
		case have == "":
		case have == want:
			same = append(same, name)
		case strings.HasSuffix(have, want), strings.HasSuffix(want, have):
			similar = append(similar, name)
		}
	}
	if len(same) == 0 {
		same = similar
	}
	if len(same) != 1 {
		return ""
	}
	return same[0]
}

// letters is a name without case and punctuation.
func letters(name string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			return -1
		}
		return unicode.ToLower(r)
	}, name)
}

// hasType tells whether a value is of a schema's type; no type takes any.
func hasType(v, types any) bool {
	switch t := types.(type) {
	case nil:
		return true
	case []any:
		return slices.ContainsFunc(t, func(one any) bool { return hasType(v, one) })
	case string:
		switch v := v.(type) {
		case string:
			return t == "string"
		case json.Number:
			return t == "number" || t == "integer" && !strings.ContainsAny(string(v), ".eE")
		case bool:
			return t == "boolean"
		case nil:
			return t == "null"
		case []any:
			return t == "array"
		case map[string]any:
			return t == "object"
		}
	}
	return false
}

// decode reads JSON with its numbers as they were written; nil if it is none.
func decode(raw []byte) any {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil {
		return nil
	}
	return v
}
