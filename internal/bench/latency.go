package bench

import (
	"context"
	"time"
)

// latency measures one run at a time, from the call that starts it to the
// commit that ends it.
func latency(ctx context.Context, b *bed) error {
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
	one := func(ctx context.Context, _ int) (time.Duration, error) {
		began := time.Now()
		err := r.whole(ctx, "noop")
		return time.Since(began), err
	}
	if _, err := times(ctx, b.sizes.single/10+1, 1, one); err != nil { // warm
		return err
	}
	took, err := times(ctx, b.sizes.single, 1, one)
	if err != nil {
		return err
	}
	if err := b.add(atMost("latency/sqlite/p50", quantile(took, 0.5), "ms", 1.5), b.sizes.full); err != nil {
		return err
	}
	return b.add(told("latency/sqlite/p99", quantile(took, 0.99), "ms"), true)
}
