package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"math"
	"slices"
	"time"

	"github.com/longstop-dev/longstop/internal/flow"
)

const jobColumns = `id, workspace_id, connection_id, vault_id, scope, key, context_id, idle, last_at, ended_at`

func scanJob(r row) (flow.Job, error) {
	var j flow.Job
	var idle, last int64
	var ended sql.NullInt64
	err := r.Scan(&j.ID, &j.Workspace, &j.Connection, &j.Vault, &j.Scope, &j.Key, &j.ContextID, &idle, &last, &ended)
	j.Idle, j.LastAt, j.EndedAt = time.Duration(idle)*time.Microsecond, fromMicros(last), instant(ended)
	return j, err
}

func putJob(ctx context.Context, t tx, j *flow.Job) error {
	return t.send(ctx, nil, `INSERT INTO jobs (`+jobColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
		ON CONFLICT (id) DO UPDATE SET context_id = excluded.context_id, last_at = excluded.last_at, ended_at = excluded.ended_at`,
		j.ID, j.Workspace, j.Connection, j.Vault, j.Scope, j.Key, j.ContextID, j.Idle.Microseconds(), j.LastAt.UnixMicro(), micros(j.EndedAt))
}

// Job reads a job; with an empty workspace, of any, which is for turns only.
// It answers not_found.
func (s *Store) Job(ctx context.Context, workspace, id string) (flow.Job, error) {
	j, err := scanJob(s.db.queryRow(ctx, `SELECT `+jobColumns+` FROM jobs WHERE id = $1 AND (workspace_id = $2 OR $2 = '')`, id, workspace))
	return found(j, err, func() *flow.Error { return flow.Errorf(flow.CodeNotFound, "there is no job %q", id) })
}

// Jobs lists a vault's jobs, newest first: those before the id before.
func (s *Store) Jobs(ctx context.Context, workspace, vault, before string, limit int) ([]flow.Job, error) {
	if before == "" {
		before = "~" // after every id
	}
	rs, err := s.db.query(ctx, `SELECT `+jobColumns+` FROM jobs WHERE workspace_id = $1 AND vault_id = $2 AND id < $3 ORDER BY id DESC LIMIT $4`,
		workspace, vault, before, limit)
	return collect(rs, err, scanJob)
}

const turnColumns = `id, workspace_id, job_id, connection_id, vault_id, scope, agent_id, event_id, event_seq,
	status, version, progress, next_at, created_at, finished_at`

func scanTurn(r row) (flow.Turn, error) {
	var v flow.Turn
	var status, progress string
	var created int64
	var next, finished sql.NullInt64
	err := r.Scan(&v.ID, &v.Workspace, &v.Job, &v.Connection, &v.Vault, &v.Scope, &v.Agent, &v.EventID, &v.EventSeq,
		&status, &v.Version, &progress, &next, &created, &finished)
	if err != nil {
		return v, err
	}
	v.Status, v.NextAt, v.CreatedAt, v.FinishedAt = flow.TurnStatus(status), instant(next), fromMicros(created), instant(finished)
	if err := json.Unmarshal([]byte(progress), &v.Progress); err != nil { // damaged: it is answered as one whose tries are over
		v.Progress = flow.TurnProgress{Try: flow.TurnTries, Failed: "what is stored of the turn is damaged"}
		if v.Status != flow.TurnDone {
			v.Status = flow.TurnSending
		}
	}
	return v, nil
}

func insertTurn(ctx context.Context, t tx, v *flow.Turn) error {
	progress, err := json.Marshal(v.Progress)
	if err != nil {
		return flow.Errorf(flow.CodeInternal, "a turn cannot be written as JSON").Because(err)
	}
	return t.send(ctx, nil, `INSERT INTO turns (`+turnColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)`,
		v.ID, v.Workspace, v.Job, v.Connection, v.Vault, v.Scope, v.Agent, v.EventID, v.EventSeq, string(v.Status), v.Version, string(progress),
		micros(v.NextAt), v.CreatedAt.UnixMicro(), micros(v.FinishedAt))
}

// WriteTurn writes one step of a turn, and gives the events as they were
// numbered. It answers stale if the turn has moved since.
func (s *Store) WriteTurn(ctx context.Context, w flow.TurnWrite) ([]flow.VaultEvent, error) {
	progress, err := json.Marshal(w.Turn.Progress)
	if err != nil {
		return nil, flow.Errorf(flow.CodeInternal, "a turn cannot be written as JSON").Because(err)
	}
	var events []flow.VaultEvent
	err = s.write(ctx, func(ctx context.Context, t tx) error {
		v := &w.Turn
		events = append([]flow.VaultEvent(nil), w.Events...)
		n, err := t.exec(ctx, `UPDATE turns SET status = $1, version = $2, progress = $3, next_at = $4, finished_at = $5 WHERE id = $6 AND version = $7`,
			string(v.Status), v.Version, string(progress), micros(v.NextAt), micros(v.FinishedAt), v.ID, v.Version-1)
		if err != nil {
			return err
		}
		if n == 0 {
			return flow.Errorf(flow.CodeStale, "turn %s has moved on", v.ID)
		}
		if w.Job != nil {
			if err := putJob(ctx, t, w.Job); err != nil {
				return err
			}
		}
		last, err := settle(ctx, t, &w)
		if err != nil {
			return err
		}
		events = append(events, last...)
		return number(ctx, t, v.Vault, events)
	})
	return events, err
}

// settle adds what a turn has cost to its connection, and has the last events
// made of it.
func settle(ctx context.Context, t tx, w *flow.TurnWrite) ([]flow.VaultEvent, error) {
	if w.Spent == 0 && w.Close == nil {
		return nil, nil
	}
	c, err := scanConnection(t.queryRow(ctx, `SELECT `+connectionColumns+` FROM connections WHERE id = $1`, w.Turn.Connection))
	if err != nil {
		return nil, err
	}
	// It is the agent's own word, so the sum is bounded: one that overflows can
	// be neither written nor read.
	if c.Spent > math.MaxInt64-w.Spent {
		c.Spent = math.MaxInt64
	} else {
		c.Spent += w.Spent
	}
	var events []flow.VaultEvent
	warned := false
	if w.Close != nil {
		events, warned = w.Close(c)
	}
	if w.Spent == 0 && !warned {
		return events, nil
	}
	return events, t.send(ctx, nil, `UPDATE connections SET spent = $2, warned = $3 WHERE id = $1`, c.ID, c.Spent, flag(c.Warned || warned))
}

// number appends events behind what their vault holds.
func number(ctx context.Context, t tx, vault string, events []flow.VaultEvent) error {
	if len(events) == 0 {
		return nil
	}
	var seq int64
	if err := t.queryRow(ctx, `SELECT seq FROM vaults WHERE id = $1`, vault).Scan(&seq); err != nil {
		return err
	}
	for i := range events {
		seq++
		events[i].Seq = seq
	}
	return insertEvents(ctx, t, events)
}

// Turns lists the newest turns of a job, oldest first.
func (s *Store) Turns(ctx context.Context, workspace, job string, limit int) ([]flow.Turn, error) {
	rs, err := s.db.query(ctx, `SELECT `+turnColumns+` FROM turns WHERE workspace_id = $1 AND job_id = $2 ORDER BY event_seq DESC LIMIT $3`, workspace, job, limit)
	out, err := collect(rs, err, scanTurn)
	slices.Reverse(out)
	return out, err
}

// NextTurn reads the first turn of a job that is not done; not_found if all
// are.
func (s *Store) NextTurn(ctx context.Context, job string) (flow.Turn, error) {
	v, err := scanTurn(s.db.queryRow(ctx, `SELECT `+turnColumns+` FROM turns WHERE job_id = $1 AND status <> 'done' ORDER BY event_seq LIMIT 1`, job))
	return found(v, err, func() *flow.Error { return flow.Errorf(flow.CodeNotFound, "job %q has nothing to do", job) })
}

// OpenTurns lists the first turn that is not done of every job, the earliest
// due first: what a process takes up when it starts.
func (s *Store) OpenTurns(ctx context.Context) ([]flow.Turn, error) {
	rs, err := s.db.query(ctx, `SELECT `+turnColumns+` FROM turns t WHERE status <> 'done'
		AND event_seq = (SELECT MIN(o.event_seq) FROM turns o WHERE o.job_id = t.job_id AND o.status <> 'done') ORDER BY COALESCE(next_at, 0), id`)
	return collect(rs, err, scanTurn)
}
