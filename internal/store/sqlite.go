package store

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"os"
	"sync"

	"github.com/pressly/goose/v3"
	_ "modernc.org/sqlite" // the driver registers itself

	"github.com/longstop-dev/longstop/internal/flow"
)

// sqlite is one file in WAL mode with full syncs: one connection writes, a few
// read. The writer's statements are prepared once.
type sqlite struct {
	w, r  *sql.DB
	conn  *sql.Conn
	stmts map[string]*sql.Stmt

	queries sync.Map // the readers' prepared queries: text to *sql.Stmt
}

func openSQLite(path string) (database, error) {
	// A new file is its owner's alone, whatever folder it is in; what SQLite
	// makes beside it gets the same mode. Errors are for the driver to find.
	if f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600); err == nil {
		f.Close()
	}
	dsn := "file:" + (&url.URL{Path: path}).EscapedPath() +
		"?_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)" +
		"&_pragma=foreign_keys(1)&_pragma=cache_size(-16000)&_pragma=temp_store(memory)"
	w, err := sql.Open("sqlite", dsn)
	if err != nil {
		return nil, unavailable(err)
	}
	w.SetMaxOpenConns(1)
	conn, err := w.Conn(context.Background())
	if err != nil {
		w.Close()
		return nil, flow.Errorf(flow.CodeUnavailable, "%s cannot be opened as a database", path).
			Right("it must be a writable SQLite file in a writable folder").Because(err)
	}
	r, err := sql.Open("sqlite", dsn+"&_pragma=query_only(1)")
	if err != nil {
		conn.Close()
		w.Close()
		return nil, unavailable(err)
	}
	r.SetMaxOpenConns(4)
	return &sqlite{w: w, r: r, conn: conn, stmts: map[string]*sql.Stmt{}}, nil
}

func (s *sqlite) close() error {
	for _, st := range s.stmts {
		st.Close()
	}
	s.queries.Range(func(_, st any) bool { st.(*sql.Stmt).Close(); return true })
	s.conn.Close()
	s.r.Close()
	return s.w.Close()
}

func (s *sqlite) migrate(ctx context.Context) (err error) {
	// The one writing connection is lent to goose for the time it needs it.
	s.conn.Close()
	defer func() {
		conn, cErr := s.w.Conn(context.Background())
		s.conn, err = conn, errors.Join(err, cErr)
	}()
	files, err := migrations()
	if err != nil {
		return err
	}
	if _, err = migrate(ctx, goose.DialectSQLite3, s.w, files); err != nil {
		return err
	}
	// A file that may only be read opens and migrates well if there is nothing to migrate.
	if _, err := s.w.ExecContext(ctx, `UPDATE goose_db_version SET id = id WHERE 1 = 0`); err != nil {
		return flow.Errorf(flow.CodeUnavailable, "the database file may not be written").Right("it must be a writable SQLite file in a writable folder").Because(err)
	}
	return nil
}

func (s *sqlite) lost() <-chan struct{} { return nil } // the data folder's lock lives as long as the process

// reading gives the prepared form of a query. All our queries are constants,
// so that there are few; database/sql prepares each once per connection.
func (s *sqlite) reading(ctx context.Context, q string) (*sql.Stmt, error) {
	if st, ok := s.queries.Load(q); ok {
		return st.(*sql.Stmt), nil
	}
	st, err := s.r.PrepareContext(ctx, q)
	if err != nil {
		return nil, err
	}
	if kept, had := s.queries.LoadOrStore(q, st); had {
		st.Close()
		return kept.(*sql.Stmt), nil
	}
	return st, nil
}

func (s *sqlite) query(ctx context.Context, q string, args ...any) (rows, error) {
	st, err := s.reading(ctx, q)
	if err != nil {
		return nil, err
	}
	return st.QueryContext(ctx, args...)
}

// queryRow reads a row by its key. It is not interrupted: database/sql and the
// driver would each start a goroutine to watch ctx, which takes longer than
// the reading.
func (s *sqlite) queryRow(ctx context.Context, q string, args ...any) row {
	if err := ctx.Err(); err != nil {
		return failedRow{err}
	}
	ctx = context.WithoutCancel(ctx)
	st, err := s.reading(ctx, q)
	if err != nil {
		return failedRow{err}
	}
	return st.QueryRowContext(ctx, args...)
}

func (s *sqlite) begin(ctx context.Context) (writeTx, error) {
	t := &sqliteTx{s}
	if _, err := t.exec(ctx, `BEGIN IMMEDIATE`); err != nil {
		return nil, err
	}
	return t, nil
}

type sqliteTx struct{ s *sqlite }

func (t *sqliteTx) prepared(ctx context.Context, q string) (*sql.Stmt, error) {
	if st, ok := t.s.stmts[q]; ok {
		return st, nil
	}
	st, err := t.s.conn.PrepareContext(ctx, q)
	if err != nil {
		return nil, err
	}
	t.s.stmts[q] = st
	return st, nil
}

func (t *sqliteTx) exec(ctx context.Context, q string, args ...any) (int64, error) {
	st, err := t.prepared(ctx, q)
	if err != nil {
		return 0, err
	}
	res, err := st.ExecContext(ctx, args...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

func (t *sqliteTx) send(ctx context.Context, refusal *flow.Error, q string, args ...any) error {
	n, err := t.exec(ctx, q, args...)
	if err == nil && n == 0 && refusal != nil {
		return refusal
	}
	return err
}

func (t *sqliteTx) member(int) {} // a refusal comes at once here

func (t *sqliteTx) query(ctx context.Context, q string, args ...any) (rows, error) {
	st, err := t.prepared(ctx, q)
	if err != nil {
		return nil, err
	}
	return st.QueryContext(ctx, args...)
}

func (t *sqliteTx) queryRow(ctx context.Context, q string, args ...any) row {
	st, err := t.prepared(ctx, q)
	if err != nil {
		return failedRow{err}
	}
	return st.QueryRowContext(ctx, args...)
}

func (t *sqliteTx) commit(ctx context.Context) error {
	_, err := t.exec(ctx, `COMMIT`)
	return err
}

func (t *sqliteTx) rollback() { _, _ = t.exec(context.Background(), `ROLLBACK`) }

type failedRow struct{ err error }

func (r failedRow) Scan(...any) error { return r.err }
