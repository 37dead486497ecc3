package store

import (
	"context"
	"database/sql"
	"time"

	"github.com/longstop-dev/longstop/internal/flow"
)

const keyColumns = `id, workspace_id, person_id, name, role, hash, prefix, created_at, revoked_at`

// Keys reads a workspace's API keys, revoked ones too, oldest first.
func (s *Store) Keys(ctx context.Context, workspace string) ([]flow.Key, error) {
	rs, err := s.db.query(ctx, `SELECT `+keyColumns+` FROM api_keys WHERE workspace_id = $1 ORDER BY created_at, id`, workspace)
	return collect(rs, err, scanKey)
}

// KeyByHash reads the API key with a hash, of any workspace, revoked or not.
// It answers not_found.
func (s *Store) KeyByHash(ctx context.Context, hash []byte) (flow.Key, error) {
	k, err := scanKey(s.db.queryRow(ctx, `SELECT `+keyColumns+` FROM api_keys WHERE hash = $1`, encodeBytes(hash)))
	if noRows(err) {
		return k, flow.Errorf(flow.CodeNotFound, "there is no such key")
	}
	if err != nil {
		return k, unavailable(err)
	}
	return k, nil
}

func scanKey(r row) (flow.Key, error) {
	var k flow.Key
	var hash string
	var created int64
	var revoked sql.NullInt64
	if err := r.Scan(&k.ID, &k.Workspace, &k.Person, &k.Name, &k.Role, &hash, &k.Prefix, &created, &revoked); err != nil {
		return k, err
	}
	k.CreatedAt, k.RevokedAt = fromMicros(created), instant(revoked)
	k.Hash = decodeBytes(hash) // of a damaged row: a hash that no key has
	return k, nil
}

// CreateKey stores a new API key.
func (s *Store) CreateKey(ctx context.Context, k flow.Key, audit ...flow.Audit) error {
	return s.write(ctx, func(ctx context.Context, t tx) error { return insertKey(ctx, t, k) }, audit...)
}

func insertKey(ctx context.Context, t tx, k flow.Key) error {
	_, err := t.exec(ctx, `INSERT INTO api_keys (`+keyColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
		k.ID, k.Workspace, k.Person, k.Name, string(k.Role), encodeBytes(k.Hash), k.Prefix, k.CreatedAt.UnixMicro(), micros(k.RevokedAt))
	return err
}

// RevokeKey marks an API key revoked; one that is keeps its instant. It
// answers not_found.
func (s *Store) RevokeKey(ctx context.Context, workspace, id string, at time.Time, audit ...flow.Audit) error {
	return s.write(ctx, func(ctx context.Context, t tx) error {
		n, err := t.exec(ctx, `UPDATE api_keys SET revoked_at = COALESCE(revoked_at, $3) WHERE workspace_id = $1 AND id = $2`,
			workspace, id, at.UnixMicro())
		if err == nil && n == 0 {
			return flow.Errorf(flow.CodeNotFound, "there is no key %q", id)
		}
		return err
	}, audit...)
}

// ReplaceKey revokes an API key and stores the one that takes its place, both
// or neither. It answers not_found, and conflict for one that is revoked.
func (s *Store) ReplaceKey(ctx context.Context, id string, by flow.Key, audit ...flow.Audit) error {
	return s.write(ctx, func(ctx context.Context, t tx) error {
		var revoked sql.NullInt64
		err := t.queryRow(ctx, `SELECT revoked_at FROM api_keys WHERE workspace_id = $1 AND id = $2`, by.Workspace, id).Scan(&revoked)
		switch {
		case noRows(err):
			return flow.Errorf(flow.CodeNotFound, "there is no key %q", id)
		case err != nil:
			return err
		case revoked.Valid:
			return flow.Errorf(flow.CodeConflict, "key %s is revoked already", id).Right("make a new one")
		}
		if _, err := t.exec(ctx, `UPDATE api_keys SET revoked_at = $1 WHERE workspace_id = $2 AND id = $3`, by.CreatedAt.UnixMicro(), by.Workspace, id); err != nil {
			return err
		}
		return insertKey(ctx, t, by)
	}, audit...)
}
