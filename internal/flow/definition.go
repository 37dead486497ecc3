package flow

import (
	"encoding/json"
	"time"
)

// Definition is a checked workflow: what package definition makes out of YAML
// or JSON. It is immutable and safe for concurrent use.
type Definition struct {
	Name        string            `json:"name"`
	Description string            `json:"description,omitempty"`
	Input       json.RawMessage   `json:"input,omitempty"`    // JSON Schema of the run's input, or none
	Recovery    map[string]string `json:"recovery,omitempty"` // setting keys with their prefix: "recovery.mode"
	Steps       []Step            `json:"steps"`
	Output      json.RawMessage   `json:"output,omitempty"` // any JSON with templates, or none: the last step's output
}

// Step is an entry of a definition.
type Step struct {
	Index        int               `json:"index"` // position in the order written, nested steps included
	ID           string            `json:"id"`    // unique in the definition; "s<index>" unless given
	Type         string            `json:"type"`
	Title        string            `json:"title,omitempty"`
	Intent       string            `json:"intent,omitempty"`
	Config       json.RawMessage   `json:"config,omitempty"` // an object with templates, without the nested steps
	Retry        Retry             `json:"retry"`
	Timeout      time.Duration     `json:"timeout"`          // bounds one attempt
	TotalTimeout time.Duration     `json:"totalTimeout"`     // bounds attempts, back-off and synchronous recovery together
	Output       json.RawMessage   `json:"output,omitempty"` // the output contract: a JSON Schema, or none
	Recovery     map[string]string `json:"recovery,omitempty"`
	Nested       []Branch          `json:"nested,omitempty"` // lists of steps that this step may run
}

// Branch is a list of steps nested in a step, by the name its type uses for it:
// "then", "else", "cases.0".
type Branch struct {
	Name  string `json:"name"`
	Steps []Step `json:"steps"`
}

// Retry is tier 1: the step's own attempts, without any model.
type Retry struct {
	Attempts   int           `json:"attempts"` // in all, at least 1
	Backoff    time.Duration `json:"backoff"`
	MaxBackoff time.Duration `json:"maxBackoff"`
}

// The defaults of a step.
const (
	DefaultTimeout      = 30 * time.Second
	DefaultTotalTimeout = 10 * time.Minute
	DefaultBackoff      = time.Second
	DefaultMaxBackoff   = 30 * time.Second
)

// StepType describes a step type to whoever checks, documents or mends steps.
type StepType struct {
	Name     string          `json:"name"`
	Summary  string          `json:"summary"`
	Config   json.RawMessage `json:"config"`             // JSON Schema of config, templates allowed in it
	Nested   []string        `json:"nested,omitempty"`   // where config holds lists of steps: "then", "cases.*.steps"
	Lazy     []string        `json:"lazy,omitempty"`     // members of config that the type evaluates itself
	Mendable []string        `json:"mendable,omitempty"` // fields of config that a recovery action may change
	Clocked  bool            `json:"clocked"`            // whether total_timeout bounds it; a wait is not
	// Concurrent says that the nested lists run at the same time: a step in one
	// of them sees nothing of the others.
	Concurrent bool `json:"concurrent,omitempty"`
}

// Walk calls visit for every step of the definition in index order.
func (d *Definition) Walk(visit func(*Step)) { walk(d.Steps, visit) }

func walk(steps []Step, visit func(*Step)) {
	for i := range steps {
		visit(&steps[i])
		for _, b := range steps[i].Nested {
			walk(b.Steps, visit)
		}
	}
}
