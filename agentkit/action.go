package agentkit

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Type is one of the five actions.
type Type string

// The five actions.
const (
	TypeFixedOutput     Type = "fixed_output"
	TypeRetryWithParams Type = "retry_with_params"
	TypeCodeFix         Type = "code_fix"
	TypeRetryWithTool   Type = "retry_with_tool"
	TypeNeedsHuman      Type = "needs_human"
)

// Action is what to do about a case: RecoveryAction of the recovery
// specification. The functions below make valid ones.
type Action struct {
	Type          Type            `json:"type"`
	Diagnosis     string          `json:"diagnosis"`               // what is wrong, for whoever reads the log
	Output        json.RawMessage `json:"output,omitempty"`        // fixed_output
	Modifications json.RawMessage `json:"modifications,omitempty"` // retry_with_params
	Code          string          `json:"code,omitempty"`          // code_fix
	ToolCall      *ToolCall       `json:"toolCall,omitempty"`      // retry_with_tool
	Suggestion    string          `json:"suggestion,omitempty"`    // needs_human
}

// ToolCall names a tool of an MCP server that the workspace has registered.
type ToolCall struct {
	Server string          `json:"server"`
	Tool   string          `json:"tool"`
	Params json.RawMessage `json:"params"` // an object
}

// Changes are what a retry does differently; a zero member changes nothing.
// They are merged into the step's request. Members of Headers, Query and an
// object as Body that are nil are removed from it.
type Changes struct {
	URL     string         `json:"url,omitempty"`
	Method  string         `json:"method,omitempty"`
	Headers map[string]any `json:"headers,omitempty"`
	Query   map[string]any `json:"query,omitempty"`
	Body    any            `json:"body,omitempty"`
	Timeout time.Duration  `json:"-"` // of each further attempt; whole milliseconds
}

// RetryWithParams has the step run again with changes; none at all repeats it
// as it was. Prefer it to [FixedOutput]: the call is really made.
func RetryWithParams(diagnosis string, c Changes) Action {
	mods := map[string]any{}
	request, err := json.Marshal(c)
	if err == nil && string(request) != "{}" {
		mods["httpRequest"] = json.RawMessage(request)
	}
	if ms := c.Timeout.Milliseconds(); ms > 0 {
		mods["timeout"] = ms
	}
	a := Action{Type: TypeRetryWithParams, Diagnosis: diagnosis}
	if err == nil {
		a.Modifications, err = json.Marshal(mods)
	}
	return orHuman(a, err)
}

// FixedOutput gives the step's output without running it again.
func FixedOutput(diagnosis string, output any) Action {
	b, err := json.Marshal(output)
	return orHuman(Action{Type: TypeFixedOutput, Diagnosis: diagnosis, Output: b}, err)
}

// CodeFix computes the step's output: javascript is a function body over
// `input` (what the step got) and `context`. A person approves it first,
// unless the workspace says otherwise.
func CodeFix(diagnosis, javascript string) Action {
	return Action{Type: TypeCodeFix, Diagnosis: diagnosis, Code: javascript}
}

// RetryWithTool calls a tool of a registered MCP server instead of the step.
func RetryWithTool(diagnosis, server, tool string, params map[string]any) Action {
	if params == nil {
		params = map[string]any{}
	}
	b, err := json.Marshal(params)
	return orHuman(Action{Type: TypeRetryWithTool, Diagnosis: diagnosis, ToolCall: &ToolCall{Server: server, Tool: tool, Params: b}}, err)
}

// NeedsHuman calls for a person; suggestion is what they should do.
func NeedsHuman(diagnosis, suggestion string) Action {
	return Action{Type: TypeNeedsHuman, Diagnosis: diagnosis, Suggestion: suggestion}
}

// orHuman is the action, or a call for a person where it cannot be written.
func orHuman(a Action, err error) Action {
	if err == nil {
		return a
	}
	return NeedsHuman(a.Diagnosis, fmt.Sprintf("The agent wanted %s, but what it gave cannot be written as JSON: %v", a.Type, err))
}

// Check reports what of an action is missing; Longstop would refuse it.
func (a Action) Check() error {
	missing := func(member string) error { return fmt.Errorf("%s needs %s", a.Type, member) }
	switch {
	case a.Type == "":
		return errors.New("an action needs a type")
	case a.Diagnosis == "":
		return missing("diagnosis")
	}
	switch a.Type {
	case TypeFixedOutput:
		if len(a.Output) == 0 {
			return missing("output")
		}
	case TypeRetryWithParams:
		if len(a.Modifications) == 0 {
			return missing("modifications")
		}
	case TypeCodeFix:
		if a.Code == "" {
			return missing("code")
		}
	case TypeRetryWithTool:
		if a.ToolCall == nil || a.ToolCall.Server == "" || a.ToolCall.Tool == "" {
			return missing("toolCall with server and tool")
		}
	case TypeNeedsHuman:
		if a.Suggestion == "" {
			return missing("suggestion")
		}
	default:
		return fmt.Errorf("%q is none of the five actions", a.Type)
	}
	return nil
}
