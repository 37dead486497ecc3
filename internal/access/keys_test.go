package access_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/longstop-dev/longstop/internal/access"
	"github.com/longstop-dev/longstop/internal/flow"
)

func TestBootstrapOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if want := regexp.MustCompile(`^longstop_[0-9A-Za-z]{43}_[0-9A-Za-z]{6}$`); !want.MatchString(w.key) {
		t.Errorf("the first key is %q, want it to match %s", w.key, want)
	}
	if w.by.Role != flow.RoleOwner || w.by.Workspace == "" || w.by.Person == "" || w.by.KeyID == "" {
		t.Errorf("the first caller is %+v, want an owner with workspace, person and key", w.by)
	}
	key, created, err := w.Bootstrap(t.Context(), access.Founding{})
	if key != "" || created || err != nil {
		t.Errorf("the second start: %q, %t, %v; want nothing made", key, created, err)
	}
	me, err := w.Me(t.Context(), w.by, nil)
	if err != nil || me.Name != "owner" || me.Person != w.by.Person {
		t.Errorf("Me = %+v, %v; want the owner", me, err)
	}
	w.notStored(t, w.key, strings.Split(w.key, "_")[1])
}

func TestBootstrapTakesAChosenKey(t *testing.T) {
	t.Parallel()
	chosen := "chosen-by-an-operator-0123456789"
	for _, tt := range []struct {
		name, key string
		want      flow.Code
	}{
		{"32 characters", chosen, ""},
		{"with a line's end", chosen + "\n", ""},
		{"too short", chosen[1:], flow.CodeInvalid},
		{"a space inside", chosen + " x", flow.CodeInvalid},
		{"one of ours, mistyped", "longstop_" + strings.Repeat("a", 43) + "_000000", flow.CodeInvalid},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newEmptyWorld(t)
			key, created, err := w.Bootstrap(t.Context(), access.Founding{Key: tt.key})
			wantError(t, "Bootstrap", err, tt.want)
			if err != nil {
				if strings.Contains(err.Error(), tt.key) {
					t.Errorf("the error shows the key: %v", err)
				}
				return
			}
			if key != "" || !created {
				t.Errorf("Bootstrap = %q, %t; want no key to print, and true", key, created)
			}
			if by, err := w.Authenticate(t.Context(), chosen); err != nil || by.Role != flow.RoleOwner {
				t.Errorf("Authenticate = %+v, %v; want the owner", by, err)
			}
		})
	}
}

func TestAuthenticateRefuses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	typo := []byte(w.key)
	if typo[20]++; typo[20] == 'z'+1 {
		typo[20] = 'a'
	}
	for name, key := range map[string]string{
		"none": "", "a typo": string(typo), "cut off": w.key[:40], "another's": "longstop_" + strings.Repeat("0", 43) + "_" + "0VZuZ9",
		"unknown": strings.Repeat("x", 40), "short": "abc", "huge": strings.Repeat("x", 100_000), "not ASCII": strings.Repeat("é", 40),
	} {
		by, err := w.Authenticate(t.Context(), key)
		wantError(t, name, err, flow.CodeUnauthenticated)
		if by != (flow.Caller{}) {
			t.Errorf("%s: got %+v, want nobody", name, by)
		}
		if len(key) > 8 && strings.Contains(err.Error(), key) {
			t.Errorf("%s: the error shows the key", name)
		}
	}
}

func createKey(t *testing.T, w *world, by flow.Caller, role flow.Role) (*access.KeyView, error) {
	t.Helper()
	in := &access.CreateKeyIn{}
	in.Body.Name, in.Body.Role = "for a test", string(role)
	return w.KeysCreate(t.Context(), by, in)
}

func TestKeysCreateNeverAboveTheCaller(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	roles := []flow.Role{flow.RoleAgent, flow.RoleViewer, flow.RoleOperator, flow.RoleEditor, flow.RoleOwner}
	for have, mine := range roles {
		for want, role := range roles {
			by := w.by
			by.Role = mine
			v, err := createKey(t, w, by, role)
			if allowed := want <= have && mine != flow.RoleAgent; !allowed {
				wantError(t, string(mine)+" makes "+string(role), err, flow.CodeForbidden, "role")
				continue
			}
			if err != nil {
				t.Errorf("%s makes %s: %v", mine, role, err)
				continue
			}
			got, err := w.Authenticate(t.Context(), v.Key)
			if err != nil || got.Role != role || got.KeyID != v.ID || got.Workspace != by.Workspace {
				t.Errorf("the key of %s is %+v, %v", role, got, err)
			}
		}
	}
	_, err := createKey(t, w, w.by, "admin")
	wantError(t, "an unknown role", err, flow.CodeInvalid, "admin", "owner, editor, operator, viewer or agent")
	in := &access.CreateKeyIn{}
	in.Body.Role = "viewer"
	_, err = w.KeysCreate(t.Context(), w.by, in)
	wantError(t, "no name", err, flow.CodeInvalid, "name")
}

func TestRevokedKeyIsRefusedAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	v, err := createKey(t, w, w.by, flow.RoleEditor)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // from the database, then from memory
		if _, err := w.Authenticate(t.Context(), v.Key); err != nil {
			t.Fatalf("before: %v", err)
		}
	}
	if _, err := w.KeysRevoke(t.Context(), w.by, &access.KeyIn{ID: v.ID}); err != nil {
		t.Fatal(err)
	}
	_, err = w.Authenticate(t.Context(), v.Key)
	wantError(t, "after", err, flow.CodeUnauthenticated)
	list, err := w.KeysList(t.Context(), w.by, nil)
	if err != nil || len(list.Items) != 2 {
		t.Fatalf("got %+v, %v; want two keys", list, err)
	}
	for _, k := range list.Items {
		if k.Key != "" || (k.RevokedAt != nil) != (k.ID == v.ID) {
			t.Errorf("listed: %+v; want no key shown, and %s alone revoked", k, v.ID)
		}
	}
}

func TestKeysRevokeRefuses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, err := w.KeysRevoke(t.Context(), w.by, &access.KeyIn{ID: w.by.KeyID})
	wantError(t, "the last owner's key", err, flow.CodeConflict, "make another one first")
	_, err = w.KeysRevoke(t.Context(), w.by, &access.KeyIn{ID: "key_none"})
	wantError(t, "an unknown key", err, flow.CodeNotFound)
	stranger := w.by
	stranger.Workspace = "ws_other"
	_, err = w.KeysRevoke(t.Context(), stranger, &access.KeyIn{ID: w.by.KeyID})
	wantError(t, "from another workspace", err, flow.CodeNotFound)
	second, err := createKey(t, w, w.by, flow.RoleOwner)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.KeysRevoke(t.Context(), w.by, &access.KeyIn{ID: w.by.KeyID}); err != nil {
		t.Errorf("the first of two owners' keys: %v", err)
	}
	_, err = w.KeysRevoke(t.Context(), w.by, &access.KeyIn{ID: second.ID})
	wantError(t, "the one that is left", err, flow.CodeConflict)
}

func TestLocalKeyLivesInThisProcessOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	key, err := w.LocalKey(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	by, err := w.Authenticate(t.Context(), key)
	if err != nil || by.Workspace != w.by.Workspace || by.Role != flow.RoleOwner {
		t.Errorf("got %+v, %v; want the owner", by, err)
	}
	_, err = w.service(1, false).Authenticate(t.Context(), key)
	wantError(t, "another process", err, flow.CodeUnauthenticated)
}

func TestGuard(t *testing.T) {
	t.Parallel()
	op := flow.Op{Name: "settings.put", Min: flow.RoleEditor}
	for _, tt := range []struct {
		role flow.Role
		op   flow.Op
		want flow.Code
		says string
	}{
		{flow.RoleOwner, op, "", ""},
		{flow.RoleEditor, op, "", ""},
		{flow.RoleOperator, op, flow.CodeForbidden, "settings.put needs the role editor, and this key has operator"},
		{flow.RoleAgent, op, flow.CodeForbidden, "settings.put is not open to a key of the role agent"},
		{flow.RoleAgent, flow.Op{Name: "x", Min: flow.RoleOwner, Agents: true}, "", ""},
		{"", op, flow.CodeUnauthenticated, "API key"},
		{"root", op, flow.CodeForbidden, "editor"},
	} {
		err := access.Guard{}.Check(flow.Caller{Workspace: "ws", Role: tt.role}, tt.op)
		wantError(t, string(tt.role), err, tt.want, tt.says)
	}
}

func TestOpsAreNamedOnceAndWritersAreEditors(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, op := range access.Ops() {
		if seen[op.Name] {
			t.Errorf("%s is there twice", op.Name)
		}
		seen[op.Name] = true
		if op.Changes && (op.Allows(flow.RoleOperator) || op.Allows(flow.RoleAgent)) {
			t.Errorf("%s changes something and is open to an operator or an agent", op.Name)
		}
		if strings.HasPrefix(op.Name, "keys.") && op.Allows(flow.RoleEditor) {
			t.Errorf("%s is open to an editor, want owners alone", op.Name)
		}
	}
}
