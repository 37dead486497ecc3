package store

import (
	"context"

	"github.com/longstop-dev/longstop/internal/flow"
)

// Settings reads a workspace's settings, by key.
func (s *Store) Settings(ctx context.Context, workspace string) ([]flow.Setting, error) {
	rs, err := s.db.query(ctx, `SELECT workspace_id, key, value, sealed, meta, updated_by, updated_at FROM settings
		WHERE workspace_id = $1 ORDER BY key`, workspace)
	return collect(rs, err, func(r row) (flow.Setting, error) {
		var v flow.Setting
		var sealed, meta string
		var updated int64
		if err := r.Scan(&v.Workspace, &v.Key, &v.Value, &sealed, &meta, &v.UpdatedBy, &updated); err != nil {
			return v, err
		}
		v.UpdatedAt = fromMicros(updated)
		if meta != "" {
			v.Meta = []byte(meta)
		}
		v.Sealed = decodeBytes(sealed)
		return v, nil
	})
}

// PutSetting stores a setting, in place of the one with its key.
func (s *Store) PutSetting(ctx context.Context, v flow.Setting, audit ...flow.Audit) error {
	return s.write(ctx, func(ctx context.Context, t tx) error {
		_, err := t.exec(ctx, `INSERT INTO settings (workspace_id, key, value, sealed, meta, updated_by, updated_at)
			VALUES ($1, $2, $3, $4, $5, $6, $7)
			ON CONFLICT (workspace_id, key) DO UPDATE SET value = excluded.value, sealed = excluded.sealed, meta = excluded.meta,
				updated_by = excluded.updated_by, updated_at = excluded.updated_at`,
			v.Workspace, v.Key, v.Value, encodeBytes(v.Sealed), string(v.Meta), v.UpdatedBy, v.UpdatedAt.UnixMicro())
		return err
	}, audit...)
}

// DeleteSetting removes a setting if it is there.
func (s *Store) DeleteSetting(ctx context.Context, workspace, key string, audit ...flow.Audit) error {
	return s.write(ctx, func(ctx context.Context, t tx) error {
		_, err := t.exec(ctx, `DELETE FROM settings WHERE workspace_id = $1 AND key = $2`, workspace, key)
		return err
	}, audit...)
}
