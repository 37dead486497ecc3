package sandbox_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// TestMain gives all tests one cache: compiling the engine takes many seconds
// under the race detector.
func TestMain(m *testing.M) { os.Exit(runAll(m)) }

func runAll(m *testing.M) int {
	dir, err := os.MkdirTemp("", "sandbox")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := os.Setenv("SANDBOX_TEST_CACHE", filepath.Join(dir, "cache")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// cacheDir is the cache of this test run. It travels in the environment since
// TestMain has no other way to hand it on but a package variable.
func cacheDir() string { return os.Getenv("SANDBOX_TEST_CACHE") }
