package bench

import (
	"context"
	"os"
)

// idle measures a server that nobody uses: how long it takes to start, with an
// empty folder and with one that it has made before, and what it holds then.
func idle(ctx context.Context, b *bed) error {
	var first, again []float64
	for range b.sizes.starts {
		p, err := b.folder()
		if err != nil {
			return err
		}
		for _, took := range []*[]float64{&first, &again} {
			x, err := b.spawn(ctx, p)
			if err != nil {
				return err
			}
			*took = append(*took, millis(x.ready))
			if err := x.stop(); err != nil {
				return err
			}
		}
	}
	if err := b.add(atMost("idle/start/first", median(first), "ms", 300), true); err != nil {
		return err
	}
	if err := b.add(atMost("idle/start/again", median(again), "ms", 300), true); err != nil {
		return err
	}
	if err := b.restful(ctx); err != nil {
		return err
	}
	path, err := b.binary()
	if err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	return b.add(atMost("idle/binary", float64(info.Size())/1e6, "MB", 45), true)
}

// restful measures memory and CPU of a server without work.
func (b *bed) restful(ctx context.Context) error {
	p, err := b.folder()
	if err != nil {
		return err
	}
	x, err := b.spawn(ctx, p)
	if err != nil {
		return err
	}
	defer x.kill()
	percent, memory, err := x.quiet(ctx, b.sizes.quiet)
	if err != nil {
		return err
	}
	if err := b.add(atMost("idle/memory", memory/1e6, "MB", 60), true); err != nil {
		return err
	}
	return b.add(told("idle/cpu", percent, "% of a CPU"), true)
}
