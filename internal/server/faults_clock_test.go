package server_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/longstop-dev/longstop/internal/flow/flowtest"
	"github.com/longstop-dev/longstop/internal/server"
)

// TestAClockThatIsSetBack sets the clock back while a step executes and while
// a run waits. Nothing is due before its time or lost, nothing took less than
// no time, and events stay in order.
func TestAClockThatIsSetBack(t *testing.T) {
	onEach(t, func(t *testing.T, on func(*server.Config)) {
		clock := flowtest.NewClock(time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC))
		up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			clock.Advance(-2 * time.Hour)
			fmt.Fprint(w, `{"ok":true}`)
		}))
		t.Cleanup(up.Close)
		st := begin(t, on, func(c *server.Config) { c.Clock = clock })
		id := st.run(fmt.Sprintf("name: back\nsteps:\n  - {type: http_request, title: Fetch user profile, config: {url: \"%s\"}}\n  - {type: wait, config: {for: 1h}}\n", up.URL), nil)
		st.follow(id, func(e event) bool { return e.Type == "step:suspended" })
		clock.Advance(-24 * time.Hour)
		clock.Advance(24*time.Hour + 59*time.Minute)
		if r := st.get(id); r.Status != "waiting" {
			t.Errorf("before its time: got %s, want waiting", r.Status)
		}
		clock.Advance(time.Minute)
		if r := st.ended(id); r.Status != "succeeded" {
			t.Errorf("got %s (%s), want succeeded", r.Status, r.Error)
		}
		for _, path := range []string{"/events", "/logs"} {
			if _, b := st.call("GET", "/v1/runs/"+id+path, nil, nil); strings.Contains(b, `"durationMs":-`) {
				t.Errorf("%s: something took less than no time: %s", path, b)
			}
		}
		last := int64(0)
		for _, e := range st.follow(id, nil) {
			if e.Seq <= last {
				t.Errorf("event %d comes after %d", e.Seq, last)
			}
			last = e.Seq
		}
	})
}
