package server_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/longstop-dev/longstop/internal/pgtest"
	"github.com/longstop-dev/longstop/internal/server"
)

// TestADiskThatIsFullForAWhile has PostgreSQL answer as it does where the disk
// is full, from when a step executes on. The run waits, its step is not
// executed again, and it ends well once there is room; a new run is refused
// meanwhile. The disk of SQLite is filled in e2e.
func TestADiskThatIsFullForAWhile(t *testing.T) {
	t.Parallel()
	db := pgtest.URL(t)
	var calls atomic.Int64
	called, room := make(chan struct{}), make(chan struct{})
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if calls.Add(1) == 1 {
			close(called)
			<-room
		}
		fmt.Fprint(w, `{"ok":true}`)
	}))
	t.Cleanup(up.Close)
	begun := make(chan struct{}, 1)
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		begun <- struct{}{}
		<-room
		fmt.Fprint(w, `{"ok":true}`)
	}))
	t.Cleanup(slow.Close)
	st := begin(t, func(c *server.Config) { c.DatabaseURL, c.MasterKey = db, masterKey })
	st.must("PUT", "/v1/secrets/api", map[string]any{"value": secretValue}, nil)
	waits, gate := asking(st)
	both := st.gated(st.run(fmt.Sprintf("name: both\nsteps:\n  - type: parallel\n    config:\n      branches:\n        - [{type: http_request, config: {url: \"%s\"}}]\n        - [{type: human_approval, config: {message: May it?}}]\n", slow.URL), map[string]any{}))
	<-begun
	id := st.run(fmt.Sprintf(plainStep, up.URL), map[string]any{})
	<-called
	st.sql(`CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS
		$$ BEGIN RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = 'disk_full'; END $$`)
	st.sql(`CREATE TRIGGER full_disk BEFORE INSERT OR UPDATE ON runs EXECUTE FUNCTION full_disk()`)
	close(room)
	st.log.await(t, "it is offered again until it does")
	if code, b := st.call("POST", "/v1/workflows/plain/runs", map[string]any{"versionId": st.version(id)}, nil); code != 503 || !strings.Contains(b, "check disk space") {
		t.Errorf("a new run: got %d %s, want 503 that says where to look", code, b)
	}
	// Whoever answers is told so at once, whether the run is parked or its driver waits for room itself.
	for run, g := range map[string]string{waits: gate, both.ID: both.Gates[0].ID} {
		if code, b := st.call("POST", "/v1/gates/"+g+"/answer", map[string]any{"answer": "approve"}, nil); code != 503 {
			t.Errorf("an answer to a gate of %s: got %d %s, want 503", run, code, b)
		}
	}
	if r := st.get(id); r.Status != "running" {
		t.Errorf("meanwhile: got %s, want running", r.Status)
	}
	st.sql(`DROP TRIGGER full_disk ON runs`)
	for run, g := range map[string]string{waits: gate, both.ID: both.Gates[0].ID} {
		st.must("POST", "/v1/gates/"+g+"/answer", map[string]any{"answer": "approve"}, nil)
		if r := st.ended(run); r.Status != "succeeded" {
			t.Errorf("%s with room again: %+v", run, r)
		}
	}
	if r := st.ended(id); r.Status != "succeeded" || calls.Load() != 1 {
		t.Errorf("with room again: got %s (%s) and %d calls, want succeeded and 1", r.Status, r.Error, calls.Load())
	}
	st.leaks(secretValue)
}

func (st *stop) version(id string) string {
	st.t.Helper()
	var r struct{ VersionID string }
	st.must("GET", "/v1/runs/"+id, nil, &r)
	return r.VersionID
}
