package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/longstop-dev/longstop/internal/client"
	"github.com/longstop-dev/longstop/internal/ident"
)

// growth measures a database with many finished runs beside an empty one:
// throughput in turn, then how long lists and pages of runs take.
func growth(ctx context.Context, b *bed) error {
	full, err := b.folder()
	if err != nil {
		return err
	}
	some, err := b.fill(ctx, full)
	if err != nil {
		return err
	}
	empty, err := b.folder()
	if err != nil {
		return err
	}
	var rigs []*rig
	for _, p := range []place{empty, full} {
		r, err := b.rig(ctx, p, nil)
		if err != nil {
			return err
		}
		defer r.stop()
		if err := r.publish(ctx, noop()); err != nil {
			return err
		}
		rigs = append(rigs, r)
	}
	if err := b.beside(ctx, rigs[0], rigs[1]); err != nil {
		return err
	}
	return b.read(ctx, rigs[1], some)
}

// fill writes finished runs as the floor does, many to a transaction, and
// gives the ids of some.
func (b *bed) fill(ctx context.Context, p place) (some []string, err error) {
	rec, err := b.record(ctx, p, noop(), "noop")
	if err != nil {
		return nil, err
	}
	f, err := b.floor(ctx, p, rec)
	if err != nil {
		return nil, err
	}
	defer f.stop()
	const batch = 1000
	for done := 0; done < b.sizes.finished; {
		var pieces []*piece
		for range min(batch, b.sizes.finished-done) {
			id := ident.New("run")
			for i := range rec.groups {
				pieces = append(pieces, &piece{statements: rec.groups[i], args: rec.as(i, id)})
			}
			if done++; rand.N(b.sizes.finished) < 10_000 {
				some = append(some, id)
			}
		}
		if err := f.write(pieces); err != nil {
			return nil, err
		}
		if done%100_000 == 0 {
			b.say("  %d finished runs", done)
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	return some, nil
}

// beside compares the throughput of two servers, round by round.
func (b *bed) beside(ctx context.Context, empty, full *rig) error {
	const inFlight = 64
	var values, bases, shares []float64
	for round := range b.sizes.rounds + 1 {
		base, err := drive(ctx, inFlight, b.sizes.round, func(ctx context.Context) error { return empty.whole(ctx, "noop") })
		if err != nil {
			return err
		}
		value, err := drive(ctx, inFlight, b.sizes.round, func(ctx context.Context) error { return full.whole(ctx, "noop") })
		if err != nil {
			return err
		}
		b.say("  empty %.0f runs/s, full %.0f, %.2f of it", base.rate, value.rate, value.rate/base.rate)
		if round > 0 {
			values, bases, shares = append(values, value.rate), append(bases, base.rate), append(shares, value.rate/base.rate)
		}
	}
	share := median(shares)
	holds := share >= 0.85
	return b.add(Row{Name: "growth/throughput", Value: median(values), Unit: "runs/s", Bar: "at least 0.85 of empty", Holds: &holds,
		Note: fmt.Sprintf("%.2f of %.0f runs/s, %d in flight, %d finished", share, median(bases), inFlight, b.sizes.finished)}, b.sizes.full)
}

// read times what people look at, over REST.
func (b *bed) read(ctx context.Context, r *rig, some []string) error {
	list := func(f client.RunFilter) func(context.Context, int) (time.Duration, error) {
		f.Limit = 50
		return func(ctx context.Context, i int) (time.Duration, error) {
			f := f
			if f.After != "" { // from somewhere in the middle
				f.After = some[i%len(some)]
			}
			began := time.Now()
			_, err := r.client.Runs(ctx, f)
			return time.Since(began), err
		}
	}
	deep := client.RunFilter{}
	deep.After = "middle"
	for _, look := range []struct {
		name string
		n    int
		one  func(context.Context, int) (time.Duration, error)
	}{
		{"growth/list", b.sizes.reads, list(client.RunFilter{})},
		{"growth/list/deep", b.sizes.reads, list(deep)},
		{"growth/list/workflow", b.sizes.reads, list(client.RunFilter{Workflow: "noop"})},
		{"growth/list/none", b.sizes.reads, list(client.RunFilter{Status: "failed"})},
		{"growth/list/other", b.sizes.reads, list(client.RunFilter{Workflow: "other"})},
		{"growth/run", b.sizes.reads, func(ctx context.Context, i int) (time.Duration, error) {
			began := time.Now()
			if _, err := r.client.Run(ctx, some[i%len(some)]); err != nil {
				return 0, err
			}
			_, err := r.client.Logs(ctx, some[i%len(some)], client.Records{})
			return time.Since(began), err
		}},
	} {
		took, err := times(ctx, look.n, 1, look.one)
		if err != nil {
			return err
		}
		if err := b.add(atMost(look.name+"/p99", quantile(took, 0.99), "ms", 100), b.sizes.full); err != nil {
			return err
		}
	}
	return nil
}
