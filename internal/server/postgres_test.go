package server_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/pgtest"
	"github.com/longstop-dev/longstop/internal/server"
)

var masterKey = strings.Repeat("0123456789abcdef", 4)

// TestOnPostgreSQL mends a run, starts again on the same database from another
// folder, and finds everything there.
func TestOnPostgreSQL(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	on := func(c *server.Config) {
		c.DatabaseURL, c.MasterKey, c.BootstrapKey = url, masterKey, ""
	}
	st := begin(t, on)
	st.must("PUT", "/v1/secrets/api", map[string]any{"value": secretValue}, nil)
	r := st.ended(st.run(fmt.Sprintf(moved, api(t).URL), map[string]any{}))
	if r.Status != "succeeded" || r.source(0) != "builtin" {
		t.Fatalf("got %s by %s (%s)", r.Status, r.source(0), r.Error)
	}
	refused(t, "a second server", server.Config{DataDir: t.TempDir(), DatabaseURL: url, MasterKey: masterKey}, flow.CodeConflict, "held by longstop on")
	st.end()
	again := begin(t, on)
	if got := again.get(r.ID); got.Status != "succeeded" {
		t.Errorf("after a new start: got %s", got.Status)
	}
	if code, body := again.call(http.MethodGet, "/v1/secrets", nil, nil); code != 200 || !strings.Contains(body, `"api"`) || strings.Contains(body, secretValue) {
		t.Errorf("secrets after a new start: got %d %s", code, body)
	}
}

func TestPostgreSQLNeedsAMasterKey(t *testing.T) {
	t.Parallel()
	refused(t, "no master key", server.Config{DatabaseURL: pgtest.URL(t)}, flow.CodeInvalid, "--master-key-file")
}

// refused starts a server that must not start.
func refused(t *testing.T, what string, c server.Config, code flow.Code, says string) {
	t.Helper()
	c.Listen = "127.0.0.1:0"
	if c.DataDir == "" {
		c.DataDir = t.TempDir()
	}
	s, err := server.Start(context.Background(), c)
	if err == nil {
		s.Stop(context.Background())
	}
	if flow.CodeOf(err) != code || !strings.Contains(fmt.Sprint(err), says) {
		t.Errorf("%s: got %v, want %s with %q", what, err, code, says)
	}
}
