package cli

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/longstop-dev/longstop/internal/client"
	"github.com/longstop-dev/longstop/internal/show"
)

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

type workflowsCmd struct {
	List workflowsListCmd `cmd:"" help:"The published workflows."`
	Show workflowsShowCmd `cmd:"" help:"A workflow's definition, as it was written."`
	Push workflowsPushCmd `cmd:"" help:"Publish a file as the workflow's next version."`
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
	Name string `arg:""`
	connection
}

// Help is shown under --help.
func (workflowsShowCmd) Help() string {
	return `Example:
  longstop workflows show nightly-sync > workflow.yaml`
}

// Run shows a workflow.
func (c *workflowsShowCmd) Run(a *app) error {
	return c.with(a, func(s *session) error {
		w, err := s.Workflow(a.ctx, c.Name)
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

type workflowsPushCmd struct {
	File string `arg:""`
	connection
}

// Help is shown under --help.
func (workflowsPushCmd) Help() string {
	return `Example:
  longstop workflows push workflow.yaml`
}

// Run publishes a file.
func (c *workflowsPushCmd) Run(a *app) error {
	source, err := readSource(a, c.File)
	if err != nil {
		return err
	}
	return c.with(a, func(s *session) error {
		w, err := s.CreateWorkflow(a.ctx, client.Definition{Source: source, Filename: filepath.Base(c.File)})
		if err != nil {
			return err
		}
		if c.JSON {
			return a.printJSON(w)
		}
		fmt.Fprintf(a.out, "%s version %d\n", w.Name, w.Number)
		return nil
	})
}
