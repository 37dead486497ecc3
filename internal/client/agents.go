package client

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/longstop-dev/longstop/internal/flow"
)

// RegisteredAgent is an agent in the registry: the version that is called.
type RegisteredAgent struct {
	ID          string    `json:"id"`
	Kind        string    `json:"kind"`
	Alias       string    `json:"alias"`
	Name        string    `json:"name"`
	Description string    `json:"description"`
	Version     string    `json:"version"`
	Card        string    `json:"card"`
	Scopes      []string  `json:"scopes"`
	IdleTimeout int64     `json:"idleTimeout"` // seconds
	Service     string    `json:"service"`
	PushedBy    string    `json:"pushedBy"`
	PushedAt    time.Time `json:"pushedAt"`
	Versions    []string  `json:"versions,omitempty"`
}

// Push registers a version of an agent; a zero member stands for its default.
type Push struct {
	Kind        string   `json:"kind,omitempty"`
	Card        string   `json:"card"`
	Bucket      string   `json:"bucket"`
	AsPubkey    string   `json:"asPubkey,omitempty"`
	Alias       string   `json:"alias,omitempty"`
	Version     string   `json:"version,omitempty"`
	Scopes      []string `json:"scopes,omitempty"`
	IdleTimeout int64    `json:"idleTimeout,omitempty"` // seconds
	PublicBase  string   `json:"publicBase,omitempty"`
	Subject     string   `json:"subject,omitempty"` // a person's public key
}

// Pushed is what was registered.
type Pushed struct {
	flow.Manifest
	Bucket  string   `json:"bucket"`
	Key     string   `json:"key"`
	Called  string   `json:"called,omitempty"`
	Notices []string `json:"notices"`
}

// AgentService is a key pair that registers agents.
type AgentService struct {
	PublicKey string    `json:"publicKey"`
	Name      string    `json:"name"`
	Bucket    string    `json:"bucket"`
	Default   bool      `json:"default"`
	Replaces  string    `json:"replaces,omitempty"` // the public key of the service whose agents it took over
	CreatedAt time.Time `json:"createdAt"`
}

// NewAgentService asks for an Agent Service; a zero member stands for its
// default.
type NewAgentService struct {
	Name    string `json:"name,omitempty"`
	Phrase  string `json:"phrase,omitempty"`
	Bucket  string `json:"bucket,omitempty"`
	Default bool   `json:"default,omitempty"`
}

// Rotated is a new Agent Service in the place of another.
type Rotated struct {
	Service AgentService `json:"service"`
	Agents  []string     `json:"agents"`
}

// Bucket keeps manifests.
type Bucket struct {
	ID         string    `json:"id"`
	URL        string    `json:"url"`
	PublicBase string    `json:"publicBase,omitempty"`
	Default    bool      `json:"default"`
	CreatedAt  time.Time `json:"createdAt"`
}

// NewBucket asks for a bucket; a zero member stands for its default.
type NewBucket struct {
	URL        string `json:"url,omitempty"`
	PublicBase string `json:"publicBase,omitempty"`
	Default    bool   `json:"default,omitempty"`
}

// Reindexed says what a bucket held.
type Reindexed struct {
	Indexed int      `json:"indexed"`
	Left    []string `json:"left"`
}

// PushAgent registers a version of an agent that is hosted elsewhere.
func (c *Client) PushAgent(ctx context.Context, p Push) (*Pushed, error) {
	return send[Pushed](ctx, c, http.MethodPost, "/v1/agents", nil, p)
}

// Agents lists the workspace's agents.
func (c *Client) Agents(ctx context.Context) (*List[RegisteredAgent], error) {
	return send[List[RegisteredAgent]](ctx, c, http.MethodGet, "/v1/agents", nil, nil)
}

// Agent gives an agent by its id, or by its alias.
func (c *Client) Agent(ctx context.Context, id string) (*RegisteredAgent, error) {
	return send[RegisteredAgent](ctx, c, http.MethodGet, at("/v1/agents/", id, ""), nil, nil)
}

// RemoveAgent takes an agent out of the registry.
func (c *Client) RemoveAgent(ctx context.Context, id string) error {
	_, err := send[struct{}](ctx, c, http.MethodDelete, at("/v1/agents/", id, ""), nil, nil)
	return err
}

// AgentServices lists the workspace's Agent Services.
func (c *Client) AgentServices(ctx context.Context) (*List[AgentService], error) {
	return send[List[AgentService]](ctx, c, http.MethodGet, "/v1/agent-services", nil, nil)
}

// CreateAgentService makes an Agent Service, or imports its key.
func (c *Client) CreateAgentService(ctx context.Context, s NewAgentService) (*AgentService, error) {
	return send[AgentService](ctx, c, http.MethodPost, "/v1/agent-services", nil, s)
}

// RotateAgentService gives an Agent Service's agents a new key.
func (c *Client) RotateAgentService(ctx context.Context, key string) (*Rotated, error) {
	return send[Rotated](ctx, c, http.MethodPost, at("/v1/agent-services/", key, "/rotate"), nil, nil)
}

// Buckets lists the workspace's buckets.
func (c *Client) Buckets(ctx context.Context) (*List[Bucket], error) {
	return send[List[Bucket]](ctx, c, http.MethodGet, "/v1/buckets", nil, nil)
}

// CreateBucket makes a bucket.
func (c *Client) CreateBucket(ctx context.Context, b NewBucket) (*Bucket, error) {
	return send[Bucket](ctx, c, http.MethodPost, "/v1/buckets", nil, b)
}

// Reindex builds the index of a bucket's manifests again.
func (c *Client) Reindex(ctx context.Context, bucket string) (*Reindexed, error) {
	return send[Reindexed](ctx, c, http.MethodPost, at("/v1/buckets/", bucket, "/reindex"), nil, nil)
}

// Bridge is a bridge that is connected.
type Bridge struct {
	Name   string    `json:"name"`
	Card   string    `json:"card"` // bridge:<name>
	Person string    `json:"person"`
	Since  time.Time `json:"since"`
}

// Bridges lists the bridges that are connected.
func (c *Client) Bridges(ctx context.Context) (*List[Bridge], error) {
	return send[List[Bridge]](ctx, c, http.MethodGet, "/v1/bridges", nil, nil)
}

// Bridge asks for a bridge without a WebSocket, which the server refuses; what
// holds one is package bridge.
func (c *Client) Bridge(ctx context.Context, name string) (*List[Bridge], error) {
	return send[List[Bridge]](ctx, c, http.MethodGet, "/v1/bridge", url.Values{"name": {name}}, nil)
}
