package bench

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// quantile gives the value below which the share q of the values lies; 0 of
// none. The values are sorted in place.
func quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	return values[min(int(q*float64(len(values))), len(values)-1)]
}

func median(values []float64) float64 { return quantile(slices.Clone(values), 0.5) }

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// cpuTime is what this process has worked, in user and kernel. A machine that
// is busy with other things takes longer for everything, but that changes it
// little.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// driven is what drive found.
type driven struct {
	rate float64 // done each second
	cpu  float64 // microseconds of CPU for each
}

// drive has so many callers do one after the other for a time, and gives how
// many were done each second. The first error ends it.
func drive(ctx context.Context, callers int, span time.Duration, one func(context.Context) error) (driven, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	began, worked := time.Now(), cpuTime()
	end := began.Add(span)
	var done atomic.Int64
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for time.Now().Before(end) && ctx.Err() == nil {
				if err := one(ctx); err != nil {
					cancel(err)
					return
				}
				done.Add(1)
			}
		})
	}
	all.Wait()
	took := time.Since(began) // with those that were under way at the end, and their time
	if ctx.Err() != nil {
		return driven{}, context.Cause(ctx)
	}
	n := float64(done.Load())
	return driven{rate: n / took.Seconds(), cpu: float64((cpuTime() - worked).Microseconds()) / max(n, 1)}, nil
}

// times does something n times, so many at a time, and gives what each took
// in milliseconds.
func times(ctx context.Context, n, callers int, one func(ctx context.Context, i int) (time.Duration, error)) ([]float64, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	out := make([]float64, n)
	var next atomic.Int64
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < n && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				took, err := one(ctx, i)
				if err != nil {
					cancel(err)
					return
				}
				out[i] = millis(took)
			}
		})
	}
	all.Wait()
	return out, context.Cause(ctx)
}
