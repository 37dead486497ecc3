package bench

import (
	"context"
	"fmt"
	"strings"

	"github.com/longstop-dev/longstop/internal/flow"
)

// noop is a workflow of three steps that do nothing but give 300 bytes each.
func noop() string {
	var out strings.Builder
	out.WriteString("name: noop\nsteps:\n")
	for range 3 {
		fmt.Fprintf(&out, "  - {type: transform, config: {value: {ok: true, pad: %s}}}\n", strings.Repeat("x", 280))
	}
	return out.String()
}

func sqliteThroughput(ctx context.Context, b *bed) error {
	return b.throughput(ctx, func() (place, error) { return b.folder() })
}

func postgresThroughput(ctx context.Context, b *bed) error {
	return b.throughput(ctx, func() (place, error) { return b.schema(ctx) })
}

// throughput measures the engine and the floor in turn, each on a database of
// its own, so that a busy machine is busy for both.
func (b *bed) throughput(ctx context.Context, fresh func() (place, error)) error {
	recorded, err := fresh()
	if err != nil {
		return err
	}
	rec, err := b.record(ctx, recorded, noop(), "noop")
	if err != nil {
		return err
	}
	b.say("  %s", rec.size())
	own, err := fresh()
	if err != nil {
		return err
	}
	r, err := b.rig(ctx, own, nil)
	if err != nil {
		return err
	}
	defer r.stop()
	if err := r.publish(ctx, noop()); err != nil {
		return err
	}
	f, err := b.floor(ctx, recorded, rec)
	if err != nil {
		return err
	}
	defer f.stop()
	for _, inFlight := range b.sizes.flights {
		if err := b.compare(ctx, own.name(), inFlight, r, f); err != nil {
			return err
		}
	}
	return r.allEnded(ctx, "noop")
}

func (b *bed) compare(ctx context.Context, name string, inFlight int, r *rig, f *floor) error {
	var values, floors, shares, costs, rawCosts []float64
	for round := range b.sizes.rounds + 1 {
		value, err := drive(ctx, inFlight, b.sizes.round, func(ctx context.Context) error { return r.whole(ctx, "noop") })
		if err != nil {
			return err
		}
		raw, err := drive(ctx, inFlight, b.sizes.round, f.whole)
		if err != nil {
			return err
		}
		b.say("  %s, %d in flight: %.0f runs/s, floor %.0f, %.2f of it", name, inFlight, value.rate, raw.rate, value.rate/raw.rate)
		if round > 0 { // the first warms both up
			values, floors, shares = append(values, value.rate), append(floors, raw.rate), append(shares, value.rate/raw.rate)
			costs, rawCosts = append(costs, value.cpu), append(rawCosts, raw.cpu)
		}
	}
	value, raw, share := median(values), median(floors), median(shares)
	holds := share >= 0.5
	return b.add(Row{Name: fmt.Sprintf("throughput/%s/%d", name, inFlight), Value: value, Unit: "runs/s", Bar: "at least 0.5 of the floor",
		Holds: &holds, Floor: &raw, Note: fmt.Sprintf("%.2f of it, %d rounds in turn; %.0f µs of CPU a run, the floor %.0f", share, len(shares), median(costs), median(rawCosts))}, b.sizes.full)
}

// allEnded checks that every run of a workflow has succeeded: figures of work
// that was not done are worth nothing.
func (r *rig) allEnded(ctx context.Context, workflow string) error {
	all, err := r.count(ctx, workflow, "")
	if err != nil {
		return err
	}
	good, err := r.count(ctx, workflow, flow.RunSucceeded)
	if err != nil {
		return err
	}
	if all == 0 || good != all {
		return flow.Errorf(flow.CodeInternal, "of %d runs %d have succeeded", all, good)
	}
	return nil
}
