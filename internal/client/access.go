package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/longstop-dev/longstop/internal/flow"
)

// nothing is the answer of an operation that has none.
type nothing struct{}

// Me says who the client's key belongs to.
func (c *Client) Me(ctx context.Context) (*Me, error) {
	return send[Me](ctx, c, http.MethodGet, "/v1/me", nil, nil)
}

// Ready reports by its error whether the server and its database answer. It
// needs no key.
func (c *Client) Ready(ctx context.Context) error {
	_, err := send[struct {
		Status string `json:"status"`
	}](ctx, c, http.MethodGet, "/readyz", nil, nil)
	return err
}

// Settings lists every setting and where its value comes from.
func (c *Client) Settings(ctx context.Context) (*List[Setting], error) {
	return send[List[Setting]](ctx, c, http.MethodGet, "/v1/settings", nil, nil)
}

// SettingsFor lists every setting as it holds for a workflow, or for a step of
// it by id or index.
func (c *Client) SettingsFor(ctx context.Context, workflow, step string) (*List[Setting], error) {
	return send[List[Setting]](ctx, c, http.MethodGet, "/v1/settings", scope(workflow, step), nil)
}

// SettingFor gives a setting as it holds for a workflow or a step.
func (c *Client) SettingFor(ctx context.Context, key, workflow, step string) (*Setting, error) {
	return send[Setting](ctx, c, http.MethodGet, at("/v1/settings/", key, ""), scope(workflow, step), nil)
}

func scope(workflow, step string) url.Values {
	q := url.Values{}
	if workflow != "" {
		q.Set("workflow", workflow)
	}
	if step != "" {
		q.Set("step", step)
	}
	return q
}

// Setting gives a setting.
func (c *Client) Setting(ctx context.Context, key string) (*Setting, error) {
	return send[Setting](ctx, c, http.MethodGet, at("/v1/settings/", key, ""), nil, nil)
}

// PutSetting sets a setting; an empty string removes it.
func (c *Client) PutSetting(ctx context.Context, key string, value any) (*Setting, error) {
	return send[Setting](ctx, c, http.MethodPut, at("/v1/settings/", key, ""), nil, map[string]any{"value": value})
}

// DeleteSetting puts a setting back to its default.
func (c *Client) DeleteSetting(ctx context.Context, key string) (*Setting, error) {
	return send[Setting](ctx, c, http.MethodDelete, at("/v1/settings/", key, ""), nil, nil)
}

// Servers lists the workspace's MCP servers.
func (c *Client) Servers(ctx context.Context) (*List[Server], error) {
	return send[List[Server]](ctx, c, http.MethodGet, "/v1/mcp-servers", nil, nil)
}

// Server gives an MCP server.
func (c *Client) Server(ctx context.Context, id string) (*Server, error) {
	return send[Server](ctx, c, http.MethodGet, at("/v1/mcp-servers/", id, ""), nil, nil)
}

// CreateServer registers an MCP server; conflict if its id is taken.
func (c *Client) CreateServer(ctx context.Context, id string, spec ServerSpec) (*Server, error) {
	return send[Server](ctx, c, http.MethodPost, "/v1/mcp-servers", nil, struct {
		ID string `json:"id"`
		ServerSpec
	}{id, spec})
}

// PutServer registers an MCP server or replaces what is known of it.
func (c *Client) PutServer(ctx context.Context, id string, spec ServerSpec) (*Server, error) {
	return send[Server](ctx, c, http.MethodPut, at("/v1/mcp-servers/", id, ""), nil, spec)
}

// DeleteServer removes an MCP server.
func (c *Client) DeleteServer(ctx context.Context, id string) error {
	_, err := send[nothing](ctx, c, http.MethodDelete, at("/v1/mcp-servers/", id, ""), nil, nil)
	return err
}

// Secrets lists the names of the secrets.
func (c *Client) Secrets(ctx context.Context) (*List[Secret], error) {
	return send[List[Secret]](ctx, c, http.MethodGet, "/v1/secrets", nil, nil)
}

// PutSecret stores a secret or replaces it.
func (c *Client) PutSecret(ctx context.Context, name, value string) (*Secret, error) {
	return send[Secret](ctx, c, http.MethodPut, at("/v1/secrets/", name, ""), nil, map[string]string{"value": value})
}

// DeleteSecret removes a secret.
func (c *Client) DeleteSecret(ctx context.Context, name string) error {
	_, err := send[nothing](ctx, c, http.MethodDelete, at("/v1/secrets/", name, ""), nil, nil)
	return err
}

// Keys lists the workspace's API keys, revoked ones too.
func (c *Client) Keys(ctx context.Context) (*List[Key], error) {
	return send[List[Key]](ctx, c, http.MethodGet, "/v1/keys", nil, nil)
}

// CreateKey makes an API key; the answer is the only place where it stands.
func (c *Client) CreateKey(ctx context.Context, name string, role flow.Role) (*Key, error) {
	return send[Key](ctx, c, http.MethodPost, "/v1/keys", nil, map[string]string{"name": name, "role": string(role)})
}

// RevokeKey ends an API key at once.
func (c *Client) RevokeKey(ctx context.Context, id string) error {
	_, err := send[nothing](ctx, c, http.MethodDelete, at("/v1/keys/", id, ""), nil, nil)
	return err
}
