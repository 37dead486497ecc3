package recovery

import (
	"context"
	"encoding/json"
	"net/url"
	"regexp"
	"time"

	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/secret"
)

// TrialResult is what came of asking an agent without applying its answer.
type TrialResult struct {
	Agent      string          `json:"agent" doc:"Who was asked."`
	Found      flow.Sighting   `json:"found" doc:"Its card, or its tools."`
	Sent       bool            `json:"sent" doc:"Whether a failure was sent to it."`
	DurationMS float64         `json:"durationMs" doc:"From the request to the answer; the card or the list of tools included."`
	Action     json.RawMessage `json:"action,omitempty" doc:"What it answered, masked."`
	Valid      bool            `json:"valid" doc:"Whether the answer would be applied."`
	Rejection  string          `json:"rejection,omitempty" doc:"Why not."`
	Notes      []string        `json:"notes,omitempty" doc:"What would be ignored, dropped or changed in it."`
}

// Sample is the failure that agents are tried with: the recovery
// specification's HTTP 429.
func Sample() flow.RecoveryInput {
	var in flow.RecoveryInput
	_ = json.Unmarshal([]byte(sampleInput), &in) // embedded, and checked by a test
	return in
}

// Try asks one agent about a failure and checks what it answers as if it were
// applied. Of the case it takes the input and, where there are any, the
// response that the step got and its output contract. Nothing is applied or
// recorded. The error is about the workspace; what is wrong with the agent
// stands in the result.
func (d *Desk) Try(ctx context.Context, workspace string, agent flow.AgentRef, k flow.Case) (TrialResult, error) {
	masker, err := d.c.Secrets.Masker(ctx, workspace)
	if err != nil {
		return TrialResult{}, err
	}
	k = secret.Masked(masker, k) // it may have been frozen before something in it was a secret
	id, in, contract := d.c.NewID("trial"), k.Input, k.Contract
	f := flow.Failure{
		Run: flow.Run{ID: id, Workspace: workspace, Input: in.WorkflowInput},
		Step: &flow.Step{Index: in.Step.Index, Type: in.Step.Type, Title: in.Step.Title, Intent: in.Step.Intent,
			Config: templated(in.Step.Config), Output: contract, Timeout: flow.DefaultTimeout},
		Config: in.Step.Config,
		Failed: flow.Failed{Error: in.Error, Response: k.Response},
		Left:   flow.DefaultTotalTimeout,
	}
	s, err := d.sit(ctx, f, flow.Case{ID: id, Workspace: workspace, RunID: id, StepIndex: in.Step.Index, Input: in, Response: k.Response})
	if err != nil {
		return TrialResult{}, err
	}
	s.trial = true
	who := tried{trier: d.c.Trier, agent: agent, seen: make(chan flow.Sighting, 1)}
	p, why := s.consult(ctx, &who, flow.SourceBYOA)
	part := s.kase.Asked[0]
	result := TrialResult{Agent: part.Target, Found: who.sighting(), DurationMS: part.DurationMS, Action: part.Action,
		Valid: p != nil, Rejection: why, Notes: part.Notes}
	if result.Agent == "" {
		result.Agent = name(agent)
	}
	result.Sent = result.Found.Found
	if p != nil && p.action.Type == flow.ActionFixedOutput && len(contract) == 0 {
		result.Notes = append(result.Notes, "a step with an output contract would hold this output to it")
	}
	return result, nil
}

var placeholder = regexp.MustCompile(`\[secret:([A-Za-z0-9_]+)\]`)

// templated writes the place-holders of secrets in a case's config as the
// templates that they were: a case does not keep those.
func templated(config json.RawMessage) json.RawMessage {
	return placeholder.ReplaceAll(config, []byte("{{ secrets.$1 }}"))
}

// sameHost reports whether a URL stays at the host that a request went to.
func sameHost(to string, request *flow.ResolvedRequest) bool {
	if request == nil {
		return false
	}
	a, errA := url.Parse(to)
	b, errB := url.Parse(request.URL)
	return errA == nil && errB == nil && a.Scheme == b.Scheme && a.Host == b.Host
}

func name(agent flow.AgentRef) string {
	switch {
	case agent.URL != "":
		return "a2a"
	case agent.Server != "":
		return "mcp:" + agent.Server
	}
	return "command"
}

// tried is an agent under trial, as a responder.
type tried struct {
	trier Trier
	agent flow.AgentRef
	seen  chan flow.Sighting // holds one: it may come when nobody waits any more
}

// Name is the kind of the agent.
func (t *tried) Name() string {
	if t.agent.URL != "" {
		return "a2a"
	}
	return "mcp"
}

// Ask tries the agent.
func (t *tried) Ask(ctx context.Context, q flow.Question) (flow.Answer, error) {
	seen, answer, err := t.trier.Try(ctx, t.agent, q)
	t.seen <- seen
	return answer, err
}

// sighting is what the trier has seen. One whose time is over comes back at
// once; one that does not come back even so has seen nothing.
func (t *tried) sighting() flow.Sighting {
	select {
	case seen := <-t.seen:
		return seen
	case <-time.After(time.Second):
		return flow.Sighting{Kind: t.Name(), Problem: "it did not answer in time"}
	}
}
