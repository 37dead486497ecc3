package access_test

import (
	"testing"

	"github.com/longstop-dev/longstop/internal/access"
	"github.com/longstop-dev/longstop/internal/flow"
)

// add adds a person and makes a key of theirs with the same role.
func (w *world) add(t *testing.T, role flow.Role) (*access.PersonView, string) {
	t.Helper()
	in := &access.AddPersonIn{}
	in.Body.Name, in.Body.Role = "somebody", string(role)
	p, err := w.PeopleAdd(t.Context(), w.by, in)
	if err != nil {
		t.Fatalf("add %s: %v", role, err)
	}
	k := &access.CreateKeyIn{}
	k.Body.Name, k.Body.Role, k.Body.Person = "theirs", string(role), p.ID
	v, err := w.KeysCreate(t.Context(), w.by, k)
	if err != nil {
		t.Fatalf("a key of %s: %v", role, err)
	}
	return p, v.Key
}

func (w *world) setRole(t *testing.T, id string, role flow.Role) error {
	t.Helper()
	in := &access.PutPersonIn{ID: id}
	in.Body.Role = string(role)
	_, err := w.PeoplePut(t.Context(), w.by, in)
	return err
}

func TestAPersonsKeysEndWithThem(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p, key := w.add(t, flow.RoleEditor)
	by, err := w.Authenticate(t.Context(), key)
	if err != nil || by.Person != p.ID || by.Role != flow.RoleEditor {
		t.Fatalf("their key: got %+v, %v", by, err)
	}
	if len(p.PublicKey) != 64 {
		t.Errorf("public key: got %q, want 64 hex digits", p.PublicKey)
	}
	gone := w.Revocations()
	if _, err := w.PeopleRemove(t.Context(), w.by, &access.PersonIn{ID: p.ID}); err != nil {
		t.Fatal(err)
	}
	select {
	case <-gone:
	default:
		t.Error("nobody was told that keys have ended")
	}
	_, err = w.Authenticate(t.Context(), key)
	wantError(t, "a removed person's key", err, flow.CodeUnauthenticated)
	_, err = w.PeopleGet(t.Context(), w.by, &access.PersonIn{ID: p.ID})
	wantError(t, "a removed person", err, flow.CodeNotFound, "GET /v1/people")
}

func TestKeysFollowTheRole(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p, key := w.add(t, flow.RoleEditor)
	for _, role := range []flow.Role{flow.RoleViewer, flow.RoleAgent} {
		if err := w.setRole(t, p.ID, role); err != nil {
			t.Fatal(err)
		}
		if by, err := w.Authenticate(t.Context(), key); err != nil || by.Role != role {
			t.Errorf("after becoming %s: got %+v, %v", role, by, err)
		}
	}
	if err := w.setRole(t, p.ID, flow.RoleOwner); err != nil {
		t.Fatal(err)
	}
	if by, err := w.Authenticate(t.Context(), key); err != nil || by.Role != flow.RoleAgent {
		t.Errorf("a key does not grow with its person: got %+v, %v, want agent", by, err)
	}
	in := &access.CreateKeyIn{}
	in.Body.Name, in.Body.Role, in.Body.Person = "more", "owner", p.ID
	if err := w.setRole(t, p.ID, flow.RoleOperator); err != nil {
		t.Fatal(err)
	}
	_, err := w.KeysCreate(t.Context(), w.by, in)
	wantError(t, "a key above its person", err, flow.CodeInvalid, "operator")
}

func TestTheLastOwnerStays(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	me := w.by.Person
	_, err := w.PeopleRemove(t.Context(), w.by, &access.PersonIn{ID: me})
	wantError(t, "removing the last owner", err, flow.CodeConflict, "last owner")
	wantError(t, "demoting the last owner", w.setRole(t, me, flow.RoleEditor), flow.CodeConflict, "last owner")
	in := &access.AddPersonIn{}
	in.Body.Name, in.Body.Role = "second", "owner"
	second, err := w.PeopleAdd(t.Context(), w.by, in)
	if err != nil {
		t.Fatal(err)
	}
	_, err = w.PeopleRemove(t.Context(), w.by, &access.PersonIn{ID: me})
	wantError(t, "leaving an owner without a key", err, flow.CodeConflict, "key")
	k := &access.CreateKeyIn{}
	k.Body.Name, k.Body.Role, k.Body.Person = "theirs", "owner", second.ID
	if _, err := w.KeysCreate(t.Context(), w.by, k); err != nil {
		t.Fatal(err)
	}
	if _, err := w.PeopleRemove(t.Context(), w.by, &access.PersonIn{ID: me}); err != nil {
		t.Errorf("with another owner who holds a key: %v", err)
	}
}

func TestNobodyGrantsMoreThanTheyHave(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p, _ := w.add(t, flow.RoleViewer)
	for _, mine := range []flow.Role{flow.RoleAgent, flow.RoleViewer, flow.RoleOperator, flow.RoleEditor} {
		by := w.by
		by.Role = mine
		add := &access.AddPersonIn{}
		add.Body.Name, add.Body.Role = "x", "owner"
		_, err := w.PeopleAdd(t.Context(), by, add)
		wantError(t, string(mine)+" adds an owner", err, flow.CodeForbidden)
		put := &access.PutPersonIn{ID: p.ID}
		put.Body.Role = "owner"
		_, err = w.PeoplePut(t.Context(), by, put)
		wantError(t, string(mine)+" makes an owner", err, flow.CodeForbidden)
	}
	wantError(t, "no role", w.setRole(t, p.ID, "boss"), flow.CodeInvalid, "boss", "viewer")
}

func TestWorkspacesShareNothingButPeople(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	in := &access.CreateWorkspaceIn{}
	in.Body.Name = "staging"
	v, err := w.WorkspacesCreate(t.Context(), w.by, in)
	if err != nil {
		t.Fatal(err)
	}
	there, err := w.Authenticate(t.Context(), v.Key)
	if err != nil || there.Workspace != v.ID || there.Person != w.by.Person || there.Role != flow.RoleOwner {
		t.Fatalf("the new workspace's key: got %+v, %v", there, err)
	}
	p, _ := w.add(t, flow.RoleViewer) // of the first workspace only
	_, err = w.PeopleGet(t.Context(), there, &access.PersonIn{ID: p.ID})
	wantError(t, "another workspace's person", err, flow.CodeNotFound)
	add := &access.AddPersonIn{}
	add.Body.Person, add.Body.Role = p.ID, "editor"
	if got, err := w.PeopleAdd(t.Context(), there, add); err != nil || got.ID != p.ID || got.Role != flow.RoleEditor || got.PublicKey != p.PublicKey {
		t.Errorf("a person whom the owner knows: got %+v, %v", got, err)
	}
	_, err = w.PeopleAdd(t.Context(), there, add)
	wantError(t, "twice", err, flow.CodeConflict, "already")
	stranger, _ := w.add(t, flow.RoleOwner)
	theirs := flow.Caller{Workspace: v.ID, Person: stranger.ID, Role: flow.RoleOwner} // owns the first, not the second
	add.Body.Person = "person_nobody"
	_, err = w.PeopleAdd(t.Context(), theirs, add)
	wantError(t, "nobody", err, flow.CodeNotFound)
	put := &access.PutWorkspaceIn{ID: v.ID}
	put.Body.Name = "mine now"
	_, err = w.WorkspacesPut(t.Context(), w.by, put)
	wantError(t, "renaming another workspace", err, flow.CodeNotFound)
	list, err := w.WorkspacesList(t.Context(), w.by, nil)
	if err != nil || len(list.Items) != 2 || !list.Items[0].Current || list.Items[1].Name != "staging" {
		t.Errorf("list: got %+v, %v", list, err)
	}
}

func TestARotatedKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	fresh, err := w.KeysRotate(t.Context(), w.by, &access.KeyIn{ID: w.by.KeyID})
	if err != nil {
		t.Fatal(err)
	}
	_, err = w.Authenticate(t.Context(), w.key)
	wantError(t, "the old key", err, flow.CodeUnauthenticated)
	by, err := w.Authenticate(t.Context(), fresh.Key)
	if err != nil || by.Person != w.by.Person || by.Role != flow.RoleOwner {
		t.Errorf("the new key: got %+v, %v", by, err)
	}
	_, err = w.KeysRotate(t.Context(), w.by, &access.KeyIn{ID: w.by.KeyID})
	wantError(t, "rotated again", err, flow.CodeConflict, "revoked")
	_, err = w.KeysRotate(t.Context(), w.by, &access.KeyIn{ID: "key_nobody"})
	wantError(t, "no key", err, flow.CodeNotFound)
}

// TestTheLocalKeyIsAnOwners even if the first owner has left.
func TestTheLocalKeyIsAnOwners(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	local, err := w.LocalKey(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	second, _ := w.add(t, flow.RoleOwner)
	if _, err := w.PeopleRemove(t.Context(), w.by, &access.PersonIn{ID: w.by.Person}); err != nil {
		t.Fatal(err)
	}
	if by, err := w.Authenticate(t.Context(), local); err != nil || by.Person != second.ID || by.KeyID != "local" {
		t.Errorf("got %+v, %v, want the owner who is left", by, err)
	}
}
