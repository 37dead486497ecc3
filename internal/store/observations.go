package store

import (
	"context"
	"encoding/json"

	"github.com/longstop-dev/longstop/internal/flow"
)

// openObservation writes that a case is being observed, with the change that
// opens the case. What is there already stays.
func openObservation(ctx context.Context, t tx, k *flow.Case, body string) error {
	return t.send(ctx, nil, `INSERT INTO observations (case_id, workspace_id, state, body) VALUES ($1, $2, $3, $4)
		ON CONFLICT (case_id) DO NOTHING`, k.ID, k.Workspace, string(k.Observed.State), body)
}

// PutObservation keeps what became of an observation. One that is final
// already stays, unless it was lost.
func (s *Store) PutObservation(ctx context.Context, workspace, caseID string, o flow.Observation) error {
	body, err := json.Marshal(o)
	if err != nil {
		return flow.Errorf(flow.CodeInternal, "an observation cannot be written as JSON").Because(err)
	}
	return s.write(ctx, func(ctx context.Context, t tx) error {
		_, err := t.exec(ctx, `UPDATE observations SET state = $1, body = $2
			WHERE case_id = $3 AND workspace_id = $4 AND state IN ('asked', 'lost')`, string(o.State), string(body), caseID, workspace)
		return err
	})
}

// LoseObservations marks every observation lost that has no answer yet, and
// gives their number.
func (s *Store) LoseObservations(ctx context.Context) (int64, error) {
	var n int64
	err := s.write(ctx, func(ctx context.Context, t tx) error {
		var err error
		n, err = t.exec(ctx, `UPDATE observations SET state = 'lost' WHERE state = 'asked'`)
		return err
	})
	return n, err
}

// ObservedCases lists a workspace's cases that were observed, newest first:
// those before the id before.
func (s *Store) ObservedCases(ctx context.Context, workspace, before string, limit int) ([]flow.Case, error) {
	if before == "" {
		before = "~" // after every id
	}
	rs, err := s.db.query(ctx, `SELECT c.workspace_id, c.id, c.run_id, c.body, o.state, o.body FROM observations o JOIN cases c ON c.id = o.case_id
		WHERE o.workspace_id = $1 AND o.case_id < $2 ORDER BY o.case_id DESC LIMIT $3`, workspace, before, limit)
	return collect(rs, err, scanCase)
}

// StepStatus gives how a step instance of a run stands; "" if it has not
// begun.
func (s *Store) StepStatus(ctx context.Context, runID string, key flow.StepKey) (flow.StepStatus, error) {
	var status string
	err := s.db.queryRow(ctx, `SELECT status FROM steps WHERE run_id = $1 AND idx = $2 AND iteration = $3`, runID, key.Index, key.Iteration).Scan(&status)
	if noRows(err) {
		return "", nil
	}
	if err != nil {
		return "", unavailable(err)
	}
	return flow.StepStatus(status), nil
}
