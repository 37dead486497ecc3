package store

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/longstop-dev/longstop/internal/flow"
)

// postgresTx is a transaction of pgx itself, so that others who speak pgx can
// join it. What is sent waits for the next question or the commit, and then
// goes in one round trip: a refusal or an error shows only there, and undoes
// the batch, whose members the committer then tries one by one.
type postgresTx struct {
	pgx.Tx
	waiting  pgx.Batch
	refusals []*flow.Error // of what waits
}

func (t *postgresTx) send(_ context.Context, refusal *flow.Error, q string, args ...any) error {
	t.waiting.Queue(q, storable(args)...)
	t.refusals = append(t.refusals, refusal)
	return nil
}

// flush runs what waits.
func (t *postgresTx) flush(ctx context.Context) error {
	if len(t.refusals) == 0 {
		return nil
	}
	refusals, batch := t.refusals, t.waiting
	t.refusals, t.waiting = nil, pgx.Batch{}
	results := t.Tx.SendBatch(ctx, &batch)
	var refused *flow.Error
	for _, refusal := range refusals {
		tag, err := results.Exec()
		if err != nil {
			results.Close()
			if refused != nil { // what followed the refusal should not have run at all
				return undone{refused}
			}
			return err
		}
		if refusal != nil && refused == nil && tag.RowsAffected() == 0 {
			refused = refusal
		}
	}
	if err := results.Close(); err != nil {
		return err
	}
	if refused != nil {
		return undone{refused}
	}
	return nil
}

// undone is a refusal that came too late to refuse one write alone. It is not
// a *flow.Error in a chain, which the committer would take as one in time.
type undone struct{ refusal *flow.Error }

// Error gives the refusal's text.
func (u undone) Error() string { return u.refusal.Error() }

func (t *postgresTx) exec(ctx context.Context, q string, args ...any) (int64, error) {
	if err := t.flush(ctx); err != nil {
		return 0, err
	}
	tag, err := t.Tx.Exec(ctx, q, storable(args)...)
	return tag.RowsAffected(), err
}

func (t *postgresTx) query(ctx context.Context, q string, args ...any) (rows, error) {
	if err := t.flush(ctx); err != nil {
		return nil, err
	}
	rs, err := t.Tx.Query(ctx, q, storable(args)...)
	return pgRows{rs}, err
}

func (t *postgresTx) queryRow(ctx context.Context, q string, args ...any) row {
	if err := t.flush(ctx); err != nil {
		return failedRow{err}
	}
	return t.Tx.QueryRow(ctx, q, storable(args)...)
}

func (t *postgresTx) commit(ctx context.Context) error {
	if err := t.flush(ctx); err != nil {
		return err
	}
	return t.Tx.Commit(ctx)
}

func (t *postgresTx) rollback() { _ = t.Tx.Rollback(context.Background()) }
