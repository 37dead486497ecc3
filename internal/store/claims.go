package store

import (
	"context"
	"database/sql"
	"time"

	"github.com/longstop-dev/longstop/internal/flow"
)

// ClaimGate notes that somebody works on an open gate, or goes on to. It
// answers conflict if somebody else does at c.ClaimedAt, or if the gate is not
// open.
func (s *Store) ClaimGate(ctx context.Context, c flow.Claim, audit ...flow.Audit) error {
	return s.write(ctx, func(ctx context.Context, t tx) error {
		return t.send(ctx, flow.Errorf(flow.CodeConflict, "gate %s cannot be claimed", c.GateID), `INSERT INTO gate_claims (gate_id, workspace_id, holder, name, claimed_at, expires_at)
			SELECT CAST($1 AS TEXT), CAST($2 AS TEXT), CAST($3 AS TEXT), CAST($4 AS TEXT), CAST($5 AS BIGINT), CAST($6 AS BIGINT)
			FROM gates WHERE id = $1 AND workspace_id = $2 AND status = 'open'
			ON CONFLICT (gate_id) DO UPDATE SET holder = excluded.holder, name = excluded.name, expires_at = excluded.expires_at,
				claimed_at = CASE WHEN gate_claims.holder = excluded.holder AND gate_claims.name = excluded.name THEN gate_claims.claimed_at ELSE excluded.claimed_at END
			WHERE gate_claims.expires_at <= excluded.claimed_at OR (gate_claims.holder = excluded.holder AND gate_claims.name = excluded.name)`,
			c.GateID, c.Workspace, c.Holder, c.Name, c.ClaimedAt.UnixMicro(), c.ExpiresAt.UnixMicro())
	}, audit...)
}

// Claim reads the claim on a gate, which may have ended; the zero Claim if
// there is none.
func (s *Store) Claim(ctx context.Context, workspace, gateID string) (flow.Claim, error) {
	c := flow.Claim{GateID: gateID, Workspace: workspace}
	var claimed, expires int64
	err := s.db.queryRow(ctx, `SELECT holder, name, claimed_at, expires_at FROM gate_claims WHERE gate_id = $1 AND workspace_id = $2`, gateID, workspace).
		Scan(&c.Holder, &c.Name, &claimed, &expires)
	if noRows(err) {
		return flow.Claim{}, nil
	}
	if err != nil {
		return c, unavailable(err)
	}
	c.ClaimedAt, c.ExpiresAt = fromMicros(claimed), fromMicros(expires)
	return c, nil
}

// ReleaseGate removes a claim, if it is still the one that is given.
func (s *Store) ReleaseGate(ctx context.Context, c flow.Claim, audit ...flow.Audit) error {
	rows, err := notes(audit)
	if err != nil {
		return err
	}
	return s.noted(ctx, func(ctx context.Context, t tx) error {
		n, err := t.exec(ctx, `DELETE FROM gate_claims WHERE gate_id = $1 AND workspace_id = $2 AND holder = $3 AND name = $4`,
			c.GateID, c.Workspace, c.Holder, c.Name)
		void(rows, n == 0)
		return err
	}, rows)
}

// unclaim removes the claim on a gate that is closed.
func unclaim(ctx context.Context, t tx, g *flow.Gate) error {
	if g.Kind != flow.GateNeedsAgent || g.Status == flow.GateOpen {
		return nil
	}
	return t.send(ctx, nil, `DELETE FROM gate_claims WHERE gate_id = $1`, g.ID)
}

// Inbox lists a workspace's open gates of kind needs_agent in the order they
// opened: those after the id after, with the claims that hold at now.
func (s *Store) Inbox(ctx context.Context, workspace, after string, limit int, now time.Time) ([]flow.Gate, error) {
	rs, err := s.db.query(ctx, `SELECT g.workspace_id, g.id, g.run_id, g.kind, g.status, g.body, c.holder, c.name, c.claimed_at, c.expires_at FROM gates g
		LEFT JOIN gate_claims c ON c.gate_id = g.id AND c.expires_at > $4
		WHERE g.workspace_id = $1 AND g.id > $2 AND g.status = 'open' AND g.kind = 'needs_agent' ORDER BY g.id LIMIT $3`,
		workspace, after, limit, now.UnixMicro())
	return collect(rs, err, func(r row) (flow.Gate, error) {
		var bare flow.Gate
		var body string
		var holder, name sql.NullString
		var claimed, expires sql.NullInt64
		if err := r.Scan(&bare.Workspace, &bare.ID, &bare.RunID, &bare.Kind, &bare.Status, &body, &holder, &name, &claimed, &expires); err != nil {
			return flow.Gate{}, err
		}
		g := readGate(bare, body)
		if holder.Valid {
			g.Claim = &flow.Claim{GateID: g.ID, Workspace: bare.Workspace, Holder: holder.String, Name: name.String,
				ClaimedAt: instant(claimed), ExpiresAt: instant(expires)}
		}
		return g, nil
	})
}
