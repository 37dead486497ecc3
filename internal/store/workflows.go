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
// stored again: it gives that version.
func (s *Store) Publish(ctx context.Context, v flow.WorkflowVersion) (flow.WorkflowVersion, error) {
	out := v
	err := s.write(ctx, func(ctx context.Context, t tx) error {
		newest, err := scanVersion(t.queryRow(ctx, `SELECT `+versionColumns+` FROM workflow_versions
			WHERE workspace_id = $1 AND workflow = $2 ORDER BY number DESC LIMIT 1`, v.Workspace, v.Workflow))
		if err != nil && !noRows(err) {
			return err
		}
		if err == nil && newest.Number > 0 && newest.Digest == v.Digest {
			out = newest
			return nil
		}
		out.Number = newest.Number + 1
		if err := insertVersion(ctx, t, out); err != nil {
			return err
		}
		_, err = t.exec(ctx, `INSERT INTO workflows (workspace_id, name, version_id, number, updated_at) VALUES ($1, $2, $3, $4, $5)
			ON CONFLICT (workspace_id, name) DO UPDATE SET version_id = excluded.version_id, number = excluded.number, updated_at = excluded.updated_at`,
			out.Workspace, out.Workflow, out.ID, out.Number, out.CreatedAt.UnixMicro())
		return err
	})
	return out, err
}

// Keep stores v unpublished, found again by its content: the same content
// gives the version that is there.
func (s *Store) Keep(ctx context.Context, v flow.WorkflowVersion) (flow.WorkflowVersion, error) {
	out := v
	err := s.write(ctx, func(ctx context.Context, t tx) error {
		kept, err := scanVersion(t.queryRow(ctx, `SELECT `+versionColumns+` FROM workflow_versions
			WHERE workspace_id = $1 AND workflow = $2 AND digest = $3 AND number = 0`, v.Workspace, v.Workflow, v.Digest))
		switch {
		case err == nil:
			out = kept
			return nil
		case !noRows(err):
			return err
		}
		out.Number = 0
		return insertVersion(ctx, t, out)
	})
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
