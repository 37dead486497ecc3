package flow

import (
	"context"
	"encoding/json"
	"time"
)

// Question is what a responder is asked about a case. Input and Response are
// masked; Settings holds the agent's token in the clear.
type Question struct {
	Workspace string
	RunID     string
	StepIndex int
	Attempt   int // the recovery attempt's number, from 0
	Input     RecoveryInput
	Settings  RecoverySettings
	Failed    Failed
	Response  *Response       // what the step got, or nil
	Contract  json.RawMessage // the step's output contract, or nil
	Timeout   time.Duration   // of the attempt that failed
	Cap       time.Duration   // the most that a mend may set as timeout
	// Check says what the guard would have against an action, in a line that
	// whoever answered may be told, or nil. It applies nothing. It is for
	// responders that can answer once more; nil where there is no guard.
	Check func(ctx context.Context, action json.RawMessage) error
}

// Answer is what a responder said, unchecked. Target, Notes and Usage are set
// even when the question failed. Target is a URL without its query, or a
// server's id.
type Answer struct {
	Action json.RawMessage
	After  time.Duration // pause before a retry; only a built-in responder asks for one
	Notes  []string
	Target string
	Usage  *Usage // of a model that the built-in asked, or nil
}

// AskKind says how asking a responder failed.
type AskKind string

// The kinds.
const (
	AskTimeout     AskKind = "timeout"     // no answer within the deadline
	AskUnreachable AskKind = "unreachable" // it could not be called
	AskInvalid     AskKind = "invalid"     // it answered, but with nothing that is an action
)

// AskError is how a responder fails. Message is for the step log: at most 300
// characters, without a token or a query string.
type AskError struct {
	Kind    AskKind
	Message string
	Err     error // the cause: logged, never shown
}

// Error is the message.
func (e *AskError) Error() string { return e.Message }

// Unwrap gives the cause.
func (e *AskError) Unwrap() error { return e.Err }

// AgentRef names an agent to be tried: exactly one of URL, Server and Command.
type AgentRef struct {
	URL     string   // of an A2A agent or of its card
	Token   string   // for URL; sent to the endpoint's origin only
	Server  string   // the id of an MCP server registered in the workspace
	Command []string // an MCP server over stdio, started for this trial
}

// Sighting is what was found where an agent was looked for.
type Sighting struct {
	Found       bool     `json:"found" doc:"Whether there is a usable agent card, or the tool diagnose_step_failure."`
	Kind        string   `json:"kind" enum:"a2a,mcp"`
	Name        string   `json:"name,omitempty"`
	Description string   `json:"description,omitempty"`
	Endpoint    string   `json:"endpoint,omitempty" doc:"Where calls go."`
	Tools       []string `json:"tools,omitempty" doc:"What an MCP server lists."`
	Problem     string   `json:"problem,omitempty" doc:"Why it was not found."`
}
