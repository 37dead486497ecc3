package store

import (
	"context"

	"github.com/longstop-dev/longstop/internal/flow"
)

// Found stores the first workspace, its owner and the owner's key together,
// and reports whether it did: where there is a workspace already, nothing is
// stored.
func (s *Store) Found(ctx context.Context, w flow.Workspace, p flow.Person, k flow.Key, audit ...flow.Audit) (bool, error) {
	founded := false
	rows, err := notes(audit)
	if err != nil {
		return false, err
	}
	err = s.noted(ctx, func(ctx context.Context, t tx) error {
		founded = false // the committer may run this again
		void(rows, true)
		var n int64
		if err := t.queryRow(ctx, `SELECT COUNT(*) FROM workspaces`).Scan(&n); err != nil || n > 0 {
			return err
		}
		if err := insertWorkspace(ctx, t, w); err != nil {
			return err
		}
		if err := insertPerson(ctx, t, p); err != nil {
			return err
		}
		if err := insertMember(ctx, t, flow.Member{Workspace: w, Person: p, Role: flow.RoleOwner}); err != nil {
			return err
		}
		founded = true
		void(rows, false)
		return insertKey(ctx, t, k)
	}, rows)
	return founded && err == nil, err
}

// Founder reads the owner of the oldest workspace. It answers not_found.
func (s *Store) Founder(ctx context.Context) (flow.Caller, error) {
	by := flow.Caller{Role: flow.RoleOwner}
	err := s.db.queryRow(ctx, `SELECT w.id, p.id FROM workspaces w
		JOIN memberships m ON m.workspace_id = w.id AND m.role = 'owner' JOIN people p ON p.id = m.person_id
		ORDER BY w.created_at, w.id, p.created_at, p.id LIMIT 1`).Scan(&by.Workspace, &by.Person)
	if noRows(err) {
		return flow.Caller{}, flow.Errorf(flow.CodeNotFound, "there is no workspace yet")
	}
	if err != nil {
		return flow.Caller{}, unavailable(err)
	}
	return by, nil
}

// Workspaces reads all workspaces, oldest first.
func (s *Store) Workspaces(ctx context.Context) ([]flow.Workspace, error) {
	rs, err := s.db.query(ctx, `SELECT id, name, created_at FROM workspaces ORDER BY created_at, id`)
	return collect(rs, err, func(r row) (flow.Workspace, error) {
		var w flow.Workspace
		var created int64
		err := r.Scan(&w.ID, &w.Name, &created)
		w.CreatedAt = fromMicros(created)
		return w, err
	})
}

// Person reads a person. It answers not_found.
func (s *Store) Person(ctx context.Context, id string) (flow.Person, error) {
	var p flow.Person
	var public string
	var created int64
	err := s.db.queryRow(ctx, `SELECT id, name, public_key, created_at FROM people WHERE id = $1`, id).Scan(&p.ID, &p.Name, &public, &created)
	if noRows(err) {
		return p, flow.Errorf(flow.CodeNotFound, "there is no person %q", id)
	}
	if err != nil {
		return p, unavailable(err)
	}
	p.PublicKey = decodeBytes(public)
	p.CreatedAt = fromMicros(created)
	return p, nil
}
