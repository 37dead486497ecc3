package definition

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/longstop-dev/longstop/internal/flow"
)

// Published gives the JSON Schema (2020-12) of definitions, for editors: it
// comes from the same tables as the checks of [Parse], which see more.
func Published(types []flow.StepType) json.RawMessage {
	names, rules := []any{}, []any{}
	defs := dict{"step": nil, "duration": durationSchema(), "retry": retrySchema(), "recovery": recoverySchema()}
	for _, t := range types {
		names = append(names, dict{"const": t.Name, "description": t.Summary})
		config := "config_" + t.Name
		defs[config] = configSchema(t)
		then := dict{"properties": dict{"config": dict{"$ref": "#/$defs/" + config}}}
		if object, ok := defs[config].(dict); ok && object["required"] != nil {
			then["required"] = []any{"config"}
		}
		rules = append(rules, dict{"if": dict{"properties": dict{"type": dict{"const": t.Name}}, "required": []any{"type"}}, "then": then})
	}
	defs["step"] = stepSchema(names, rules)
	return marshal(dict{
		"$schema": "https://json-schema.org/draft/2020-12/schema",
		"title":   "Longstop workflow",
		"type":    "object", "required": []any{"name", "steps"}, "additionalProperties": false,
		"properties": dict{
			"$schema":     dict{"type": "string"},
			"name":        dict{"type": "string", "pattern": goodName.String(), "description": "The workflow's name in its workspace."},
			"description": about(textOf(maxText), "For people."),
			"input":       about(contractSchema(), "JSON Schema of a run's input."),
			"recovery":    dict{"$ref": "#/$defs/recovery"},
			"steps":       dict{"type": "array", "minItems": 1, "maxItems": maxSteps, "items": dict{"$ref": "#/$defs/step"}},
			"output":      dict{"description": "What a run gives: any JSON with templates. Without it the last step's output."},
		},
		"$defs": defs,
	})
}

type dict = map[string]any

func stepSchema(names, rules []any) dict {
	s := dict{
		"type": "object", "required": []any{"type"}, "additionalProperties": false,
		"properties": dict{
			"id":            dict{"type": "string", "pattern": goodID.String(), "description": "Templates reach the output as steps.<id>.output. Without it s<index>."},
			"type":          dict{"oneOf": names},
			"title":         about(textOf(maxTitle), "For people."),
			"intent":        about(textOf(maxText), "What the step is for; who mends it is shown it."),
			"config":        dict{"type": []any{"object", "null"}},
			"retry":         dict{"$ref": "#/$defs/retry"},
			"timeout":       dict{"$ref": "#/$defs/duration", "description": "Bounds one attempt. Default 30s."},
			"total_timeout": dict{"$ref": "#/$defs/duration", "description": "Bounds all attempts, back-off and recovery together. Default 10m."},
			"output":        about(contractSchema(), "JSON Schema that the output must satisfy, a mended one too."),
			"recovery":      dict{"$ref": "#/$defs/recovery"},
		},
	}
	if len(rules) > 0 {
		s["allOf"] = rules
	}
	return s
}

func retrySchema() dict {
	return dict{
		"type": []any{"object", "null"}, "required": []any{"attempts"}, "additionalProperties": false,
		"description": "Attempts before recovery is asked.",
		"properties": dict{
			"attempts":    dict{"type": "integer", "minimum": 1, "maximum": maxAttempts, "description": "How often in all."},
			"backoff":     dict{"$ref": "#/$defs/duration", "description": "The first pause; each is about twice the one before. Default 1s."},
			"max_backoff": dict{"$ref": "#/$defs/duration", "description": "The longest pause. Default 30s."},
		},
	}
}

func recoverySchema() dict {
	members := dict{}
	for _, k := range recoveryKeys() {
		members[k] = dict{"type": []any{"string", "number", "boolean"}, "description": "The setting recovery." + k + "."}
	}
	members["allowed_hosts"] = dict{"type": []any{"string", "array"}, "items": dict{"type": "string"}, "description": "The setting recovery.allowed_hosts."}
	members["mode"] = dict{"enum": []any{"sync", "agent", "observe"}, "description": "The setting recovery.mode."}
	return dict{"type": []any{"object", "null"}, "additionalProperties": false, "properties": members,
		"description": "Recovery settings that hold here instead of the workspace's."}
}

func durationSchema() dict {
	return dict{"type": []any{"string", "null"}, "pattern": `^\s*([0-9]+d)?([0-9]*\.?[0-9]+(ns|us|µs|μs|ms|s|m|h))*\s*$`, "examples": []any{"500ms", "30s", "5m", "1d"}}
}

func contractSchema() dict { return dict{"type": []any{"object", "boolean", "null"}} }

func textOf(most int) dict { return dict{"type": []any{"string", "null"}, "maxLength": most} }

func about(s dict, text string) dict {
	s["description"] = text
	return s
}

// configSchema is the type's own schema with steps where it has lists of
// steps.
func configSchema(t flow.StepType) any {
	doc, err := decode(t.Config)
	schema, ok := doc.(dict)
	if err != nil || !ok {
		return dict{"type": "object"}
	}
	for _, pattern := range t.Nested {
		placeSteps(schema, strings.Split(pattern, "."))
	}
	return schema
}

// placeSteps puts steps at the end of a pattern into a schema, through the forms
// that members and entries have there.
func placeSteps(v any, pattern []string) {
	schema, ok := v.(dict)
	if !ok {
		return
	}
	for _, key := range []string{"anyOf", "oneOf", "allOf"} {
		if forms, ok := schema[key].([]any); ok {
			for _, one := range forms {
				placeSteps(one, pattern)
			}
		}
	}
	if len(pattern) == 0 {
		if schema["type"] == "array" {
			schema["items"] = dict{"$ref": "#/$defs/step"}
		}
		return
	}
	if pattern[0] == "*" {
		placeSteps(schema["items"], pattern[1:])
		placeSteps(schema["additionalProperties"], pattern[1:])
		return
	}
	if members, ok := schema["properties"].(dict); ok {
		placeSteps(members[pattern[0]], pattern[1:])
	}
}

func marshal(v any) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	_ = e.Encode(v) // maps, lists and texts always encode
	return b.Bytes()
}
