package flow

import (
	"encoding/json"
	"time"
)

// Change is one transition of a run: everything that is written together or
// not at all. Run is the row as it shall be, with Version already grown by
// one; the store applies the Change only if the stored row still has
// Version-1 and the same Epoch (Run.Version 1 creates the row), and answers
// an [Error] with [CodeStale] otherwise.
type Change struct {
	Run     Run
	Claim   bool // the Change takes the run over: Epoch has grown by one too
	Steps   []StepInstance
	Events  []Event
	Logs    []Log
	Gates   []Gate   // opened, or closed by their new Status
	Cases   []Case   // opened or brought up to date
	Notices []Notice // to be told outside
	Audit   []Audit  // who has caused it, if it was somebody and not the run itself
	Once    *Once    // with a Change that creates its run: the key it is remembered by, conflict if that is taken
}

// Event is an entry of a run's live record: what happened, in order. Type is
// one of run:*, step:* and gate:*.
type Event struct {
	Seq       int64           `json:"seq"`
	Type      string          `json:"type"`
	At        time.Time       `json:"at"`
	StepIndex *int            `json:"stepIndex,omitempty"`
	Iteration string          `json:"iteration,omitempty"`
	Data      json.RawMessage `json:"data,omitempty"` // an object
}

// The event types.
const (
	EventRunStarted   = "run:started"
	EventRunWaiting   = "run:waiting"
	EventRunResumed   = "run:resumed"
	EventRunSucceeded = "run:succeeded"
	EventRunFailed    = "run:failed"
	EventRunCancelled = "run:cancelled"

	EventStepStarted   = "step:started"
	EventStepSucceeded = "step:succeeded"
	EventStepFailed    = "step:failed"    // for good
	EventStepRetrying  = "step:retrying"  // tier 1: after a back-off
	EventStepRecovery  = "step:recovery"  // a case is frozen, the responders are asked
	EventStepAdapting  = "step:adapting"  // recovery has decided
	EventStepSuspended = "step:suspended" // waits for a time
	EventStepSkipped   = "step:skipped"

	EventGateOpened   = "gate:opened"
	EventGateAnswered = "gate:answered"
	EventGateReminded = "gate:reminded" // it waits still
	EventGateExpired  = "gate:expired"
	EventGateClosed   = "gate:closed" // with its run
)

// Log is a row of a run's step log: an attempt that ended, or something that
// recovery or a person did to the step.
type Log struct {
	Seq            int64      `json:"seq"` // of the event that it belongs to
	At             time.Time  `json:"at"`
	StepIndex      int        `json:"stepIndex"`
	Iteration      string     `json:"iteration,omitempty"`
	StepID         string     `json:"stepId"`
	Type           string     `json:"type"`
	Title          string     `json:"title,omitempty"`
	Attempt        int        `json:"attempt"` // from 1, in all
	Status         string     `json:"status"`  // succeeded failed retrying recovering adapted waiting reminded skipped console carried
	RecoverySource Source     `json:"recovery_source"`
	Message        string     `json:"message,omitempty"`
	Error          string     `json:"error,omitempty"`
	StartedAt      *time.Time `json:"startedAt,omitempty"`
	DurationMS     float64    `json:"durationMs"`
}

// Wakeup says when a parked run is due. A wake-up whose Seq is not the run's
// WakeSeq does nothing.
type Wakeup struct {
	RunID string
	Seq   int64
	At    time.Time
}

// Wakeup gives the run's wake-up, and whether it has one.
func (r *Run) Wakeup() (Wakeup, bool) {
	return Wakeup{RunID: r.ID, Seq: r.WakeSeq, At: r.WakeAt}, !r.WakeAt.IsZero()
}
