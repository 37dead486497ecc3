package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/longstop-dev/longstop/internal/flow"
)

// database is what the store needs of an engine: this file and the file of
// each engine are the only places that know which one it is.
type database interface {
	reader
	// begin starts the one write transaction.
	begin(ctx context.Context) (writeTx, error)
	// migrate brings the schema up to date.
	migrate(ctx context.Context) error
	// lost is closed when this process must not write any more, because the
	// database no longer keeps others out for it; nil if that cannot be.
	lost() <-chan struct{}
	close() error
}

// reader runs queries. SQL is one text for all engines: $n, CAST and never ::.
type reader interface {
	query(ctx context.Context, q string, args ...any) (rows, error)
	queryRow(ctx context.Context, q string, args ...any) row
}

// tx is a write transaction as a private function takes it.
type tx interface {
	reader
	// exec runs a statement and gives the number of rows it touched.
	exec(ctx context.Context, q string, args ...any) (int64, error)
	// send runs a statement whose answer nobody reads, now or at the latest
	// before the commit and before anything else is asked: PostgreSQL gets many
	// at once. With a refusal, that is the write's error if no row is touched.
	send(ctx context.Context, refusal *flow.Error, q string, args ...any) error
}

type writeTx interface {
	tx
	// member says whose statements follow: those of the batch's i-th write.
	member(i int)
	// commit ends the transaction. An error that is refusals says whose fault
	// it is that nothing was committed: without them it would be.
	commit(ctx context.Context) error
	rollback()
}

// refusals are refusals that came to light only after more had been written,
// by the member of the batch that they concern.
type refusals map[int]*flow.Error

func (r refusals) Error() string { return fmt.Sprintf("%d writes of the batch are refused", len(r)) }

type row interface{ Scan(dest ...any) error }

type rows interface {
	row
	Next() bool
	Err() error
	Close() error
}

// errFull is a scan's error that ends the reading of rows: there are enough.
var errFull = errors.New("there are enough")

// collect reads every row with scan. A query error or a scan error ends it.
func collect[T any](rs rows, err error, scan func(row) (T, error)) ([]T, error) {
	if err != nil {
		return nil, unavailable(err)
	}
	defer rs.Close()
	var out []T
	for rs.Next() {
		v, err := scan(rs)
		if errors.Is(err, errFull) {
			return out, nil
		}
		if err != nil {
			return nil, unavailable(err)
		}
		out = append(out, v)
	}
	if err := rs.Err(); err != nil {
		return nil, unavailable(err)
	}
	return out, nil
}

// found is the one row that was read: missing's error if there is none.
func found[T any](v T, err error, missing func() *flow.Error) (T, error) {
	switch {
	case noRows(err):
		return v, missing()
	case err != nil:
		return v, unavailable(err)
	}
	return v, nil
}

func noRows(err error) bool { return errors.Is(err, sql.ErrNoRows) || errors.Is(err, pgx.ErrNoRows) }

// micros is an instant as it is stored; the zero time is NULL.
func micros(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UnixMicro()
}

func instant(v sql.NullInt64) time.Time {
	if !v.Valid {
		return time.Time{}
	}
	return fromMicros(v.Int64)
}

func fromMicros(v int64) time.Time { return time.UnixMicro(v).UTC() }

// text is optional JSON as it is stored; nil is NULL.
func text(raw []byte) any {
	if raw == nil {
		return nil
	}
	return string(raw)
}

func raw(v sql.NullString) []byte {
	if !v.Valid {
		return nil
	}
	return []byte(v.String)
}
