package registry_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/longstop-dev/longstop/internal/agent/registry"
	"github.com/longstop-dev/longstop/internal/flow"
)

// TestWhatIsGoneStaysGone: neither an agent that was removed nor one under an
// old key comes back when the index is built again.
func TestWhatIsGoneStaysGone(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	s := b.service()
	for _, v := range []string{"1.0.0", "2.0.0"} {
		if _, err := b.push(s, func(in *registry.PushIn) { in.Body.Version = v }); err != nil {
			t.Fatal(err)
		}
	}
	ids := func() string {
		t.Helper()
		if _, err := b.r.Reindex(t.Context(), b.ada, &registry.ReindexIn{ID: s.Bucket}); err != nil {
			t.Fatal(err)
		}
		l, err := b.r.ListAgents(t.Context(), b.ada, &registry.None{})
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, a := range l.Items {
			out = append(out, a.ID+" "+a.Version)
		}
		return strings.Join(out, ", ")
	}
	rotated, err := b.r.Rotate(t.Context(), b.ada, &registry.RotateIn{Key: s.PublicKey})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := ids(), rotated.Service.PublicKey+":order-desk 2.0.0"; got != want {
		t.Errorf("after the rotation: %s, want %s", got, want)
	}
	if _, err := b.r.RemoveAgent(t.Context(), b.ada, &registry.AgentIn{ID: "order-desk"}); err != nil {
		t.Fatal(err)
	}
	if got := ids(); got != "" {
		t.Errorf("after the removal: %s", got)
	}
}

// TestARotationMovesConnections: what was granted to the agent is its under the
// new key.
func TestARotationMovesConnections(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	s := b.service()
	p, err := b.push(s, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.store.CreateVault(t.Context(), flow.Vault{ID: "vault_1", Workspace: "ws", Name: "notes", Owner: "ada"}); err != nil {
		t.Fatal(err)
	}
	granted := flow.Connection{ID: "con_1", Workspace: "ws", Vault: "vault_1", Agent: p.AgentID, Scopes: []string{"default"}, GrantedBy: "ada"}
	if _, err := b.store.Connect(t.Context(), granted); err != nil {
		t.Fatal(err)
	}
	out, err := b.r.Rotate(t.Context(), b.ada, &registry.RotateIn{Key: s.PublicKey})
	if err != nil {
		t.Fatal(err)
	}
	if c, err := b.store.Connection(t.Context(), "ws", "con_1"); err != nil || c.Agent != out.Agents[0] {
		t.Errorf("the connection is of %s, %v, want %s", c.Agent, err, out.Agents[0])
	}
}

// TestARotationThatBreaksOff goes on with the key that it began with, and a
// service that has been rotated is not rotated again.
func TestARotationThatBreaksOff(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	s := b.service()
	for _, alias := range []string{"a", "b", "c"} {
		if _, err := b.push(s, func(in *registry.PushIn) { in.Body.Alias = alias }); err != nil {
			t.Fatal(err)
		}
	}
	stuck := filepath.Join(b.dir, "buckets", s.Bucket, "agents", "b", "1.0.0", "manifest.json")
	good, err := os.ReadFile(stuck)
	if err != nil {
		t.Fatal(err)
	}
	write := func(body []byte) {
		if err := os.WriteFile(stuck, body, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(bytes.ReplaceAll(good, []byte(s.PublicKey), []byte(strings.Repeat("1", 64)))) // of somebody else
	_, err = b.r.Rotate(t.Context(), b.ada, &registry.RotateIn{Key: s.PublicKey})
	if flow.CodeOf(err) != flow.CodeConflict || !strings.Contains(err.Error(), "1 of 3 agents were moved, then b could not be") || !strings.Contains(err.Error(), "again") {
		t.Fatalf("broken off: %v", err)
	}
	write(good)
	out, err := b.r.Rotate(t.Context(), b.ada, &registry.RotateIn{Key: s.PublicKey})
	if err != nil || out.Service.Replaces != s.PublicKey || len(out.Agents) != 2 {
		t.Fatalf("gone on: %+v, %v; want b and c", out, err)
	}
	l, err := b.r.ListAgents(t.Context(), b.ada, &registry.None{})
	if err != nil {
		t.Fatal(err)
	}
	for i, alias := range []string{"a", "b", "c"} {
		if want := out.Service.PublicKey + ":" + alias; len(l.Items) != 3 || l.Items[i].ID != want {
			t.Errorf("agents %+v, want %s at %d", l.Items, want, i)
		}
	}
	if _, err := b.r.Rotate(t.Context(), b.ada, &registry.RotateIn{Key: s.PublicKey}); flow.CodeOf(err) != flow.CodeConflict || !strings.Contains(err.Error(), out.Service.PublicKey) {
		t.Errorf("rotated twice: %v", err)
	}
	services, err := b.r.ListServices(t.Context(), b.ada, &registry.None{})
	if err != nil || len(services.Items) != 2 {
		t.Errorf("%d services, %v; want the old one and the new one", len(services.Items), err)
	}
}

func TestServices(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	in := &registry.CreateServiceIn{}
	in.Body.Phrase = strings.Repeat("abandon ", 11) + "about"
	one, err := b.r.CreateService(t.Context(), b.ada, in)
	if err != nil || !one.Default {
		t.Fatalf("imported: %+v, %v", one, err)
	}
	if _, err := b.r.CreateService(t.Context(), b.ada, in); flow.CodeOf(err) != flow.CodeConflict {
		t.Errorf("imported twice: %v", err)
	}
	in.Body.Phrase = "no phrase at all"
	if _, err := b.r.CreateService(t.Context(), b.ada, in); flow.CodeOf(err) != flow.CodeInvalid || strings.Contains(err.Error(), "at all") {
		t.Errorf("no phrase: %v", err)
	}
	if two := b.service(); two.Default || two.Bucket != one.Bucket || two.PublicKey == one.PublicKey {
		t.Errorf("the second: %+v", two)
	}
	raw, err := os.ReadFile(filepath.Join(b.dir, "t.db"))
	if err != nil || strings.Contains(string(raw), "abandon") {
		t.Errorf("the phrase is in the database: %v", err)
	}
	if _, err := b.push(b.service(), func(in *registry.PushIn) { in.Body.Alias = "shared" }); err != nil {
		t.Fatal(err)
	}
	if _, err := b.push(b.service(), func(in *registry.PushIn) { in.Body.Alias = "shared" }); flow.CodeOf(err) != flow.CodeConflict {
		t.Errorf("another service's manifest was overwritten: %v", err)
	}
}
