package sandbox_test

import (
	"context"
	"fmt"
	"os"
	"runtime/debug"
	"sync"
	"testing"
	"time"

	"github.com/longstop-dev/longstop/internal/sandbox"
)

// TestMemoryIsGivenBack is not parallel: it looks at the whole process, which
// runs nothing else before the parallel tests start.
func TestMemoryIsGivenBack(t *testing.T) {
	s := sandbox.New(sandbox.Options{Memory: 64 << 20, Timeout: time.Minute, CacheDir: cacheDir()})
	checkAlive(t, s)
	before := resident(t)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			_, err := s.Run(context.Background(), sandbox.Program{Code: `const a = []; for(;;) a.push(new Uint8Array(1e6).fill(1))`})
			if err == nil {
				t.Error("a program without end gave a result")
			}
		})
	}
	all.Wait()
	debug.FreeOSMemory()
	if grown := resident(t) - before; grown > 16<<20 {
		t.Errorf("8 programs that filled 64 MiB each left %d MiB behind, want at most 16", grown>>20)
	}
	checkAlive(t, s)
}

// resident gives the bytes of memory that the process holds.
func resident(t *testing.T) int64 {
	t.Helper()
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	var all, held int64
	if _, err := fmt.Sscan(string(text), &all, &held); err != nil {
		t.Fatal(err)
	}
	return held * int64(os.Getpagesize())
}
