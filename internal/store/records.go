package store

import (
	"context"
	"database/sql"
	"encoding/json"

	"github.com/longstop-dev/longstop/internal/flow"
)

// Events reads a run's events with sequence numbers above after, at most
// limit.
func (s *Store) Events(ctx context.Context, runID string, after int64, limit int) ([]flow.Event, error) {
	return journal(ctx, s.db, "events", runID, after, limit, func(e flow.Event) int64 { return e.Seq })
}

// Logs reads a run's step log rows with sequence numbers above after, at most
// limit.
func (s *Store) Logs(ctx context.Context, runID string, after int64, limit int) ([]flow.Log, error) {
	return journal(ctx, s.db, "logs", runID, after, limit, func(l flow.Log) int64 { return l.Seq })
}

func journal[T any](ctx context.Context, db reader, column, runID string, after int64, limit int, seq func(T) int64) ([]T, error) {
	rs, err := db.query(ctx, `SELECT `+column+` FROM journal WHERE run_id = $1 AND last_seq > $2 AND `+column+` <> '[]' ORDER BY last_seq LIMIT $3`,
		runID, after, limit)
	batches, err := collect(rs, err, func(r row) (out []T, err error) {
		var text string
		if err := r.Scan(&text); err != nil {
			return nil, err
		}
		if err := json.Unmarshal([]byte(text), &out); err != nil {
			return nil, damaged("the "+column+" of run "+runID, err)
		}
		return out, nil
	})
	var out []T
	for _, b := range batches {
		for _, v := range b {
			if seq(v) > after && len(out) < limit {
				out = append(out, v)
			}
		}
	}
	return out, err
}

// Gate reads a gate of a workspace. It answers not_found.
func (s *Store) Gate(ctx context.Context, workspace, id string) (flow.Gate, error) {
	g, err := scanGate(s.db.queryRow(ctx, `SELECT workspace_id, id, run_id, kind, status, body FROM gates WHERE id = $1 AND workspace_id = $2`, id, workspace))
	switch {
	case noRows(err):
		return g, flow.Errorf(flow.CodeNotFound, "there is no gate %s", id)
	case err != nil:
		return g, unavailable(err)
	case g.StepIndex < 0:
		return g, damaged("gate "+id, nil)
	}
	return g, nil
}

// Gates lists a workspace's gates in the order they opened: those after the
// id after, of one run if runID is given, of one status if status is.
func (s *Store) Gates(ctx context.Context, workspace, runID, status, after string, limit int) ([]flow.Gate, error) {
	q, args := gatesQuery(workspace, runID, status, after, limit)
	rs, err := s.db.query(ctx, q, args...)
	return collect(rs, err, scanGate)
}

func gatesQuery(workspace, runID, status, after string, limit int) (q string, args []any) {
	q = `SELECT workspace_id, id, run_id, kind, status, body FROM gates WHERE workspace_id = $1 AND id > $2`
	args = []any{workspace, after, limit}
	switch {
	case runID != "":
		q += ` AND run_id = $4 AND (status = $5 OR $5 = '')`
		args = append(args, runID, status)
	case status == string(flow.GateOpen):
		q += ` AND status = 'open'` // a literal, so that the index of open gates serves it
	case status != "":
		q += ` AND status = $4`
		args = append(args, status)
	}
	return q + ` ORDER BY id LIMIT $3`, args
}

// scanGate gives of a damaged row what stands beside its body, with a step of
// -1, so that one does not hide the others from a list.
func scanGate(r row) (flow.Gate, error) {
	var bare flow.Gate
	var body string
	if err := r.Scan(&bare.Workspace, &bare.ID, &bare.RunID, &bare.Kind, &bare.Status, &body); err != nil {
		return bare, err
	}
	return readGate(bare, body), nil
}

// readGate reads a gate's body; of a damaged one it gives what stands beside.
func readGate(bare flow.Gate, body string) flow.Gate {
	var g flow.Gate
	if json.Unmarshal([]byte(body), &g) != nil {
		bare.StepIndex, bare.Error = -1, unreadable
		return bare
	}
	g.Workspace = bare.Workspace
	return g
}

// unreadable is what a list says of a damaged row.
const unreadable = "this row of the database is damaged and cannot be read"

// Case reads a case of a workspace; with an empty workspace, of any, which is
// for the engine only. It answers not_found.
func (s *Store) Case(ctx context.Context, workspace, id string) (flow.Case, error) {
	c, err := scanCase(s.db.queryRow(ctx, selectCases+` WHERE c.id = $1 AND (c.workspace_id = $2 OR $2 = '')`, id, workspace))
	switch {
	case noRows(err):
		return c, flow.Errorf(flow.CodeNotFound, "there is no case %s", id)
	case err != nil:
		return c, unavailable(err)
	case c.StepIndex < 0:
		return c, damaged("case "+id, nil)
	}
	return c, nil
}

// Cases lists a workspace's cases, newest first: those before the id before,
// of one run if runID is given.
func (s *Store) Cases(ctx context.Context, workspace, runID, before string, limit int) ([]flow.Case, error) {
	q, args := casesQuery(workspace, runID, before, limit)
	rs, err := s.db.query(ctx, q, args...)
	return collect(rs, err, scanCase)
}

func casesQuery(workspace, runID, before string, limit int) (q string, args []any) {
	if before == "" {
		before = "~" // after every id
	}
	q = selectCases + ` WHERE c.workspace_id = $1 AND c.id < $2`
	args = []any{workspace, before, limit}
	if runID != "" {
		q += ` AND c.run_id = $4`
		args = append(args, runID)
	}
	return q + ` ORDER BY c.id DESC LIMIT $3`, args
}

// selectCases reads cases as scanCase takes them.
const selectCases = `SELECT c.workspace_id, c.id, c.run_id, c.body, o.state, o.body FROM cases c LEFT JOIN observations o ON o.case_id = c.id`

// scanCase gives of a damaged row what stands beside its body, as scanGate
// does.
func scanCase(r row) (flow.Case, error) {
	var c, bare flow.Case
	var body string
	var state, observed sql.NullString
	if err := r.Scan(&bare.Workspace, &bare.ID, &bare.RunID, &body, &state, &observed); err != nil {
		return c, err
	}
	if json.Unmarshal([]byte(body), &c) != nil {
		bare.StepIndex, bare.Outcome = -1, unreadable
		return bare, nil
	}
	c.Workspace = bare.Workspace
	if !state.Valid {
		return c, nil
	}
	c.Observed = &flow.Observation{}
	err := json.Unmarshal([]byte(observed.String), c.Observed)
	c.Observed.State = flow.ObservationState(state.String)
	return c, err
}
