package cli

import (
	"fmt"
	"maps"
	"slices"

	"github.com/longstop-dev/longstop/internal/client"
	"github.com/longstop-dev/longstop/internal/show"
)

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

type workflowsCmd struct {
	List      workflowsListCmd      `cmd:"" help:"The published workflows."`
	Show      workflowsShowCmd      `cmd:"" help:"A workflow's definition, as it was written."`
	Apply     workflowsApplyCmd     `cmd:"" help:"Publish what differs in a folder: workflows that are held in Git."`
	Publish   workflowsPublishCmd   `cmd:"" aliases:"push" help:"Publish a file as the workflow's next version, or a version that is stored."`
	Unpublish workflowsUnpublishCmd `cmd:"" help:"Have a workflow start no new runs; its versions and runs stay."`
	Versions  workflowsVersionsCmd  `cmd:"" help:"A workflow's versions, newest first."`
	Diff      workflowsDiffCmd      `cmd:"" help:"What changed between two versions of a workflow."`
}

type workflowsListCmd struct {
	paging
	connection
}

// Help is shown under --help.
func (workflowsListCmd) Help() string {
	return `Example:
  longstop workflows list`
}

// Run lists workflows.
func (c *workflowsListCmd) Run(a *app) error {
	return c.with(a, func(s *session) error {
		l, err := s.Workflows(a.ctx, c.page())
		if err != nil {
			return err
		}
		var rows [][]string
		for _, w := range l.Items {
			rows = append(rows, []string{w.Name, fmt.Sprint(w.Number), ago(w.UpdatedAt)})
		}
		defer a.more(c.JSON, l.Next)
		return a.table(c.JSON, l, []string{"workflow", "version", "published"}, rows)
	})
}

type workflowsShowCmd struct {
	Name    string `arg:""`
	Version string `placeholder:"N" help:"This version instead of the published one."`
	connection
}

// Help is shown under --help.
func (workflowsShowCmd) Help() string {
	return `Examples:
  longstop workflows show nightly-sync > workflow.yaml
  longstop workflows show nightly-sync --version 3`
}

// Run shows a workflow.
func (c *workflowsShowCmd) Run(a *app) error {
	return c.with(a, func(s *session) error {
		read := func() (*client.Workflow, error) { return s.Workflow(a.ctx, c.Name) }
		if c.Version != "" {
			read = func() (*client.Workflow, error) { return s.Version(a.ctx, c.Name, c.Version) }
		}
		w, err := read()
		if err != nil {
			return err
		}
		if c.JSON {
			return a.printJSON(w)
		}
		fmt.Fprint(a.out, show.Clean(w.Source))
		return nil
	})
}
