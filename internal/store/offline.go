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
// unavailable if it cannot be read.
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
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: o.Path}).EscapedPath()+"?mode=ro&_pragma=busy_timeout(5000)&_pragma=query_only(1)")
	if err != nil {
		return nil, unavailable(err)
	}
	return &Records{r: &sqlite{r: db}, close: func() { db.Close() }}, nil
}

// Workspaces names the workspaces that have a record, and those that have a
// head without one.
func (r *Records) Workspaces(ctx context.Context) ([]string, error) {
	rs, err := r.r.query(ctx, `SELECT workspace_id FROM audit UNION SELECT workspace_id FROM audit_heads ORDER BY workspace_id`)
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
