package mcp_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/mcp"
)

// alone serves a face without services; the bearer names the key, with a
// workspace and a slash before it for another than ws.
func alone(t *testing.T, l mcp.Limits) string {
	t.Helper()
	f := mcp.New(mcp.Config{Limits: l, Ops: []flow.Op{{Name: "recovery.schema", Min: flow.RoleViewer, Faces: []string{"mcp"}}}})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		by := flow.Caller{Workspace: "ws", KeyID: strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), Role: flow.RoleOwner}
		if workspace, key, ok := strings.Cut(by.KeyID, "/"); ok {
			by.Workspace, by.KeyID = workspace, key
		}
		f.ServeAs(w, r, by)
	}))
	t.Cleanup(func() { f.Close(); s.Close() })
	return s.URL
}

// opened opens a session and gives its id.
func opened(t *testing.T, url, key string) string {
	t.Helper()
	status, h, body := post(t, url, key, initialize)
	if status != http.StatusOK || h.Get("Mcp-Session-Id") == "" {
		t.Fatalf("initialize: got %d %s, session %q", status, body, h.Get("Mcp-Session-Id"))
	}
	return h.Get("Mcp-Session-Id")
}

// gone waits until a session has ended.
func gone(t *testing.T, url, key, id string) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for {
		status, _, body := post(t, url, key, `{"jsonrpc":"2.0","id":7,"method":"ping"}`, "Mcp-Session-Id", id)
		if status == http.StatusNotFound {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("session %s: got %d %s, want 404", id, status, body)
		}
		<-time.After(100 * time.Millisecond) // longer than the session may idle
	}
}

func TestSessionsAreBounded(t *testing.T) {
	t.Parallel()
	url := alone(t, mcp.Limits{Sessions: 8, KeySessions: 2})
	first := opened(t, url, "a")
	second := opened(t, url, "a")
	third := opened(t, url, "a")
	gone(t, url, "a", first)
	for _, id := range []string{second, third} {
		if status, _, body := post(t, url, "a", `{"jsonrpc":"2.0","id":7,"method":"ping"}`, "Mcp-Session-Id", id); status != http.StatusOK {
			t.Errorf("a session that has room: got %d %s", status, body)
		}
	}
	opened(t, url, "b")
	opened(t, url, "c")
	status, h, body := post(t, url, "d", initialize)
	if status != http.StatusServiceUnavailable || h.Get("Retry-After") == "" || !json.Valid([]byte(body)) {
		t.Errorf("a fifth, where four are left to others: got %d %s, want 503 and Retry-After", status, body)
	}
	if status, _, body := send(t, "DELETE", url, "a", "", "Mcp-Session-Id", second); status != http.StatusNoContent {
		t.Fatalf("end: got %d %s", status, body)
	}
	opened(t, url, "d")
	opened(t, url, "other/a")
	opened(t, url, "other/a")
}

func TestAMessageThatOpensNoSession(t *testing.T) {
	t.Parallel()
	url := alone(t, mcp.Limits{Sessions: 1})
	for range 5 { // each takes a seat, and gives it back
		if status, _, body := post(t, url, "a", `{"jsonrpc":"2.0","id":7,"method":"tools/list"}`); strings.Contains(body, `"tools"`) {
			t.Errorf("a list without a session: got %d %s, want an error", status, body)
		}
	}
	opened(t, url, "b")
}

func TestIdleSessionsAreClosed(t *testing.T) {
	t.Parallel()
	url := alone(t, mcp.Limits{Idle: 50 * time.Millisecond})
	gone(t, url, "a", opened(t, url, "a"))
}

// TestNobodyListens has a client ask for every change that there may be: it is
// told that there is none, and does not stay.
func TestNobodyListens(t *testing.T) {
	t.Parallel()
	status, _, body := post(t, alone(t, mcp.Limits{}), "a", `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true,
		"promptsListChanged":true,"resourcesListChanged":true,"resourceSubscriptions":["cffbrw://recovery/pending"]},
		"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`,
		"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "subscriptions/listen")
	if status != http.StatusOK || !strings.Contains(body, "acknowledged") || strings.Contains(body, "pending") || strings.Contains(body, "true") {
		t.Errorf("got %d %s, want an acknowledgement of nothing", status, body)
	}
}
