package store

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/longstop-dev/longstop/internal/flow"
)

// founded makes a store with the workspace "ws", its owner "p" and a key.
func founded(t *testing.T, db Options) (*Store, flow.Workspace, flow.Person, flow.Key) {
	t.Helper()
	s := open(t, db)
	w := flow.Workspace{ID: "ws", Name: "default", CreatedAt: at()}
	p := flow.Person{ID: "p", Name: "owner", PublicKey: []byte{1, 2, 3}, CreatedAt: at()}
	k := flow.Key{ID: "key_1", Workspace: "ws", Person: "p", Name: "first", Role: flow.RoleOwner, Hash: []byte{9, 0, 9}, Prefix: "longstop_abc", CreatedAt: at()}
	if ok, err := s.Found(t.Context(), w, p, k); !ok || err != nil {
		t.Fatalf("Found = %t, %v; want true", ok, err)
	}
	return s, w, p, k
}

func wantCode(t *testing.T, what string, err error, want flow.Code) {
	t.Helper()
	if got := flow.CodeOf(err); got != want {
		t.Errorf("%s: got %q (%v), want %q", what, got, err, want)
	}
}

func TestFoundOnce(t *testing.T) {
	onEach(t, func(t *testing.T, db Options) {
		s, w, p, k := founded(t, db)
		other := k
		other.ID, other.Hash = "key_2", []byte{7}
		if ok, err := s.Found(t.Context(), flow.Workspace{ID: "ws2"}, flow.Person{ID: "p2"}, other); ok || err != nil {
			t.Errorf("the second Found = %t, %v; want false, nil", ok, err)
		}
		same(t, "workspaces", must(s.Workspaces(t.Context())), []flow.Workspace{w})
		same(t, "person", must(s.Person(t.Context(), "p")), p)
		same(t, "keys", must(s.Keys(t.Context(), "ws")), []flow.Key{k})
		same(t, "founder", must(s.Founder(t.Context())), flow.Caller{Workspace: "ws", Person: "p", Role: flow.RoleOwner})
		_, err := s.Person(t.Context(), "p2")
		wantCode(t, "the second person", err, flow.CodeNotFound)
	})
}

func TestFounderOfNothing(t *testing.T) {
	onEach(t, func(t *testing.T, db Options) {
		_, err := open(t, db).Founder(t.Context())
		wantCode(t, "founder", err, flow.CodeNotFound)
	})
}

func TestKeys(t *testing.T) {
	onEach(t, func(t *testing.T, db Options) {
		s, _, _, k := founded(t, db)
		same(t, "by hash", must(s.KeyByHash(t.Context(), k.Hash)), k)
		_, err := s.KeyByHash(t.Context(), []byte{1})
		wantCode(t, "another hash", err, flow.CodeNotFound)
		wantCode(t, "revoked from another workspace", s.RevokeKey(t.Context(), "ws2", k.ID, at()), flow.CodeNotFound)
		for _, when := range []time.Time{at(), at().Add(time.Hour)} {
			if err := s.RevokeKey(t.Context(), "ws", k.ID, when); err != nil {
				t.Fatalf("revoke: %v", err)
			}
		}
		k.RevokedAt = at()
		same(t, "revoked", must(s.KeyByHash(t.Context(), k.Hash)), k)
		twice := k
		twice.ID = "key_3"
		wantCode(t, "a hash twice", s.CreateKey(t.Context(), twice), flow.CodeUnavailable)
	})
}

func TestSettings(t *testing.T) {
	onEach(t, func(t *testing.T, db Options) {
		s, _, _, _ := founded(t, db)
		ctx := t.Context()
		a := flow.Setting{Workspace: "ws", Key: "a", Value: "1", Meta: json.RawMessage(`{"x":[1]}`), UpdatedBy: "p", UpdatedAt: at()}
		b := flow.Setting{Workspace: "ws", Key: "b", Sealed: []byte{0, 255, 1}, UpdatedBy: "p", UpdatedAt: at()}
		for _, v := range []flow.Setting{b, {Workspace: "ws", Key: "a", Value: "0", Sealed: []byte{1}, UpdatedAt: at()}, a} {
			if err := s.PutSetting(ctx, v); err != nil {
				t.Fatalf("put %s: %v", v.Key, err)
			}
		}
		same(t, "settings", must(s.Settings(ctx, "ws")), []flow.Setting{a, b})
		same(t, "another workspace's", must(s.Settings(ctx, "ws2")), []flow.Setting(nil))
		for range 2 { // the second finds nothing
			if err := s.DeleteSetting(ctx, "ws", "a"); err != nil {
				t.Fatalf("delete: %v", err)
			}
		}
		same(t, "left", must(s.Settings(ctx, "ws")), []flow.Setting{b})
	})
}

func TestSecrets(t *testing.T) {
	onEach(t, func(t *testing.T, db Options) {
		s, _, _, _ := founded(t, db)
		ctx := t.Context()
		v := flow.Secret{Workspace: "ws", Name: "api", Sealed: []byte("old"), UpdatedBy: "p", UpdatedAt: at()}
		for _, sealed := range []string{"old", "new"} {
			v.Sealed = []byte(sealed)
			if err := s.PutSecret(ctx, v); err != nil {
				t.Fatalf("put: %v", err)
			}
		}
		same(t, "secrets", must(s.Secrets(ctx, "ws")), []flow.Secret{v})
		wantCode(t, "deleted from another workspace", s.DeleteSecret(ctx, "ws2", "api"), flow.CodeNotFound)
		wantCode(t, "deleted", s.DeleteSecret(ctx, "ws", "api"), "")
		wantCode(t, "deleted again", s.DeleteSecret(ctx, "ws", "api"), flow.CodeNotFound)
	})
}

func TestMCPServers(t *testing.T) {
	onEach(t, func(t *testing.T, db Options) {
		s, _, _, _ := founded(t, db)
		ctx := t.Context()
		a := flow.MCPServer{Workspace: "ws", ID: "a", URL: "https://x.example/mcp", Transport: "sse", Sealed: []byte{1}, UpdatedBy: "p", UpdatedAt: at()}
		b := flow.MCPServer{Workspace: "ws", ID: "b", Transport: "stdio", Command: []string{"./agent", "-v"}, UpdatedBy: "p", UpdatedAt: at()}
		for _, v := range []flow.MCPServer{b, {Workspace: "ws", ID: "a", URL: "old", UpdatedAt: at()}, a} {
			if err := s.PutMCPServer(ctx, v); err != nil {
				t.Fatalf("put %s: %v", v.ID, err)
			}
		}
		same(t, "servers", must(s.MCPServers(ctx, "ws")), []flow.MCPServer{a, b})
		wantCode(t, "deleted from another workspace", s.DeleteMCPServer(ctx, "ws2", "a"), flow.CodeNotFound)
		wantCode(t, "deleted", s.DeleteMCPServer(ctx, "ws", "a"), "")
		same(t, "left", must(s.MCPServers(ctx, "ws")), []flow.MCPServer{b})
	})
}
