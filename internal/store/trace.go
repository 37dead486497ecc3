package store

import (
	"context"
	"slices"

	"github.com/longstop-dev/longstop/internal/flow"
)

// Statement is one statement of a write, with its arguments as they are bound.
type Statement struct {
	SQL  string
	Args []any
}

// traced shows the statements of a transaction once they are committed.
type traced struct {
	writeTx
	show func([]Statement)
	all  []Statement
}

func (t *traced) note(q string, args []any) {
	t.all = append(t.all, Statement{q, slices.Clone(args)})
}

func (t *traced) exec(ctx context.Context, q string, args ...any) (int64, error) {
	t.note(q, args)
	return t.writeTx.exec(ctx, q, args...)
}

func (t *traced) send(ctx context.Context, refusal *flow.Error, q string, args ...any) error {
	t.note(q, args)
	return t.writeTx.send(ctx, refusal, q, args...)
}

func (t *traced) commit(ctx context.Context) error {
	err := t.writeTx.commit(ctx)
	if err == nil {
		t.show(t.all)
	}
	return err
}
