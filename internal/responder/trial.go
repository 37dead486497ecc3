package responder

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/longstop-dev/longstop/internal/a2a"
	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/mcpclient"
)

// Trial asks an agent that is named for the occasion, whatever the settings
// say, and tells what was found where it was looked for.
type Trial struct {
	client AgentClient
	tools  *Tools
}

// NewTrial makes it.
func NewTrial(client AgentClient, tools *Tools) *Trial { return &Trial{client: client, tools: tools} }

// Try asks the agent. An agent at a URL gets the given token; without one the
// token of the settings, if it is the agent that the settings name.
func (t *Trial) Try(ctx context.Context, agent flow.AgentRef, q flow.Question) (flow.Sighting, flow.Answer, error) {
	input, err := json.Marshal(q.Input)
	if err != nil {
		return flow.Sighting{}, flow.Answer{}, failure(flow.AskInvalid, "the case cannot be written as JSON", err)
	}
	switch {
	case agent.URL != "":
		return t.url(ctx, agent, q, input)
	case agent.Server != "":
		return t.registered(ctx, agent, q, input)
	}
	return t.command(ctx, agent, input)
}

func (t *Trial) url(ctx context.Context, agent flow.AgentRef, q flow.Question, input json.RawMessage) (flow.Sighting, flow.Answer, error) {
	seen, answer := flow.Sighting{Kind: "a2a"}, flow.Answer{Target: withoutQuery(agent.URL)}
	card, err := t.client.FetchCard(ctx, agent.URL)
	if err != nil {
		e := asAskError(ctx, agentKind(err), err)
		seen.Problem = e.Message
		return seen, answer, e
	}
	to := endpoint(agent.URL, card)
	seen = flow.Sighting{Found: true, Kind: "a2a", Name: card.Name, Description: card.Description, Endpoint: withoutQuery(to)}
	ask := a2a.RecoveryAsk{URL: agent.URL, Card: card, Token: agent.Token, RunID: q.RunID, StepIndex: q.StepIndex, Input: input}
	if origin, err := a2a.Origin(to); err == nil {
		ask.TokenOrigin = origin
	}
	if s := q.Settings; agent.Token == "" && s.A2AAgentURL == agent.URL {
		ask.Token, ask.TokenOrigin = s.A2AAuthToken, s.A2AOrigin
	}
	if answer.Action, _, err = t.client.Ask(ctx, ask); err != nil {
		return seen, answer, asAskError(ctx, agentKind(err), err)
	}
	return seen, answer, nil
}

func (t *Trial) registered(ctx context.Context, agent flow.AgentRef, q flow.Question, input json.RawMessage) (flow.Sighting, flow.Answer, error) {
	srv, err := t.tools.server(ctx, q.Workspace, agent.Server)
	if err != nil {
		e := askError(ctx, err)
		return flow.Sighting{Kind: "mcp", Name: agent.Server, Problem: e.Message}, flow.Answer{Target: "mcp:" + agent.Server}, e
	}
	return t.mcp(ctx, srv, "mcp:"+agent.Server, input)
}

func (t *Trial) command(ctx context.Context, agent flow.AgentRef, input json.RawMessage) (flow.Sighting, flow.Answer, error) {
	srv := mcpclient.Server{ID: "trial", Transport: "stdio", Command: agent.Command}
	return t.mcp(ctx, srv, agent.Command[0], input)
}

func (t *Trial) mcp(ctx context.Context, srv mcpclient.Server, name string, input json.RawMessage) (flow.Sighting, flow.Answer, error) {
	seen, answer := flow.Sighting{Kind: "mcp", Name: name, Endpoint: withoutQuery(srv.URL)}, flow.Answer{Target: name}
	tools, err := t.tools.pool.Tools(ctx, srv)
	if err != nil {
		e := askError(ctx, err)
		seen.Problem = e.Message
		return seen, answer, e
	}
	seen.Tools = names(tools)
	if !slices.Contains(seen.Tools, ToolName) {
		seen.Problem = noTool(name, seen.Tools)
		return seen, answer, failure(flow.AskUnreachable, seen.Problem, nil)
	}
	seen.Found = true
	for _, tool := range tools {
		if tool.Name == ToolName {
			seen.Description = short(tool.Description, 500)
		}
	}
	r, err := t.tools.pool.Call(ctx, srv, ToolName, input)
	switch {
	case err != nil:
		return seen, answer, askError(ctx, err)
	case r.IsError:
		return seen, answer, failure(flow.AskInvalid, toolError(ToolName, r), nil)
	}
	answer.Action = r.Value()
	return seen, answer, nil
}
