package sandbox_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/longstop-dev/longstop/internal/sandbox"
	"github.com/longstop-dev/longstop/internal/sandbox/attack"
)

const (
	limit  = 100 * time.Millisecond // of a program that must be stopped
	memory = 32 << 20
	slack  = 5 * time.Second // for a machine busy with other tests
)

// hasty stops programs soon; patient waits for those that end by themselves,
// however busy the machine is.
func hasty() *sandbox.Sandbox {
	return sandbox.New(sandbox.Options{Timeout: limit, Memory: memory, MaxOutput: 64 << 10, CacheDir: cacheDir()})
}

func patient() *sandbox.Sandbox {
	return sandbox.New(sandbox.Options{Timeout: time.Minute, Memory: memory, MaxOutput: 64 << 10, CacheDir: cacheDir()})
}

// probe sees anything that pollution left.
const probe = `console.log('here');
return [({}).hacked ?? null, [1].map(x => x + 1), typeof leak, typeof input, await Promise.resolve(3), JSON.stringify([1]), Math.random() < 1, typeof Map, [5]]`

const probed = `[null,[2],"undefined","undefined",3,"[1]",true,"function",[5]]`

// checkAlive runs the probe, again when a busy machine did not let it end in
// time.
func checkAlive(t *testing.T, s *sandbox.Sandbox) {
	t.Helper()
	var got sandbox.Result
	var err error
	for until := time.Now().Add(time.Minute); time.Now().Before(until); {
		got, err = s.Run(context.Background(), sandbox.Program{Code: probe})
		var failed *sandbox.Error
		if !errors.As(err, &failed) || failed.Kind != sandbox.KindTimeout {
			break
		}
	}
	if err != nil || string(got.Value) != probed || !slices.Equal(got.Console, []string{"here"}) {
		t.Errorf("the next program: got %s, console %q, %v, want %s", got.Value, got.Console, err, probed)
	}
}

// TestAttacksAreStopped runs one attack after the other, each timed and
// followed by a harmless program in the same sandbox.
func TestAttacksAreStopped(t *testing.T) {
	t.Parallel()
	soon, late := hasty(), patient()
	for _, a := range attack.Suite() {
		t.Run(a.Name, func(t *testing.T) {
			s, most := late, time.Minute
			if slices.Contains(a.Kinds, sandbox.KindTimeout) {
				s, most = soon, limit+slack
			}
			checkAlive(t, s)
			began := time.Now()
			got, err := s.Run(context.Background(), sandbox.Program{Code: a.Code})
			if took := time.Since(began); took > most {
				t.Errorf("it ran for %v, want at most %v", took, most)
			}
			checkStopped(t, a, got, err)
			checkAlive(t, s)
		})
	}
	for _, s := range []*sandbox.Sandbox{soon, late} {
		if err := s.Close(context.Background()); err != nil {
			t.Errorf("closing: %v", err)
		}
	}
}

func checkStopped(t *testing.T, a attack.Program, got sandbox.Result, err error) {
	t.Helper()
	if a.Kinds == nil {
		if err != nil || (a.Value != "" && string(got.Value) != a.Value) {
			t.Errorf("got %s, %v, want %s", got.Value, err, a.Value)
		}
		return
	}
	var failed *sandbox.Error
	if !errors.As(err, &failed) || !slices.Contains(a.Kinds, failed.Kind) {
		t.Errorf("got %.100s, %T %v, want an error of kind %v", got.Value, err, err, a.Kinds)
		return
	}
	if failed.Message == "" || len(failed.Message) > 1000 || got.Value != nil {
		t.Errorf("message of %d bytes %.100q with value %.100s, want 1 to 1000 bytes and no value", len(failed.Message), failed.Message, got.Value)
	}
}

// TestEightAttackersAtOnce lets eight callers mix attacks with honest
// programs, each of which must get its own answer.
func TestEightAttackersAtOnce(t *testing.T) {
	t.Parallel()
	s := sandbox.New(sandbox.Options{Timeout: time.Second, Memory: memory, CacheDir: cacheDir()})
	hostile := []string{`for(;;){}`, attack.Pollution, `const a = []; for(;;) a.push(new Uint8Array(1e6).fill(1))`, `for(;;) await null`}
	var all sync.WaitGroup
	for caller := range 8 {
		all.Go(func() {
			for round := range 8 {
				if round == 0 {
					_, _ = s.Run(context.Background(), sandbox.Program{Code: hostile[caller%len(hostile)]})
					continue
				}
				want := fmt.Sprintf(`"%d of %d"`, round, caller)
				got, err := s.Run(context.Background(), sandbox.Program{
					Code: "return input",
					Args: map[string]json.RawMessage{"input": json.RawMessage(want)},
				})
				if err != nil || string(got.Value) != want {
					t.Errorf("got %s, %v, want %s", got.Value, err, want)
				}
			}
		})
	}
	all.Wait()
	checkAlive(t, s)
}

// TestMemoryEndsAtTheCap counts how much a program can get.
func TestMemoryEndsAtTheCap(t *testing.T) {
	t.Parallel()
	s := patient()
	got, err := s.Run(context.Background(), sandbox.Program{
		Code: `const a = []; for (;;) { a.push(new Uint8Array(1 << 20)); console.log(a.length) }`,
	})
	var failed *sandbox.Error
	if n := len(got.Console); !errors.As(err, &failed) || failed.Kind != sandbox.KindMemory || n < 20 || n >= memory>>20 {
		t.Errorf("it got %d MiB, then %v, want 20 to %d and an error of kind memory", n, err, memory>>20)
	}
}
