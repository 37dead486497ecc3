package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/longstop-dev/longstop/internal/flow"
)

// Person is a member of the workspace.
type Person struct {
	ID        string    `json:"id"`
	Name      string    `json:"name"`
	Role      flow.Role `json:"role"`
	PublicKey string    `json:"publicKey"`
	Keys      int       `json:"keys"`
	CreatedAt time.Time `json:"createdAt"`
}

// NewPerson is who is to be added: Name for a new person, or Person for one
// of another workspace.
type NewPerson struct {
	Name      string    `json:"name,omitempty"`
	Person    string    `json:"person,omitempty"`
	Role      flow.Role `json:"role"`
	PublicKey string    `json:"publicKey,omitempty"`
}

// Workspace is a workspace that the caller's person belongs to. Key is set
// only in the answer that made it.
type Workspace struct {
	ID        string    `json:"id"`
	Name      string    `json:"name"`
	Role      flow.Role `json:"role"`
	Current   bool      `json:"current"`
	CreatedAt time.Time `json:"createdAt"`
	Key       string    `json:"key,omitempty"`
}

// People lists who belongs to the workspace.
func (c *Client) People(ctx context.Context) (*List[Person], error) {
	return send[List[Person]](ctx, c, http.MethodGet, "/v1/people", nil, nil)
}

// Person gives a member.
func (c *Client) Person(ctx context.Context, id string) (*Person, error) {
	return send[Person](ctx, c, http.MethodGet, at("/v1/people/", id, ""), nil, nil)
}

// AddPerson adds a member.
func (c *Client) AddPerson(ctx context.Context, p NewPerson) (*Person, error) {
	return send[Person](ctx, c, http.MethodPost, "/v1/people", nil, p)
}

// SetRole changes a member's role.
func (c *Client) SetRole(ctx context.Context, id string, role flow.Role) (*Person, error) {
	return send[Person](ctx, c, http.MethodPut, at("/v1/people/", id, ""), nil, map[string]string{"role": string(role)})
}

// RemovePerson ends a membership and the person's keys to the workspace.
func (c *Client) RemovePerson(ctx context.Context, id string) error {
	_, err := send[nothing](ctx, c, http.MethodDelete, at("/v1/people/", id, ""), nil, nil)
	return err
}

// Workspaces lists the workspaces that the caller's person belongs to.
func (c *Client) Workspaces(ctx context.Context) (*List[Workspace], error) {
	return send[List[Workspace]](ctx, c, http.MethodGet, "/v1/workspaces", nil, nil)
}

// CreateWorkspace makes a workspace and an owner's key to it.
func (c *Client) CreateWorkspace(ctx context.Context, name string) (*Workspace, error) {
	return send[Workspace](ctx, c, http.MethodPost, "/v1/workspaces", nil, map[string]string{"name": name})
}

// RenameWorkspace gives the key's workspace another name.
func (c *Client) RenameWorkspace(ctx context.Context, id, name string) (*Workspace, error) {
	return send[Workspace](ctx, c, http.MethodPut, at("/v1/workspaces/", id, ""), nil, map[string]string{"name": name})
}

// CreateKeyFor makes an API key of another member.
func (c *Client) CreateKeyFor(ctx context.Context, person, name string, role flow.Role) (*Key, error) {
	return send[Key](ctx, c, http.MethodPost, "/v1/keys", nil, map[string]string{"name": name, "role": string(role), "person": person})
}

// RotateKey makes an API key in place of another, which ends at once.
func (c *Client) RotateKey(ctx context.Context, id string) (*Key, error) {
	return send[Key](ctx, c, http.MethodPost, at("/v1/keys/", id, "/rotate"), nil, nil)
}

// AuditFilter narrows the audit record; a zero member narrows nothing.
type AuditFilter struct {
	Person, Op, Target string
	From, To           string // RFC 3339
	Oldest             bool
	Page
}

// Audit reads the audit record.
func (c *Client) Audit(ctx context.Context, f AuditFilter) (*List[flow.Audit], error) {
	q := url.Values{}
	for name, v := range map[string]string{"person": f.Person, "op": f.Op, "target": f.Target, "from": f.From, "to": f.To, "after": f.After} {
		if v != "" {
			q.Set(name, v)
		}
	}
	if f.Oldest {
		q.Set("order", "oldest")
	}
	if f.Limit > 0 {
		q.Set("limit", strconv.Itoa(f.Limit))
	}
	return send[List[flow.Audit]](ctx, c, http.MethodGet, "/v1/audit", q, nil)
}

// AuditHead gives where the audit record ends.
func (c *Client) AuditHead(ctx context.Context) (*flow.AuditHead, error) {
	return send[flow.AuditHead](ctx, c, http.MethodGet, "/v1/audit/head", nil, nil)
}
