package flow

import (
	"encoding/json"
	"time"
)

// RecoverySettings are the settings of recovery as they hold for one step:
// its own over the workflow's over the workspace's over the defaults. It lives
// in memory only: A2AAuthToken is in the clear.
type RecoverySettings struct {
	Mode            string        // sync (default), agent, observe
	MCPServerID     string        // "" if none
	Timeout         time.Duration // one responder's, 1 s to 60 s
	A2AAgentURL     string        // "" if none
	A2AAuthToken    string
	A2AOrigin       string          // the only origin that the token is sent to, shown at save
	A2ACard         json.RawMessage // as read at save, or nil
	AgentTimeout    time.Duration   // the inbox gate's
	HumanTimeout    time.Duration   // the person's gate's
	MaxAttempts     int             // recovery attempts an episode
	Builtin         string          // rules (default), model, off
	CodeFixApproval string          // always (default), never
	AllowedHosts    []string        // where a mend may move a request with its secrets
	Model           ModelSettings   // for Builtin model
}

// ModelSettings say which model answers where recovery.builtin is model.
type ModelSettings struct {
	URL         string // base of an OpenAI-compatible API, or its /chat/completions
	Name        string
	Key         string // in the clear; "" if none, or if it was saved for another origin than URL's
	DailyTokens int64  // that a workspace may use on a day in UTC; 0 for no limit
}

// Limits bound what a run may hold.
type Limits struct {
	OutputBytes int64         // of one step's output
	AnswerBytes int64         // of one responder's answer
	StepTimeout time.Duration // the most that a mend may set as timeout
}

// GatePolicy is what a workspace wants of gates that wait for a person.
type GatePolicy struct {
	DenySelfApproval bool          // nobody approves what is their own
	RemindEvery      time.Duration // between reminders, where a step says nothing of its own; 0 for none
	Notify           bool          // it wants to be told outside: of gates, reminders and failed runs
}

// DefaultLimits are the limits where a workspace sets none.
func DefaultLimits() Limits {
	return Limits{OutputBytes: 10 << 20, AnswerBytes: 4 << 20, StepTimeout: 10 * time.Minute}
}
