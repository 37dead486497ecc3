package store

import (
	"context"
	"encoding/json"

	"github.com/longstop-dev/longstop/internal/flow"
)

// MCPServers reads a workspace's registered MCP servers, by id.
func (s *Store) MCPServers(ctx context.Context, workspace string) ([]flow.MCPServer, error) {
	rs, err := s.db.query(ctx, `SELECT workspace_id, id, url, transport, command, sealed, updated_by, updated_at FROM mcp_servers
		WHERE workspace_id = $1 ORDER BY id`, workspace)
	return collect(rs, err, func(r row) (flow.MCPServer, error) {
		var v flow.MCPServer
		var command, sealed string
		var updated int64
		if err := r.Scan(&v.Workspace, &v.ID, &v.URL, &v.Transport, &command, &sealed, &v.UpdatedBy, &updated); err != nil {
			return v, err
		}
		v.UpdatedAt = fromMicros(updated)
		v.Sealed = decodeBytes(sealed)
		if json.Unmarshal([]byte(command), &v.Command) != nil {
			v.Sealed = []byte{0} // that one cannot be used, the others can
		}
		return v, nil
	})
}

// PutMCPServer stores an MCP server, in place of the one with its id.
func (s *Store) PutMCPServer(ctx context.Context, v flow.MCPServer, audit ...flow.Audit) error {
	command, err := json.Marshal(v.Command)
	if err != nil {
		return err
	}
	return s.write(ctx, func(ctx context.Context, t tx) error {
		_, err := t.exec(ctx, `INSERT INTO mcp_servers (workspace_id, id, url, transport, command, sealed, updated_by, updated_at)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
			ON CONFLICT (workspace_id, id) DO UPDATE SET url = excluded.url, transport = excluded.transport, command = excluded.command,
				sealed = excluded.sealed, updated_by = excluded.updated_by, updated_at = excluded.updated_at`,
			v.Workspace, v.ID, v.URL, v.Transport, string(command), encodeBytes(v.Sealed), v.UpdatedBy, v.UpdatedAt.UnixMicro())
		return err
	}, audit...)
}

// DeleteMCPServer removes an MCP server. It answers not_found.
func (s *Store) DeleteMCPServer(ctx context.Context, workspace, id string, audit ...flow.Audit) error {
	return s.write(ctx, func(ctx context.Context, t tx) error {
		n, err := t.exec(ctx, `DELETE FROM mcp_servers WHERE workspace_id = $1 AND id = $2`, workspace, id)
		if err == nil && n == 0 {
			return flow.Errorf(flow.CodeNotFound, "there is no MCP server %q", id)
		}
		return err
	}, audit...)
}
