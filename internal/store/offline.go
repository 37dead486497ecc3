package store

import (
	"context"
	"database/sql"
	"net/url"
	"os"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/longstop-dev/longstop/internal/flow"
)

// Records reads the audit records of a database that it does not change, and
// that another process may hold.
type Records struct {
	r     reader
	close func()
}

// OpenRecords opens a database for reading its audit records. It answers
// unavailable if it cannot be read, and invalid for a SQLite file that does not
// keep them in tables.
func OpenRecords(ctx context.Context, o Options) (*Records, error) {
	if o.URL != "" {
		config, err := parseURL(o.URL)
		if err != nil {
			return nil, err
		}
		hide := hider(config.ConnConfig.Password)
		config.ConnConfig.RuntimeParams["default_transaction_read_only"] = "on"
		pool, err := pgxpool.NewWithConfig(ctx, config)
		if err != nil {
			return nil, unreachable(config.ConnConfig, hide(err))
		}
		return &Records{r: &postgres{r: pool}, close: pool.Close}, nil
	}
	if _, err := os.Stat(o.Path); err != nil {
		return nil, flow.Errorf(flow.CodeUnavailable, "%s cannot be read", o.Path).Because(err)
	}
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: o.Path}).EscapedPath()+"?mode=ro&_pragma=busy_timeout(5000)&_pragma=query_only(1)&_pragma=trusted_schema(0)")
	if err != nil {
		return nil, unavailable(err)
	}
	if err := areTables(ctx, db); err != nil {
		db.Close()
		return nil, err
	}
	return &Records{r: &sqlite{r: db}, close: func() { db.Close() }}, nil
}

// areTables checks that a file of whoever sent it has tables where the record
// is read: a view can have rows without end, and others each time.
func areTables(ctx context.Context, db *sql.DB) error {
	var n int
	err := db.QueryRowContext(ctx, `SELECT COUNT(*) FROM pragma_table_list AS l WHERE schema = 'main' AND type = 'table' AND name IN ('workspaces', 'audit', 'audit_heads')
		AND NOT EXISTS (SELECT 1 FROM pragma_table_xinfo(l.name) WHERE hidden <> 0)`).Scan(&n)
	switch {
	case err != nil:
		return flow.Errorf(flow.CodeUnavailable, "the file cannot be read as a SQLite database").Because(err)
	case n != 3:
		return flow.Errorf(flow.CodeInvalid, "the file has no audit record").Right("the longstop.db of a data folder")
	}
	return nil
}

// Workspaces names the workspaces, and those that have a record or a head and
// are none any more.
func (r *Records) Workspaces(ctx context.Context) ([]string, error) {
	rs, err := r.r.query(ctx, `SELECT id FROM workspaces UNION SELECT workspace_id FROM audit UNION SELECT workspace_id FROM audit_heads ORDER BY 1`)
	return collect(rs, err, func(r row) (id string, err error) { return id, r.Scan(&id) })
}

// Read gives a page of a record.
func (r *Records) Read(ctx context.Context, f flow.AuditFilter) ([]flow.Audit, error) {
	return auditRows(ctx, r.r, f)
}

// Head gives where a record ends.
func (r *Records) Head(ctx context.Context, workspace string) (flow.AuditHead, error) {
	h, err := readHead(ctx, r.r, workspace)
	if err != nil {
		return h, unavailable(err)
	}
	return h, nil
}

// Close lets the database go.
func (r *Records) Close() { r.close() }
