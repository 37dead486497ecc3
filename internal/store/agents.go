package store

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"github.com/longstop-dev/longstop/internal/flow"
)

const agentColumns = `workspace_id, agent_id, service, manifest, pushed_by, pushed_at`

func scanAgent(r row) (flow.Agent, error) {
	var a flow.Agent
	var manifest string
	var at int64
	if err := r.Scan(&a.Workspace, &a.ID, &a.Service, &manifest, &a.PushedBy, &at); err != nil {
		return a, err
	}
	a.PushedAt = fromMicros(at)
	return a, json.Unmarshal([]byte(manifest), &a.Manifest)
}

func noAgent(id string) *flow.Error {
	return flow.Errorf(flow.CodeNotFound, "there is no agent %q", id)
}

// PutAgent stores a version of an agent in the place of one of the same
// version. Newest says of all versions that are there then, in the order
// pushed, which is called from now on.
func (s *Store) PutAgent(ctx context.Context, a flow.Agent, newest func(versions []string) string, audit ...flow.Audit) error {
	manifest, err := json.Marshal(a.Manifest)
	if err != nil {
		return flow.Errorf(flow.CodeInternal, "a manifest cannot be written as JSON").Because(err)
	}
	return s.write(ctx, func(ctx context.Context, t tx) error {
		_, err := t.exec(ctx, `INSERT INTO agents (workspace_id, agent_id, version, service, newest, manifest, pushed_by, pushed_at)
			VALUES ($1, $2, $3, $4, 0, $5, $6, $7)
			ON CONFLICT (workspace_id, agent_id, version) DO UPDATE SET service = excluded.service, manifest = excluded.manifest,
				pushed_by = excluded.pushed_by, pushed_at = excluded.pushed_at`,
			a.Workspace, a.ID, a.Manifest.Version, a.Service, string(manifest), a.PushedBy, a.PushedAt.UnixMicro())
		if err != nil {
			return err
		}
		rs, err := t.query(ctx, `SELECT version FROM agents WHERE workspace_id = $1 AND agent_id = $2 ORDER BY pushed_at, version`, a.Workspace, a.ID)
		versions, err := collect(rs, err, scanText)
		if err != nil {
			return err
		}
		return t.send(ctx, nil, `UPDATE agents SET newest = CASE WHEN version = $3 THEN 1 ELSE 0 END WHERE workspace_id = $1 AND agent_id = $2`,
			a.Workspace, a.ID, newest(versions))
	}, audit...)
}

func scanText(r row) (string, error) {
	var text string
	err := r.Scan(&text)
	return text, err
}

// AgentVersions lists the versions of an agent, in the order pushed; not_found
// if there are none.
func (s *Store) AgentVersions(ctx context.Context, workspace, id string) ([]flow.Agent, error) {
	rs, err := s.db.query(ctx, `SELECT `+agentColumns+` FROM agents WHERE workspace_id = $1 AND agent_id = $2 ORDER BY pushed_at, version`, workspace, id)
	out, err := collect(rs, err, scanAgent)
	if err == nil && len(out) == 0 {
		return nil, noAgent(id)
	}
	return out, err
}

// Agent reads the version of an agent that is called. It answers not_found.
func (s *Store) Agent(ctx context.Context, workspace, id string) (flow.Agent, error) {
	a, err := scanAgent(s.db.queryRow(ctx, `SELECT `+agentColumns+` FROM agents WHERE workspace_id = $1 AND agent_id = $2 AND newest = 1`, workspace, id))
	return found(a, err, func() *flow.Error { return noAgent(id) })
}

// Agents lists a workspace's agents, each in the version that is called, by
// id.
func (s *Store) Agents(ctx context.Context, workspace string) ([]flow.Agent, error) {
	rs, err := s.db.query(ctx, `SELECT `+agentColumns+` FROM agents WHERE workspace_id = $1 AND newest = 1 ORDER BY agent_id`, workspace)
	return collect(rs, err, scanAgent)
}

// DeleteAgent removes all versions of an agent. It answers not_found.
func (s *Store) DeleteAgent(ctx context.Context, workspace, id string, audit ...flow.Audit) error {
	return s.write(ctx, func(ctx context.Context, t tx) error {
		n, err := t.exec(ctx, `DELETE FROM agents WHERE workspace_id = $1 AND agent_id = $2`, workspace, id)
		if err == nil && n == 0 {
			return noAgent(id)
		}
		return err
	}, audit...)
}

const serviceColumns = `public_key, workspace_id, name, sealed, bucket_id, is_default, replaces, created_at`

func scanService(r row) (flow.AgentService, error) {
	var v flow.AgentService
	var sealed string
	var def, created int64
	if err := r.Scan(&v.PublicKey, &v.Workspace, &v.Name, &sealed, &v.Bucket, &def, &v.Replaces, &created); err != nil {
		return v, err
	}
	v.Default, v.CreatedAt = def != 0, fromMicros(created)
	v.Sealed = decodeBytes(sealed)
	return v, nil
}

// CreateService stores an Agent Service. It answers conflict for a key that is
// held already, and for one that replaces what another does.
func (s *Store) CreateService(ctx context.Context, v flow.AgentService, audit ...flow.Audit) error {
	return s.write(ctx, func(ctx context.Context, t tx) error {
		n, err := t.exec(ctx, `INSERT INTO agent_services (`+serviceColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT DO NOTHING`,
			v.PublicKey, v.Workspace, v.Name, encodeBytes(v.Sealed), v.Bucket, flag(v.Default), v.Replaces, v.CreatedAt.UnixMicro())
		if err != nil {
			return err
		}
		if n == 0 {
			return flow.Errorf(flow.CodeConflict, "the Agent Service %s is held here already, or its successor is", cmp.Or(v.Replaces, v.PublicKey))
		}
		return onlyDefault(ctx, t, `agent_services`, `public_key`, v.Workspace, v.PublicKey, v.Default)
	}, audit...)
}

// onlyDefault takes the mark of the default from all others.
func onlyDefault(ctx context.Context, t tx, table, column, workspace, id string, def bool) error {
	if !def {
		return nil
	}
	_, err := t.exec(ctx, `UPDATE `+table+` SET is_default = CASE WHEN `+column+` = $2 THEN 1 ELSE 0 END WHERE workspace_id = $1`, workspace, id)
	return err
}

// Service reads an Agent Service; with an empty workspace, of any, which is
// for signing only. It answers not_found.
func (s *Store) Service(ctx context.Context, workspace, publicKey string) (flow.AgentService, error) {
	v, err := scanService(s.db.queryRow(ctx, `SELECT `+serviceColumns+` FROM agent_services WHERE public_key = $1 AND (workspace_id = $2 OR $2 = '')`, publicKey, workspace))
	return found(v, err, func() *flow.Error {
		return flow.Errorf(flow.CodeNotFound, "there is no Agent Service %q here", publicKey)
	})
}

// Services lists Agent Services, of a workspace or with an empty one of all,
// oldest first.
func (s *Store) Services(ctx context.Context, workspace string) ([]flow.AgentService, error) {
	rs, err := s.db.query(ctx, `SELECT `+serviceColumns+` FROM agent_services WHERE workspace_id = $1 OR $1 = '' ORDER BY created_at, public_key`, workspace)
	return collect(rs, err, scanService)
}

const bucketColumns = `id, workspace_id, url, public_base, is_default, created_at`

func scanBucket(r row) (flow.Bucket, error) {
	var v flow.Bucket
	var def, created int64
	err := r.Scan(&v.ID, &v.Workspace, &v.URL, &v.PublicBase, &def, &created)
	v.Default, v.CreatedAt = def != 0, fromMicros(created)
	return v, err
}

// PutBucket stores a bucket, in the place of one with its id.
func (s *Store) PutBucket(ctx context.Context, v flow.Bucket, audit ...flow.Audit) error {
	return s.write(ctx, func(ctx context.Context, t tx) error {
		n, err := t.exec(ctx, `INSERT INTO buckets (`+bucketColumns+`) VALUES ($1, $2, $3, $4, $5, $6)
			ON CONFLICT (id) DO UPDATE SET url = excluded.url, public_base = excluded.public_base, is_default = excluded.is_default
			WHERE buckets.workspace_id = excluded.workspace_id`,
			v.ID, v.Workspace, v.URL, v.PublicBase, flag(v.Default), v.CreatedAt.UnixMicro())
		if err != nil {
			return err
		}
		if n == 0 {
			return flow.Errorf(flow.CodeConflict, "the bucket id %q is taken", v.ID).At("id")
		}
		return onlyDefault(ctx, t, `buckets`, `id`, v.Workspace, v.ID, v.Default)
	}, audit...)
}

// Bucket reads a bucket. It answers not_found.
func (s *Store) Bucket(ctx context.Context, workspace, id string) (flow.Bucket, error) {
	v, err := scanBucket(s.db.queryRow(ctx, `SELECT `+bucketColumns+` FROM buckets WHERE id = $1 AND workspace_id = $2`, id, workspace))
	return found(v, err, func() *flow.Error { return flow.Errorf(flow.CodeNotFound, "there is no bucket %q", id) })
}

// Buckets lists a workspace's buckets, oldest first.
func (s *Store) Buckets(ctx context.Context, workspace string) ([]flow.Bucket, error) {
	rs, err := s.db.query(ctx, `SELECT `+bucketColumns+` FROM buckets WHERE workspace_id = $1 ORDER BY created_at, id`, workspace)
	return collect(rs, err, scanBucket)
}

// MoveConnections gives every connection of one agent to another, which is the
// same agent under a new key: what was granted and spent goes along, and open
// Jobs with their turns.
func (s *Store) MoveConnections(ctx context.Context, workspace, from, to string, at time.Time, audit ...flow.Audit) error {
	return s.write(ctx, func(ctx context.Context, t tx) error {
		// A vault that let the new one in already keeps that connection, and the old one ends.
		err := t.send(ctx, nil, `UPDATE connections SET revoked_at = COALESCE(revoked_at, $4) WHERE workspace_id = $1 AND agent_id = $2
			AND vault_id IN (SELECT vault_id FROM connections WHERE workspace_id = $1 AND agent_id = $3)`, workspace, from, to, at.UnixMicro())
		if err != nil {
			return err
		}
		for _, q := range []string{
			`UPDATE connections SET agent_id = $3 WHERE workspace_id = $1 AND agent_id = $2
				AND vault_id NOT IN (SELECT vault_id FROM connections WHERE workspace_id = $1 AND agent_id = $3)`,
			`UPDATE turns SET agent_id = $3 WHERE workspace_id = $1 AND agent_id = $2`,
		} {
			if err := t.send(ctx, nil, q, workspace, from, to); err != nil {
				return err
			}
		}
		return nil
	}, audit...)
}
