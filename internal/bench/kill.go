package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/longstop-dev/longstop/internal/client"
	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/store"
)

// killed starts runs, each held by the API in its first, second or third step,
// kills the process, starts it again and counts what became of them.
func killed(ctx context.Context, b *bed) error {
	p, err := b.folder()
	if err != nil {
		return err
	}
	k := &crash{b: b, place: p, heldAt: map[string]int{}}
	k.up = newUpstream(k.holds)
	url, closed, err := k.up.serve()
	if err != nil {
		return err
	}
	defer closed()
	if err := k.before(ctx, url); err != nil {
		return err
	}
	if err := k.between(ctx); err != nil {
		return err
	}
	return k.after(ctx)
}

// crash is one kill with what was known before it.
type crash struct {
	b     *bed
	place place
	up    *upstream

	mu      sync.Mutex
	heldAt  map[string]int // step at which a run is held, by run: by the order in which they came
	started []string
	was     map[string][]int // steps that were checkpointed, by run
}

// holds is called by the API for each request, with its lock held.
func (k *crash) holds(run string, step int) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	at, known := k.heldAt[run]
	if !known {
		at = len(k.heldAt) % 3
		k.heldAt[run] = at
	}
	return step == at
}

func (k *crash) all(u *upstream) bool { return u.held == k.b.sizes.inFlight }

// before starts the runs and kills the process when each is where it is held.
func (k *crash) before(ctx context.Context, url string) error {
	x, err := k.b.spawn(ctx, k.place)
	if err != nil {
		return err
	}
	defer x.kill()
	source := "name: held\nsteps:\n"
	for i := range 3 {
		source += fmt.Sprintf("  - {type: http_request, timeout: 10m, config: {url: \"%s/{{ run.id }}/%d\"}}\n", url, i)
	}
	if _, err := x.client.CreateWorkflow(ctx, client.Definition{Source: []byte(source), Filename: "bench.yaml"}); err != nil {
		return err
	}
	k.started = make([]string, k.b.sizes.inFlight)
	if _, err := times(ctx, k.b.sizes.inFlight, 16, func(ctx context.Context, i int) (time.Duration, error) {
		run, err := x.client.StartRun(ctx, "held", client.StartRun{})
		if err == nil {
			k.started[i] = run.ID
		}
		return 0, err
	}); err != nil {
		return err
	}
	return k.up.until(ctx, time.Minute, k.all)
}

// between reads what the killed process has left, and clears the API's book.
func (k *crash) between(ctx context.Context) error {
	s, err := store.Open(ctx, k.place.options())
	if err != nil {
		return err
	}
	k.was = map[string][]int{}
	lost := 0
	for _, run := range k.started {
		if _, err := s.Run(ctx, "", run); err != nil {
			lost++
			continue
		}
		steps, err := s.Steps(ctx, run)
		if err != nil {
			return errors.Join(err, s.Close())
		}
		for _, step := range steps {
			if step.Status.Done() {
				k.was[run] = append(k.was[run], step.Index)
			}
		}
	}
	if err := s.Close(); err != nil {
		return err
	}
	if lost > 0 {
		return flow.Errorf(flow.CodeInternal, "%d runs whose start was answered are lost", lost)
	}
	if err := k.up.until(ctx, time.Minute, func(u *upstream) bool { return u.held == 0 }); err != nil {
		return err
	}
	k.up.forget()
	return nil
}

// after starts a process again, waits until every run is back where it was,
// lets them go, and counts.
func (k *crash) after(ctx context.Context) error {
	x, err := k.b.spawn(ctx, k.place)
	if err != nil {
		return err
	}
	defer x.kill()
	if err := k.up.until(ctx, time.Minute, k.all); err != nil {
		return fmt.Errorf("not every run was taken up again: %w", err)
	}
	picked := k.up.latest().Sub(x.began)
	close(k.up.free)
	n, err := k.finished(ctx, x)
	if err != nil {
		return err
	}
	again := 0
	for run, steps := range k.was {
		for _, step := range steps {
			again += k.up.times(run, step)
		}
	}
	for _, row := range []Row{
		atMost("kill/lost", float64(k.b.sizes.inFlight-n), "runs", 0),
		atMost("kill/again", float64(again), "checkpointed steps", 0),
		atMost("kill/picked-up", millis(picked), "ms from start", 1000),
	} {
		if err := k.b.add(row, k.b.sizes.full); err != nil {
			return err
		}
	}
	return nil
}

// finished waits until no run is at work and counts those that succeeded.
func (k *crash) finished(ctx context.Context, x *process) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		open, good := 0, 0
		f := client.RunFilter{}
		f.Limit = 500
		for {
			page, err := x.client.Runs(ctx, f)
			if err != nil {
				return 0, err
			}
			for _, r := range page.Items {
				if !r.Status.Finished() {
					open++
				}
				if r.Status == flow.RunSucceeded {
					good++
				}
			}
			if page.Next == "" {
				break
			}
			f.After = page.Next
		}
		if open == 0 {
			return good, nil
		}
		select {
		case <-ctx.Done():
			return good, nil // what has not ended is lost
		case <-tick.C:
		}
	}
}
