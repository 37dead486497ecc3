package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"time"

	"github.com/longstop-dev/longstop/internal/flow"
)

// RetryRun goes on with a failed run from the step that failed. The hint, if
// there is one, is told to whoever is asked when the step fails again.
func (c *Client) RetryRun(ctx context.Context, id, hint string) (*Run, error) {
	body := map[string]string{}
	if hint != "" {
		body["hint"] = hint
	}
	return send[Run](ctx, c, http.MethodPost, at("/v1/runs/", id, "/retry"), nil, body)
}

// Rerun says how a run is started again.
type Rerun struct {
	From    string          `json:"from,omitempty"`    // a step's id or index; "" for the first
	Input   json.RawMessage `json:"input,omitempty"`   // nil for the old run's
	Version string          `json:"version,omitempty"` // pinned ("" too), newest, or a version's number or id
	Key     string          `json:"-"`                 // sent again under the same key within 24 hours, nothing more is made
}

// RerunRun starts a new run from any step of an old one.
func (c *Client) RerunRun(ctx context.Context, id string, how Rerun) (*Run, error) {
	b, err := jsonBody(how)
	if err != nil {
		return nil, err
	}
	return create[Run](ctx, c, at("/v1/runs/", id, "/rerun"), nil, b, how.Key)
}

// CompareRuns says what differs between two runs.
func (c *Client) CompareRuns(ctx context.Context, a, b string) (*Comparison, error) {
	return send[Comparison](ctx, c, http.MethodGet, at("/v1/runs/", a, "/compare/")+url.PathEscape(b), nil, nil)
}

// Comparison is what differs between two runs, step by step.
type Comparison struct {
	A      RunHead        `json:"a"`
	B      RunHead        `json:"b"`
	Same   bool           `json:"same"`
	Input  []Difference   `json:"input,omitempty"`
	Output []Difference   `json:"output,omitempty"`
	Steps  []StepCompared `json:"steps"`
}

// RunHead is a run without what it was given and gave.
type RunHead struct {
	ID         string         `json:"id"`
	Workflow   string         `json:"workflow"`
	VersionID  string         `json:"versionId"`
	Status     flow.RunStatus `json:"status"`
	Error      string         `json:"error,omitempty"`
	CreatedAt  time.Time      `json:"createdAt"`
	DurationMS *float64       `json:"durationMs,omitempty"`
	RerunOf    string         `json:"rerunOf,omitempty"`
}

// StepCompared is a step of two runs; a side is nil if its run has no such
// step.
type StepCompared struct {
	ID        string       `json:"id"`
	Iteration string       `json:"iteration,omitempty"`
	Type      string       `json:"type"`
	Title     string       `json:"title,omitempty"`
	Same      bool         `json:"same"`
	A         *StepSide    `json:"a,omitempty"`
	B         *StepSide    `json:"b,omitempty"`
	Output    []Difference `json:"output,omitempty"`
}

// StepSide is a step in one of two runs.
type StepSide struct {
	Index          int             `json:"index"`
	Status         flow.StepStatus `json:"status"`
	DurationMS     *float64        `json:"durationMs,omitempty"`
	Attempts       int             `json:"attempts"`
	RecoverySource flow.Source     `json:"recovery_source"`
	Error          string          `json:"error,omitempty"`
	CarriedFrom    string          `json:"carriedFrom,omitempty"`
}

// Difference is one place where two JSON values differ; nil is absent.
type Difference struct {
	Path string          `json:"path"`
	A    json.RawMessage `json:"a,omitempty"`
	B    json.RawMessage `json:"b,omitempty"`
}
