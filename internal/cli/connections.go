package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/longstop-dev/longstop/internal/client"
	"github.com/longstop-dev/longstop/internal/flow"
)

type connectionsCmd struct {
	List   connectionsListCmd   `cmd:"" help:"Which agents were let into vaults."`
	Create connectionsCreateCmd `cmd:"" help:"Let an agent into a vault of yours."`
	Update connectionsUpdateCmd `cmd:"" help:"Change what a connection grants."`
	Revoke connectionsRevokeCmd `cmd:"" help:"End a connection."`
}

func connectionHeader() []string {
	return []string{"id", "agent", "scopes", "spent", "ceiling", "state"}
}

func connectionRows(all []client.Connection) [][]string {
	var rows [][]string
	for _, v := range all {
		state, ceiling := "active", "-"
		if v.RevokedAt != nil {
			state = "revoked " + ago(*v.RevokedAt)
		}
		if v.Ceilings.A2ATokens > 0 {
			ceiling = fmt.Sprint(v.Ceilings.A2ATokens)
		}
		rows = append(rows, []string{v.ID, shortID(v.Agent), spaced(v.Scopes), fmt.Sprint(v.Spent), ceiling, state})
	}
	return rows
}

// shortID is an agent's id for people: the key of its service is cut.
func shortID(id string) string {
	key, alias, ok := strings.Cut(id, ":")
	if !ok || len(key) <= 8 {
		return id
	}
	return key[:8] + "…:" + alias
}

type connectionsListCmd struct {
	Vault string `placeholder:"VAULT" help:"Only those of a vault."`
	connection
}

// Help is shown under --help.
func (connectionsListCmd) Help() string {
	return `Example:
  longstop connections list --vault orders`
}

// Run lists connections.
func (c *connectionsListCmd) Run(a *app) error {
	return c.with(a, func(s *session) error {
		l, err := s.Connections(a.ctx, c.Vault)
		if err != nil {
			return err
		}
		vaults, err := s.Vaults(a.ctx)
		if err != nil {
			return err
		}
		names := map[string]string{}
		for _, v := range vaults.Items {
			names[v.ID] = v.Name
		}
		rows := connectionRows(l.Items)
		for i, v := range l.Items {
			rows[i] = slices.Insert(rows[i], 1, cmp.Or(names[v.Vault], v.Vault))
		}
		return a.table(c.JSON, l, slices.Insert(connectionHeader(), 1, "vault"), rows)
	})
}

type connectionsCreateCmd struct {
	Vault     string   `arg:"" help:"The vault's id or name."`
	Agent     string   `arg:"" help:"The agent's id or alias."`
	Scope     []string `placeholder:"NAME" help:"A scope to grant. Repeatable. Default: those that the agent asks for and the vault has."`
	A2ATokens int64    `name:"a2a-tokens" placeholder:"N" help:"The ceiling a2aTokens: no turn begins once the tokens that the agent reported have passed it."`
	connection
}

// Help is shown under --help.
func (connectionsCreateCmd) Help() string {
	return `Example:
  longstop connections create orders helper --scope mail --a2a-tokens 100000`
}

// Run lets an agent in.
func (c *connectionsCreateCmd) Run(a *app) error {
	return c.with(a, func(s *session) error {
		id, err := s.agentID(a, c.Agent)
		if err != nil {
			return err
		}
		v, err := s.Connect(a.ctx, c.Vault, client.NewConnection{Agent: id, Scopes: c.Scope, Ceilings: client.Ceilings{A2ATokens: c.A2ATokens}})
		if err != nil {
			return err
		}
		return a.connected(c.JSON, v)
	})
}

func (a *app) connected(asJSON bool, v *client.Connection) error {
	if asJSON {
		return a.printJSON(v)
	}
	return a.table(false, nil, connectionHeader(), connectionRows([]client.Connection{*v}))
}

type connectionsUpdateCmd struct {
	ID        string   `arg:"" help:"The connection's id."`
	Scope     []string `placeholder:"NAME" help:"The scopes to grant instead. Repeatable."`
	A2ATokens *int64   `name:"a2a-tokens" placeholder:"N" help:"The ceiling a2aTokens; 0 for none."`
	connection
}

// Help is shown under --help.
func (connectionsUpdateCmd) Help() string {
	return `Example:
  longstop connections update CONNECTION --a2a-tokens 200000`
}

// Run changes a connection.
func (c *connectionsUpdateCmd) Run(a *app) error {
	change := client.ConnectionChange{Scopes: c.Scope}
	if c.A2ATokens != nil {
		change.Ceilings = &client.Ceilings{A2ATokens: *c.A2ATokens}
	}
	if len(c.Scope) == 0 && c.A2ATokens == nil {
		return flow.Errorf(flow.CodeInvalid, "nothing is to be changed").Right("--scope or --a2a-tokens")
	}
	return c.with(a, func(s *session) error {
		v, err := s.UpdateConnection(a.ctx, c.ID, change)
		if err != nil {
			return err
		}
		return a.connected(c.JSON, v)
	})
}

type connectionsRevokeCmd struct {
	ID string `arg:"" help:"The connection's id."`
	connection
}

// Help is shown under --help.
func (connectionsRevokeCmd) Help() string {
	return `Example:
  longstop connections revoke CONNECTION`
}

// Run ends a connection.
func (c *connectionsRevokeCmd) Run(a *app) error {
	return c.with(a, func(s *session) error {
		v, err := s.RevokeConnection(a.ctx, c.ID)
		if err != nil {
			return err
		}
		return a.connected(c.JSON, v)
	})
}
