package flow

import (
	"encoding/json"
	"time"
)

// SchemaVersion of [RecoveryInput].
const SchemaVersion = 1

// RecoveryInput is RecoveryToolInput of the recovery specification, member for
// member: what a responder is shown. Everything in it is masked.
type RecoveryInput struct {
	SchemaVersion   int               `json:"schema_version"`
	Step            RecoveryStep      `json:"step"`
	Error           string            `json:"error"`
	PriorOutputs    map[string]string `json:"prior_outputs"`
	WorkflowInput   json.RawMessage   `json:"workflow_input"`
	CatalogAction   json.RawMessage   `json:"catalog_action,omitempty"`
	ResolvedRequest *ResolvedRequest  `json:"resolved_request,omitempty"`
	HumanHint       string            `json:"human_hint,omitempty"`
}

// RecoveryStep is the step as a responder is shown it.
type RecoveryStep struct {
	Type   string          `json:"type"`
	Title  string          `json:"title"`
	Intent string          `json:"intent"`
	Index  int             `json:"index"`
	Config json.RawMessage `json:"config"`
}

// ResolvedRequest is what was actually sent; Body is JSON null if nothing was.
type ResolvedRequest struct {
	URL  string          `json:"url"`
	Body json.RawMessage `json:"body"`
}

// ActionType is one of the five things a responder may answer.
type ActionType string

// The five actions.
const (
	ActionFixedOutput     ActionType = "fixed_output"
	ActionRetryWithParams ActionType = "retry_with_params"
	ActionCodeFix         ActionType = "code_fix"
	ActionRetryWithTool   ActionType = "retry_with_tool"
	ActionNeedsHuman      ActionType = "needs_human"
)

// ActionTypes lists the five actions.
func ActionTypes() []ActionType {
	return []ActionType{ActionFixedOutput, ActionRetryWithParams, ActionCodeFix, ActionRetryWithTool, ActionNeedsHuman}
}

// Action is RecoveryAction of the recovery specification.
type Action struct {
	Type          ActionType      `json:"type"`
	Diagnosis     string          `json:"diagnosis"`
	Output        json.RawMessage `json:"output,omitempty"`        // fixed_output
	Modifications json.RawMessage `json:"modifications,omitempty"` // retry_with_params
	Code          string          `json:"code,omitempty"`          // code_fix
	ToolCall      *ToolCall       `json:"toolCall,omitempty"`      // retry_with_tool
	Suggestion    string          `json:"suggestion,omitempty"`    // needs_human
}

// MarshalJSON writes the member that a call for a person requires even where
// it is empty: what was accepted once is an action when it is read again.
func (a Action) MarshalJSON() ([]byte, error) {
	type plain Action
	if a.Type != ActionNeedsHuman {
		return json.Marshal(plain(a))
	}
	return json.Marshal(struct {
		plain
		Suggestion string `json:"suggestion"`
	}{plain(a), a.Suggestion})
}

// ToolCall names a tool of an MCP server registered in the workspace.
type ToolCall struct {
	Server string          `json:"server"`
	Tool   string          `json:"tool"`
	Params json.RawMessage `json:"params,omitempty"`
}

// Case is a failure frozen for whoever answers it, one for each recovery
// attempt: what they are shown, who was asked, what came back and what became
// of it. Everything in it is masked.
type Case struct {
	ID        string          `json:"id"`
	Workspace string          `json:"-"`
	RunID     string          `json:"runId"`
	Workflow  string          `json:"workflow"`
	StepIndex int             `json:"stepIndex"`
	Iteration string          `json:"iteration,omitempty"`
	Episode   int             `json:"episode"`
	Attempt   int             `json:"attempt"` // the recovery attempt's number, from 0
	OpenedAt  time.Time       `json:"openedAt"`
	ClosedAt  *time.Time      `json:"closedAt,omitempty"`
	Input     RecoveryInput   `json:"input"`
	Response  *Response       `json:"response,omitempty"` // what the step got, bounded
	Contract  json.RawMessage `json:"contract,omitempty"` // the step's output contract, if it has one
	Asked     []Asked         `json:"asked"`              // in the order asked
	Outcome   string          `json:"outcome,omitempty"`  // one line: "retry_with_params by byoa", "needs_human gate opened"
	Before    any             `json:"before,omitempty"`   // the config as it was, where a mend changed it
	After     any             `json:"after,omitempty"`    // the config as it became
	Observed  *Observation    `json:"observed,omitempty"` // what the own agent would have done, where it is only observed
}

// Asked is one responder's part in a case.
type Asked struct {
	Responder  string          `json:"responder"`        // a2a mcp inbox rules model human
	Target     string          `json:"target,omitempty"` // URL without query, server id, person
	Source     Source          `json:"source"`
	At         time.Time       `json:"at"`
	DurationMS float64         `json:"durationMs"`
	Action     json.RawMessage `json:"action,omitempty"` // as answered, masked, bounded
	Accepted   bool            `json:"accepted"`
	Rejection  string          `json:"rejection,omitempty"` // why it was not used
	Notes      []string        `json:"notes,omitempty"`     // what was ignored, dropped or changed in it
	Usage      *Usage          `json:"usage,omitempty"`     // of the built-in model
}

// Failure is a step's failure as the engine hands it to recovery. It lives in
// memory only: Config may hold secrets.
type Failure struct {
	Run      Run
	Recovery map[string]string // the definition's recovery settings, keys with their prefix
	Step     *Step
	Instance StepInstance
	Config   json.RawMessage // resolved, as the failed attempt used it; nil if it could not be resolved
	Prior    []PriorOutput   // completed steps
	Failed   Failed
	Left     time.Duration // of total_timeout
}

// PriorOutput is a completed step's output.
type PriorOutput struct {
	Index  int
	Output json.RawMessage
}

// VerdictKind says what recovery decided.
type VerdictKind string

// The verdicts.
const (
	VerdictOutput VerdictKind = "output" // take this output
	VerdictRetry  VerdictKind = "retry"  // run the step again with Mods
	VerdictTool   VerdictKind = "tool"   // call Tool and take its answer
	VerdictAgain  VerdictKind = "again"  // this attempt is spent: the next recovery attempt's turn
	VerdictGate   VerdictKind = "gate"   // park at Gate
	VerdictSkip   VerdictKind = "skip"   // go on with a null output
	VerdictFail   VerdictKind = "fail"   // the step has failed for good
)

// Verdict is recovery's decision about a case, or a person's about a gate.
type Verdict struct {
	Kind       VerdictKind
	Output     json.RawMessage
	Mods       json.RawMessage // to merge onto the resolved config
	Dropped    []string        // JSON pointers of config that a new origin loses
	Tool       *ToolCall
	After      time.Duration // pause before the retry
	Gate       *Gate
	NewEpisode bool // the count of recovery attempts starts at 0 again
	Hint       string
	Source     Source      // whose action this is
	Message    string      // one masked sentence for the log
	Agent      *Escalation // the own agent's call for a person, kept for the gate
	Adapting   Adapting
	Case       Case
}

// Adapting is the payload of step:adapting: at most 1,024 bytes in all.
type Adapting struct {
	BYOAAttempted       bool    `json:"byoa_attempted"`
	BYOAResultSummary   *string `json:"byoa_result_summary"`
	BYOATimingMS        *int64  `json:"byoa_timing_ms"`
	BYOARejectionReason *string `json:"byoa_rejection_reason"`
}
