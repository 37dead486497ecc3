package a2a

import (
	"encoding/json"
	"strings"
	"unicode"
)

// State is the state of a task in one spelling.
type State string

// The states. A bare message counts as completed.
const (
	StateSubmitted     State = "SUBMITTED"
	StateWorking       State = "WORKING"
	StateCompleted     State = "COMPLETED"
	StateFailed        State = "FAILED"
	StateCanceled      State = "CANCELED"
	StateRejected      State = "REJECTED"
	StateInputRequired State = "INPUT_REQUIRED"
	StateAuthRequired  State = "AUTH_REQUIRED"
	StateUnknown       State = "UNKNOWN" // missing or not understood: never a success
)

// Terminal says that the task will not change any more.
func (s State) Terminal() bool {
	return s == StateCompleted || s == StateFailed || s == StateCanceled || s == StateRejected
}

// Paused says that the task waits for a person.
func (s State) Paused() bool { return s == StateInputRequired || s == StateAuthRequired }

// Wire is the state as protocol 1.0 spells it, such as TASK_STATE_COMPLETED.
func (s State) Wire() string {
	if s == StateUnknown {
		return "TASK_STATE_UNSPECIFIED"
	}
	return "TASK_STATE_" + string(s)
}

// Answer is a task, or a message that an agent answered with directly.
type Answer struct {
	Task      bool   // false: a bare message
	ID        string // of the task; empty for a bare message
	ContextID string
	State     State
	Artifacts []Part // what the task made
	Message   []Part // of the status message, or of the bare message
	Metadata  []json.RawMessage
	Usage     Usage
}

// Parts are the parts of the answer in the order in which they count:
// artifacts first. The history is never among them: it echoes our own prompt.
func (a *Answer) Parts() []Part {
	return append(append([]Part(nil), a.Artifacts...), a.Message...)
}

// Data is the first data part, nil if there is none.
func (a *Answer) Data() json.RawMessage {
	for _, p := range a.Parts() {
		if p.Data != nil {
			return p.Data
		}
	}
	return nil
}

// Text is what the agent says: of a completed task the artifacts, of any other
// the status message, which holds the question or the reason.
func (a *Answer) Text() string {
	made, said := joinText(a.Artifacts), joinText(a.Message)
	if a.State == StateCompleted && made != "" || said == "" {
		return made
	}
	return said
}

// maxID is how long an id or a tenant of an agent's may be, in bytes: they are
// kept and sent again, of every task that is waited for.
const maxID = 1024

// ReadAnswer reads the result of a call: a task or a message, bare or under
// its name. The error is an [ErrShape]. The result must have been bounded in
// depth before.
func ReadAnswer(result json.RawMessage) (*Answer, error) {
	a, err := readAnswer(result)
	if err != nil {
		return nil, err
	}
	for name, id := range map[string]string{"a task's id": a.ID, "a contextId": a.ContextID} {
		if len(id) > maxID || strings.ContainsFunc(id, unicode.IsControl) {
			return nil, fault(ErrShape, "%s of %d bytes that is no id: at most %d, without control characters", name, len(id), maxID)
		}
	}
	return a, nil
}

func readAnswer(result json.RawMessage) (*Answer, error) {
	o := asObject(result)
	if o == nil {
		return nil, fault(ErrShape, "the result is not a JSON object")
	}
	wrapped, message := asObject(o["task"]), asObject(o["message"])
	switch {
	case wrapped != nil:
		return readTask(wrapped), nil
	case hasParts(message) && !o.has("status"):
		return readMessage(message), nil
	case o.has("status") || o.text("kind") == "task":
		return readTask(o), nil
	case hasParts(o):
		return readMessage(o), nil
	}
	return nil, fault(ErrShape, "the result is neither a task nor a message")
}

func hasParts(o object) bool { return asList(o["parts"]) != nil || asList(o["content"]) != nil }

func readMessage(o object) *Answer {
	a := &Answer{ContextID: o.text("contextId", "context_id"), State: StateCompleted, Message: readParts(o)}
	a.note(o)
	return a
}

func readTask(o object) *Answer {
	status := asObject(o["status"])
	state := status["state"]
	if status == nil { // {"status": "completed"}
		state = o["status"]
	}
	said := asObject(status["message"])
	if said == nil {
		said = asObject(status["update"]) // the gRPC-born JSON of 0.3
	}
	a := &Answer{
		Task:      true,
		ID:        o.text("id"),
		ContextID: o.text("contextId", "context_id"),
		State:     readState(state),
		Message:   readParts(said),
	}
	a.note(o)
	a.note(said)
	for _, raw := range asList(o["artifacts"]) {
		artifact := asObject(raw)
		a.Artifacts = append(a.Artifacts, readParts(artifact)...)
		a.note(artifact)
	}
	return a
}

// note keeps the metadata of o and the token usage it reports.
func (a *Answer) note(o object) {
	if m := asObject(o["metadata"]); len(m) > 0 {
		a.Metadata = append(a.Metadata, o["metadata"])
		a.Usage = a.Usage.larger(readUsage(m))
	}
}

// readState knows the spellings of 1.0 and 0.3, and the numbers of the
// protocol buffer.
func readState(raw json.RawMessage) State {
	numbers := [...]State{StateUnknown, StateSubmitted, StateWorking, StateCompleted, StateFailed,
		StateCanceled, StateInputRequired, StateRejected, StateAuthRequired}
	var s string
	if json.Unmarshal(raw, &s) != nil {
		if n, ok := number(raw); ok && n >= 0 && n < int64(len(numbers)) {
			return numbers[n]
		}
		return StateUnknown
	}
	s = strings.ToUpper(strings.ReplaceAll(strings.TrimSpace(s), "-", "_"))
	s = strings.TrimPrefix(s, "TASK_STATE_")
	if s == "CANCELLED" {
		return StateCanceled
	}
	for _, known := range numbers {
		if State(s) == known {
			return known
		}
	}
	return StateUnknown
}
