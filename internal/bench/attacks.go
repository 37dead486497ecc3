package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/longstop-dev/longstop/internal/sandbox"
	"github.com/longstop-dev/longstop/internal/sandbox/attack"
)

// overrun is what work within the engine may take past its deadline: the
// sandbox says 250 ms, and the machine has other things to do.
const overrun = 350 * time.Millisecond

// attacks lets every program of the sandbox's suite loose and counts those
// that are not stopped as they should be.
func attacks(ctx context.Context, b *bed) error {
	cache, err := b.folder()
	if err != nil {
		return err
	}
	o := sandbox.Options{Timeout: b.sizes.attack, Memory: 32 << 20, MaxOutput: 64 << 10, CacheDir: cache.dir}
	hasty := sandbox.New(o)
	defer hasty.Close(context.WithoutCancel(ctx))
	o.Timeout = time.Minute
	patient := sandbox.New(o)
	defer patient.Close(context.WithoutCancel(ctx))
	for _, s := range []*sandbox.Sandbox{hasty, patient} { // compiled before anything is timed
		if _, err := s.Run(ctx, sandbox.Program{Code: "return 1"}); err != nil && !timedOut(err) { // on a busy machine
			return err
		}
	}
	suite := attack.Suite()
	free, late := 0, time.Duration(0)
	for _, a := range suite {
		s, timed := patient, slices.Contains(a.Kinds, sandbox.KindTimeout)
		if timed {
			s = hasty
		}
		began := time.Now()
		got, err := s.Run(ctx, sandbox.Program{Code: a.Code})
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if timed {
			late = max(late, time.Since(began)-b.sizes.attack)
		}
		if why := stopped(a, got, err); why != "" {
			b.say("  %s: %s", a.Name, why)
			free++
		}
	}
	row := atMost("sandbox/not-stopped", float64(free), "attacks", 0)
	row.Note = fmt.Sprintf("of %d", len(suite))
	if err := b.add(row, true); err != nil {
		return err
	}
	return b.add(atMost("sandbox/late", max(millis(late), 0), "ms past the deadline", millis(overrun)), b.sizes.full)
}

func timedOut(err error) bool {
	var failed *sandbox.Error
	return errors.As(err, &failed) && failed.Kind == sandbox.KindTimeout
}

// stopped says how an attack ended that did not end as it should; "" if it did.
func stopped(a attack.Program, got sandbox.Result, err error) string {
	if a.Kinds == nil {
		if err != nil || (a.Value != "" && string(got.Value) != a.Value) {
			return fmt.Sprintf("gave %.100s (%v)", got.Value, err)
		}
		return ""
	}
	var failed *sandbox.Error
	if !errors.As(err, &failed) || !slices.Contains(a.Kinds, failed.Kind) {
		return fmt.Sprintf("gave %.100s (%v)", got.Value, err)
	}
	return ""
}
