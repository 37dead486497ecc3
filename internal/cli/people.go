package cli

import (
	"fmt"

	"github.com/longstop-dev/longstop/internal/client"
	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/show"
)

type peopleCmd struct {
	List   peopleListCmd   `cmd:"" help:"Who belongs to the workspace."`
	Add    peopleAddCmd    `cmd:"" help:"Add a person, or an agent, with a role."`
	Role   peopleRoleCmd   `cmd:"" help:"Change a person's role; their keys follow."`
	Remove peopleRemoveCmd `cmd:"" help:"Remove a person; their keys end at once."`
}

type peopleListCmd struct{ connection }

// Help is shown under --help.
func (peopleListCmd) Help() string {
	return `Example:
  longstop people list`
}

// Run lists people.
func (c *peopleListCmd) Run(a *app) error {
	return c.with(a, func(s *session) error {
		l, err := s.People(a.ctx)
		if err != nil {
			return err
		}
		var rows [][]string
		for _, p := range l.Items {
			rows = append(rows, []string{p.ID, show.Line(p.Name, 100), string(p.Role), fmt.Sprint(p.Keys), p.PublicKey})
		}
		return a.table(c.JSON, l, []string{"id", "name", "role", "keys", "public key"}, rows)
	})
}

type peopleAddCmd struct {
	Name      string `arg:"" optional:"" help:"Of a new person."`
	Person    string `placeholder:"ID" help:"Instead of a name: a person of another workspace that you own."`
	Role      string `default:"viewer" enum:"viewer,operator,editor,owner,agent" help:"viewer, operator, editor, owner or agent."`
	PublicKey string `placeholder:"HEX" help:"A new person's own Ed25519 key; one is made without it."`
	WithKey   bool   `help:"Make an API key of theirs too; it is shown once."`
	connection
}

// Help is shown under --help.
func (peopleAddCmd) Help() string {
	return `Examples:
  longstop people add "Ada Lovelace" --role operator --with-key
  longstop people add nightly-mender --role agent --with-key
  longstop people add --person PERSON_ID --role editor`
}

// Run adds a person.
func (c *peopleAddCmd) Run(a *app) error {
	return c.with(a, func(s *session) error {
		p, err := s.AddPerson(a.ctx, client.NewPerson{Name: c.Name, Person: c.Person, Role: flow.Role(c.Role), PublicKey: c.PublicKey})
		if err != nil {
			return err
		}
		var k *client.Key
		if c.WithKey {
			if k, err = s.CreateKeyFor(a.ctx, p.ID, show.Line(p.Name, 80)+"'s key", p.Role); err != nil {
				return err
			}
			p.Keys++
		}
		if c.JSON {
			out := struct {
				*client.Person
				Key string `json:"key,omitempty"`
			}{Person: p}
			if k != nil {
				out.Key = k.Key
			}
			return a.printJSON(out)
		}
		fmt.Fprintf(a.out, "%s  %s  %s\n", p.ID, show.Line(p.Name, 100), p.Role)
		if k != nil {
			fmt.Fprintf(a.out, "their key, shown this once:\n%s\n", k.Key)
			return nil
		}
		fmt.Fprintln(a.out, a.ink.Faint("a key for them: longstop keys create NAME --role "+string(p.Role)+" --person "+p.ID))
		return nil
	})
}

type peopleRoleCmd struct {
	ID   string `arg:"" help:"The person's id."`
	Role string `arg:"" enum:"viewer,operator,editor,owner,agent" help:"viewer, operator, editor, owner or agent."`
	connection
}

// Help is shown under --help.
func (peopleRoleCmd) Help() string {
	return `Example:
  longstop people role PERSON_ID editor`
}

// Run changes a role.
func (c *peopleRoleCmd) Run(a *app) error {
	return c.with(a, func(s *session) error {
		p, err := s.SetRole(a.ctx, c.ID, flow.Role(c.Role))
		if err != nil {
			return err
		}
		if c.JSON {
			return a.printJSON(p)
		}
		fmt.Fprintf(a.out, "%s is %s now\n", p.ID, p.Role)
		return nil
	})
}

type peopleRemoveCmd struct {
	ID string `arg:"" help:"The person's id."`
	connection
}

// Help is shown under --help.
func (peopleRemoveCmd) Help() string {
	return `Example:
  longstop people remove PERSON_ID`
}

// Run removes a person.
func (c *peopleRemoveCmd) Run(a *app) error {
	return c.with(a, func(s *session) error {
		if err := s.RemovePerson(a.ctx, c.ID); err != nil {
			return err
		}
		return c.said(a, "removed %s; their keys to this workspace have ended\n", c.ID)
	})
}
