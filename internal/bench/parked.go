package bench

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/longstop-dev/longstop/internal/client"
	"github.com/longstop-dev/longstop/internal/flow"
)

// parked measures what many runs cost that wait at a gate, and how long it
// takes from a person's answer to the next step's request.
func parked(ctx context.Context, b *bed) error {
	p, err := b.folder()
	if err != nil {
		return err
	}
	up := newUpstream(nil)
	url, closed, err := up.serve()
	if err != nil {
		return err
	}
	defer closed()
	if err := b.park(ctx, p, url); err != nil {
		return err
	}
	empty, err := b.folder()
	if err != nil {
		return err
	}
	_, none, err := b.rest(ctx, empty, nil)
	if err != nil {
		return err
	}
	percent, all, err := b.rest(ctx, p, func(x *process) error { return b.resume(ctx, x, up) })
	if err != nil {
		return err
	}
	per := max(all-none, 0) / float64(b.sizes.gates)
	if err := b.add(atMost("parked/resident", per, "B a gate", 1024), b.sizes.full); err != nil {
		return err
	}
	return b.add(atMost("parked/cpu", percent, "% of a CPU", 1), b.sizes.full)
}

// park opens the gates, with a server in this process, and counts what each
// leaves on the heap.
func (b *bed) park(ctx context.Context, p place, url string) error {
	r, err := b.rig(ctx, p, nil)
	if err != nil {
		return err
	}
	defer r.stop()
	source := fmt.Sprintf("name: gated\nsteps:\n  - {type: human_approval, config: {message: go on?}}\n  - {type: http_request, config: {url: \"%s/{{ run.id }}/1\"}}\n", url)
	if err := r.publish(ctx, source); err != nil {
		return err
	}
	var made atomic.Int64
	open := func(ctx context.Context, n int) error {
		_, err := times(ctx, n, 256, func(ctx context.Context, _ int) (time.Duration, error) {
			if n := made.Add(1); n%20_000 == 0 {
				b.say("  %d gates", n)
			}
			return 0, r.whole(ctx, "gated")
		})
		return err
	}
	warm := b.sizes.gates / 10
	if err := open(ctx, warm); err != nil {
		return err
	}
	before := heap()
	began := time.Now()
	if err := open(ctx, b.sizes.gates-warm); err != nil {
		return err
	}
	took := time.Since(began)
	per := max(heap()-before, 0) / float64(b.sizes.gates-warm)
	n, err := r.count(ctx, "gated", flow.RunWaiting)
	if err != nil {
		return err
	}
	if n != b.sizes.gates {
		return flow.Errorf(flow.CodeInternal, "%d of %d runs wait", n, b.sizes.gates)
	}
	if err := b.add(told("parked/opened", float64(b.sizes.gates-warm)/took.Seconds(), "gates/s"), true); err != nil {
		return err
	}
	return b.add(atMost("parked/heap", per, "B a gate", 1024), b.sizes.full)
}

// heap is what is in use, in bytes.
func heap() float64 {
	runtime.GC()
	runtime.GC() // what finalizers held
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// rest starts a longstop on a database, leaves it alone for a time, and does
// something with it at the end.
func (b *bed) rest(ctx context.Context, p place, then func(*process) error) (percent, memory float64, err error) {
	x, err := b.spawn(ctx, p)
	if err != nil {
		return 0, 0, err
	}
	defer x.kill()
	b.say("  started in %.0f ms", millis(x.ready))
	if _, _, err := x.quiet(ctx, b.sizes.quiet/4); err != nil { // what the start has left to do
		return 0, 0, err
	}
	if percent, memory, err = x.quiet(ctx, b.sizes.quiet); err != nil {
		return 0, 0, err
	}
	if then != nil {
		err = then(x)
	}
	return percent, memory, err
}

// resume answers gates, one after the other, spread over all of them.
func (b *bed) resume(ctx context.Context, x *process, up *upstream) error {
	f := client.GateFilter{}
	f.Limit = 500
	every := max(b.sizes.gates/b.sizes.resumes, 1)
	var took []float64
	for i := 0; len(took) < b.sizes.resumes; {
		page, err := x.client.Gates(ctx, f)
		if err != nil {
			return err
		}
		for _, g := range page.Items {
			if i++; i%every != 0 || len(took) == b.sizes.resumes {
				continue
			}
			began := time.Now()
			if _, err := x.client.AnswerGate(ctx, g.ID, flow.GateAnswer{Answer: "approve"}); err != nil {
				return err
			}
			if err := up.until(ctx, time.Minute, func(u *upstream) bool { return !u.first[g.RunID].IsZero() }); err != nil {
				return fmt.Errorf("run %s does not go on: %w", g.RunID, err)
			}
			took = append(took, millis(up.arrived(g.RunID).Sub(began)))
		}
		if page.Next == "" {
			break
		}
		f.After = page.Next
	}
	if len(took) < b.sizes.resumes {
		return flow.Errorf(flow.CodeInternal, "%d of %d gates were answered", len(took), b.sizes.resumes)
	}
	if err := b.add(told("parked/resume/p50", quantile(took, 0.5), "ms"), true); err != nil {
		return err
	}
	return b.add(atMost("parked/resume/p99", quantile(took, 0.99), "ms", 10), b.sizes.full)
}
