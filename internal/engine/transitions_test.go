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
	return w.through("apply "+string(c.Run.Status), func() error {
		wrong, err := w.h.moves.Apply(c, func() error { return w.Store.Apply(ctx, c) })
		for _, line := range wrong {
			w.h.t.Error(line)
		}
		return err
	})
}

// Gate reads a gate, as the engine does.
func (w watched) Gate(ctx context.Context, workspace, id string) (g flow.Gate, err error) {
	err = w.through("gate", func() error {
		g, err = w.Store.Gate(ctx, workspace, id)
		return err
	})
	return g, err
}

func (w watched) through(what string, do func() error) error {
	if w.h.breaks == nil {
		return do()
	}
	return w.h.breaks(what, do)
}
