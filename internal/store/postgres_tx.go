package store

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/longstop-dev/longstop/internal/flow"
)

// writeTimeout bounds a transaction: a server that does not answer must not
// hold up for ever those who wait for a write.
const writeTimeout = time.Minute

// postgresTx is a transaction on the lock's connection, one of pgx so that
// others who speak pgx can join it. Statements for which nobody waits are sent
// together: a batch of changes waits for the server twice, however many
// statements it has.
type postgresTx struct {
	hold   *hold
	conn   *pgx.Conn
	tx     pgx.Tx // nil until the first statements were sent
	ctx    context.Context
	cancel context.CancelFunc

	queue *pgx.Batch
	at    int      // the member whose statements are queued
	late  refusals // found out while sending
	err   error    // the first failure: the transaction is dead
}

func (p *postgres) begin(ctx context.Context) (writeTx, error) {
	conn, err := p.hold.enter()
	if err != nil {
		return nil, err
	}
	t := &postgresTx{hold: p.hold, conn: conn, queue: &pgx.Batch{}}
	t.ctx, t.cancel = context.WithTimeout(ctx, writeTimeout)
	t.queue.BeginTx(pgx.TxOptions{})
	return t, nil
}

func (t *postgresTx) member(i int) { t.at = i }

func (t *postgresTx) send(_ context.Context, refusal *flow.Error, q string, args ...any) error {
	if t.err != nil {
		return t.err
	}
	queued := t.queue.Queue(q, storable(args)...)
	if refusal == nil {
		return nil
	}
	member := t.at
	queued.Exec(func(tag pgconn.CommandTag) error {
		if tag.RowsAffected() == 0 {
			if t.late == nil {
				t.late = refusals{}
			}
			t.late[member] = refusal
		}
		return nil
	})
	return nil
}

// flush has the server run what is queued. A refusal goes before an error,
// which may be its consequence.
func (t *postgresTx) flush() error {
	if t.err == nil && t.queue.Len() > 0 {
		res := t.conn.SendBatch(t.ctx, t.queue)
		if t.tx == nil {
			t.tx = res.Tx()
		}
		err := res.Close()
		t.queue = &pgx.Batch{}
		if len(t.late) > 0 {
			err = t.late
		}
		_ = t.failed(err)
	}
	return t.err
}

func (t *postgresTx) exec(_ context.Context, q string, args ...any) (int64, error) {
	if err := t.flush(); err != nil {
		return 0, err
	}
	tag, err := t.tx.Exec(t.ctx, q, storable(args)...)
	return tag.RowsAffected(), t.failed(err)
}

func (t *postgresTx) query(_ context.Context, q string, args ...any) (rows, error) {
	if err := t.flush(); err != nil {
		return nil, err
	}
	rs, err := t.tx.Query(t.ctx, q, storable(args)...)
	return pgRows{rs}, t.failed(err)
}

func (t *postgresTx) queryRow(_ context.Context, q string, args ...any) row {
	if err := t.flush(); err != nil {
		return failedRow{err}
	}
	return t.tx.QueryRow(t.ctx, q, storable(args)...)
}

// failed remembers a statement's failure, after which nothing else counts.
func (t *postgresTx) failed(err error) error {
	if err != nil && t.conn.IsClosed() {
		err = errLost.Because(err)
	}
	if err != nil {
		t.err = err
	}
	return err
}

func (t *postgresTx) commit(context.Context) error {
	if err := t.flush(); err != nil {
		return err // the caller rolls back
	}
	if err := t.tx.Commit(t.ctx); err != nil {
		return t.failed(err)
	}
	t.end()
	return nil
}

func (t *postgresTx) rollback() {
	if t.tx != nil {
		if err := t.tx.Rollback(t.ctx); err != nil && !errors.Is(err, pgx.ErrTxClosed) {
			t.hold.drop() // what state it is in cannot be told
		}
	}
	t.end()
}

func (t *postgresTx) end() {
	t.cancel()
	t.hold.leave()
}
