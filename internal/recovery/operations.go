package recovery

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/longstop-dev/longstop/internal/flow"
)

// None is the input of an operation that takes none.
type None struct{}

// List is a page of a list; Next is the cursor of the following page.
type List[T any] struct {
	Items []T    `json:"items"`
	Next  string `json:"next" doc:"Cursor of the next page; empty at the end."`
}

// CasesListIn narrows the list of cases, newest first.
type CasesListIn struct {
	RunID    string `query:"runId" doc:"Only those of this run."`
	Observed bool   `query:"observed" doc:"Only those about which your agent was observed; not beside runId."`
	Limit    int    `query:"limit" minimum:"1" maximum:"500" default:"50" doc:"Items on a page."`
	After    string `query:"after" doc:"The cursor that the page before gave as next."`
}

// ModelUsageIn pages through days, newest first.
type ModelUsageIn struct {
	Limit int    `query:"limit" minimum:"1" maximum:"500" default:"50" doc:"Items on a page."`
	After string `query:"after" doc:"The cursor that the page before gave as next."`
}

// CaseIn names a case.
type CaseIn struct {
	ID string `path:"id"`
}

// AgentSpec names the agent to ask.
type AgentSpec struct {
	Agent   string   `json:"agent,omitempty" doc:"The URL of an A2A agent, or mcp:ID of a registered MCP server."`
	Token   string   `json:"token,omitempty" doc:"A bearer token for an agent at a URL; sent to its endpoint only, and not kept."`
	Command []string `json:"command,omitempty" doc:"Instead of agent: an MCP server over stdio, started for this trial (longstop dev and run only)."`
}

// ReplayIn asks an agent about a frozen case again.
type ReplayIn struct {
	ID   string `path:"id"`
	Body AgentSpec
}

// ReplayView is a case asked again: what was answered then, and now.
type ReplayView struct {
	CaseID  string       `json:"caseId"`
	Then    []flow.Asked `json:"then" doc:"Who was asked at the time, and what they answered."`
	Outcome string       `json:"outcome,omitempty" doc:"What became of the case."`
	Now     TrialResult  `json:"now" doc:"What the agent answers today. Nothing of it is applied."`
}

// AgentsTestIn tries an agent with a failure.
type AgentsTestIn struct {
	Body struct {
		AgentSpec
		Input json.RawMessage `json:"input,omitempty" doc:"RecoveryToolInput to send; an HTTP 429 if absent."`
	}
}

// GatesListIn narrows the list of gates, oldest first.
type GatesListIn struct {
	Status string `query:"status" enum:"open,answered,expired,closed"`
	RunID  string `query:"runId" doc:"Only those of this run."`
	Limit  int    `query:"limit" minimum:"1" maximum:"500" default:"50" doc:"Items on a page."`
	After  string `query:"after" doc:"The cursor that the page before gave as next."`
}

// GateIn names a gate.
type GateIn struct {
	ID string `path:"id"`
}

// page settles a page's length.
func page(limit int) int {
	if limit <= 0 {
		return 50
	}
	return min(limit, 500)
}

// paged makes a page of rows, of which one more than limit was read.
func paged[T any](rows []T, limit int, id func(T) string) *List[T] {
	out := &List[T]{Items: rows}
	if len(rows) > limit {
		out.Items = rows[:limit]
		out.Next = id(out.Items[limit-1])
	}
	if out.Items == nil {
		out.Items = []T{}
	}
	return out
}

// CasesList lists the workspace's cases, newest first.
func (d *Desk) CasesList(ctx context.Context, by flow.Caller, in *CasesListIn) (*List[flow.Case], error) {
	limit := page(in.Limit)
	if in.Observed && in.RunID != "" {
		return nil, flow.Errorf(flow.CodeInvalid, "observed and runId cannot be combined").At("observed").Right("one of the two")
	}
	var rows []flow.Case
	var err error
	if in.Observed {
		rows, err = d.c.Observations.ObservedCases(ctx, by.Workspace, in.After, limit+1)
	} else {
		rows, err = d.c.Records.Cases(ctx, by.Workspace, in.RunID, in.After, limit+1)
	}
	if err != nil {
		return nil, err
	}
	out := paged(rows, limit, func(k flow.Case) string { return k.ID })
	seen := latest{}
	for i := range out.Items {
		if err := d.weigh(ctx, &out.Items[i], seen); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// ModelUsage lists what the built-in model has used in the workspace, by day.
func (d *Desk) ModelUsage(ctx context.Context, by flow.Caller, in *ModelUsageIn) (*List[flow.ModelDay], error) {
	limit := page(in.Limit)
	rows, err := d.c.Records.ModelDays(ctx, by.Workspace, in.After, limit+1)
	if err != nil {
		return nil, err
	}
	return paged(rows, limit, func(m flow.ModelDay) string { return m.Day }), nil
}

// CasesGet gives one case; not_found if there is none.
func (d *Desk) CasesGet(ctx context.Context, by flow.Caller, in *CaseIn) (*flow.Case, error) {
	k, err := d.c.Records.Case(ctx, by.Workspace, in.ID)
	if err != nil {
		return nil, err
	}
	return &k, d.weigh(ctx, &k, latest{})
}

// CasesReplay asks an agent about a frozen case. Nothing is applied.
func (d *Desk) CasesReplay(ctx context.Context, by flow.Caller, in *ReplayIn) (*ReplayView, error) {
	agent, err := in.Body.ref()
	if err != nil {
		return nil, err
	}
	k, err := d.c.Records.Case(ctx, by.Workspace, in.ID)
	if err != nil {
		return nil, err
	}
	now, err := d.Try(ctx, by.Workspace, agent, k)
	if err != nil {
		return nil, err
	}
	return &ReplayView{CaseID: k.ID, Then: k.Asked, Outcome: k.Outcome, Now: now}, nil
}

// AgentsTest tries an agent with a sample failure, or with one that is given.
func (d *Desk) AgentsTest(ctx context.Context, by flow.Caller, in *AgentsTestIn) (*TrialResult, error) {
	agent, err := in.Body.ref()
	if err != nil {
		return nil, err
	}
	input := Sample()
	if !absent(in.Body.Input) {
		if input, err = inputOf(in.Body.Input); err != nil {
			return nil, err
		}
	}
	result, err := d.Try(ctx, by.Workspace, agent, flow.Case{Input: input})
	if err != nil {
		return nil, err
	}
	return &result, nil
}

// inputOf reads a case's input that somebody gives.
func inputOf(raw json.RawMessage) (flow.RecoveryInput, error) {
	var in flow.RecoveryInput
	wrong := flow.Errorf(flow.CodeInvalid, "the input is no RecoveryToolInput").At("input").Right("as GET /v1/recovery/schema describes it, or as cases export writes it")
	if r := bounded(raw, 4<<20); r != nil {
		return in, r.problem("input")
	}
	if err := json.Unmarshal(raw, &in); err != nil {
		return in, wrong.Because(err)
	}
	if in.Step.Type == "" || kindOf(in.Step.Config) != "an object" {
		return in, wrong
	}
	if len(in.WorkflowInput) == 0 {
		in.WorkflowInput = json.RawMessage("null")
	}
	return in, nil
}

// ref reads who is to be asked.
func (a AgentSpec) ref() (flow.AgentRef, error) {
	server, isServer := strings.CutPrefix(a.Agent, "mcp:")
	switch {
	case a.Agent != "" && len(a.Command) > 0:
		return flow.AgentRef{}, flow.Errorf(flow.CodeInvalid, "both agent and command are given").At("agent").Right("one of the two")
	case len(a.Command) > 0:
		return flow.AgentRef{Command: a.Command}, nil
	case isServer && server != "":
		return flow.AgentRef{Server: server}, nil
	case strings.HasPrefix(a.Agent, "https://"), strings.HasPrefix(a.Agent, "http://"):
		return flow.AgentRef{URL: a.Agent, Token: a.Token}, nil
	}
	return flow.AgentRef{}, flow.Errorf(flow.CodeInvalid, "%s names no agent", quoted(a.Agent)).At("agent").
		Right("the URL of an A2A agent, mcp:ID of a registered MCP server, or a command")
}

// GatesList lists the workspace's gates in the order they opened.
func (d *Desk) GatesList(ctx context.Context, by flow.Caller, in *GatesListIn) (*List[flow.Gate], error) {
	limit := page(in.Limit)
	rows, err := d.c.Records.Gates(ctx, by.Workspace, in.RunID, in.Status, in.After, limit+1)
	if err != nil {
		return nil, err
	}
	return paged(rows, limit, func(g flow.Gate) string { return g.ID }), nil
}

// GatesGet gives one gate; not_found if there is none.
func (d *Desk) GatesGet(ctx context.Context, by flow.Caller, in *GateIn) (*flow.Gate, error) {
	g, err := d.c.Records.Gate(ctx, by.Workspace, in.ID)
	if err != nil {
		return nil, err
	}
	return &g, nil
}

// RecoverySchema gives the contract of recovery agents.
func (*Desk) RecoverySchema(context.Context, flow.Caller, *None) (*Contract, error) {
	c := Schema()
	return &c, nil
}
