package flow

import (
	"encoding/json"
	"strconv"
	"time"
)

// Run is one execution of a workflow version.
type Run struct {
	ID         string
	Workspace  string
	Workflow   string // the definition's name
	VersionID  string // the stored version that the run is pinned to
	Status     RunStatus
	Version    int64  // grows by one with every Change
	Owner      string // the node that drives it, "" when nobody does
	Epoch      int64  // grows with every claim; a Change of an older epoch is refused
	Seq        int64  // the last event's sequence number
	Current    string // the step instances at work, or of a waiting run the parked ones, as StepKey texts joined by commas
	Input      json.RawMessage
	Output     json.RawMessage
	Error      string // masked; "" unless failed
	Author     string // the person who started it
	CreatedAt  time.Time
	FinishedAt time.Time // zero until finished
	WakeAt     time.Time // when the first of its parked steps is due, also while others are at work; zero if none is parked
	WakeSeq    int64     // a wake-up with another number is stale
	RerunOf    string    // the run that this one was started again from, "" if none
	RerunFrom  string    // then: the id of the step that it began with, "" for the first
}

// RunFilter narrows a list of runs.
type RunFilter struct {
	Workspace string
	Workflow  string // "" for all
	Status    string // "" for all
	Before    string // a run id: only older ones, "" from the newest on
	Limit     int
}

// StepKey names a step instance within its run.
type StepKey struct {
	Index     int
	Iteration string // "" outside loops, else a path such as "2.0"
}

// String is the index, and after an @ the iteration where there is one.
func (k StepKey) String() string {
	if k.Iteration == "" {
		return strconv.Itoa(k.Index)
	}
	return strconv.Itoa(k.Index) + "@" + k.Iteration
}

// StepInstance is a step inside a run: its checkpoint.
type StepInstance struct {
	StepKey
	Status         StepStatus
	Output         json.RawMessage // masked; null JSON is a value, nil is none
	Error          string          // of the last attempt, masked
	RecoverySource Source          // whose action was applied last
	Message        string          // what recovery or a person said, masked
	Attempts       int             // executions in all
	StartedAt      time.Time
	FinishedAt     time.Time
	Progress       Progress
}

// Source says who mended a step.
type Source string

// The sources. SourceNone is JSON null.
const (
	SourceNone    Source = ""
	SourceBYOA    Source = "byoa"    // the workspace's own agent
	SourceBuiltin Source = "builtin" // the built-in provider
	SourceHuman   Source = "human"   // a person
)

// MarshalJSON writes SourceNone as null.
func (s Source) MarshalJSON() ([]byte, error) {
	if s == SourceNone {
		return []byte("null"), nil
	}
	return json.Marshal(string(s))
}

// UnmarshalJSON reads null as SourceNone.
func (s *Source) UnmarshalJSON(b []byte) error {
	var v *string
	if err := json.Unmarshal(b, &v); err != nil {
		return err
	}
	*s = SourceNone
	if v != nil {
		*s = Source(*v)
	}
	return nil
}

// Phase says what a step instance that is not done is about to do: where a
// driver takes it up after a restart.
type Phase string

// The phases.
const (
	PhaseAttempt    Phase = ""           // execute
	PhaseBackoff    Phase = "backoff"    // wait, then execute (tier 1, or a mend that asked for a pause)
	PhaseRecovering Phase = "recovering" // a case is frozen; ask the responders
	PhaseGated      Phase = "gated"      // parked at a gate
	PhaseWaiting    Phase = "waiting"    // the step suspended itself until a time
	PhaseNested     Phase = "nested"     // its nested steps run
	PhaseAwaiting   Phase = "awaiting"   // parked until something outside is there
)

// Progress is what a step instance must remember to be taken up again. It is
// stored as JSON and holds no secret.
type Progress struct {
	Phase    Phase           `json:"phase,omitempty"`
	Tries    int             `json:"tries,omitempty"`    // attempts in the present round, for tier 1
	Episode  int             `json:"episode,omitempty"`  // a person's retry or hint opens the next
	Round    int             `json:"round,omitempty"`    // recovery attempts spent in this episode
	Mends    int             `json:"mends,omitempty"`    // applied mends and people's retries: -m<n> of the idempotency key
	Mods     json.RawMessage `json:"mods,omitempty"`     // merged onto the resolved config: RFC 7396; may hold [secret:NAME]
	Dropped  []string        `json:"dropped,omitempty"`  // JSON pointers into config that a new origin loses
	Tool     *ToolCall       `json:"tool,omitempty"`     // call this instead of the step
	Source   Source          `json:"source,omitempty"`   // whose mend is on trial
	CaseID   string          `json:"caseId,omitempty"`   // the case that is being answered
	GateID   string          `json:"gateId,omitempty"`   // the gate it is parked at
	Hint     string          `json:"hint,omitempty"`     // a person's hint for this episode
	Branch   string          `json:"branch,omitempty"`   // the nested list that was chosen, or AllBranches
	Stopped  bool            `json:"stopped,omitempty"`  // its run failed at another step meanwhile: a retry takes it up here
	DueAt    *time.Time      `json:"dueAt,omitempty"`    // end of a back-off, of a wait or of the gate's time
	Deadline *time.Time      `json:"deadline,omitempty"` // end of total_timeout while its clock runs
	Left     time.Duration   `json:"left,omitempty"`     // what is left of it while a gate stops the clock
	Failure  *Failed         `json:"failure,omitempty"`  // the last failure
	Agent    *Escalation     `json:"agent,omitempty"`    // what the own agent said when it called for a person
	Await    *Awaited        `json:"await,omitempty"`    // what it awaits, also while somebody asks back
	Carried  string          `json:"carried,omitempty"`  // the run whose checkpoint this is: the step was not executed in this one
}

// Failed is a failure as a step instance remembers it, masked.
type Failed struct {
	Error    string    `json:"error"`              // the exact text that a responder is shown
	Kind     ErrorKind `json:"kind"`               // what kind of failure
	Response *Response `json:"response,omitempty"` // the answer that was not good enough, if there was one
}

// Escalation is a call for a person: whose, and what they said.
type Escalation struct {
	Diagnosis  string `json:"diagnosis"`
	Suggestion string `json:"suggestion,omitempty"`
}

// Response is what an outsider answered a step, bounded and masked.
type Response struct {
	Status int               `json:"status"`
	Header map[string]string `json:"header,omitempty"` // canonical names, first values, only what recovery reads
	Body   string            `json:"body,omitempty"`   // at most 64 KiB
}

// ErrorKind sorts failures by what may be done about them.
type ErrorKind string

// The kinds.
const (
	KindTransient ErrorKind = "transient" // the same request may succeed later: network, 408, 425, 429, 5xx
	KindTimeout   ErrorKind = "timeout"   // the attempt ran out of time
	KindRefused   ErrorKind = "refused"   // the same request will be refused again: other 4xx
	KindTemplate  ErrorKind = "template"  // a template or condition could not be evaluated
	KindContract  ErrorKind = "contract"  // the output does not satisfy the step's contract
	KindEgress    ErrorKind = "egress"    // the egress guard refused the call
	KindTooLarge  ErrorKind = "too_large" // over a size limit
	KindTool      ErrorKind = "tool"      // a tool answered with an error
	KindConfig    ErrorKind = "config"    // the resolved config is not valid
	KindInternal  ErrorKind = "internal"  // ours
)

// StepError is how a step type fails. Message is the exact error string.
type StepError struct {
	Kind       ErrorKind
	Message    string
	RetryAfter time.Duration // what the outsider asked for, 0 if nothing
	Response   *Response
	Err        error // the cause: logged, never shown
}

// Error is the message.
func (e *StepError) Error() string { return e.Message }

// Unwrap gives the cause.
func (e *StepError) Unwrap() error { return e.Err }

// Retryable reports whether tier 1 may send the same request again.
func (e *StepError) Retryable() bool {
	return e.Kind == KindTransient || e.Kind == KindTimeout || e.Kind == KindTool
}
