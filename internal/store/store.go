// Package store keeps everything Longstop must not forget: all SQL stands
// here, one file a group of tables. Inside, a public method opens the
// transaction and a private function takes it.
package store

import (
	"context"
	"errors"
	"sync"

	"github.com/longstop-dev/longstop/internal/flow"
)

// Store is the database. It is safe for concurrent use; writes that wait at
// the same time are committed together.
type Store struct {
	db   database
	show func([]Statement) // Options.Trace
	ops  chan *op
	stop chan struct{}
	done chan struct{}
	once sync.Once

	heads map[string]flow.AuditHead // where the audit records end; the committer's own
}

// Options say where the database is: one of the two.
type Options struct {
	Path string // of the SQLite file; made when missing
	URL  string // of a PostgreSQL database: postgres://user:password@host/database
	// Trace, if set, is shown the statements of each transaction after its
	// commit, by the one goroutine that commits: for those who measure what a
	// write costs. They may hold what is written.
	Trace func([]Statement)
}

// Open opens the database, brings its schema up to date and starts the
// committer. It answers unavailable if the database cannot be used, invalid
// if it was written by a newer version or its URL is none, and conflict if
// another process holds it. No error holds the URL's password.
func Open(ctx context.Context, o Options) (*Store, error) {
	db, err := openDatabase(ctx, o)
	if err != nil {
		return nil, err
	}
	if err := db.migrate(ctx); err != nil {
		db.close()
		return nil, err
	}
	s := &Store{db: db, show: o.Trace, ops: make(chan *op, maxBatch), stop: make(chan struct{}), done: make(chan struct{}),
		heads: map[string]flow.AuditHead{}}
	go s.commitLoop()
	return s, nil
}

func openDatabase(ctx context.Context, o Options) (database, error) {
	if o.URL != "" {
		return openPostgres(ctx, o.URL)
	}
	return openSQLite(o.Path)
}

// Lost is closed when the store has begun to refuse every write because the
// database no longer keeps other processes out: time to start again. It is
// nil where that cannot happen.
func (s *Store) Lost() <-chan struct{} { return s.db.lost() }

// Close commits what waits and closes the database; later writes answer
// unavailable.
func (s *Store) Close() error {
	s.once.Do(func() { close(s.stop) })
	<-s.done
	return s.db.close()
}

// Ping reports whether the database answers and takes writes.
func (s *Store) Ping(ctx context.Context) error {
	select {
	case <-s.db.lost():
		return errLost
	default:
	}
	var one int64
	if err := s.db.queryRow(ctx, `SELECT 1`).Scan(&one); err != nil {
		return unavailable(err)
	}
	return nil
}

// unavailable makes a failure of the database an error for people; one that
// is made already stays as it is.
func unavailable(err error) error {
	var made *flow.Error
	if errors.As(err, &made) {
		return made
	}
	if passing(err) {
		err = errors.Join(flow.ErrLater, err)
	}
	return flow.Errorf(flow.CodeUnavailable, "the database cannot be used").
		Right("check disk space, permissions and the log").Because(err)
}
