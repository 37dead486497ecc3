package cli

import (
	"fmt"

	"github.com/longstop-dev/longstop/internal/show"
)

type workspacesCmd struct {
	List   workspacesListCmd   `cmd:"" help:"The workspaces that you belong to."`
	Create workspacesCreateCmd `cmd:"" help:"Make a workspace; a key to it is shown once."`
	Rename workspacesRenameCmd `cmd:"" help:"Give this workspace another name."`
}

type workspacesListCmd struct{ connection }

// Help is shown under --help.
func (workspacesListCmd) Help() string {
	return `Example:
  longstop workspaces list`
}

// Run lists workspaces.
func (c *workspacesListCmd) Run(a *app) error {
	return c.with(a, func(s *session) error {
		l, err := s.Workspaces(a.ctx)
		if err != nil {
			return err
		}
		var rows [][]string
		for _, w := range l.Items {
			here := ""
			if w.Current {
				here = "this one"
			}
			rows = append(rows, []string{w.ID, show.Line(w.Name, 100), string(w.Role), here})
		}
		return a.table(c.JSON, l, []string{"id", "name", "your role", ""}, rows)
	})
}

type workspacesCreateCmd struct {
	Name string `arg:"" help:"1 to 100 characters."`
	connection
}

// Help is shown under --help.
func (workspacesCreateCmd) Help() string {
	return `Examples:
  longstop workspaces create staging
  export LONGSTOP_KEY=$(longstop workspaces create staging --json | jq -r .key)

A key belongs to one workspace: commands reach the new one with the key that is printed and
--endpoint.`
}

// Run makes a workspace.
func (c *workspacesCreateCmd) Run(a *app) error {
	return c.with(a, func(s *session) error {
		w, err := s.CreateWorkspace(a.ctx, c.Name)
		if err != nil {
			return err
		}
		if c.JSON {
			return a.printJSON(w)
		}
		fmt.Fprintf(a.out, "%s  %s\nan owner's key to it, shown this once:\n%s\n", w.ID, show.Line(w.Name, 100), w.Key)
		return nil
	})
}

type workspacesRenameCmd struct {
	Name string `arg:"" help:"1 to 100 characters."`
	connection
}

// Help is shown under --help.
func (workspacesRenameCmd) Help() string {
	return `Example:
  longstop workspaces rename production`
}

// Run renames the workspace that the key belongs to.
func (c *workspacesRenameCmd) Run(a *app) error {
	return c.with(a, func(s *session) error {
		me, err := s.Me(a.ctx)
		if err != nil {
			return err
		}
		w, err := s.RenameWorkspace(a.ctx, me.Workspace, c.Name)
		if err != nil {
			return err
		}
		if c.JSON {
			return a.printJSON(w)
		}
		fmt.Fprintf(a.out, "%s is called %s now\n", w.ID, show.Line(w.Name, 100))
		return nil
	})
}
