package store

import (
	"context"
	"time"

	"github.com/longstop-dev/longstop/internal/flow"
)

// putOnce remembers a creation, nil if it has no key. It refuses the write
// with conflict if the key is taken; one that is too old is free again.
func putOnce(ctx context.Context, t tx, o *flow.Once) error {
	if o == nil {
		return nil
	}
	old := o.At.Add(-flow.OnceFor).UnixMicro()
	taken := flow.Errorf(flow.CodeConflict, "this Idempotency-Key was used at the same instant").At("Idempotency-Key").Right("send the request again")
	err := t.send(ctx, taken, `INSERT INTO idempotency_keys (workspace_id, key, digest, made, created_at) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (workspace_id, key) DO UPDATE SET digest = excluded.digest, made = excluded.made, created_at = excluded.created_at
		WHERE idempotency_keys.created_at <= $6`, o.Workspace, o.Key, o.Digest, o.Made, o.At.UnixMicro(), old)
	if err != nil {
		return err
	}
	return t.send(ctx, nil, `DELETE FROM idempotency_keys WHERE created_at <= $1`, old)
}

// Once reads what a key made in a workspace after an instant. It answers
// not_found.
func (s *Store) Once(ctx context.Context, workspace, key string, after time.Time) (flow.Once, error) {
	o := flow.Once{Workspace: workspace, Key: key}
	var at int64
	err := s.db.queryRow(ctx, `SELECT digest, made, created_at FROM idempotency_keys WHERE workspace_id = $1 AND key = $2 AND created_at > $3`,
		workspace, key, after.UnixMicro()).Scan(&o.Digest, &o.Made, &at)
	if noRows(err) {
		return o, flow.Errorf(flow.CodeNotFound, "this key has made nothing")
	}
	if err != nil {
		return o, unavailable(err)
	}
	o.At = fromMicros(at)
	return o, nil
}
