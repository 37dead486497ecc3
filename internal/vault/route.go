package vault

import (
	"encoding/json"
	"time"

	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/ident"
)

// router decides what becomes of a targeted event: a turn of the agent's in
// its Job, or an answer at once. It asks nobody.
type router struct {
	clock flow.Clock
	newID ident.Generator
}

// route gives the turn and its Job, or the answer that refuses. A Job whose
// idle timeout is over ends, unless a turn of it goes on.
func (r router) route(in flow.Routing) flow.Routed {
	c, e, now := in.Connection, in.Event, r.clock.Now()
	switch {
	case in.Agent == nil:
		return r.refused(e, "the agent is not registered in this workspace")
	case c == nil:
		return r.refused(e, "the agent is not connected to this vault")
	case !c.RevokedAt.IsZero():
		return r.refused(e, "the agent's connection to this vault was revoked")
	case !c.Grants(e.Scope):
		return r.refused(e, "the agent's connection does not grant the scope "+e.Scope)
	}
	var out flow.Routed
	job := in.Job
	if job != nil && !in.Busy && job.Over(now) {
		ended := *job
		ended.EndedAt = now
		out.Ended, job = &ended, nil
	}
	if job == nil {
		job = &flow.Job{ID: r.newID("job"), Workspace: e.Workspace, Connection: c.ID, Vault: e.Vault, Scope: e.Scope, Key: e.Conversation(),
			Idle: idleTimeout(in.Agent.Manifest)}
	} else {
		kept := *job
		job = &kept
	}
	job.LastAt = now
	out.Job = job
	out.Turn = &flow.Turn{ID: r.newID("turn"), Workspace: e.Workspace, Job: job.ID, Connection: c.ID, Vault: e.Vault, Scope: e.Scope, Agent: e.Target,
		EventID: e.ID, Status: flow.TurnQueued, Version: 1, CreatedAt: now}
	return out
}

// idleTimeout is how long a Job of the agent's survives without events.
func idleTimeout(m flow.Manifest) time.Duration {
	if m.IdleTimeout <= 0 {
		return flow.DefaultIdleTimeout
	}
	return time.Duration(m.IdleTimeout) * time.Second
}

// refused answers an event that no agent may see.
func (r router) refused(e flow.VaultEvent, why string) flow.Routed {
	payload := map[string]string{"agentId": e.Target, "agent": flow.Alias(e.Target), "text": "", "state": "", "jobId": "", "taskId": "",
		"error": why, "code": flow.TurnNotConnected}
	body, _ := json.Marshal(payload) // strings always marshal
	return flow.Routed{Answer: &flow.VaultEvent{ID: r.newID("evt"), Workspace: e.Workspace, Vault: e.Vault, Scope: e.Scope, Type: flow.EventAgentAnswered,
		Payload: body, Metadata: e.Echo(), Parents: []string{e.ID}, Author: flow.EventAuthor{Kind: flow.AuthorSystem, ID: "longstop"}, At: r.clock.Now()}}
}
