package chain_test

import (
	"testing"
	"time"

	"github.com/longstop-dev/longstop/internal/chain"
	"github.com/longstop-dev/longstop/internal/flow"
)

// BenchmarkCanonical is what a row costs outside of the committer.
func BenchmarkCanonical(b *testing.B) {
	by := flow.Caller{Workspace: "ws_01a22fe27a5d7ec18fabae5df6e42995", Person: "person_01a22fe27a5d7ec8b3c33d16ec5fe032", KeyID: "key_01a22fe27a8f7a2e8da538424947899b"}
	for b.Loop() {
		a := by.Did("runs.start", "run/run_01a22fe27a8f7a2e8da538424947899b", time.Now(), map[string]any{"workflow": "nightly-sync", "versionId": "ver_01a22fe27a8f7a2e8da538424947899b"})
		if _, err := chain.Canonical(a); err != nil {
			b.Fatal(err)
		}
	}
}
