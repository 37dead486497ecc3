package store

import (
	"context"
	"time"

	"github.com/longstop-dev/longstop/internal/flow"
)

const memberQuery = `SELECT m.workspace_id, w.name, w.created_at, m.role, p.id, p.name, p.public_key, p.created_at
	FROM memberships m JOIN people p ON p.id = m.person_id JOIN workspaces w ON w.id = m.workspace_id`

func scanMember(r row) (flow.Member, error) {
	var m flow.Member
	var public string
	var founded, created int64
	if err := r.Scan(&m.Workspace.ID, &m.Workspace.Name, &founded, &m.Role, &m.Person.ID, &m.Person.Name, &public, &created); err != nil {
		return m, err
	}
	m.Workspace.CreatedAt, m.Person.CreatedAt = fromMicros(founded), fromMicros(created)
	m.Person.PublicKey = decodeBytes(public)
	return m, nil
}

// Members reads who belongs to a workspace, in the order in which they were
// made.
func (s *Store) Members(ctx context.Context, workspace string) ([]flow.Member, error) {
	rs, err := s.db.query(ctx, memberQuery+` WHERE m.workspace_id = $1 ORDER BY p.created_at, p.id`, workspace)
	return collect(rs, err, scanMember)
}

// Memberships reads the workspaces that a person belongs to, the oldest first.
func (s *Store) Memberships(ctx context.Context, person string) ([]flow.Member, error) {
	rs, err := s.db.query(ctx, memberQuery+` WHERE m.person_id = $1 ORDER BY w.created_at, w.id`, person)
	return collect(rs, err, scanMember)
}

// Member reads a person as a member of a workspace. It answers not_found.
func (s *Store) Member(ctx context.Context, workspace, person string) (flow.Member, error) {
	m, err := scanMember(s.db.queryRow(ctx, memberQuery+` WHERE m.workspace_id = $1 AND m.person_id = $2`, workspace, person))
	if noRows(err) {
		return m, noMember(person)
	}
	if err != nil {
		return m, unavailable(err)
	}
	return m, nil
}

func noMember(person string) error {
	return flow.Errorf(flow.CodeNotFound, "there is no person %q in this workspace", person)
}

// AddMember has a person belong to a workspace; fresh says that the person is
// new too. It answers conflict for a member.
func (s *Store) AddMember(ctx context.Context, m flow.Member, fresh bool, audit ...flow.Audit) error {
	return s.write(ctx, func(ctx context.Context, t tx) error {
		if fresh {
			if err := insertPerson(ctx, t, m.Person); err != nil {
				return err
			}
			return insertMember(ctx, t, m)
		}
		if _, err := roleIn(ctx, t, m.Workspace.ID, m.Person.ID); flow.CodeOf(err) != flow.CodeNotFound {
			if err == nil {
				err = flow.Errorf(flow.CodeConflict, "%s belongs to this workspace already", m.Person.ID).Right("change the role with PUT /v1/people/" + m.Person.ID)
			}
			return err
		}
		return insertMember(ctx, t, m)
	}, audit...)
}

func insertPerson(ctx context.Context, t tx, p flow.Person) error {
	_, err := t.exec(ctx, `INSERT INTO people (id, name, public_key, created_at) VALUES ($1, $2, $3, $4)`,
		p.ID, p.Name, encodeBytes(p.PublicKey), p.CreatedAt.UnixMicro())
	return err
}

func insertMember(ctx context.Context, t tx, m flow.Member) error {
	_, err := t.exec(ctx, `INSERT INTO memberships (person_id, workspace_id, role) VALUES ($1, $2, $3)`, m.Person.ID, m.Workspace.ID, string(m.Role))
	return err
}

// roleIn reads a member's role. It answers not_found.
func roleIn(ctx context.Context, t tx, workspace, person string) (role flow.Role, err error) {
	err = t.queryRow(ctx, `SELECT role FROM memberships WHERE workspace_id = $1 AND person_id = $2`, workspace, person).Scan(&role)
	if noRows(err) {
		err = noMember(person)
	}
	return role, err
}

// SetRole changes a member's role. Keys of theirs that may do more get the new
// role too. It answers not_found, and conflict where the workspace would have
// no owner with a key left.
func (s *Store) SetRole(ctx context.Context, workspace, person string, role flow.Role, audit ...flow.Audit) error {
	return s.write(ctx, func(ctx context.Context, t tx) error {
		had, err := roleIn(ctx, t, workspace, person)
		if err != nil {
			return err
		}
		if had == flow.RoleOwner && role != flow.RoleOwner {
			if err := checkOwners(ctx, t, workspace, person); err != nil {
				return err
			}
		}
		for _, above := range []flow.Role{flow.RoleOwner, flow.RoleEditor, flow.RoleOperator, flow.RoleViewer} {
			if !above.Above(role) {
				break
			}
			_, err := t.exec(ctx, `UPDATE api_keys SET role = $1 WHERE workspace_id = $2 AND person_id = $3 AND role = $4 AND revoked_at IS NULL`,
				string(role), workspace, person, string(above))
			if err != nil {
				return err
			}
		}
		_, err = t.exec(ctx, `UPDATE memberships SET role = $1 WHERE workspace_id = $2 AND person_id = $3`, string(role), workspace, person)
		return err
	}, audit...)
}

// checkOwners answers conflict if the workspace has no owner beside a person,
// or none who holds an owner's key.
func checkOwners(ctx context.Context, t tx, workspace, person string) error {
	var owners, keys int64
	err := t.queryRow(ctx, `SELECT COUNT(*) FROM memberships WHERE workspace_id = $1 AND role = 'owner' AND person_id <> $2`, workspace, person).Scan(&owners)
	if err != nil {
		return err
	}
	if owners == 0 {
		return flow.Errorf(flow.CodeConflict, "%s is the last owner of this workspace", person).Right("make somebody else an owner first")
	}
	err = t.queryRow(ctx, `SELECT COUNT(*) FROM api_keys k JOIN memberships m ON m.workspace_id = k.workspace_id AND m.person_id = k.person_id
		WHERE k.workspace_id = $1 AND k.role = 'owner' AND k.revoked_at IS NULL AND m.role = 'owner' AND k.person_id <> $2`, workspace, person).Scan(&keys)
	if err == nil && keys == 0 {
		return flow.Errorf(flow.CodeConflict, "no other owner of this workspace holds an owner's key").Right("make one for another owner first")
	}
	return err
}

// RemoveMember ends a membership and revokes the person's keys to the
// workspace. It answers not_found, and conflict where the workspace would have
// no owner with a key left.
func (s *Store) RemoveMember(ctx context.Context, workspace, person string, at time.Time, audit ...flow.Audit) error {
	return s.write(ctx, func(ctx context.Context, t tx) error {
		role, err := roleIn(ctx, t, workspace, person)
		if err != nil {
			return err
		}
		if role == flow.RoleOwner {
			if err := checkOwners(ctx, t, workspace, person); err != nil {
				return err
			}
		}
		_, err = t.exec(ctx, `UPDATE api_keys SET revoked_at = $1 WHERE workspace_id = $2 AND person_id = $3 AND revoked_at IS NULL`,
			at.UnixMicro(), workspace, person)
		if err == nil {
			_, err = t.exec(ctx, `DELETE FROM memberships WHERE workspace_id = $1 AND person_id = $2`, workspace, person)
		}
		return err
	}, audit...)
}

// AddWorkspace makes a workspace with its first owner, a person who is there
// already, and a key of theirs.
func (s *Store) AddWorkspace(ctx context.Context, m flow.Member, k flow.Key, audit ...flow.Audit) error {
	return s.write(ctx, func(ctx context.Context, t tx) error {
		if err := insertWorkspace(ctx, t, m.Workspace); err != nil {
			return err
		}
		if err := insertMember(ctx, t, m); err != nil {
			return err
		}
		return insertKey(ctx, t, k)
	}, audit...)
}

func insertWorkspace(ctx context.Context, t tx, w flow.Workspace) error {
	_, err := t.exec(ctx, `INSERT INTO workspaces (id, name, created_at) VALUES ($1, $2, $3)`, w.ID, w.Name, w.CreatedAt.UnixMicro())
	return err
}

// RenameWorkspace gives a workspace another name. It answers not_found.
func (s *Store) RenameWorkspace(ctx context.Context, id, name string, audit ...flow.Audit) error {
	return s.write(ctx, func(ctx context.Context, t tx) error {
		n, err := t.exec(ctx, `UPDATE workspaces SET name = $1 WHERE id = $2`, name, id)
		if err == nil && n == 0 {
			return flow.Errorf(flow.CodeNotFound, "there is no workspace %q", id)
		}
		return err
	}, audit...)
}
