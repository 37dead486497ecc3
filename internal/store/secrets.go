package store

import (
	"context"

	"github.com/longstop-dev/longstop/internal/flow"
)

// Secrets reads a workspace's sealed secrets, by name.
func (s *Store) Secrets(ctx context.Context, workspace string) ([]flow.Secret, error) {
	rs, err := s.db.query(ctx, `SELECT workspace_id, name, sealed, updated_by, updated_at FROM secrets
		WHERE workspace_id = $1 ORDER BY name`, workspace)
	return collect(rs, err, func(r row) (flow.Secret, error) {
		var v flow.Secret
		var sealed string
		var updated int64
		if err := r.Scan(&v.Workspace, &v.Name, &sealed, &v.UpdatedBy, &updated); err != nil {
			return v, err
		}
		v.UpdatedAt = fromMicros(updated)
		v.Sealed = decodeBytes(sealed)
		return v, nil
	})
}

// PutSecret stores a sealed secret, in place of the one with its name.
func (s *Store) PutSecret(ctx context.Context, v flow.Secret, audit ...flow.Audit) error {
	return s.write(ctx, func(ctx context.Context, t tx) error {
		_, err := t.exec(ctx, `INSERT INTO secrets (workspace_id, name, sealed, updated_by, updated_at) VALUES ($1, $2, $3, $4, $5)
			ON CONFLICT (workspace_id, name) DO UPDATE SET sealed = excluded.sealed, updated_by = excluded.updated_by, updated_at = excluded.updated_at`,
			v.Workspace, v.Name, encodeBytes(v.Sealed), v.UpdatedBy, v.UpdatedAt.UnixMicro())
		return err
	}, audit...)
}

// DeleteSecret removes a secret. It answers not_found.
func (s *Store) DeleteSecret(ctx context.Context, workspace, name string, audit ...flow.Audit) error {
	return s.write(ctx, func(ctx context.Context, t tx) error {
		n, err := t.exec(ctx, `DELETE FROM secrets WHERE workspace_id = $1 AND name = $2`, workspace, name)
		if err == nil && n == 0 {
			return flow.Errorf(flow.CodeNotFound, "there is no secret %q", name)
		}
		return err
	}, audit...)
}
