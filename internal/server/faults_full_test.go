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
	st := begin(t, func(c *server.Config) { c.DatabaseURL, c.MasterKey = db, masterKey })
	st.must("PUT", "/v1/secrets/api", map[string]any{"value": secretValue}, nil)
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
	if r := st.get(id); r.Status != "running" {
		t.Errorf("meanwhile: got %s, want running", r.Status)
	}
	st.sql(`DROP TRIGGER full_disk ON runs`)
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
