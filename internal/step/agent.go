package step

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/longstop-dev/longstop/internal/flow"
)

// The defaults of an agent step.
const (
	agentTimeout   = 50 * time.Minute
	agentEventType = "workflow.asked"
)

// Vaults asks agents through vaults.
type Vaults interface {
	// Ask appends the asking event, once however often it is called with the
	// same correlation, and gives it with the vault's id. Its errors are
	// [*flow.Error].
	Ask(ctx context.Context, q flow.AgentAsk) (*flow.VaultEvent, error)
	// Answer finds the agent.answered event with a correlation that follows the
	// asking event, since a correlation is anybody's to write; nil for none.
	Answer(ctx context.Context, vault, asked, correlation string) (*flow.VaultEvent, error)
}

// agent asks an agent through a vault and waits for its answer. It costs a row.
type agent struct{ vaults Vaults }

type agentConfig struct {
	Vault        string          `json:"vault" required:"yes" doc:"The vault's id or name: the agent must be connected to it."`
	Scope        string          `json:"scope,omitempty" doc:"One of the vault's. Default: default."`
	Agent        string          `json:"agent" required:"yes" doc:"The agent's id, <pubkey>:<alias>, or its alias."`
	EventType    string          `json:"eventType,omitempty" doc:"The type of the asking event. Default: workflow.asked."`
	Payload      json.RawMessage `json:"payload" required:"yes" doc:"An object: the first of text, message, prompt, question and body is what the agent is told, the rest is data."`
	Timeout      duration        `json:"timeout,omitempty" doc:"How long the answer may take: 10m, 2h; at most 30d. Default: 50m."`
	Conversation string          `json:"conversation,omitempty" doc:"Steps with the same one talk in one Job. Default: one for each run."`
}

// agentState is what the step remembers while it waits.
type agentState struct {
	Vault   string    `json:"vault"` // its id
	Until   time.Time `json:"until"`
	Asked   string    `json:"asked"`            // the id of the asking event
	Answer  string    `json:"answer,omitempty"` // of the agent that asked back
	Replies int       `json:"replies,omitempty"`
}

// Describe describes agent.
func (agent) Describe() flow.StepType {
	return flow.StepType{
		Name: "agent",
		Summary: "Asks an agent through a vault and waits for its answer. Its output is the agent's data, or {\"text\": \"...\"} where it only said something. " +
			"If the agent asks back, the run waits for a person's reply.",
		Config:  schemaOf[agentConfig](),
		Clocked: true,
	}
}

// Run asks, or looks for the answer.
func (a agent) Run(ctx context.Context, c flow.Call) (flow.Outcome, error) {
	config, bad := decode[agentConfig](c)
	if bad != nil {
		return flow.Outcome{}, bad
	}
	limit, bad := config.check()
	if bad != nil {
		return flow.Outcome{}, bad
	}
	if a.vaults == nil {
		return flow.Outcome{}, failf(flow.KindInternal, "agents cannot be asked here")
	}
	if c.Awaited == nil {
		return a.ask(ctx, c, config, config.Payload, agentState{Until: c.Now.Add(limit)})
	}
	var s agentState
	if err := json.Unmarshal(c.Awaited.State, &s); err != nil {
		return flow.Outcome{}, because(failf(flow.KindInternal, "what was asked cannot be read"), err)
	}
	if len(c.Awaited.Reply) > 0 {
		s.Until, s.Replies = c.Now.Add(limit), s.Replies+1
		return a.ask(ctx, c, config, replied(c.Awaited.Reply), s)
	}
	return a.look(ctx, c, config, s)
}

func (config agentConfig) check() (time.Duration, *flow.StepError) {
	payload := bytes.TrimSpace(config.Payload)
	switch {
	case config.Vault == "":
		return 0, failf(flow.KindConfig, "config.vault: the id or name of a vault is needed")
	case config.Agent == "":
		return 0, failf(flow.KindConfig, "config.agent: the id or alias of an agent is needed")
	case absent(payload) || payload[0] != '{' || string(payload) == "{}":
		return 0, failf(flow.KindConfig, "config.payload: an object that says something is needed, such as {\"text\": \"...\"}")
	case config.Timeout == "":
		return agentTimeout, nil
	}
	limit, err := config.Timeout.parse()
	if err != nil || limit < time.Second || limit > maxWait {
		return 0, failf(flow.KindConfig, "config.timeout: must be a duration of 1s to 30d, such as 10m")
	}
	return limit, nil
}

// token is what the answer is found by: the run, the step, and which asking it
// is.
func (s agentState) token(c flow.Call) string {
	parts := []string{c.RunID, strconv.Itoa(c.StepIndex), c.Iteration, "a" + strconv.Itoa(c.Attempt)}
	if s.Replies > 0 {
		parts = append(parts, "r"+strconv.Itoa(s.Replies))
	}
	return strings.Join(parts, "/")
}

// ask appends the asking event and has the step wait.
func (a agent) ask(ctx context.Context, c flow.Call, config agentConfig, payload json.RawMessage, s agentState) (flow.Outcome, error) {
	q := flow.AgentAsk{Workspace: c.Workspace, RunID: c.RunID, Vault: config.Vault, Scope: config.Scope, Agent: config.Agent, EventType: config.EventType,
		Payload: payload, Conversation: config.Conversation, Correlation: s.token(c)}
	if q.EventType == "" {
		q.EventType = agentEventType
	}
	if q.Conversation == "" {
		q.Conversation = "run:" + c.RunID
	}
	if s.Answer != "" {
		q.Parents = []string{s.Answer}
	}
	e, err := a.vaults.Ask(ctx, q)
	if err != nil {
		return flow.Outcome{}, vaultFailure(err)
	}
	s.Vault, s.Asked = e.Vault, e.ID
	return a.look(ctx, c, config, s)
}

// look takes the answer if it is there, and goes on waiting if it is not.
func (a agent) look(ctx context.Context, c flow.Call, config agentConfig, s agentState) (flow.Outcome, error) {
	e, err := a.vaults.Answer(ctx, s.Vault, s.Asked, s.token(c))
	switch {
	case flow.CodeOf(err) == flow.CodeUnavailable && c.Awaited != nil && c.Now.Before(s.Until):
		// It is looked for again later: another attempt would ask a second time.
	case err != nil:
		return flow.Outcome{}, vaultFailure(err)
	case e != nil:
		return toldBy(config, s, *e)
	case !c.Now.Before(s.Until):
		return flow.Outcome{}, failf(flow.KindTimeout, "the agent %s has not answered in time", config.Agent)
	}
	state, err := encode(s)
	if err != nil {
		return flow.Outcome{}, because(failf(flow.KindInternal, "what was asked cannot be kept"), err)
	}
	return flow.Outcome{Await: &flow.Await{Token: s.token(c), Until: s.Until, State: state, Says: "waits for the agent " + config.Agent}}, nil
}

// toldBy is what comes of an answer.
func toldBy(config agentConfig, s agentState, e flow.VaultEvent) (flow.Outcome, error) {
	var p struct {
		Text, State, Error, Code string
		Data                     json.RawMessage
	}
	if err := json.Unmarshal(e.Payload, &p); err != nil {
		return flow.Outcome{}, because(failf(flow.KindTool, "the agent's answer cannot be read"), err)
	}
	switch {
	case p.Code != "":
		text := fmt.Sprintf("the agent %s failed (%s): %s", config.Agent, p.Code, p.Error)
		if p.Text != "" {
			text += "\n" + excerpt(p.Text, 1000)
		}
		return flow.Outcome{}, &flow.StepError{Kind: turnKind(p.Code), Message: text}
	case strings.HasSuffix(p.State, "_INPUT_REQUIRED"), strings.HasSuffix(p.State, "_AUTH_REQUIRED"):
		s.Answer = e.ID
		state, err := encode(s)
		if err != nil {
			return flow.Outcome{}, because(failf(flow.KindInternal, "what was asked cannot be kept"), err)
		}
		question := p.Text
		if question == "" {
			question = "the agent asks for more, in state " + p.State
		}
		return flow.Outcome{Ask: &flow.AskBack{Text: question, From: config.Agent, State: state}}, nil
	case len(p.Data) > 0:
		return flow.Outcome{Value: p.Data}, nil
	}
	value, err := encode(map[string]string{"text": p.Text})
	if err != nil {
		return flow.Outcome{}, because(failf(flow.KindTool, "the agent's answer cannot be read"), err)
	}
	return flow.Outcome{Value: value}, nil
}

// turnKind sorts the codes of turns. A turn has been tried three times where
// that may help, so only what lies outside of the agent is tried again.
func turnKind(code string) flow.ErrorKind {
	switch code {
	case flow.TurnUnreachable:
		return flow.KindTransient
	case flow.TurnTimedOut:
		return flow.KindTimeout
	case flow.TurnAgentFailed, flow.TurnAgentCanceled, flow.TurnAgentRejected, flow.TurnInvalidResponse:
		return flow.KindTool
	}
	return flow.KindRefused // not connected, revoked, at its ceiling, no token, no card
}

// replied is the payload of a person's reply: an object as it is, a text as
// text.
func replied(reply json.RawMessage) json.RawMessage {
	if reply[0] == '{' {
		return reply
	}
	return append(append(json.RawMessage(`{"text":`), reply...), '}')
}

// vaultFailure is the failure of what a vault refuses.
func vaultFailure(err error) *flow.StepError {
	return because(failf(codeKind(flow.CodeOf(err)), "the agent cannot be asked: %s", excerpt(err.Error(), 300)), err)
}
