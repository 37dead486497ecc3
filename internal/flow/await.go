package flow

import (
	"encoding/json"
	"time"
)

// Await parks a step until something outside is there: an agent's answer. The
// engine looks again when it is told that something came for Token, now and
// then in case nobody could tell it, and at Until; then the step's type runs
// again with State.
type Await struct {
	Token string // what is awaited, unique: it begins with the run's id and a slash
	Until time.Time
	State json.RawMessage // what the type has to remember
	Says  string          // for the step log: what is awaited
}

// AskBack parks a step at a gate of kind input_required: whoever was asked
// asks back. The type runs again with State and the person's reply.
type AskBack struct {
	Text  string
	From  string // who asks, for people
	State json.RawMessage
}

// Awaited is what a step that awaits something remembers.
type Awaited struct {
	Token string          `json:"token"`
	State json.RawMessage `json:"state"`
	Reply json.RawMessage `json:"reply,omitempty"` // a person's, to a question
	Since time.Time       `json:"since"`
	Until time.Time       `json:"until"`
}

// AgentAsk is what a step asks of an agent through a vault.
type AgentAsk struct {
	Workspace    string
	RunID        string
	Vault        string // an id or a name
	Scope        string // "" for default
	Agent        string // an id or an alias
	EventType    string
	Payload      json.RawMessage // an object
	Conversation string
	Correlation  string   // of the answer; also what keeps the same question from being asked twice
	Parents      []string // events that this one follows
}
