package notify_test

import (
	"fmt"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/longstop-dev/longstop/internal/store"
)

// TestManyDeadReceiversHoldNobodyUp: as many workspaces as there are lanes,
// whose receivers hang, give them to others after a try each, and not after a
// whole batch.
func TestManyDeadReceiversHoldNobodyUp(t *testing.T) {
	t.Parallel()
	const lanes, atOnce, batch = 16, 4, 64
	b := newBed(t, store.Options{Path: filepath.Join(t.TempDir(), "t.db")})
	dead := newReceiver(t, func(_ int, _ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	b.send("good", newReceiver(t, nil).URL)
	for i := range lanes {
		name := fmt.Sprintf("dead%d", i)
		b.send(name, dead.URL)
		b.write(name, 500)
	}
	late := time.After(20 * time.Second)
	for range lanes * atOnce { // until every lane is taken
		select {
		case <-dead.came:
		case <-late:
			t.Fatal("the dead receivers are not tried")
		}
	}
	b.write("good", 1)
	tries := map[string]int{}
	for n := b.next(); n.Workspace != "good"; n = b.next() {
		if tries[n.Workspace]++; tries[n.Workspace] >= batch {
			t.Fatalf("%s was tried %d times, and another workspace not at all", n.Workspace, batch)
		}
	}
}
