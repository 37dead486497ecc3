// Package store keeps everything Longstop must not forget: all SQL stands
// here, one file a group of tables. Inside, a public method opens the
// transaction and a private function takes it.
package store

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/longstop-dev/longstop/internal/flow"
)

// Store is the database. It is safe for concurrent use; writes that wait at
// the same time are committed together.
type Store struct {
	db   database
	ops  chan *op
	stop chan struct{}
	done chan struct{}
	once sync.Once
}

// Options say where the database is: in a file of SQLite, or in PostgreSQL.
type Options struct {
	Path string // of the SQLite file; made when missing
	URL  string // of a PostgreSQL database: postgres://USER:PASSWORD@HOST:PORT/NAME; goes before Path

	lockWait time.Duration // how long to wait for a holder that is about to end; 0 for lockWait
}

// Open opens the database, brings its schema up to date and starts the
// committer. It answers unavailable if the database cannot be used, invalid
// if the URL is wrong or the schema that of a newer version, and conflict,
// with the holder's name, if another process works on the PostgreSQL
// database. No error holds the URL's password.
func Open(ctx context.Context, o Options) (*Store, error) {
	db, err := open(ctx, o)
	if err != nil {
		return nil, err
	}
	if err := db.migrate(ctx); err != nil {
		db.close()
		return nil, err
	}
	s := &Store{db: db, ops: make(chan *op, maxBatch), stop: make(chan struct{}), done: make(chan struct{})}
	go s.commitLoop()
	return s, nil
}

func open(ctx context.Context, o Options) (database, error) {
	if o.URL != "" {
		return openPostgres(ctx, o)
	}
	return openSQLite(o.Path)
}

// Lost is closed when this process no longer holds the PostgreSQL database:
// its connection broke, so that another may write now. The store refuses
// every write from then on; the process should end. Nil, which is never
// ready, for SQLite.
func (s *Store) Lost() <-chan struct{} { return s.db.lost() }

// Close commits what waits and closes the database; later writes answer
// unavailable.
func (s *Store) Close() error {
	s.once.Do(func() { close(s.stop) })
	<-s.done
	return s.db.close()
}

// Ping reports whether the database answers and is still ours to write.
func (s *Store) Ping(ctx context.Context) error {
	select {
	case <-s.Lost():
		return errLost
	default:
	}
	var one int64
	if err := s.db.queryRow(ctx, `SELECT 1`).Scan(&one); err != nil {
		return unavailable(err)
	}
	return nil
}

// unavailable is err for the caller: itself where it says already what is
// wrong.
func unavailable(err error) error {
	var told *flow.Error
	if errors.As(err, &told) {
		return told
	}
	return flow.Errorf(flow.CodeUnavailable, "the database cannot be used").
		Right("check disk space, permissions and the log").Because(err)
}
