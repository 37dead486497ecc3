package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"slices"
	"time"

	"github.com/longstop-dev/longstop/internal/flow"
)

const vaultColumns = `id, workspace_id, name, owner, scopes, retention_days, seq, created_at`

func scanVault(r row) (flow.Vault, error) {
	var v flow.Vault
	var scopes string
	var created int64
	if err := r.Scan(&v.ID, &v.Workspace, &v.Name, &v.Owner, &scopes, &v.RetentionDays, &v.Seq, &created); err != nil {
		return v, err
	}
	v.CreatedAt = fromMicros(created)
	return v, json.Unmarshal([]byte(scopes), &v.Scopes)
}

// list is a list of names as it is stored.
func list(names []string) string {
	if names == nil {
		names = []string{}
	}
	b, _ := json.Marshal(names) // strings always marshal
	return string(b)
}

// CreateVault stores a new vault. It answers conflict for a name that is
// taken.
func (s *Store) CreateVault(ctx context.Context, v flow.Vault, audit ...flow.Audit) error {
	return s.write(ctx, func(ctx context.Context, t tx) error {
		n, err := t.exec(ctx, `INSERT INTO vaults (`+vaultColumns+`) VALUES ($1, $2, $3, $4, $5, $6, 0, $7) ON CONFLICT DO NOTHING`,
			v.ID, v.Workspace, v.Name, v.Owner, list(v.Scopes), v.RetentionDays, v.CreatedAt.UnixMicro())
		if err == nil && n == 0 {
			return flow.Errorf(flow.CodeConflict, "there is a vault named %q already", v.Name).At("name")
		}
		return err
	}, audit...)
}

// UpdateVault stores a vault's scopes and retention in the place of those that
// it was read with. It answers stale if it has changed or gone since.
func (s *Store) UpdateVault(ctx context.Context, was, v flow.Vault, audit ...flow.Audit) error {
	return s.write(ctx, func(ctx context.Context, t tx) error {
		n, err := t.exec(ctx, `UPDATE vaults SET scopes = $3, retention_days = $4 WHERE workspace_id = $1 AND id = $2 AND scopes = $5 AND retention_days = $6`,
			v.Workspace, v.ID, list(v.Scopes), v.RetentionDays, list(was.Scopes), was.RetentionDays)
		if err == nil && n == 0 {
			return flow.Errorf(flow.CodeStale, "the vault %q has changed since it was read", v.Name)
		}
		return err
	}, audit...)
}

func noVault(id string) *flow.Error {
	return flow.Errorf(flow.CodeNotFound, "there is no vault %q", id).Right("one that vaults list prints, or make it: longstop vaults create NAME")
}

// Vault reads a vault by its id or its name. It answers not_found.
func (s *Store) Vault(ctx context.Context, workspace, id string) (flow.Vault, error) {
	v, err := scanVault(s.db.queryRow(ctx, `SELECT `+vaultColumns+` FROM vaults WHERE workspace_id = $1 AND (id = $2 OR name = $2)
		ORDER BY CASE WHEN id = $2 THEN 0 ELSE 1 END LIMIT 1`, workspace, id))
	return found(v, err, func() *flow.Error { return noVault(id) })
}

// Vaults lists a workspace's vaults, by name.
func (s *Store) Vaults(ctx context.Context, workspace string) ([]flow.Vault, error) {
	rs, err := s.db.query(ctx, `SELECT `+vaultColumns+` FROM vaults WHERE workspace_id = $1 ORDER BY name`, workspace)
	return collect(rs, err, scanVault)
}

// DeleteVault removes a vault with all that is in it. It answers not_found.
func (s *Store) DeleteVault(ctx context.Context, workspace, id string, audit ...flow.Audit) error {
	return s.write(ctx, func(ctx context.Context, t tx) error {
		n, err := t.exec(ctx, `DELETE FROM vaults WHERE workspace_id = $1 AND id = $2`, workspace, id)
		if err != nil {
			return err
		}
		if n == 0 {
			return noVault(id)
		}
		for _, q := range []string{
			`DELETE FROM vault_events WHERE vault_id = $1`, `DELETE FROM vault_event_parents WHERE vault_id = $1`,
			`DELETE FROM vault_event_keys WHERE vault_id = $1`, `DELETE FROM turns WHERE job_id IN (SELECT id FROM jobs WHERE vault_id = $1)`,
			`DELETE FROM jobs WHERE vault_id = $1`, `DELETE FROM connections WHERE vault_id = $1`,
		} {
			if _, err := t.exec(ctx, q, id); err != nil {
				return err
			}
		}
		return nil
	}, audit...)
}

const connectionColumns = `id, workspace_id, vault_id, agent_id, scopes, ceiling, spent, warned, granted_by, created_at, revoked_at`

func scanConnection(r row) (flow.Connection, error) {
	var c flow.Connection
	var scopes string
	var created, warned int64
	var revoked sql.NullInt64
	if err := r.Scan(&c.ID, &c.Workspace, &c.Vault, &c.Agent, &scopes, &c.Ceiling, &c.Spent, &warned, &c.GrantedBy, &created, &revoked); err != nil {
		return c, err
	}
	c.Warned, c.CreatedAt, c.RevokedAt = warned != 0, fromMicros(created), instant(revoked)
	return c, json.Unmarshal([]byte(scopes), &c.Scopes)
}

func flag(v bool) int64 {
	if v {
		return 1
	}
	return 0
}

// Connect stores an agent's connection to a vault. One that was revoked is
// granted again and keeps its id and what was spent; one that holds answers
// conflict.
func (s *Store) Connect(ctx context.Context, c flow.Connection, audit ...flow.Audit) (flow.Connection, error) {
	out := c
	err := s.write(ctx, func(ctx context.Context, t tx) error {
		had, err := scanConnection(t.queryRow(ctx, `SELECT `+connectionColumns+` FROM connections WHERE vault_id = $1 AND agent_id = $2`, c.Vault, c.Agent))
		switch {
		case noRows(err):
			_, err = t.exec(ctx, `INSERT INTO connections (`+connectionColumns+`) VALUES ($1, $2, $3, $4, $5, $6, 0, 0, $7, $8, NULL)`,
				c.ID, c.Workspace, c.Vault, c.Agent, list(c.Scopes), c.Ceiling, c.GrantedBy, c.CreatedAt.UnixMicro())
			return err
		case err != nil:
			return err
		case had.RevokedAt.IsZero():
			return flow.Errorf(flow.CodeConflict, "the agent is connected to this vault already, by %s", had.ID).Right("longstop connections update " + had.ID + " changes what it grants")
		}
		out.ID, out.Spent = had.ID, had.Spent
		_, err = t.exec(ctx, `UPDATE connections SET scopes = $2, ceiling = $3, warned = 0, granted_by = $4, created_at = $5, revoked_at = NULL WHERE id = $1`,
			had.ID, list(c.Scopes), c.Ceiling, c.GrantedBy, c.CreatedAt.UnixMicro())
		return err
	}, audit...)
	return out, err
}

// UpdateConnection stores what a connection grants in the place of what it was
// read with. A ceiling that has changed may be warned of again. It answers
// not_found for one that is revoked, and stale if it has changed since.
func (s *Store) UpdateConnection(ctx context.Context, was, c flow.Connection, audit ...flow.Audit) error {
	return s.write(ctx, func(ctx context.Context, t tx) error {
		now, err := scanConnection(t.queryRow(ctx, `SELECT `+connectionColumns+` FROM connections WHERE workspace_id = $1 AND id = $2`, c.Workspace, c.ID))
		switch {
		case noRows(err) || err == nil && !now.RevokedAt.IsZero():
			return noConnection(c.ID)
		case err != nil:
			return err
		case now.Ceiling != was.Ceiling || !slices.Equal(now.Scopes, was.Scopes):
			return flow.Errorf(flow.CodeStale, "the connection %s has changed since it was read", c.ID)
		}
		return t.send(ctx, nil, `UPDATE connections SET scopes = $3, warned = CASE WHEN ceiling = $4 THEN warned ELSE 0 END, ceiling = $4
			WHERE workspace_id = $1 AND id = $2`, c.Workspace, c.ID, list(c.Scopes), c.Ceiling)
	}, audit...)
}

func noConnection(id string) *flow.Error {
	return flow.Errorf(flow.CodeNotFound, "there is no connection %q", id).Right("an id that connections list prints")
}

// RevokeConnection ends a connection, once. It answers not_found.
func (s *Store) RevokeConnection(ctx context.Context, workspace, id string, at time.Time, audit ...flow.Audit) error {
	return s.write(ctx, func(ctx context.Context, t tx) error {
		n, err := t.exec(ctx, `UPDATE connections SET revoked_at = COALESCE(revoked_at, $3) WHERE workspace_id = $1 AND id = $2`, workspace, id, at.UnixMicro())
		if err == nil && n == 0 {
			return noConnection(id)
		}
		return err
	}, audit...)
}

// Connection reads a connection, revoked or not; with an empty workspace, of
// any, which is for turns only. It answers not_found.
func (s *Store) Connection(ctx context.Context, workspace, id string) (flow.Connection, error) {
	c, err := scanConnection(s.db.queryRow(ctx, `SELECT `+connectionColumns+` FROM connections WHERE id = $1 AND (workspace_id = $2 OR $2 = '')`, id, workspace))
	return found(c, err, func() *flow.Error { return noConnection(id) })
}

// Connections lists the connections of a vault, or with an empty one of the
// workspace, revoked ones too, oldest first.
func (s *Store) Connections(ctx context.Context, workspace, vault string) ([]flow.Connection, error) {
	rs, err := s.db.query(ctx, `SELECT `+connectionColumns+` FROM connections WHERE workspace_id = $1 AND (vault_id = $2 OR $2 = '') ORDER BY created_at, id`,
		workspace, vault)
	return collect(rs, err, scanConnection)
}
