// Package store keeps everything Longstop must not forget: all SQL stands
// here, one file a group of tables. Inside, a public method opens the
// transaction and a private function takes it.
package store

import (
	"context"
	"sync"

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

// Options say where the database is.
type Options struct {
	Path string // of the SQLite file; made when missing
}

// Open opens the database, brings its schema up to date and starts the
// committer. It answers unavailable if the file cannot be used, and invalid
// if it was written by a newer version.
func Open(ctx context.Context, o Options) (*Store, error) {
	db, err := openSQLite(o.Path)
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

// Close commits what waits and closes the database; later writes answer
// unavailable.
func (s *Store) Close() error {
	s.once.Do(func() { close(s.stop) })
	<-s.done
	return s.db.close()
}

// Ping reports whether the database answers.
func (s *Store) Ping(ctx context.Context) error {
	var one int64
	if err := s.db.queryRow(ctx, `SELECT 1`).Scan(&one); err != nil {
		return unavailable(err)
	}
	return nil
}

func unavailable(err error) error {
	return flow.Errorf(flow.CodeUnavailable, "the database cannot be used").
		Right("check disk space, permissions and the log").Because(err)
}
