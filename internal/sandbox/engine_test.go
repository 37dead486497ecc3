package sandbox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestEngineIsTheOneWeChecked pins the embedded file.
func TestEngineIsTheOneWeChecked(t *testing.T) {
	t.Parallel()
	const want = "c0bd8f296e18cf074969f6401b9ecb72609a1323818ec2b9bf7a8f8d740d1363"
	sum := sha256.Sum256(quickjs)
	if got := hex.EncodeToString(sum[:]); got != want {
		t.Errorf("quickjs.wasm has sha256 %s, want %s", got, want)
	}
	licence, err := os.ReadFile("quickjs.LICENSE")
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{want, "Vercel", "Fabrice Bellard", "without warranty of any kind", "Unicode"} {
		if !strings.Contains(strings.ToLower(string(licence)), strings.ToLower(part)) {
			t.Errorf("quickjs.LICENSE does not say %q", part)
		}
	}
}

func runs(t *testing.T, o Options) error {
	t.Helper()
	s := New(o)
	got, err := s.Run(context.Background(), Program{Code: "return 7"})
	if err == nil && string(got.Value) != "7" {
		t.Errorf("got %s, want 7", got.Value)
	}
	if err := s.Close(context.Background()); err != nil {
		t.Errorf("closing: %v", err)
	}
	return err
}

// TestCacheIsFilledAndPassedOverWhenSpoilt looks at the cache of all tests and
// spoils a copy of it: compiling is slow under the race detector.
func TestCacheIsFilledAndPassedOverWhenSpoilt(t *testing.T) {
	t.Parallel()
	filled := os.Getenv("SANDBOX_TEST_CACHE")
	if err := runs(t, Options{CacheDir: filled, Timeout: time.Minute}); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filled)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Fatalf("the folder: got %v, %v, want mode 0700", info, err)
	}
	spoilt := filepath.Join(t.TempDir(), "cache")
	if err := os.CopyFS(spoilt, os.DirFS(filled)); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(spoilt, 0o700); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(spoilt, "*", "*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("files in the cache: got %v, %v, want some", files, err)
	}
	for _, file := range files {
		code, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		code[len(code)/2] ^= 1
		if err := os.WriteFile(file, code, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := runs(t, Options{CacheDir: spoilt, Timeout: time.Minute}); err != nil {
		t.Errorf("with a bit of the cache flipped: %v", err)
	}
}

// TestCacheOpenToOthersIsRefused since what lies there is run as machine code.
func TestCacheOpenToOthersIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o770); err != nil {
		t.Fatal(err)
	}
	err := runs(t, Options{CacheDir: dir})
	var failed *Error
	if !errors.As(err, &failed) || failed.Kind != KindInternal || !strings.Contains(failed.Err.Error(), "0700") {
		t.Errorf("got %v, want an internal error that names 0700", err)
	}
}
