package engine

import (
	"encoding/json"
	"time"

	"github.com/longstop-dev/longstop/internal/flow"
)

// Page narrows every list: answers are {items, next}, and next is the cursor
// of the following page, "" at the end.
type Page struct {
	Limit int    `query:"limit" minimum:"1" maximum:"500" default:"50" doc:"Items on a page."`
	After string `query:"after" doc:"The cursor that the page before gave as next."`
}

// List is a page of a list.
type List[T any] struct {
	Items []T    `json:"items"`
	Next  string `json:"next" doc:"Cursor of the next page; empty at the end."`
}

// WorkflowView is a workflow or one of its versions.
type WorkflowView struct {
	Name       string          `json:"name"`
	VersionID  string          `json:"versionId"`
	Number     int             `json:"number" doc:"0 for a version that was never published."`
	Published  bool            `json:"published" doc:"Whether new runs use it."`
	Digest     string          `json:"digest,omitempty" doc:"SHA-256 of the source, hex."`
	Author     string          `json:"author,omitempty"`
	UpdatedAt  time.Time       `json:"updatedAt"`
	Source     string          `json:"source,omitempty" doc:"The definition as it was written."`
	Definition json.RawMessage `json:"definition,omitempty" doc:"The definition, checked and numbered."`
	Warnings   []flow.Problem  `json:"warnings,omitempty"`
}

// CreateWorkflowIn is a definition, in YAML or JSON.
type CreateWorkflowIn struct {
	Filename string `query:"filename" doc:"Named in errors."`
	Once
	Publish bool   `query:"publish" default:"true" doc:"False keeps an unpublished version, found by its content."`
	RawBody []byte `contentType:"application/yaml"`
}

// ValidateOut says that a definition is valid and what it holds.
type ValidateOut struct {
	Valid bool   `json:"valid"`
	Name  string `json:"name"`
	Steps int    `json:"steps"`
}

// PrevalidateIn is a description of a workflow.
type PrevalidateIn struct {
	Markdown string
}

// WorkflowIn names a workflow.
type WorkflowIn struct {
	Name string `path:"name"`
}

// VersionsIn lists a workflow's versions, newest first.
type VersionsIn struct {
	Page
	Name string `path:"name"`
}

// VersionIn names a version of a workflow.
type VersionIn struct {
	Name    string `path:"name"`
	Version string `path:"version" doc:"Its number, or its id."`
}

// PublishIn publishes a version that is stored.
type PublishIn struct {
	Name string `path:"name"`
	Body struct {
		Version string `json:"version,omitempty" minLength:"1" doc:"A version's number or id; the newest number if absent."`
	}
}

// StartRunIn starts a run.
type StartRunIn struct {
	Name string `path:"name"`
	Once
	Body struct {
		Input     json.RawMessage `json:"input,omitempty" doc:"Checked against the workflow's input schema; {} if absent."`
		VersionID string          `json:"versionId,omitempty" minLength:"1" doc:"A stored version instead of the published one."`
		Version   int             `json:"version,omitempty" minimum:"1" doc:"The number of a version instead of the published one."`
	}
}

// RunIn names a run.
type RunIn struct {
	ID string `path:"id"`
}

// RetryIn has a failed run go on.
type RetryIn struct {
	ID   string `path:"id"`
	Body struct {
		Hint string `json:"hint,omitempty" maxLength:"4000" doc:"Told to whoever is asked if the step fails again, as human_hint."`
	}
}

// RerunIn starts a run again.
type RerunIn struct {
	ID string `path:"id"`
	Once
	Body struct {
		From    string          `json:"from,omitempty" minLength:"1" doc:"The step to begin with, by its id or index: what earlier steps gave is carried over. The first step if absent."`
		Input   json.RawMessage `json:"input,omitempty" doc:"Instead of the run's own input."`
		Version string          `json:"version,omitempty" minLength:"1" doc:"pinned (the run's own, which is the default), newest (the published one), a version's number, or a stored version's id."`
	}
}

// ListRunsIn narrows the list of runs, newest first.
type ListRunsIn struct {
	Page
	Workflow string `query:"workflow"`
	Status   string `query:"status" enum:"queued,running,waiting,succeeded,failed,cancelled"`
}

// RunView is a run as every face shows it.
type RunView struct {
	ID         string          `json:"id"`
	Workflow   string          `json:"workflow"`
	VersionID  string          `json:"versionId"`
	Status     flow.RunStatus  `json:"status"`
	Input      json.RawMessage `json:"input,omitempty"`
	Output     json.RawMessage `json:"output,omitempty"`
	Error      string          `json:"error,omitempty"`
	Author     string          `json:"author"`
	CreatedAt  time.Time       `json:"createdAt"`
	FinishedAt *time.Time      `json:"finishedAt,omitempty"`
	WakeAt     *time.Time      `json:"wakeAt,omitempty" doc:"When a waiting run is due."`
	Seq        int64           `json:"seq" doc:"The last event's sequence number."`
	RerunOf    string          `json:"rerunOf,omitempty" doc:"The run that this one was started again from."`
	RerunFrom  string          `json:"rerunFrom,omitempty" doc:"Then: the step that it began with; absent for the first."`
	Reruns     []string        `json:"reruns,omitempty" doc:"The runs that were started again from this one."`
	Steps      []StepView      `json:"steps,omitempty"`
	Gates      []flow.Gate     `json:"gates,omitempty" doc:"Those that are open."`
}

// StepView is a step instance as every face shows it.
type StepView struct {
	Index          int             `json:"index"`
	Iteration      string          `json:"iteration,omitempty"`
	ID             string          `json:"id"`
	Type           string          `json:"type"`
	Title          string          `json:"title,omitempty"`
	Status         flow.StepStatus `json:"status"`
	Output         json.RawMessage `json:"output,omitempty"`
	Error          string          `json:"error,omitempty"`
	RecoverySource flow.Source     `json:"recovery_source"`
	Message        string          `json:"message,omitempty"`
	CarriedFrom    string          `json:"carriedFrom,omitempty" doc:"The run whose output this is: the step was not executed in this one."`
	Attempts       int             `json:"attempts"`
	StartedAt      *time.Time      `json:"startedAt,omitempty"`
	FinishedAt     *time.Time      `json:"finishedAt,omitempty"`
}

// RecordsIn reads a run's events or logs from a sequence number on.
type RecordsIn struct {
	ID    string `path:"id"`
	After int64  `query:"after" minimum:"0" doc:"Only those with a higher sequence number."`
	Limit int    `query:"limit" minimum:"1" maximum:"1000" default:"500"`
}

// CancelIn cancels a run.
type CancelIn struct {
	ID string `path:"id"`
}

// AnswerGateIn answers a gate.
type AnswerGateIn struct {
	ID   string `path:"id"`
	Body flow.GateAnswer
}
