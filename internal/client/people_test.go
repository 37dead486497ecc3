package client_test

import (
	"testing"

	"github.com/longstop-dev/longstop/internal/client"
	"github.com/longstop-dev/longstop/internal/flow"
)

// people uses what there is for people, their keys, workspaces and the audit
// record.
func people(t *testing.T, c *client.Client) {
	t.Helper()
	ctx := t.Context()
	p := ok[*client.Person](t)(c.AddPerson(ctx, client.NewPerson{Name: "Ada", Role: flow.RoleViewer}))
	k := ok[*client.Key](t)(c.CreateKeyFor(ctx, p.ID, "hers", flow.RoleViewer))
	fresh := ok[*client.Key](t)(c.RotateKey(ctx, k.ID))
	if k.Person != p.ID || fresh.Person != p.ID || fresh.Key == "" || fresh.Key == k.Key {
		t.Errorf("keys: got %+v and %+v, want another of %s", k, fresh, p.ID)
	}
	if v := ok[*client.Person](t)(c.SetRole(ctx, p.ID, flow.RoleEditor)); v.Role != flow.RoleEditor {
		t.Errorf("role: got %+v", v)
	}
	if v := ok[*client.Person](t)(c.Person(ctx, p.ID)); v.Name != "Ada" || v.Keys != 1 || len(v.PublicKey) != 64 {
		t.Errorf("person: got %+v, want Ada with one key", v)
	}
	if l := ok[*client.List[client.Person]](t)(c.People(ctx)); len(l.Items) != 2 {
		t.Errorf("people: got %+v, want 2", l)
	}
	if err := c.RemovePerson(ctx, p.ID); err != nil {
		t.Errorf("remove: %v", err)
	}
	w := ok[*client.Workspace](t)(c.CreateWorkspace(ctx, "staging"))
	if w.Key == "" || w.Role != flow.RoleOwner || w.Current {
		t.Errorf("workspace: got %+v, want a key to it", w)
	}
	l := ok[*client.List[client.Workspace]](t)(c.Workspaces(ctx))
	if len(l.Items) != 2 || !l.Items[0].Current {
		t.Fatalf("workspaces: got %+v, want 2, this one first", l)
	}
	if v := ok[*client.Workspace](t)(c.RenameWorkspace(ctx, l.Items[0].ID, "production")); v.Name != "production" {
		t.Errorf("rename: got %+v", v)
	}
	page := ok[*client.List[flow.Audit]](t)(c.Audit(ctx, client.AuditFilter{Op: "people.", Oldest: true, Page: client.Page{Limit: 2}}))
	if len(page.Items) != 2 || page.Items[0].Op != "people.add" || page.Items[1].Op != "people.put" || page.Next == "" {
		t.Errorf("audit: got %+v, want two of three", page)
	}
	if h := ok[*flow.AuditHead](t)(c.AuditHead(ctx)); h.Seq < 5 || len(h.Hash) != 64 {
		t.Errorf("head: got %+v", h)
	}
}
