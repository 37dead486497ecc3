package turn

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/longstop-dev/longstop/internal/a2a"
	"github.com/longstop-dev/longstop/internal/flow"
)

// Bounds of what is published of an agent's words.
const (
	maxAnswer   = 1 << 20  // bytes of a payload, as of every event
	maxProgress = 16 << 10 // bytes of a progress text
	maxWhy      = 500      // bytes of an error
)

// answered is the payload of agent.answered, by the external-agent
// specification.
type answered struct {
	AgentID      string          `json:"agentId"`
	Agent        string          `json:"agent"` // its alias
	Text         string          `json:"text"`
	A2ATaskID    string          `json:"a2aTaskId,omitempty"` // a bare message has none
	State        string          `json:"state"`
	JobID        string          `json:"jobId"`
	TaskID       string          `json:"taskId"`
	Data         json.RawMessage `json:"data,omitempty"`
	Usage        *usage          `json:"usage,omitempty"`
	Conversation string          `json:"conversation,omitempty"`
	Actions      json.RawMessage `json:"actions,omitempty"`
	Error        string          `json:"error,omitempty"`
	Code         string          `json:"code,omitempty"`
}

type usage struct {
	InputTokens  int64 `json:"inputTokens"`
	OutputTokens int64 `json:"outputTokens"`
	TotalTokens  int64 `json:"totalTokens"`
}

// progress is the payload of agent.progress.
type progress struct {
	AgentID   string `json:"agentId"`
	Agent     string `json:"agent"`
	A2ATaskID string `json:"a2aTaskId"`
	State     string `json:"state"`
	JobID     string `json:"jobId"`
	TaskID    string `json:"taskId"`
	Text      string `json:"text"`
}

// end answers the turn: once, whatever happens. What it costs is added, and
// whether the connection was revoked meanwhile is looked at, in the same
// transaction.
func (s *session) end(ctx context.Context, v verdict) (time.Time, error) {
	p, now := &s.t.Progress, s.c.Clock.Now()
	if v.answer != nil {
		v.usage = v.answer.Usage
	}
	p.Failed, p.Code = clip(v.why, maxWhy), v.code
	s.t.Status, s.t.NextAt, s.t.FinishedAt = flow.TurnDone, time.Time{}, now
	said := s.answered(v)
	id, warning := s.c.NewID("evt"), s.c.NewID("evt")
	err := s.write(ctx, flow.TurnWrite{Job: s.kept(now), Spent: p.Spent + max(v.usage.Count(), p.Used), Close: func(c flow.Connection) ([]flow.VaultEvent, bool) {
		payload := said
		if !c.RevokedAt.IsZero() {
			payload = s.withdrawn(payload)
		}
		events := []flow.VaultEvent{s.event(id, flow.EventAgentAnswered, payload)}
		if c.Ceiling == 0 || c.Warned || c.Spent < c.Ceiling-c.Ceiling/5 { // 80%, of any size
			return events, false
		}
		warn := s.event(warning, flow.EventAgentCeilingWarning, map[string]any{"agentId": s.t.Agent, "agent": flow.Alias(s.t.Agent),
			"connectionId": c.ID, "spentTokens": c.Spent, "a2aTokens": c.Ceiling})
		return append(events, warn), true
	}})
	return now, err
}

// answered is what is published of a verdict, within the bounds of an event.
func (s *session) answered(v verdict) answered {
	p := s.t.Progress
	out := answered{AgentID: s.t.Agent, Agent: flow.Alias(s.t.Agent), A2ATaskID: p.TaskID, State: p.State, JobID: s.t.Job, TaskID: s.t.ID,
		Conversation: s.ask.Conversation(), Error: clip(v.why, maxWhy), Code: v.code}
	if v.usage != (a2a.Usage{}) {
		out.Usage = &usage{v.usage.Input, v.usage.Output, v.usage.Count()}
	}
	a := v.answer
	if a == nil {
		return out
	}
	out.Text = flow.PlainText(a.Text())
	out.Data, out.Actions = structured(a), actions(a)
	if size := len(out.Text) + 5*controls(out.Text) + len(out.Data) + len(out.Actions); size > maxAnswer-4096 {
		out.Text, out.Data, out.Actions = "", nil, nil
		out.Code, out.Error = flow.TurnInvalidResponse, fmt.Sprintf("the agent's answer of %d bytes does not fit an event, which holds %d", size, maxAnswer)
	}
	return out
}

// withdrawn is the answer of an agent that may not speak in this vault any
// more.
func (s *session) withdrawn(a answered) answered {
	a.Text, a.Data, a.Actions = "", nil, nil
	a.Error, a.Code = whyRevoked, flow.TurnConnectionRevoked
	return a
}

// event makes an event of the agent's that follows the one that asked.
func (s *session) event(id, kind string, payload any) flow.VaultEvent {
	body, err := flow.PlainJSON(payload)
	if err != nil { // an agent's JSON is read before it comes here
		body = []byte(`{}`)
	}
	return flow.VaultEvent{ID: id, Workspace: s.t.Workspace, Vault: s.t.Vault, Scope: s.t.Scope, Type: kind, Payload: body, Metadata: s.ask.Echo(),
		Parents: []string{s.t.EventID}, Author: flow.EventAuthor{Kind: flow.AuthorAgent, ID: s.t.Agent}, At: s.c.Clock.Now()}
}

// progress is an event that says what the agent does just now, if it says so.
func (s *session) progress(a *a2a.Answer) (flow.VaultEvent, bool) {
	text := clip(flow.PlainText(a.Text()), maxProgress)
	if text == "" {
		return flow.VaultEvent{}, false
	}
	return s.event(s.c.NewID("evt"), flow.EventAgentProgress, progress{AgentID: s.t.Agent, Agent: flow.Alias(s.t.Agent),
		A2ATaskID: s.t.Progress.TaskID, State: a.State.Wire(), JobID: s.t.Job, TaskID: s.t.ID, Text: text}), true
}

// structured are the data parts of an answer: one as itself, several as an
// array; nil for none.
func structured(a *a2a.Answer) json.RawMessage {
	var all []json.RawMessage
	for _, p := range a.Parts() {
		if p.Data != nil {
			all = append(all, flow.ReadableJSON(p.Data))
		}
	}
	switch len(all) {
	case 0:
		return nil
	case 1:
		return all[0]
	}
	b, err := json.Marshal(all)
	if err != nil {
		return nil // each was read as JSON
	}
	return b
}

// actions is the array of that name in an agent's data or metadata.
func actions(a *a2a.Answer) json.RawMessage {
	places := a.Metadata
	for _, p := range a.Parts() {
		places = append(places, p.Data)
	}
	for _, raw := range places {
		var o struct {
			Actions json.RawMessage `json:"actions"`
		}
		if len(raw) > 0 && json.Unmarshal(raw, &o) == nil && strings.HasPrefix(strings.TrimSpace(string(o.Actions)), "[") {
			return flow.ReadableJSON(o.Actions)
		}
	}
	return nil
}

// clip cuts a text to at most n bytes, on a character.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	const mark = "…"
	s = s[:n-len(mark)]
	for !utf8.ValidString(s) && len(s) > 0 {
		s = s[:len(s)-1]
	}
	return s + mark
}

// controls counts the characters of which JSON makes six bytes, at most.
func controls(s string) (n int) {
	for i := range len(s) {
		if s[i] < ' ' || s[i] == '"' || s[i] == '\\' || s[i] == 0xe2 {
			n++
		}
	}
	return n
}
