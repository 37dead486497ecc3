package turn

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/longstop-dev/longstop/internal/a2a"
	"github.com/longstop-dev/longstop/internal/agent/token"
	"github.com/longstop-dev/longstop/internal/flow"
)

// message is what the agent is sent.
func (s *session) message() a2a.Out {
	text, data := split(s.ask.Payload)
	return a2a.Out{
		ID: s.t.Progress.MessageID, MessageID: s.t.Progress.MessageID, ContextID: s.job.ContextID,
		Text: text, Data: data, ReturnImmediately: true,
		Metadata: map[string]any{
			"vaultId":    s.t.Vault,
			"jobId":      s.t.Job,
			"taskId":     s.t.ID,
			"scope":      s.t.Scope,
			"context":    s.job.Key,
			"engagement": s.t.Connection,
			"eventType":  s.ask.Type,
			"onBehalfOf": onBehalfOf(s.ask),
		},
	}
}

// split takes what an agent is told out of a payload: the first non-empty
// text of five members; the rest is data, nil if there is none.
func split(payload json.RawMessage) (text string, data json.RawMessage) {
	var members map[string]json.RawMessage
	if json.Unmarshal(payload, &members) != nil {
		return "", payload // it was checked at the append
	}
	for _, name := range []string{"text", "message", "prompt", "question", "body"} {
		if json.Unmarshal(members[name], &text) == nil && text != "" {
			delete(members, name)
			break
		}
		text = ""
	}
	if len(members) == 0 {
		return text, nil
	}
	rest, err := json.Marshal(members)
	if err != nil {
		return text, nil // every member was read as JSON
	}
	return text, rest
}

// onBehalfOf is the public key of the person whose event asks; "" for
// schedules and for events of other agents.
func onBehalfOf(e flow.VaultEvent) string {
	if e.Author.Kind == flow.AuthorAgent || e.Author.Kind == flow.AuthorSchedule {
		return ""
	}
	return e.OnBehalfOf
}

// mint makes the execution token of one request.
func (s *session) mint(ctx context.Context, origin string) (string, error) {
	if strings.HasPrefix(s.way.Card, "bridge:") { // an agent behind a bridge has no origin of its own
		origin = s.way.Card
	}
	return s.c.Tokens.Token(ctx, token.Claims{Workspace: s.t.Workspace, Agent: s.t.Agent, Audience: origin, Vault: s.t.Vault,
		Scope: s.t.Scope, Job: s.t.Job, Task: s.t.ID, OnBehalfOf: onBehalfOf(s.ask)})
}
