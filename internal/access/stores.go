package access

import (
	"context"
	"encoding/json"
	"time"

	"github.com/longstop-dev/longstop/internal/flow"
)

// TenantStore keeps people and workspaces.
type TenantStore interface {
	// Found stores the first workspace with its owner and the owner's key, and
	// reports whether it did: nothing is stored if there is a workspace.
	Found(ctx context.Context, w flow.Workspace, p flow.Person, k flow.Key) (bool, error)
	// Founder gives the owner of the oldest workspace; not_found if none.
	Founder(ctx context.Context) (flow.Caller, error)
	Workspaces(ctx context.Context) ([]flow.Workspace, error)
	Person(ctx context.Context, id string) (flow.Person, error)
}

// KeyStore keeps API keys, revoked ones too.
type KeyStore interface {
	Keys(ctx context.Context, workspace string) ([]flow.Key, error)
	KeyByHash(ctx context.Context, hash []byte) (flow.Key, error)
	CreateKey(ctx context.Context, k flow.Key) error
	// RevokeKey marks a key revoked, once; not_found if the workspace has none.
	RevokeKey(ctx context.Context, workspace, id string, at time.Time) error
}

// SettingStore keeps settings.
type SettingStore interface {
	Settings(ctx context.Context, workspace string) ([]flow.Setting, error)
	PutSetting(ctx context.Context, v flow.Setting) error
	// DeleteSetting removes a setting if it is there.
	DeleteSetting(ctx context.Context, workspace, key string) error
}

// SecretStore keeps sealed secrets.
type SecretStore interface {
	Secrets(ctx context.Context, workspace string) ([]flow.Secret, error)
	PutSecret(ctx context.Context, v flow.Secret) error
	// DeleteSecret answers not_found if there is none.
	DeleteSecret(ctx context.Context, workspace, name string) error
}

// ServerStore keeps the registered MCP servers.
type ServerStore interface {
	MCPServers(ctx context.Context, workspace string) ([]flow.MCPServer, error)
	PutMCPServer(ctx context.Context, v flow.MCPServer) error
	// DeleteMCPServer answers not_found if there is none.
	DeleteMCPServer(ctx context.Context, workspace, id string) error
}

// Cards reads the agent card behind a URL.
type Cards interface {
	// Read fetches and checks the card of the agent at rawURL. Its error is
	// shown to whoever saves the URL.
	Read(ctx context.Context, rawURL string) (CardInfo, error)
}

// CardInfo is what of an agent card is kept.
type CardInfo struct {
	Name           string          `json:"name"`
	Description    string          `json:"description,omitempty"`
	URLOrigin      string          `json:"urlOrigin"`      // of the URL that was given: scheme://host[:port]
	EndpointOrigin string          `json:"endpointOrigin"` // of where calls will go
	Card           json.RawMessage `json:"card,omitempty"`
}

// Egress says whether an outside address may be called at all.
type Egress interface {
	// CheckURL refuses a URL by scheme, host or address; the error says which
	// and is shown to whoever saves it.
	CheckURL(ctx context.Context, rawURL string) error
}
