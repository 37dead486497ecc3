package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"

	"github.com/longstop-dev/longstop/internal/flow"
)

func (p Page) query() url.Values {
	q := url.Values{}
	if p.Limit > 0 {
		q.Set("limit", strconv.Itoa(p.Limit))
	}
	return with(q, "after", p.After)
}

// with adds a parameter that is not empty.
func with(q url.Values, name, value string) url.Values {
	if value != "" {
		q.Set(name, value)
	}
	return q
}

// at fills the %s of a path.
func at(before, name, after string) string { return before + url.PathEscape(name) + after }

// definition is a workflow's text as it is sent.
func definition(source []byte) *body { return &body{"application/yaml", source} }

// Definition is a workflow's text, and the name of its file for errors.
type Definition struct {
	Source      []byte // YAML or JSON
	Filename    string
	Unpublished bool   // keep it as a version found by its content; new runs do not use it
	Key         string // sent again under the same key within 24 hours, nothing more is made
}

// CreateWorkflow publishes a definition as the workflow's next version, or
// keeps it unpublished.
func (c *Client) CreateWorkflow(ctx context.Context, d Definition) (*Workflow, error) {
	q := with(url.Values{}, "filename", d.Filename)
	if d.Unpublished {
		q.Set("publish", "false")
	}
	return create[Workflow](ctx, c, "/v1/workflows", q, definition(d.Source), d.Key)
}

// ValidateWorkflow checks a definition and stores nothing.
func (c *Client) ValidateWorkflow(ctx context.Context, d Definition) (*Validation, error) {
	return exchange[Validation](ctx, c, http.MethodPost, "/v1/workflows/validate", with(url.Values{}, "filename", d.Filename), definition(d.Source))
}

// Workflows lists the published workflows.
func (c *Client) Workflows(ctx context.Context, p Page) (*List[Workflow], error) {
	return send[List[Workflow]](ctx, c, http.MethodGet, "/v1/workflows", p.query(), nil)
}

// Workflow gives a workflow's published version.
func (c *Client) Workflow(ctx context.Context, name string) (*Workflow, error) {
	return send[Workflow](ctx, c, http.MethodGet, at("/v1/workflows/", name, ""), nil, nil)
}

// Versions lists a workflow's numbered versions, newest first, without texts.
func (c *Client) Versions(ctx context.Context, workflow string, p Page) (*List[Workflow], error) {
	return send[List[Workflow]](ctx, c, http.MethodGet, at("/v1/workflows/", workflow, "/versions"), p.query(), nil)
}

// Version gives a version of a workflow by its number or its id.
func (c *Client) Version(ctx context.Context, workflow, version string) (*Workflow, error) {
	return send[Workflow](ctx, c, http.MethodGet, at("/v1/workflows/", workflow, "/versions/")+url.PathEscape(version), nil, nil)
}

// PublishWorkflow has new runs use a stored version: a number or an id, "" for
// the newest number.
func (c *Client) PublishWorkflow(ctx context.Context, workflow, version string) (*Workflow, error) {
	body := map[string]string{}
	if version != "" {
		body["version"] = version
	}
	return send[Workflow](ctx, c, http.MethodPost, at("/v1/workflows/", workflow, "/publish"), nil, body)
}

// UnpublishWorkflow has a workflow start no new runs; versions and runs stay.
func (c *Client) UnpublishWorkflow(ctx context.Context, workflow string) (*Workflow, error) {
	return send[Workflow](ctx, c, http.MethodPost, at("/v1/workflows/", workflow, "/unpublish"), nil, nil)
}

// WorkflowSchema gives the JSON Schema of definitions.
func (c *Client) WorkflowSchema(ctx context.Context) (json.RawMessage, error) {
	s, err := send[json.RawMessage](ctx, c, http.MethodGet, "/v1/workflows/schema", nil, nil)
	if err != nil {
		return nil, err
	}
	return *s, nil
}

// StepTypes lists the step types that definitions may use.
func (c *Client) StepTypes(ctx context.Context) (*List[flow.StepType], error) {
	return send[List[flow.StepType]](ctx, c, http.MethodGet, "/v1/step-types", nil, nil)
}

// StartRun says how a run starts.
type StartRun struct {
	Input     json.RawMessage `json:"input,omitempty"`     // {} if absent
	VersionID string          `json:"versionId,omitempty"` // instead of the published version
	Version   int             `json:"version,omitempty"`   // the number of one
	Key       string          `json:"-"`                   // sent again under the same key within 24 hours, nothing more is made
}

// StartRun starts a run of a workflow.
func (c *Client) StartRun(ctx context.Context, workflow string, how StartRun) (*Run, error) {
	b, err := jsonBody(how)
	if err != nil {
		return nil, err
	}
	return create[Run](ctx, c, at("/v1/workflows/", workflow, "/runs"), nil, b, how.Key)
}

// RunFilter narrows a list of runs; "" stands for all.
type RunFilter struct {
	Page
	Workflow string
	Status   string
}

// Runs lists runs, newest first, without inputs, outputs and steps.
func (c *Client) Runs(ctx context.Context, f RunFilter) (*List[Run], error) {
	q := with(with(f.query(), "workflow", f.Workflow), "status", f.Status)
	return send[List[Run]](ctx, c, http.MethodGet, "/v1/runs", q, nil)
}

// Run gives a run with its steps and open gates.
func (c *Client) Run(ctx context.Context, id string) (*Run, error) {
	return send[Run](ctx, c, http.MethodGet, at("/v1/runs/", id, ""), nil, nil)
}

// CancelRun stops a run.
func (c *Client) CancelRun(ctx context.Context, id string) (*Run, error) {
	return send[Run](ctx, c, http.MethodPost, at("/v1/runs/", id, "/cancel"), nil, nil)
}

// Records narrows a run's events or logs: those after a sequence number, at
// most Limit (0 for the server's default).
type Records struct {
	After int64
	Limit int
}

func (r Records) query() url.Values {
	p := Page{Limit: r.Limit}
	if r.After > 0 {
		p.After = strconv.FormatInt(r.After, 10)
	}
	return p.query()
}

// Events gives a page of a run's events; [Client.Follow] follows them.
func (c *Client) Events(ctx context.Context, runID string, r Records) (*List[flow.Event], error) {
	return send[List[flow.Event]](ctx, c, http.MethodGet, at("/v1/runs/", runID, "/events"), r.query(), nil)
}

// Logs gives a page of a run's step log.
func (c *Client) Logs(ctx context.Context, runID string, r Records) (*List[flow.Log], error) {
	return send[List[flow.Log]](ctx, c, http.MethodGet, at("/v1/runs/", runID, "/logs"), r.query(), nil)
}
