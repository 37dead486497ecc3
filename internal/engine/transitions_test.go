package engine_test

import (
	"context"

	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/store"
)

// watched is the store of every test of the engine: what the engine writes
// must follow the state tables.
type watched struct {
	*store.Store
	h *harness
}

// Apply writes a Change and fails the test if the tables do not allow it.
func (w watched) Apply(ctx context.Context, c flow.Change) error {
	wrong, err := w.h.moves.Apply(c, func() error { return w.Store.Apply(ctx, c) })
	for _, line := range wrong {
		w.h.t.Error(line)
	}
	return err
}
