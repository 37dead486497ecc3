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

// TestCacheIsFilledAndPassedOverWhenSpoilt starts again and again with one folder.
func TestCacheIsFilledAndPassedOverWhenSpoilt(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "cache")
	if err := runs(t, Options{CacheDir: dir, Timeout: time.Minute}); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(dir)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Fatalf("the folder: got %v, %v, want mode 0700", info, err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*", "*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("files in the cache: got %v, %v, want one", files, err)
	}
	whole, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	flipped := append([]byte(nil), whole...)
	flipped[len(flipped)/2] ^= 1
	for name, spoilt := range map[string][]byte{
		"half": whole[:len(whole)/2], "a bit flipped": flipped,
	} {
		if err := os.WriteFile(files[0], spoilt, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := runs(t, Options{CacheDir: dir, Timeout: time.Minute}); err != nil {
			t.Errorf("with %s in the cache: %v", name, err)
		}
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
