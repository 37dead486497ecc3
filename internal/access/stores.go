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
	Found(ctx context.Context, w flow.Workspace, p flow.Person, k flow.Key, audit ...flow.Audit) (bool, error)
	// Founder gives the owner of the oldest workspace; not_found if none.
	Founder(ctx context.Context) (flow.Caller, error)
	Workspaces(ctx context.Context) ([]flow.Workspace, error)
	Person(ctx context.Context, id string) (flow.Person, error)
	// Memberships gives the workspaces that a person belongs to.
	Memberships(ctx context.Context, person string) ([]flow.Member, error)
	AddWorkspace(ctx context.Context, m flow.Member, k flow.Key, audit ...flow.Audit) error
	RenameWorkspace(ctx context.Context, id, name string, audit ...flow.Audit) error
}

// PeopleStore keeps who belongs to a workspace. Its audit rows, like those of
// the other stores, are written with the change or not at all.
type PeopleStore interface {
	Members(ctx context.Context, workspace string) ([]flow.Member, error)
	// Member answers not_found.
	Member(ctx context.Context, workspace, person string) (flow.Member, error)
	// AddMember answers conflict for a member; fresh makes the person too.
	AddMember(ctx context.Context, m flow.Member, fresh bool, audit ...flow.Audit) error
	// SetRole and RemoveMember answer not_found, and conflict where no owner
	// with a key would be left; keys of the person's follow.
	SetRole(ctx context.Context, workspace, person string, role flow.Role, audit ...flow.Audit) error
	RemoveMember(ctx context.Context, workspace, person string, at time.Time, audit ...flow.Audit) error
}

// AuditStore reads the audit record.
type AuditStore interface {
	Audit(ctx context.Context, f flow.AuditFilter) ([]flow.Audit, error)
	AuditHead(ctx context.Context, workspace string) (flow.AuditHead, error)
}

// KeyStore keeps API keys, revoked ones too.
type KeyStore interface {
	Keys(ctx context.Context, workspace string) ([]flow.Key, error)
	KeyByHash(ctx context.Context, hash []byte) (flow.Key, error)
	CreateKey(ctx context.Context, k flow.Key, audit ...flow.Audit) error
	// RevokeKey marks a key revoked, once; not_found if the workspace has none.
	RevokeKey(ctx context.Context, workspace, id string, at time.Time, audit ...flow.Audit) error
	// ReplaceKey revokes a key and stores the one in its place; not_found, or
	// conflict for one that is revoked.
	ReplaceKey(ctx context.Context, id string, by flow.Key, audit ...flow.Audit) error
}

// SettingStore keeps settings.
type SettingStore interface {
	Settings(ctx context.Context, workspace string) ([]flow.Setting, error)
	PutSetting(ctx context.Context, v flow.Setting, audit ...flow.Audit) error
	// DeleteSetting removes a setting if it is there.
	DeleteSetting(ctx context.Context, workspace, key string, audit ...flow.Audit) error
}

// SecretStore keeps sealed secrets.
type SecretStore interface {
	Secrets(ctx context.Context, workspace string) ([]flow.Secret, error)
	PutSecret(ctx context.Context, v flow.Secret, audit ...flow.Audit) error
	// DeleteSecret answers not_found if there is none.
	DeleteSecret(ctx context.Context, workspace, name string, audit ...flow.Audit) error
}

// ServerStore keeps the registered MCP servers.
type ServerStore interface {
	MCPServers(ctx context.Context, workspace string) ([]flow.MCPServer, error)
	PutMCPServer(ctx context.Context, v flow.MCPServer, audit ...flow.Audit) error
	// DeleteMCPServer answers not_found if there is none.
	DeleteMCPServer(ctx context.Context, workspace, id string, audit ...flow.Audit) error
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
