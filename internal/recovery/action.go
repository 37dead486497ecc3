package recovery

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/longstop-dev/longstop/internal/flow"
)

// ParseAction reads a responder's answer as exactly one recovery action. Notes
// tell what of it was ignored or cut; a rejection tells why it cannot be used.
// Whether the action may be carried out is for the guard to say.
func ParseAction(raw []byte, limits flow.Limits) (flow.Action, []string, *Rejection) {
	var a flow.Action
	if r := bounded(raw, limits.AnswerBytes); r != nil {
		return a, nil, r
	}
	switch kindOf(raw) {
	case "an object":
	case "a string":
		return a, nil, reject("", "the answer is text, not an action: "+quoted(string(raw[1:])), "exactly one action, as an object")
	default:
		return a, nil, reject("", "the answer is "+kindOf(raw), "exactly one action, as an object")
	}
	all, r := members(raw)
	if r != nil {
		return a, nil, r
	}
	if r := find(decoded(raw), impossible); r != nil {
		return a, nil, r
	}
	if a.Type, r = actionType(all["type"]); r != nil {
		return a, nil, r
	}
	var notes []string
	if a.Diagnosis, r = text(all, "diagnosis"); r != nil {
		return a, nil, r
	}
	if short := cut(a.Diagnosis, maxDiagnosis); short != a.Diagnosis {
		a.Diagnosis = short
		notes = append(notes, fmt.Sprintf("diagnosis was cut to %d characters", maxDiagnosis))
	}
	member, r := own(&a, all)
	if r != nil {
		return a, nil, r
	}
	if extra := ignored(all, member); extra != "" {
		notes = append(notes, "ignored: "+extra)
	}
	return a, notes, nil
}

// actionType reads the type.
func actionType(raw json.RawMessage) (flow.ActionType, *Rejection) {
	var names []string
	for _, t := range flow.ActionTypes() {
		names = append(names, string(t))
	}
	fix := "one of " + strings.Join(names, ", ")
	var name string
	switch {
	case raw == nil:
		return "", reject("type", "is missing", fix)
	case kindOf(raw) != "a string" || json.Unmarshal(raw, &name) != nil:
		return "", reject("type", "must be a string, got "+kindOf(raw), fix)
	case !slices.Contains(names, name):
		return "", reject("type", "must be one of "+strings.Join(names, ", ")+", got "+quoted(name), "")
	}
	return flow.ActionType(name), nil
}

// own reads the member that the action's type requires, and gives its name.
func own(a *flow.Action, all map[string]json.RawMessage) (name string, r *Rejection) {
	switch a.Type {
	case flow.ActionFixedOutput:
		name = "output"
		if a.Output = all[name]; a.Output == nil {
			r = missing(name, a.Type)
		}
	case flow.ActionRetryWithParams:
		name = "modifications"
		if a.Modifications = all[name]; a.Modifications == nil {
			r = missing(name, a.Type)
		} else if kindOf(a.Modifications) != "an object" {
			r = reject(name, "must be an object, got "+kindOf(a.Modifications), "{} retries as it is")
		}
	case flow.ActionCodeFix:
		name = "code"
		if a.Code, r = text(all, name); r == nil && strings.TrimSpace(a.Code) == "" {
			r = reject(name, "is empty", "a JavaScript function body")
		}
	case flow.ActionRetryWithTool:
		name = "toolCall"
		if all[name] == nil {
			return name, missing(name, a.Type)
		}
		a.ToolCall, r = toolCall(all[name])
		r = r.under(name)
	case flow.ActionNeedsHuman:
		name = "suggestion"
		a.Suggestion, r = text(all, name)
		a.Suggestion = cut(a.Suggestion, maxDiagnosis)
	}
	return name, r
}

func missing(name string, t flow.ActionType) *Rejection {
	return reject(name, "is missing", string(t)+" needs it")
}

// toolCall reads the tool call: exactly its members.
func toolCall(raw json.RawMessage) (*flow.ToolCall, *Rejection) {
	all, r := members(raw)
	if r != nil {
		return nil, r
	}
	for _, key := range sortedKeys(all) {
		if key != "server" && key != "tool" && key != "params" {
			return nil, reject(oneLine(key, 60), "is no member of a tool call", "server, tool and params")
		}
	}
	var c flow.ToolCall
	if c.Server, r = named(all, "server"); r != nil {
		return nil, r
	}
	if c.Tool, r = named(all, "tool"); r != nil {
		return nil, r
	}
	switch c.Params = all["params"]; {
	case c.Params == nil:
		c.Params = json.RawMessage("{}")
	case kindOf(c.Params) != "an object":
		return nil, reject("params", "must be an object, got "+kindOf(c.Params), "the tool's arguments by name")
	}
	return &c, nil
}

// text reads a required string.
func text(all map[string]json.RawMessage, name string) (string, *Rejection) {
	raw, ok := all[name]
	if !ok {
		return "", reject(name, "is missing", "a string")
	}
	var s string
	if kindOf(raw) != "a string" || json.Unmarshal(raw, &s) != nil {
		return "", reject(name, "must be a string, got "+kindOf(raw), "")
	}
	return s, nil
}

// named reads a required name.
func named(all map[string]json.RawMessage, name string) (string, *Rejection) {
	s, r := text(all, name)
	switch {
	case r != nil:
		return "", r
	case strings.TrimSpace(s) == "":
		return "", reject(name, "is empty", "")
	case len(s) > maxName:
		return "", reject(name, "is too long", fmt.Sprintf("at most %d characters", maxName))
	}
	return s, nil
}

// ignored lists the members of an action that its type has no use for.
func ignored(all map[string]json.RawMessage, own string) string {
	var extra []string
	for _, key := range sortedKeys(all) {
		if key != "type" && key != "diagnosis" && key != own {
			extra = append(extra, oneLine(key, 60))
		}
	}
	if len(extra) > 10 {
		extra = append(extra[:10], fmt.Sprintf("and %d more", len(extra)-10))
	}
	return strings.Join(extra, ", ")
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
