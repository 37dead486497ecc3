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
}

// Outcome is how a step's attempt ends when it does not fail. Exactly one of
// three: it is done with Value; it suspends itself until Until, and has Value
// as its output then; or the nested list Branch runs next, whose last step's
// output becomes the step's.
type Outcome struct {
	Value  json.RawMessage
	Until  time.Time
	Branch string
	Logs   []string // lines for the step log
}
