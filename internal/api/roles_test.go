package api_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/longstop-dev/longstop/internal/access"
	"github.com/longstop-dev/longstop/internal/api"
	"github.com/longstop-dev/longstop/internal/flow"
)

func TestOperationsAreWhole(t *testing.T) {
	t.Parallel()
	names, places := map[string]bool{}, map[string]bool{}
	for _, op := range newBed(t).api.Operations() {
		if names[op.Name] || places[op.Method+" "+op.Path] {
			t.Errorf("%s at %s %s is mounted twice", op.Name, op.Method, op.Path)
		}
		names[op.Name], places[op.Method+" "+op.Path] = true, true
		if op.Summary == "" || op.Min == "" || len(op.Faces) == 0 || strings.Count(op.Name, ".") != 1 {
			t.Errorf("%+v: got no name of two parts, summary, role or face", op.Op)
		}
	}
	for _, op := range access.Ops() {
		if !names[op.Name] {
			t.Errorf("%s of package access is not mounted", op.Name)
		}
	}
	if got, want := len(api.Ops()), len(names); got != want {
		t.Errorf("Ops: got %d, want %d", got, want)
	}
}

// fill puts a value into each {name} of a path.
func fill(path string) string {
	for _, v := range []string{"{id}", "{key}", "{name}", "{runId}", "{other}", "{version}"} {
		path = strings.ReplaceAll(path, v, "x")
	}
	return strings.ReplaceAll(path, "{stepIndex}", "0")
}

func TestEveryRoleAtEveryOperation(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	for _, role := range []flow.Role{flow.RoleAgent, flow.RoleViewer, flow.RoleOperator, flow.RoleEditor, flow.RoleOwner} {
		key, _ := b.key(role)
		for _, op := range b.api.Operations() {
			a := b.do(op.Method, fill(op.Path), "application/json", "{}", "Authorization", "Bearer "+key)
			if got, want := a.status == http.StatusForbidden, !op.Allows(role); got != want {
				t.Errorf("%s as %s: got status %d %s, want forbidden %t", op.Name, role, a.status, a.body, want)
			}
			if a.status == http.StatusForbidden {
				if p := a.problem(t); p.Code != flow.CodeForbidden || !strings.Contains(p.Fix, string(op.Min)) {
					t.Errorf("%s as %s: got %+v, want the role that is needed", op.Name, role, p)
				}
			}
			if a.status >= 500 {
				t.Errorf("%s as %s: got %d %s", op.Name, role, a.status, a.body)
			}
		}
	}
}

func TestNobodyWithoutAKey(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	for _, op := range b.api.Operations() {
		for name, header := range map[string]string{"none": "", "basic": "Basic b3duZXI6eA==", "empty": "Bearer ", "mistyped": b.owner} {
			a := b.do(op.Method, fill(op.Path), "application/json", "{not read}", "Authorization", header)
			p := a.problem(t)
			if a.status != http.StatusUnauthorized || p.Code != flow.CodeUnauthenticated || a.header.Get("WWW-Authenticate") != "Bearer" || p.Fix == "" {
				t.Errorf("%s with %s: got %d, WWW-Authenticate %q, %+v; want 401, Bearer and what to send", op.Name, name, a.status, a.header.Get("WWW-Authenticate"), p)
			}
		}
	}
	a := b.do("GET", "/v1/runs/run_1/events", "", "", "Authorization", "", "Upgrade", "websocket", "Connection", "Upgrade")
	if a.status != http.StatusUnauthorized {
		t.Errorf("a socket without a key: got %d, want 401", a.status)
	}
}

func TestWrongKeysAreCounted(t *testing.T) {
	t.Parallel()
	b := newBed(t, func(c *api.Config) { c.Limits = api.Limits{FailedKeys: 3, FailedKeyEvery: 10 * time.Second} })
	wrong := func() answer { return b.do("GET", "/v1/me", "", "", "Authorization", "Bearer "+b.owner+"x") }
	for i := range 3 {
		if a := wrong(); a.status != http.StatusUnauthorized {
			t.Fatalf("wrong key %d: got %d, want 401", i, a.status)
		}
	}
	a := wrong()
	if p := a.problem(t); a.status != http.StatusTooManyRequests || a.header.Get("Retry-After") != "10" || p.Code != flow.CodeRateLimited {
		t.Errorf("one too many: got %d, Retry-After %q, %+v; want 429 and 10", a.status, a.header.Get("Retry-After"), p)
	}
	if a := b.do("GET", "/v1/me", "", ""); a.status != http.StatusOK {
		t.Errorf("a right key from the same address: got %d, want 200", a.status)
	}
	if a := b.do("GET", "/v1/me", "", "", "Authorization", ""); a.status != http.StatusUnauthorized {
		t.Errorf("no key at all: got %d, want 401: it is no guess", a.status)
	}
	b.clock.Advance(10 * time.Second)
	if a := wrong(); a.status != http.StatusUnauthorized {
		t.Errorf("after the wait: got %d, want 401", a.status)
	}
}

func TestARevokedKeyIsRefusedAtOnce(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	key, id := b.key(flow.RoleViewer)
	if a := b.do("GET", "/v1/me", "", "", "Authorization", "bearer "+key); a.status != http.StatusOK {
		t.Fatalf("before: got %d %s, want 200", a.status, a.body)
	}
	if a := b.do("DELETE", "/v1/keys/"+id, "", ""); a.status != http.StatusNoContent || a.body != "" {
		t.Fatalf("revoke: got %d %q, want 204 and nothing", a.status, a.body)
	}
	if a := b.do("GET", "/v1/me", "", "", "Authorization", "Bearer "+key); a.status != http.StatusUnauthorized {
		t.Errorf("after: got %d, want 401", a.status)
	}
}
