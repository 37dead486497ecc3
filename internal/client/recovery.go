package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"

	"github.com/longstop-dev/longstop/internal/flow"
)

// GateFilter narrows a list of gates; "" stands for all.
type GateFilter struct {
	Page
	Status string
	RunID  string
}

// Gates lists gates in the order they opened.
func (c *Client) Gates(ctx context.Context, f GateFilter) (*List[flow.Gate], error) {
	q := with(with(f.query(), "status", f.Status), "runId", f.RunID)
	return send[List[flow.Gate]](ctx, c, http.MethodGet, "/v1/gates", q, nil)
}

// Gate gives a gate.
func (c *Client) Gate(ctx context.Context, id string) (*flow.Gate, error) {
	return send[flow.Gate](ctx, c, http.MethodGet, at("/v1/gates/", id, ""), nil, nil)
}

// AnswerGate answers a gate; conflict if it is closed or was answered.
func (c *Client) AnswerGate(ctx context.Context, id string, a flow.GateAnswer) (*flow.Gate, error) {
	return send[flow.Gate](ctx, c, http.MethodPost, at("/v1/gates/", id, "/answer"), nil, a)
}

// CaseFilter narrows a list of cases; "" stands for all.
type CaseFilter struct {
	Page
	RunID    string
	Observed bool // only those about which the own agent was observed
}

// Cases lists cases, newest first.
func (c *Client) Cases(ctx context.Context, f CaseFilter) (*List[flow.Case], error) {
	q := with(f.query(), "runId", f.RunID)
	if f.Observed {
		q = with(q, "observed", "true")
	}
	return send[List[flow.Case]](ctx, c, http.MethodGet, "/v1/cases", q, nil)
}

// Observed sums up what observed agents would have done: the newest observed
// cases, of one workflow if it is not "", as many as cases says (0 for the
// server's default).
func (c *Client) Observed(ctx context.Context, workflow string, cases int) (*Observed, error) {
	q := with(url.Values{}, "workflow", workflow)
	if cases > 0 {
		q = with(q, "cases", strconv.Itoa(cases))
	}
	return send[Observed](ctx, c, http.MethodGet, "/v1/cases/observed", q, nil)
}

// Case gives a case.
func (c *Client) Case(ctx context.Context, id string) (*flow.Case, error) {
	return send[flow.Case](ctx, c, http.MethodGet, at("/v1/cases/", id, ""), nil, nil)
}

// ModelUsage lists what the built-in model has used, newest day first.
func (c *Client) ModelUsage(ctx context.Context, p Page) (*List[flow.ModelDay], error) {
	return send[List[flow.ModelDay]](ctx, c, http.MethodGet, "/v1/model/usage", p.query(), nil)
}

// ReplayCase asks an agent about a case again; nothing is applied.
func (c *Client) ReplayCase(ctx context.Context, id string, agent Agent) (*Replay, error) {
	return send[Replay](ctx, c, http.MethodPost, at("/v1/cases/", id, "/replay"), nil, agent)
}

// TestAgent tries an agent with a failure: a RecoveryToolInput, or the
// server's own sample if input is nil.
func (c *Client) TestAgent(ctx context.Context, agent Agent, input json.RawMessage) (*Trial, error) {
	return send[Trial](ctx, c, http.MethodPost, "/v1/agents/test", nil, struct {
		Agent
		Input json.RawMessage `json:"input,omitempty"`
	}{agent, input})
}

// RecoverySchema gives the contract of recovery agents.
func (c *Client) RecoverySchema(ctx context.Context) (*Contract, error) {
	return send[Contract](ctx, c, http.MethodGet, "/v1/recovery/schema", nil, nil)
}
