package vault

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/longstop-dev/longstop/internal/flow"
)

// Ceilings bound what an agent may spend.
type Ceilings struct {
	A2ATokens int64 `json:"a2aTokens,omitempty" minimum:"0" doc:"No turn begins once the tokens that the agent reported have passed it; 0 is no ceiling."`
}

// ConnectionView is a connection as every face shows it.
type ConnectionView struct {
	ID        string     `json:"id"`
	Vault     string     `json:"vaultId"`
	Agent     string     `json:"agentId"`
	Scopes    []string   `json:"scopes" doc:"Granted."`
	Ceilings  Ceilings   `json:"ceilings"`
	Spent     int64      `json:"spentTokens" doc:"As the agent reported; an agent that reports nothing counts 0."`
	GrantedBy string     `json:"grantedBy"`
	CreatedAt time.Time  `json:"createdAt"`
	RevokedAt *time.Time `json:"revokedAt,omitempty"`
}

func viewConnection(c flow.Connection) ConnectionView {
	v := ConnectionView{ID: c.ID, Vault: c.Vault, Agent: c.Agent, Scopes: c.Scopes, Ceilings: Ceilings{c.Ceiling}, Spent: c.Spent, GrantedBy: c.GrantedBy, CreatedAt: c.CreatedAt}
	if !c.RevokedAt.IsZero() {
		v.RevokedAt = &c.RevokedAt
	}
	return v
}

// ConnectIn lets an agent into a vault.
type ConnectIn struct {
	ID   string `path:"id" doc:"The vault's id or name."`
	Body struct {
		Agent    string   `json:"agentId"`
		Scopes   []string `json:"scopes,omitempty" doc:"Of the vault's scopes; absent, those that the agent asks for and the vault has."`
		Ceilings Ceilings `json:"ceilings,omitempty"`
	}
}

// ConnectionIn names a connection.
type ConnectionIn struct {
	ID string `path:"id"`
}

// ConnectionsIn narrows the list of connections.
type ConnectionsIn struct {
	Vault string `query:"vault" doc:"Only those of this vault, by id or name."`
}

// UpdateConnectionIn changes what a connection grants; what is absent stays.
type UpdateConnectionIn struct {
	ID   string `path:"id"`
	Body struct {
		Scopes   []string  `json:"scopes,omitempty"`
		Ceilings *Ceilings `json:"ceilings,omitempty"`
	}
}

// Connect lets an agent into a vault of the caller's. It answers forbidden for
// another person's vault, not_found for an agent that is not registered, and
// conflict for one that is connected.
func (s *Service) Connect(ctx context.Context, by flow.Caller, in *ConnectIn) (*ConnectionView, error) {
	v, err := s.owned(ctx, by, in.ID)
	if err != nil {
		return nil, err
	}
	a, err := s.c.Agents.Agent(ctx, by.Workspace, in.Body.Agent)
	if err != nil {
		return nil, err
	}
	asked := in.Body.Scopes
	if len(asked) == 0 {
		asked = slices.DeleteFunc(slices.Clone(a.Manifest.Scopes), func(name string) bool { return !slices.Contains(v.Scopes, name) })
		if len(asked) == 0 {
			return nil, flow.Errorf(flow.CodeInvalid, "the vault has none of the scopes that the agent asks for (%s)", strings.Join(a.Manifest.Scopes, ", ")).
				At("scopes").Right("name the scopes to grant: " + strings.Join(v.Scopes, ", "))
		}
	}
	if err := granted(v, asked); err != nil {
		return nil, err
	}
	if in.Body.Ceilings.A2ATokens < 0 {
		return nil, badCeiling()
	}
	c := flow.Connection{ID: s.c.NewID("con"), Workspace: by.Workspace, Vault: v.ID, Agent: a.ID, Scopes: asked,
		Ceiling: in.Body.Ceilings.A2ATokens, GrantedBy: by.Person, CreatedAt: s.c.Clock.Now()}
	c, err = s.c.Connections.Connect(ctx, c, by.Did("connections.create", "vault/"+v.ID, c.CreatedAt, grants(c)))
	if err != nil {
		return nil, err
	}
	out := viewConnection(c)
	return &out, nil
}

// grants is what the audit record tells of a connection.
func grants(c flow.Connection) map[string]any {
	return map[string]any{"agent": c.Agent, "scopes": c.Scopes, "a2aTokens": c.Ceiling}
}

func badCeiling() error {
	return flow.Errorf(flow.CodeInvalid, "a ceiling is a number of tokens").At("ceilings.a2aTokens").Right("0 for none, or more")
}

// granted checks scopes that are to be granted.
func granted(v flow.Vault, names []string) error {
	for i, name := range names {
		if !slices.Contains(v.Scopes, name) {
			return flow.Errorf(flow.CodeInvalid, "the vault has no scope %q", clip(name)).At(fmt.Sprintf("scopes[%d]", i)).Right("one of " + strings.Join(v.Scopes, ", "))
		}
	}
	return nil
}

// ListConnections lists connections, revoked ones too, oldest first.
func (s *Service) ListConnections(ctx context.Context, by flow.Caller, in *ConnectionsIn) (*List[ConnectionView], error) {
	vault := ""
	if in.Vault != "" {
		v, err := s.c.Vaults.Vault(ctx, by.Workspace, in.Vault)
		if err != nil {
			return nil, err
		}
		vault = v.ID
	}
	all, err := s.c.Connections.Connections(ctx, by.Workspace, vault)
	if err != nil {
		return nil, err
	}
	out := &List[ConnectionView]{Items: []ConnectionView{}}
	for _, c := range all {
		out.Items = append(out.Items, viewConnection(c))
	}
	return out, nil
}

// GetConnection gives a connection; not_found.
func (s *Service) GetConnection(ctx context.Context, by flow.Caller, in *ConnectionIn) (*ConnectionView, error) {
	c, err := s.c.Connections.Connection(ctx, by.Workspace, in.ID)
	if err != nil {
		return nil, err
	}
	out := viewConnection(c)
	return &out, nil
}

// ownConnection gives a connection to a vault of the caller's.
func (s *Service) ownConnection(ctx context.Context, by flow.Caller, id string) (flow.Connection, flow.Vault, error) {
	c, err := s.c.Connections.Connection(ctx, by.Workspace, id)
	if err != nil {
		return c, flow.Vault{}, err
	}
	v, err := s.owned(ctx, by, c.Vault)
	return c, v, err
}

// UpdateConnection changes what a connection to a vault of the caller's
// grants. It answers not_found for one that was revoked.
func (s *Service) UpdateConnection(ctx context.Context, by flow.Caller, in *UpdateConnectionIn) (*ConnectionView, error) {
	return anew(func() (*ConnectionView, error) {
		was, v, err := s.ownConnection(ctx, by, in.ID)
		if err != nil {
			return nil, err
		}
		c := was
		if len(in.Body.Scopes) > 0 {
			if err := granted(v, in.Body.Scopes); err != nil {
				return nil, err
			}
			c.Scopes = in.Body.Scopes
		}
		if in.Body.Ceilings != nil {
			if in.Body.Ceilings.A2ATokens < 0 {
				return nil, badCeiling()
			}
			c.Ceiling = in.Body.Ceilings.A2ATokens
		}
		if err := s.c.Connections.UpdateConnection(ctx, was, c, by.Did("connections.update", "connection/"+c.ID, s.c.Clock.Now(), grants(c))); err != nil {
			return nil, err
		}
		out := viewConnection(c)
		return &out, nil
	})
}

// RevokeConnection ends a connection to a vault of the caller's. A turn under
// way is answered with connection_revoked, without text or data.
func (s *Service) RevokeConnection(ctx context.Context, by flow.Caller, in *ConnectionIn) (*ConnectionView, error) {
	c, _, err := s.ownConnection(ctx, by, in.ID)
	if err != nil {
		return nil, err
	}
	now := s.c.Clock.Now()
	did := by.Did("connections.revoke", "connection/"+c.ID, now, map[string]any{"agent": c.Agent})
	if err := s.c.Connections.RevokeConnection(ctx, by.Workspace, c.ID, now, did); err != nil {
		return nil, err
	}
	for _, l := range s.listeners {
		l.Revoked(c.ID)
	}
	return s.GetConnection(ctx, by, in)
}
