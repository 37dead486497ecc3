package flow

import (
	"encoding/json"
	"time"
)

// Call is one attempt of a step as its type gets it.
type Call struct {
	Workspace      string
	RunID          string
	StepIndex      int
	Config         json.RawMessage // resolved and mended; the type's Lazy members as they were written
	Scope          map[string]any  // input, steps, secrets, item, run: decoded JSON with json.Number
	IdempotencyKey string          // the same for all tier-1 attempts; another after a mend
	Now            time.Time
	MaxOutput      int64 // bytes
	Iteration      string
	Attempt        int      // from 1, in all
	Awaited        *Awaited // of a step that awaited something, which is to be looked at; nil for a new attempt
}

// Outcome is how a step's attempt ends when it does not fail. Exactly one of
// six: it is done with Value; it suspends itself until Until, and has Value
// as its output then; the nested list Branch runs next, whose last step's
// output becomes the step's (with [AllBranches] every nested list runs, all at
// the same time, and the array of their last outputs, in the order of the
// definition, becomes the step's); a person has to approve; it awaits something outside; or
// whoever was asked asks back.
type Outcome struct {
	Value    json.RawMessage
	Until    time.Time
	Branch   string
	Approval *Approval
	Await    *Await
	Ask      *AskBack
	Logs     []string // lines for the step log
}

// AllBranches is the Branch of an [Outcome] that has every nested list run.
const AllBranches = "*"

// Approval is what a person is asked before the run goes on.
type Approval struct {
	Message  string          `json:"message"`
	Form     json.RawMessage `json:"form,omitempty"`    // JSON Schema of what the person fills in, or none
	Deadline time.Duration   `json:"-"`                 // 0 for a week
	Default  string          `json:"default,omitempty"` // approve or refuse, when nobody answers; "" fails the step
	Remind   time.Duration   `json:"-"`                 // between reminders; 0 as the workspace says, below 0 never
}
