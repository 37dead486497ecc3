package bench

import (
	"context"
	"time"
)

// latency measures one run at a time, from the call that starts it to the
// commit that ends it, and the floor's in turn.
func latency(ctx context.Context, b *bed) error {
	recorded, err := b.folder()
	if err != nil {
		return err
	}
	f, err := b.bare(ctx, recorded)
	if err != nil {
		return err
	}
	defer f.stop()
	p, err := b.folder()
	if err != nil {
		return err
	}
	r, err := b.rig(ctx, p, nil)
	if err != nil {
		return err
	}
	defer r.stop()
	if err := r.publish(ctx, noop()); err != nil {
		return err
	}
	took, raw, err := b.inTurn(ctx, b.sizes.single,
		func(ctx context.Context, n int) ([]float64, error) {
			return times(ctx, n, 1, timed(func(ctx context.Context) error { return r.whole(ctx, "noop") }))
		},
		func(ctx context.Context, n int) ([]float64, error) { return times(ctx, n, 1, timed(f.whole)) })
	if err != nil {
		return err
	}
	if err := b.add(atMost("latency/sqlite/p50", quantile(took, 0.5), "ms", 1.5).over(quantile(raw, 0.5)), b.sizes.full); err != nil {
		return err
	}
	return b.add(told("latency/sqlite/p99", quantile(took, 0.99), "ms").over(quantile(raw, 0.99)), true)
}

// bare records a run and opens the floor on the database of the record.
func (b *bed) bare(ctx context.Context, p place) (*floor, error) {
	rec, err := b.record(ctx, p, noop(), "noop")
	if err != nil {
		return nil, err
	}
	return b.floor(ctx, p, rec)
}

// timed makes of a function one that says how long it took.
func timed(one func(context.Context) error) func(context.Context, int) (time.Duration, error) {
	return func(ctx context.Context, _ int) (time.Duration, error) {
		began := time.Now()
		err := one(ctx)
		return time.Since(began), err
	}
}

// inTurn measures n values and n floors in ten parts each, one after the
// other, so that a busy machine is busy for both. A part before warms both up.
func (b *bed) inTurn(ctx context.Context, n int, value, floor func(ctx context.Context, n int) ([]float64, error)) (values, floors []float64, err error) {
	part := max(n/10, 1)
	for i := -1; i*part < n; i++ {
		v, err := value(ctx, part)
		if err != nil {
			return nil, nil, err
		}
		f, err := floor(ctx, part)
		if err != nil {
			return nil, nil, err
		}
		if i >= 0 {
			values, floors = append(values, v...), append(floors, f...)
		}
	}
	return values, floors, nil
}
