package vault

import (
	"context"
	"time"

	"github.com/longstop-dev/longstop/internal/flow"
)

// JobView is a conversation of an agent in a vault as every face shows it.
type JobView struct {
	ID           string     `json:"id"`
	Vault        string     `json:"vaultId"`
	Connection   string     `json:"connectionId"`
	Scope        string     `json:"scope"`
	Conversation string     `json:"conversation" doc:"metadata.conversation of its events; empty for the one without a name."`
	ContextID    string     `json:"contextId" doc:"As the agent gave it; empty until it has."`
	LastAt       time.Time  `json:"lastAt" doc:"Of the last event, or the end of the last turn: the idle timeout runs from here."`
	EndedAt      *time.Time `json:"endedAt,omitempty"`
	Turns        []TurnView `json:"turns,omitempty" doc:"Of one Job: the newest 100, oldest first."`
}

// TurnView is one event asked of an agent.
type TurnView struct {
	ID         string          `json:"id"`
	Event      string          `json:"eventId" doc:"The event that asks."`
	Status     flow.TurnStatus `json:"status" enum:"queued,sending,waiting,done"`
	Try        int             `json:"try" doc:"From 1; 0 before the first."`
	A2ATaskID  string          `json:"a2aTaskId,omitempty"`
	State      string          `json:"state,omitempty" doc:"Of the agent's task, as it was last seen."`
	Failed     string          `json:"failed,omitempty" doc:"Why the last try failed."`
	Code       string          `json:"code,omitempty"`
	CreatedAt  time.Time       `json:"createdAt"`
	NextAt     *time.Time      `json:"nextAt,omitempty" doc:"When the next try begins, while none is under way."`
	Deadline   *time.Time      `json:"deadline,omitempty" doc:"Of the try that goes on."`
	FinishedAt *time.Time      `json:"finishedAt,omitempty"`
}

// JobsIn narrows a vault's Jobs, newest first.
type JobsIn struct {
	ID     string `path:"id" doc:"The vault's id or name."`
	Before string `query:"before" doc:"Only older ones than this Job."`
	Limit  int    `query:"limit" minimum:"1" maximum:"1000" default:"100"`
}

// JobIn names a Job.
type JobIn struct {
	ID string `path:"id"`
}

func viewJob(j flow.Job) JobView {
	v := JobView{ID: j.ID, Vault: j.Vault, Connection: j.Connection, Scope: j.Scope, Conversation: j.Key, ContextID: j.ContextID, LastAt: j.LastAt}
	if !j.EndedAt.IsZero() {
		v.EndedAt = &j.EndedAt
	}
	return v
}

func viewTurn(t flow.Turn) TurnView {
	p := t.Progress
	v := TurnView{ID: t.ID, Event: t.EventID, Status: t.Status, Try: p.Try, A2ATaskID: p.TaskID, State: p.State, Failed: p.Failed, Code: p.Code, CreatedAt: t.CreatedAt}
	switch {
	case t.Status == flow.TurnDone:
		v.FinishedAt = &t.FinishedAt
	case t.Status == flow.TurnQueued && !t.NextAt.IsZero():
		v.NextAt = &t.NextAt
	case !p.Deadline.IsZero():
		v.Deadline = &p.Deadline
	}
	return v
}

// ListJobs lists the conversations of a vault; not_found for the vault.
func (s *Service) ListJobs(ctx context.Context, by flow.Caller, in *JobsIn) (*List[JobView], error) {
	v, err := s.c.Vaults.Vault(ctx, by.Workspace, in.ID)
	if err != nil {
		return nil, err
	}
	limit := pageSize(in.Limit)
	rows, err := s.c.Jobs.Jobs(ctx, by.Workspace, v.ID, in.Before, limit+1)
	if err != nil {
		return nil, err
	}
	out := &List[JobView]{Items: []JobView{}}
	for i, j := range rows {
		if i == limit {
			out.Next = rows[i-1].ID
			break
		}
		out.Items = append(out.Items, viewJob(j))
	}
	return out, nil
}

// GetJob gives a conversation with its turns; not_found.
func (s *Service) GetJob(ctx context.Context, by flow.Caller, in *JobIn) (*JobView, error) {
	j, err := s.c.Jobs.Job(ctx, by.Workspace, in.ID)
	if err != nil {
		return nil, err
	}
	turns, err := s.c.Jobs.Turns(ctx, by.Workspace, j.ID, 100)
	if err != nil {
		return nil, err
	}
	out := viewJob(j)
	for _, t := range turns {
		out.Turns = append(out.Turns, viewTurn(t))
	}
	return &out, nil
}
