package store

import (
	"sync"
	"testing"

	"github.com/longstop-dev/longstop/internal/flow"
)

func TestModelTokens(t *testing.T) {
	onEach(t, func(t *testing.T, db Options) {
		s := open(t, db)
		if got := must(s.ModelTokens(t.Context(), "ws", "2026-03-01")); got != 0 {
			t.Errorf("nothing was used: got %d", got)
		}
		var wg sync.WaitGroup
		for range 20 { // as many as answer at once, none of them is lost
			wg.Go(func() {
				if err := s.AddModelTokens(t.Context(), "ws", "2026-03-01", flow.Usage{Input: 7, Output: 3, Total: 10}); err != nil {
					t.Errorf("add: %v", err)
				}
			})
		}
		wg.Wait()
		for _, other := range []struct{ workspace, day string }{{"ws", "2026-03-02"}, {"ws2", "2026-03-01"}} {
			if err := s.AddModelTokens(t.Context(), other.workspace, other.day, flow.Usage{Input: 1, Total: 1, Estimated: true}); err != nil {
				t.Fatal(err)
			}
		}
		if got := must(s.ModelTokens(t.Context(), "ws", "2026-03-01")); got != 200 {
			t.Errorf("tokens = %d, want 200", got)
		}
		first := flow.ModelDay{Day: "2026-03-01", Calls: 20, Usage: flow.Usage{Input: 140, Output: 60, Total: 200}}
		second := flow.ModelDay{Day: "2026-03-02", Calls: 1, Usage: flow.Usage{Input: 1, Total: 1, Estimated: true}}
		same(t, "days", must(s.ModelDays(t.Context(), "ws", "", 10)), []flow.ModelDay{second, first})
		same(t, "the page after", must(s.ModelDays(t.Context(), "ws", "2026-03-02", 10)), []flow.ModelDay{first})
	})
}
