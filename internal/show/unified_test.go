package show_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/longstop-dev/longstop/internal/show"
)

func TestUnifiedDiff(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if show.Unified(&out, show.Ink{}, "a", "b", "x\n", "x\n") || out.Len() > 0 {
		t.Errorf("the same: got %q", out.String())
	}
	if !show.Unified(&out, show.Ink{}, "w v1", "w v2", "1\n2\n3\n4\n5\n6\n7\n", "1\n2\n3\n4\nfive\n6\n7\n8") {
		t.Error("got the same, want a difference")
	}
	want := "--- w v1\n+++ w v2\n@@ -2,6 +2,8 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n+8\n+\\ no newline at the end\n"
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
	out.Reset()
	show.Unified(&out, show.Ink{}, "a", "b", "", "\x1b[2Jx\n")
	if want := "--- a\n+++ b\n@@ -0,0 +1,1 @@\n+\uFFFD[2Jx\n"; out.String() != want {
		t.Errorf("from nothing: got %q, want %q", out.String(), want)
	}
}

// TestPatchTakesOurDiffs has git make the second text out of the first.
func TestPatchTakesOurDiffs(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	text := func(n int) string {
		var b strings.Builder
		for range n {
			fmt.Fprintf(&b, "line %d\n", r.IntN(12))
		}
		return b.String()
	}
	for i := range 40 {
		a, b := text(1+r.IntN(40)), text(1+r.IntN(40))
		if i%8 == 7 { // more than one cares to compare
			a, b = text(1200)+"a\n", text(1200)+"b\n"
		}
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "f"), []byte(a), 0o600); err != nil {
			t.Fatal(err)
		}
		var diff bytes.Buffer
		if !show.Unified(&diff, show.Ink{}, "a/f", "b/f", a, b) {
			continue
		}
		cmd := exec.CommandContext(t.Context(), "git", "apply", "--unsafe-paths", "-")
		cmd.Dir, cmd.Stdin = dir, &diff
		cmd.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir))
		if msg, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git apply: %v\n%s", err, msg)
		}
		if got, err := os.ReadFile(filepath.Join(dir, "f")); err != nil || string(got) != b {
			t.Fatalf("text %d: got\n%s\nwant\n%s (%v)", i, got, b, err)
		}
	}
}
