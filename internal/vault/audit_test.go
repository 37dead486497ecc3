package vault_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/vault"
)

// TestWhatPeopleDoToVaultsIsOnTheRecord, each thing once, and nothing of what
// an event says.
func TestWhatPeopleDoToVaultsIsOnTheRecord(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.agent("mail")
	v := must(b.s.Get(t.Context(), b.ada, &vault.In{ID: "notes"}))
	connect := &vault.ConnectIn{ID: v.ID}
	connect.Body.Agent = agentID
	c := must(b.s.Connect(t.Context(), b.ada, connect))
	update := &vault.UpdateConnectionIn{ID: c.ID}
	update.Body.Ceilings = &vault.Ceilings{A2ATokens: 7}
	must(b.s.UpdateConnection(t.Context(), b.ada, update))
	event := &vault.AppendIn{ID: v.ID, Key: "once", Body: vault.NewEvent{Type: "note", Payload: []byte(`{"text":"for nobody else"}`)}}
	for range 2 { // the second gives the event that is there
		must(b.s.Append(t.Context(), b.ada, event))
	}
	must(b.s.Publish(t.Context(), "ws", v.ID, vault.NewEvent{Type: "note"}, flow.EventAuthor{Kind: flow.AuthorSchedule, ID: "s"}, "", "")) // by nobody
	must(b.s.RevokeConnection(t.Context(), b.ada, &vault.ConnectionIn{ID: c.ID}))
	must(b.s.Update(t.Context(), b.ada, &vault.UpdateIn{ID: v.ID}))
	must(b.s.Delete(t.Context(), b.ada, &vault.In{ID: v.ID}))
	if _, err := b.s.Delete(t.Context(), b.ada, &vault.In{ID: v.ID}); flow.CodeOf(err) != flow.CodeNotFound {
		t.Errorf("deleted twice: %v", err)
	}
	var got []string
	for _, a := range must(b.store.Audit(t.Context(), flow.AuditFilter{Workspace: "ws", Oldest: true, Limit: 100})) {
		got = append(got, a.Op)
		if a.Author != "ada" || strings.Contains(string(a.Details), "nobody else") {
			t.Errorf("got %+v, want Ada, and nothing of the payload", a)
		}
	}
	want := []string{"vaults.create", "connections.create", "connections.update", "events.append", "connections.revoke", "vaults.update", "vaults.delete"}
	if !slices.Equal(got, want) {
		t.Errorf("on the record: got %v, want %v", got, want)
	}
}
