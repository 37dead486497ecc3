package store

import (
	"errors"

	"github.com/jackc/pgx/v5/pgconn"
	lite "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/longstop-dev/longstop/internal/flow"
)

// damaged says that what stands in a row cannot be read.
func damaged(what string, err error) *flow.Error {
	return flow.Errorf(flow.CodeUnavailable, "what the database has of %s cannot be read: its row is damaged", what).
		Right("put the row back from a backup; nothing else suffers").Because(errors.Join(flow.ErrUnreadable, err))
}

// passing reports whether a failure of the database is of the kind that
// passes: full, locked, short of something. Both engines have undone the
// transaction then.
func passing(err error) bool {
	var file *lite.Error
	if errors.As(err, &file) {
		switch file.Code() & 0xff {
		case sqlite3.SQLITE_FULL, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_NOMEM,
			sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM:
			return true
		}
	}
	var pg *pgconn.PgError
	if errors.As(err, &pg) && len(pg.Code) == 5 {
		switch pg.Code[:2] {
		case "53", "58", "40": // short of resources, a failure of the system, a conflict of transactions
			return true
		}
		return pg.Code == "55P03" || pg.Code == "57014" || pg.Code == "25006" // a lock that is held, a statement that took too long, a server that only reads
	}
	return false
}
