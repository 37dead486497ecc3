package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"time"

	"github.com/longstop-dev/longstop/internal/flow"
)

// Vault is a vault.
type Vault struct {
	ID            string    `json:"id"`
	Name          string    `json:"name"`
	Owner         string    `json:"owner"`
	Scopes        []string  `json:"scopes"`
	RetentionDays int       `json:"retentionDays"`
	Seq           int64     `json:"seq"`
	CreatedAt     time.Time `json:"createdAt"`
}

// NewVault asks for a vault.
type NewVault struct {
	Name          string   `json:"name"`
	Scopes        []string `json:"scopes,omitempty"` // beside default
	RetentionDays int      `json:"retentionDays,omitempty"`
}

// VaultChange changes a vault; a zero member changes nothing.
type VaultChange struct {
	AddScopes     []string `json:"addScopes,omitempty"`
	RetentionDays *int     `json:"retentionDays,omitempty"`
}

// NewEvent is an event to be appended.
type NewEvent struct {
	Scope    string          `json:"scope,omitempty"` // "" is default
	Type     string          `json:"type"`
	Target   string          `json:"target,omitempty"` // an agent's id: it is asked
	Payload  json.RawMessage `json:"payload,omitempty"`
	Metadata json.RawMessage `json:"metadata,omitempty"`
	Parents  []string        `json:"parents,omitempty"`
}

// EventFilter narrows a vault's events; a zero member stands for all.
type EventFilter struct {
	Records
	Scope       string
	Type        string
	Correlation string
	Parent      string
}

// Ceilings bound what an agent may spend; 0 is no ceiling.
type Ceilings struct {
	A2ATokens int64 `json:"a2aTokens,omitempty"`
}

// Connection lets an agent into a vault.
type Connection struct {
	ID        string     `json:"id"`
	Vault     string     `json:"vaultId"`
	Agent     string     `json:"agentId"`
	Scopes    []string   `json:"scopes"`
	Ceilings  Ceilings   `json:"ceilings"`
	Spent     int64      `json:"spentTokens"`
	GrantedBy string     `json:"grantedBy"`
	CreatedAt time.Time  `json:"createdAt"`
	RevokedAt *time.Time `json:"revokedAt,omitempty"`
}

// NewConnection asks for a connection; without scopes, for those that the
// agent asks for and the vault has.
type NewConnection struct {
	Agent    string   `json:"agentId"`
	Scopes   []string `json:"scopes,omitempty"`
	Ceilings Ceilings `json:"ceilings,omitempty"`
}

// ConnectionChange changes what a connection grants; a zero member changes
// nothing.
type ConnectionChange struct {
	Scopes   []string  `json:"scopes,omitempty"`
	Ceilings *Ceilings `json:"ceilings,omitempty"`
}

// CreateVault makes a vault, which the caller owns.
func (c *Client) CreateVault(ctx context.Context, v NewVault) (*Vault, error) {
	return send[Vault](ctx, c, http.MethodPost, "/v1/vaults", nil, v)
}

// Vaults lists the workspace's vaults.
func (c *Client) Vaults(ctx context.Context) (*List[Vault], error) {
	return send[List[Vault]](ctx, c, http.MethodGet, "/v1/vaults", nil, nil)
}

// Vault gives a vault by its id or name.
func (c *Client) Vault(ctx context.Context, id string) (*Vault, error) {
	return send[Vault](ctx, c, http.MethodGet, at("/v1/vaults/", id, ""), nil, nil)
}

// UpdateVault changes a vault of the caller's.
func (c *Client) UpdateVault(ctx context.Context, id string, v VaultChange) (*Vault, error) {
	return send[Vault](ctx, c, http.MethodPatch, at("/v1/vaults/", id, ""), nil, v)
}

// DeleteVault removes a vault of the caller's with all that is in it.
func (c *Client) DeleteVault(ctx context.Context, id string) error {
	_, err := send[struct{}](ctx, c, http.MethodDelete, at("/v1/vaults/", id, ""), nil, nil)
	return err
}

// AppendEvent appends an event to a vault. With a key, sending it again makes
// nothing more.
func (c *Client) AppendEvent(ctx context.Context, vault string, e NewEvent, key string) (*flow.VaultEvent, error) {
	b, err := jsonBody(e)
	if err != nil {
		return nil, err
	}
	return create[flow.VaultEvent](ctx, c, at("/v1/vaults/", vault, "/events"), nil, b, key)
}

// VaultEvents lists a vault's events, oldest first.
func (c *Client) VaultEvents(ctx context.Context, vault string, f EventFilter) (*List[flow.VaultEvent], error) {
	q := f.query()
	if q == nil {
		q = url.Values{}
	}
	q = with(with(with(with(q, "scope", f.Scope), "type", f.Type), "correlation", f.Correlation), "parent", f.Parent)
	return send[List[flow.VaultEvent]](ctx, c, http.MethodGet, at("/v1/vaults/", vault, "/events"), q, nil)
}

// VaultEvent gives an event of a vault.
func (c *Client) VaultEvent(ctx context.Context, vault, id string) (*flow.VaultEvent, error) {
	return send[flow.VaultEvent](ctx, c, http.MethodGet, at(at("/v1/vaults/", vault, "/events/"), id, ""), nil, nil)
}

// Connect lets an agent into a vault of the caller's.
func (c *Client) Connect(ctx context.Context, vault string, n NewConnection) (*Connection, error) {
	return send[Connection](ctx, c, http.MethodPost, at("/v1/vaults/", vault, "/connections"), nil, n)
}

// Connections lists connections, of a vault or with "" of the workspace.
func (c *Client) Connections(ctx context.Context, vault string) (*List[Connection], error) {
	return send[List[Connection]](ctx, c, http.MethodGet, "/v1/connections", with(url.Values{}, "vault", vault), nil)
}

// Connection gives a connection.
func (c *Client) Connection(ctx context.Context, id string) (*Connection, error) {
	return send[Connection](ctx, c, http.MethodGet, at("/v1/connections/", id, ""), nil, nil)
}

// UpdateConnection changes what a connection grants.
func (c *Client) UpdateConnection(ctx context.Context, id string, v ConnectionChange) (*Connection, error) {
	return send[Connection](ctx, c, http.MethodPatch, at("/v1/connections/", id, ""), nil, v)
}

// RevokeConnection ends a connection.
func (c *Client) RevokeConnection(ctx context.Context, id string) (*Connection, error) {
	return send[Connection](ctx, c, http.MethodDelete, at("/v1/connections/", id, ""), nil, nil)
}

// Job is a conversation of an agent in a vault.
type Job struct {
	ID           string     `json:"id"`
	Vault        string     `json:"vaultId"`
	Connection   string     `json:"connectionId"`
	Scope        string     `json:"scope"`
	Conversation string     `json:"conversation"`
	ContextID    string     `json:"contextId"`
	LastAt       time.Time  `json:"lastAt"`
	EndedAt      *time.Time `json:"endedAt,omitempty"`
	Turns        []Turn     `json:"turns,omitempty"`
}

// Turn is one event asked of an agent.
type Turn struct {
	ID         string          `json:"id"`
	Event      string          `json:"eventId"`
	Status     flow.TurnStatus `json:"status"`
	Try        int             `json:"try"`
	A2ATaskID  string          `json:"a2aTaskId,omitempty"`
	State      string          `json:"state,omitempty"`
	Failed     string          `json:"failed,omitempty"`
	Code       string          `json:"code,omitempty"`
	CreatedAt  time.Time       `json:"createdAt"`
	NextAt     *time.Time      `json:"nextAt,omitempty"` // when the next try begins, while none is under way
	Deadline   *time.Time      `json:"deadline,omitempty"`
	FinishedAt *time.Time      `json:"finishedAt,omitempty"`
}

// Jobs lists a vault's Jobs, newest first: those before the id before, or with
// "" from the newest on.
func (c *Client) Jobs(ctx context.Context, vault, before string) (*List[Job], error) {
	return send[List[Job]](ctx, c, http.MethodGet, at("/v1/vaults/", vault, "/jobs"), with(url.Values{}, "before", before), nil)
}

// Job gives a Job with its turns.
func (c *Client) Job(ctx context.Context, id string) (*Job, error) {
	return send[Job](ctx, c, http.MethodGet, at("/v1/jobs/", id, ""), nil, nil)
}
