package store

import (
	"context"
	"encoding/json"

	"github.com/longstop-dev/longstop/internal/flow"
)

const versionColumns = `id, workspace_id, workflow, number, digest, source, definition, author, created_at`

func scanVersion(r row) (flow.WorkflowVersion, error) {
	var v flow.WorkflowVersion
	var definition string
	var created int64
	err := r.Scan(&v.ID, &v.Workspace, &v.Workflow, &v.Number, &v.Digest, &v.Source, &definition, &v.Author, &created)
	v.Definition, v.CreatedAt = json.RawMessage(definition), fromMicros(created)
	return v, err
}

// Publish stores v as the workflow's newest version, with the next number,
// and makes new runs use it. A content equal to the newest version's is not
// stored again: it gives that version. With once it answers conflict if the key
// is taken, and remembers the version's id under it otherwise.
func (s *Store) Publish(ctx context.Context, v flow.WorkflowVersion, once *flow.Once, audit ...flow.Audit) (flow.WorkflowVersion, error) {
	var out flow.WorkflowVersion
	rows, err := notes(audit)
	if err != nil {
		return out, err
	}
	err = s.noted(ctx, func(ctx context.Context, t tx) error {
		newest, err := scanVersion(t.queryRow(ctx, `SELECT `+versionColumns+` FROM workflow_versions
			WHERE workspace_id = $1 AND workflow = $2 ORDER BY number DESC LIMIT 1`, v.Workspace, v.Workflow))
		if err != nil && !noRows(err) {
			return err
		}
		out = v // the committer may run this again
		same := err == nil && newest.Number > 0 && newest.Digest == v.Digest
		if same {
			out = newest
		} else {
			out.Number = newest.Number + 1
		}
		if err := putOnce(ctx, t, once.Making(out.ID)); err != nil {
			return err
		}
		if !same {
			if err := insertVersion(ctx, t, out); err != nil {
				return err
			}
		}
		moved, err := point(ctx, t, flow.Workflow{Workspace: v.Workspace, Name: v.Workflow, VersionID: out.ID, Number: out.Number, UpdatedAt: v.CreatedAt})
		void(rows, same && !moved) // nothing is changed
		return err
	}, rows)
	return out, err
}

// point says which version new runs of a workflow use; one that they use
// already stays as it was, which is reported.
func point(ctx context.Context, t tx, w flow.Workflow) (moved bool, err error) {
	n, err := t.exec(ctx, `INSERT INTO workflows (workspace_id, name, version_id, number, updated_at) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (workspace_id, name) DO UPDATE SET version_id = excluded.version_id, number = excluded.number, updated_at = excluded.updated_at
		WHERE workflows.version_id <> excluded.version_id`, w.Workspace, w.Name, w.VersionID, w.Number, w.UpdatedAt.UnixMicro())
	return n > 0, err
}

// Point says which version new runs of a workflow use from now on.
func (s *Store) Point(ctx context.Context, w flow.Workflow, audit ...flow.Audit) error {
	rows, err := notes(audit)
	if err != nil {
		return err
	}
	return s.noted(ctx, func(ctx context.Context, t tx) error {
		moved, err := point(ctx, t, w)
		void(rows, !moved)
		return err
	}, rows)
}

// Unpublish has a workflow start no new runs; its versions stay. It answers
// not_found if it is not published.
func (s *Store) Unpublish(ctx context.Context, workspace, name string, audit ...flow.Audit) error {
	return s.write(ctx, func(ctx context.Context, t tx) error {
		n, err := t.exec(ctx, `DELETE FROM workflows WHERE workspace_id = $1 AND name = $2`, workspace, name)
		if err == nil && n == 0 {
			return flow.Errorf(flow.CodeNotFound, "workflow %q is not published", name)
		}
		return err
	}, audit...)
}

// Numbered lists a workflow's numbered versions, newest first: those with a
// number below before, or all of them if that is 0.
func (s *Store) Numbered(ctx context.Context, workspace, name string, before, limit int) ([]flow.WorkflowVersion, error) {
	rs, err := s.db.query(ctx, `SELECT `+versionColumns+` FROM workflow_versions
		WHERE workspace_id = $1 AND workflow = $2 AND number > 0 AND (number < $3 OR $3 = 0) ORDER BY number DESC LIMIT $4`, workspace, name, before, limit)
	return collect(rs, err, scanVersion)
}

// Keep stores v unpublished, found again by its content: the same content
// gives the version that is there. For once see [Store.Publish].
func (s *Store) Keep(ctx context.Context, v flow.WorkflowVersion, once *flow.Once, audit ...flow.Audit) (flow.WorkflowVersion, error) {
	var out flow.WorkflowVersion
	rows, err := notes(audit)
	if err != nil {
		return out, err
	}
	err = s.noted(ctx, func(ctx context.Context, t tx) error {
		kept, err := scanVersion(t.queryRow(ctx, `SELECT `+versionColumns+` FROM workflow_versions
			WHERE workspace_id = $1 AND workflow = $2 AND digest = $3 AND number = 0`, v.Workspace, v.Workflow, v.Digest))
		if err != nil && !noRows(err) {
			return err
		}
		out = v
		if err == nil {
			out = kept
		}
		out.Number = 0
		void(rows, out.ID == kept.ID)
		if err := putOnce(ctx, t, once.Making(out.ID)); err != nil || out.ID == kept.ID {
			return err
		}
		return insertVersion(ctx, t, out)
	}, rows)
	return out, err
}

func insertVersion(ctx context.Context, t tx, v flow.WorkflowVersion) error {
	_, err := t.exec(ctx, `INSERT INTO workflow_versions (`+versionColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
		v.ID, v.Workspace, v.Workflow, v.Number, v.Digest, v.Source, string(v.Definition), v.Author, v.CreatedAt.UnixMicro())
	return err
}

// Version reads a version by its id; with an empty workspace, of any, which
// is for the engine only. It answers not_found.
func (s *Store) Version(ctx context.Context, workspace, id string) (flow.WorkflowVersion, error) {
	v, err := scanVersion(s.db.queryRow(ctx, `SELECT `+versionColumns+` FROM workflow_versions WHERE id = $1 AND (workspace_id = $2 OR $2 = '')`, id, workspace))
	if noRows(err) {
		return v, flow.Errorf(flow.CodeNotFound, "there is no workflow version %s", id)
	}
	if err != nil {
		return v, unavailable(err)
	}
	return v, nil
}

// Workflow reads a workflow by its name. It answers not_found.
func (s *Store) Workflow(ctx context.Context, workspace, name string) (flow.Workflow, error) {
	v, err := scanWorkflow(s.db.queryRow(ctx, `SELECT workspace_id, name, version_id, number, updated_at FROM workflows
		WHERE workspace_id = $1 AND name = $2`, workspace, name))
	if noRows(err) {
		return v, flow.Errorf(flow.CodeNotFound, "there is no workflow %q", name)
	}
	if err != nil {
		return v, unavailable(err)
	}
	return v, nil
}

// Workflows lists a workspace's workflows by name, those after the name after.
func (s *Store) Workflows(ctx context.Context, workspace, after string, limit int) ([]flow.Workflow, error) {
	rs, err := s.db.query(ctx, `SELECT workspace_id, name, version_id, number, updated_at FROM workflows
		WHERE workspace_id = $1 AND name > $2 ORDER BY name LIMIT $3`, workspace, after, limit)
	return collect(rs, err, scanWorkflow)
}

func scanWorkflow(r row) (flow.Workflow, error) {
	var v flow.Workflow
	var updated int64
	err := r.Scan(&v.Workspace, &v.Name, &v.VersionID, &v.Number, &updated)
	v.UpdatedAt = fromMicros(updated)
	return v, err
}
