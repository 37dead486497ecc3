package cli

import (
	"fmt"

	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/show"
)

type keysCmd struct {
	List   keysListCmd   `cmd:"" help:"The workspace's API keys."`
	Create keysCreateCmd `cmd:"" help:"Make a key; it is shown once."`
	Rotate keysRotateCmd `cmd:"" help:"Make a key in place of another, which ends at once."`
	Revoke keysRevokeCmd `cmd:"" help:"Revoke a key."`
}

type keysListCmd struct{ connection }

// Help is shown under --help.
func (keysListCmd) Help() string {
	return `Example:
  longstop keys list`
}

// Run lists keys.
func (c *keysListCmd) Run(a *app) error {
	return c.with(a, func(s *session) error {
		l, err := s.Keys(a.ctx)
		if err != nil {
			return err
		}
		who := names(a, s)
		var rows [][]string
		for _, k := range l.Items {
			state := "holds"
			if k.RevokedAt != nil {
				state = "revoked " + ago(*k.RevokedAt)
			}
			rows = append(rows, []string{k.ID, show.Line(k.Name, 60), who(k.Person), string(k.Role), k.Prefix, state})
		}
		return a.table(c.JSON, l, []string{"id", "name", "of", "role", "begins with", "state"}, rows)
	})
}

type keysCreateCmd struct {
	Name   string `arg:"" help:"What it is for."`
	Role   string `default:"operator" enum:"viewer,operator,editor,owner,agent" help:"viewer, operator, editor, owner or agent."`
	Person string `placeholder:"ID" help:"Whose key it is; your own without it."`
	connection
}

// Help is shown under --help.
func (keysCreateCmd) Help() string {
	return `Examples:
  longstop keys create ci --role operator
  export LONGSTOP_KEY=$(longstop keys create mine --role owner --json | jq -r .key)`
}

// Run makes a key.
func (c *keysCreateCmd) Run(a *app) error {
	return c.with(a, func(s *session) error {
		k, err := s.CreateKeyFor(a.ctx, c.Person, c.Name, flow.Role(c.Role))
		if err != nil {
			return err
		}
		if c.JSON {
			return a.printJSON(k)
		}
		fmt.Fprintf(a.out, "%s  %s, shown this once:\n%s\n", k.ID, k.Role, k.Key)
		return nil
	})
}

type keysRotateCmd struct {
	ID string `arg:"" help:"The key's id."`
	connection
}

// Help is shown under --help.
func (keysRotateCmd) Help() string {
	return `Example:
  longstop keys rotate KEY_ID`
}

// Run rotates a key.
func (c *keysRotateCmd) Run(a *app) error {
	return c.with(a, func(s *session) error {
		k, err := s.RotateKey(a.ctx, c.ID)
		if err != nil {
			return err
		}
		if c.JSON {
			return a.printJSON(k)
		}
		fmt.Fprintf(a.out, "%s  %s, in place of %s, shown this once:\n%s\n", k.ID, k.Role, c.ID, k.Key)
		return nil
	})
}

type keysRevokeCmd struct {
	ID string `arg:""`
	connection
}

// Help is shown under --help.
func (keysRevokeCmd) Help() string {
	return `Example:
  longstop keys revoke KEY_ID`
}

// Run revokes a key.
func (c *keysRevokeCmd) Run(a *app) error {
	return c.with(a, func(s *session) error {
		if err := s.RevokeKey(a.ctx, c.ID); err != nil {
			return err
		}
		return c.said(a, "revoked %s\n", c.ID)
	})
}
