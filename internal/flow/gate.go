package flow

import (
	"encoding/json"
	"time"
)

// GateKind says on whom a run is parked.
type GateKind string

// The kinds of gate.
const (
	GateNeedsAgent    GateKind = "needs_agent"    // the inbox: the workspace's own agent
	GateNeedsHuman    GateKind = "needs_human"    // a person mends or decides
	GateApproval      GateKind = "approval"       // a person approves a step or a code fix
	GateInputRequired GateKind = "input_required" // an agent asks back
)

// GateStatus says whether a gate still waits.
type GateStatus string

// The statuses of a gate.
const (
	GateOpen     GateStatus = "open"
	GateAnswered GateStatus = "answered"
	GateExpired  GateStatus = "expired"
	GateClosed   GateStatus = "closed" // its run ended otherwise
)

// Gate is a run parked on someone. It costs a row.
type Gate struct {
	ID         string          `json:"id"`
	Workspace  string          `json:"-"`
	RunID      string          `json:"runId"`
	Workflow   string          `json:"workflow"`
	StepIndex  int             `json:"stepIndex"`
	Iteration  string          `json:"iteration,omitempty"`
	Title      string          `json:"title,omitempty"`
	StepType   string          `json:"stepType,omitempty"`
	Kind       GateKind        `json:"kind"`
	Status     GateStatus      `json:"status"`
	CaseID     string          `json:"caseId,omitempty"`
	Error      string          `json:"error,omitempty"`    // what failed, masked
	Agent      *Escalation     `json:"agent,omitempty"`    // what the own agent said
	Builtin    *Escalation     `json:"builtin,omitempty"`  // what the built-in said
	Proposal   json.RawMessage `json:"proposal,omitempty"` // what is to be approved
	OpenedAt   time.Time       `json:"openedAt"`
	ExpiresAt  time.Time       `json:"expiresAt"`
	RemindAt   *time.Time      `json:"remindAt,omitempty"`    // the next reminder's instant
	Every      int64           `json:"remindEvery,omitempty"` // seconds between reminders
	Reminded   int             `json:"reminded,omitempty"`    // reminders so far
	AnsweredAt *time.Time      `json:"answeredAt,omitempty"`
	AnsweredBy string          `json:"answeredBy,omitempty"` // a person's id
	Answer     *GateAnswer     `json:"answer,omitempty"`
	Claim      *Claim          `json:"-"` // who works on it, where that was read too
}

// Claim says who works on a case that waits in the inbox, and until when. It
// keeps other agents off the case, and never the gate's time-out. A person may
// answer the gate all the same.
type Claim struct {
	GateID    string
	Workspace string
	Holder    string // the key's id
	Name      string // what the holder calls itself; one key may have several
	ClaimedAt time.Time
	ExpiresAt time.Time
}

// By names the holder for people.
func (c Claim) By() string {
	if c.Name == "" {
		return c.Holder
	}
	return c.Name + " (" + c.Holder + ")"
}

// Due is when the gate has something to be done if nobody answers it: a
// reminder, or what follows when its time is over.
func (g *Gate) Due() time.Time {
	if g.RemindAt != nil && g.RemindAt.Before(g.ExpiresAt) {
		return *g.RemindAt
	}
	return g.ExpiresAt
}

// GateAnswer is what a person, or for the inbox an agent, answers a gate.
type GateAnswer struct {
	Answer        string          `json:"answer" enum:"approve,refuse,action,output,edit,hint,skip,fail" doc:"What to do."`
	Reason        string          `json:"reason,omitempty" doc:"Why; kept on the record."`
	Output        json.RawMessage `json:"output,omitempty" doc:"With output: the step's output."`
	Modifications json.RawMessage `json:"modifications,omitempty" doc:"With edit: as in retry_with_params; {} retries as it is."`
	Hint          string          `json:"hint,omitempty" doc:"With hint: shown to the responders as human_hint."`
	Action        json.RawMessage `json:"action,omitempty" doc:"With action: one of the five recovery actions."`
}
