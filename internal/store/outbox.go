package store

import (
	"context"
	"database/sql"
	"time"

	"github.com/longstop-dev/longstop/internal/flow"
)

// putNotice writes a notice that a change brings along.
func putNotice(ctx context.Context, t tx, n *flow.Notice) error {
	return t.send(ctx, nil, `INSERT INTO outbox (id, workspace_id, run_id, type, body, state, tries, status, error, created_at, due_at, settled_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`,
		n.ID, n.Workspace, n.RunID, n.Type, string(n.Body), string(n.State), n.Tries, n.Status, n.Error, n.CreatedAt.UnixMicro(), micros(n.DueAt), micros(n.SettledAt))
}

const noticeColumns = `id, workspace_id, run_id, type, body, state, tries, status, error, created_at, due_at, settled_at`

func scanNotice(r row) (flow.Notice, error) {
	var n flow.Notice
	var body, state string
	var created int64
	var due, settled sql.NullInt64
	err := r.Scan(&n.ID, &n.Workspace, &n.RunID, &n.Type, &body, &state, &n.Tries, &n.Status, &n.Error, &created, &due, &settled)
	n.Body, n.State = []byte(body), flow.NoticeState(state)
	n.CreatedAt, n.DueAt, n.SettledAt = fromMicros(created), instant(due), instant(settled)
	return n, err
}

// Notices lists a workspace's notices, newest first: those before the id
// before, at most limit.
func (s *Store) Notices(ctx context.Context, workspace, before string, limit int) ([]flow.Notice, error) {
	if before == "" {
		before = "~" // after every id
	}
	rs, err := s.db.query(ctx, `SELECT `+noticeColumns+` FROM outbox WHERE workspace_id = $1 AND id < $2 ORDER BY id DESC LIMIT $3`, workspace, before, limit)
	return collect(rs, err, scanNotice)
}

// NoticesDue lists the workspaces of which notices are due at now.
func (s *Store) NoticesDue(ctx context.Context, now time.Time) ([]string, error) {
	rs, err := s.db.query(ctx, `SELECT DISTINCT workspace_id FROM outbox WHERE due_at <= $1`, now.UnixMicro())
	return collect(rs, err, func(r row) (id string, err error) { return id, r.Scan(&id) })
}

// NoticesOf lists a workspace's notices that are due at now, the longest due
// first, at most limit.
func (s *Store) NoticesOf(ctx context.Context, workspace string, now time.Time, limit int) ([]flow.Notice, error) {
	rs, err := s.db.query(ctx, `SELECT `+noticeColumns+` FROM outbox WHERE workspace_id = $1 AND due_at <= $2 ORDER BY due_at, id LIMIT $3`,
		workspace, now.UnixMicro(), limit)
	return collect(rs, err, scanNotice)
}

// NextNotice gives the instant at which the next notice after now is due; zero
// if there is none.
func (s *Store) NextNotice(ctx context.Context, now time.Time) (time.Time, error) {
	var at sql.NullInt64
	if err := s.db.queryRow(ctx, `SELECT MIN(due_at) FROM outbox WHERE due_at > $1`, now.UnixMicro()).Scan(&at); err != nil {
		return time.Time{}, unavailable(err)
	}
	return instant(at), nil
}

// SettleNotice keeps what a try came to.
func (s *Store) SettleNotice(ctx context.Context, n flow.Notice) error {
	return s.write(ctx, func(ctx context.Context, t tx) error {
		return t.send(ctx, nil, `UPDATE outbox SET state = $1, tries = $2, status = $3, error = $4, due_at = $5, settled_at = $6 WHERE id = $7`,
			string(n.State), n.Tries, n.Status, n.Error, micros(n.DueAt), micros(n.SettledAt), n.ID)
	})
}

// SweepNotices removes the notices that were settled before an instant.
func (s *Store) SweepNotices(ctx context.Context, before time.Time) error {
	return s.write(ctx, func(ctx context.Context, t tx) error {
		return t.send(ctx, nil, `DELETE FROM outbox WHERE settled_at < $1`, before.UnixMicro())
	})
}
