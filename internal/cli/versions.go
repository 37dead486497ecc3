package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/longstop-dev/longstop/internal/client"
	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/show"
)

type workflowsPublishCmd struct {
	What    string `arg:"" name:"file|name" help:"A workflow's file, - for standard input, or the name of a workflow that is stored."`
	Version string `placeholder:"N" help:"With a name: the version, by number or id. Without it: the newest."`
	connection
}

// Help is shown under --help.
func (workflowsPublishCmd) Help() string {
	return `Examples:
  longstop workflows publish workflow.yaml
  longstop workflows publish nightly-sync --version 3     go back to version 3

New runs use what is published; runs under way keep their version.`
}

// Run publishes a file, or a version that is stored.
func (c *workflowsPublishCmd) Run(a *app) error {
	if !namesFile(c.What) {
		return c.with(a, func(s *session) error {
			w, err := s.PublishWorkflow(a.ctx, c.What, c.Version)
			return c.published(a, w, err)
		})
	}
	if c.Version != "" {
		return flow.Errorf(flow.CodeInvalid, "%s is a file, and a file becomes the next version", c.What).At("--version").Right("name the workflow to publish one of its versions")
	}
	source, err := readSource(a, c.What)
	if err != nil {
		return err
	}
	return c.with(a, func(s *session) error {
		w, err := s.CreateWorkflow(a.ctx, client.Definition{Source: source, Filename: filepath.Base(c.What)})
		return c.published(a, w, err)
	})
}

// namesFile tells a file from a workflow's name.
func namesFile(what string) bool {
	if what == "-" || strings.ContainsRune(what, filepath.Separator) || isDefinition(what) {
		return true
	}
	info, err := os.Stat(what)
	return err == nil && !info.IsDir()
}

// isDefinition goes by the end of a file's name.
func isDefinition(name string) bool {
	switch strings.ToLower(filepath.Ext(name)) {
	case ".yaml", ".yml", ".json":
		return true
	}
	return false
}

func (c connection) published(a *app, w *client.Workflow, err error) error {
	if err != nil {
		return err
	}
	if c.JSON {
		return a.printJSON(w)
	}
	fmt.Fprintf(a.out, "%s version %d\n", w.Name, w.Number)
	return nil
}

type workflowsUnpublishCmd struct {
	Name string `arg:""`
	connection
}

// Help is shown under --help.
func (workflowsUnpublishCmd) Help() string {
	return `Example:
  longstop workflows unpublish nightly-sync`
}

// Run unpublishes a workflow.
func (c *workflowsUnpublishCmd) Run(a *app) error {
	return c.with(a, func(s *session) error {
		w, err := s.UnpublishWorkflow(a.ctx, c.Name)
		if err != nil {
			return err
		}
		if c.JSON {
			return a.printJSON(w)
		}
		fmt.Fprintf(a.out, "%s starts no new runs; it was version %d\n", w.Name, w.Number)
		return nil
	})
}

type workflowsVersionsCmd struct {
	Name string `arg:""`
	paging
	connection
}

// Help is shown under --help.
func (workflowsVersionsCmd) Help() string {
	return `Example:
  longstop workflows versions nightly-sync`
}

// Run lists versions.
func (c *workflowsVersionsCmd) Run(a *app) error {
	return c.with(a, func(s *session) error {
		l, err := s.Versions(a.ctx, c.Name, c.page())
		if err != nil {
			return err
		}
		who := names(a, s)
		var rows [][]string
		for _, v := range l.Items {
			mark := ""
			if v.Published {
				mark = "published"
			}
			rows = append(rows, []string{strconv.Itoa(v.Number), ago(v.UpdatedAt), who(v.Author), v.VersionID, v.Digest[:min(12, len(v.Digest))], mark})
		}
		defer a.more(c.JSON, l.Next)
		return a.table(c.JSON, l, []string{"version", "made", "by", "id", "digest", ""}, rows)
	})
}

type workflowsDiffCmd struct {
	Name string `arg:""`
	V1   string `arg:"" optional:"" help:"A version's number or id. Without it: the one before V2."`
	V2   string `arg:"" optional:"" help:"Without it: the newest."`
	connection
}

// Help is shown under --help.
func (workflowsDiffCmd) Help() string {
	return `Examples:
  longstop workflows diff nightly-sync         the newest against the one before
  longstop workflows diff nightly-sync 3       the newest against version 3
  longstop workflows diff nightly-sync 3 4`
}

// Run shows what changed between two versions.
func (c *workflowsDiffCmd) Run(a *app) error {
	return c.with(a, func(s *session) error {
		one, two := c.V1, c.V2
		if two == "" {
			l, err := s.Versions(a.ctx, c.Name, client.Page{Limit: 2})
			if err != nil {
				return err
			}
			if one == "" && len(l.Items) < 2 {
				return flow.Errorf(flow.CodeInvalid, "workflow %q has one version only", c.Name).Right("publish another one first")
			}
			if two = l.Items[0].VersionID; one == "" {
				one = l.Items[1].VersionID
			}
		}
		was, err := s.Version(a.ctx, c.Name, one)
		if err != nil {
			return err
		}
		is, err := s.Version(a.ctx, c.Name, two)
		if err != nil {
			return err
		}
		var b strings.Builder
		ink := a.ink
		if c.JSON {
			ink = show.Ink{}
		}
		differ := show.Unified(&b, ink, versionName(was), versionName(is), was.Source, is.Source)
		switch {
		case c.JSON:
			return a.printJSON(map[string]any{"a": was, "b": is, "diff": b.String()})
		case !differ:
			fmt.Fprintln(a.out, a.ink.Faint("no difference"))
		default:
			fmt.Fprint(a.out, b.String())
		}
		return nil
	})
}

func versionName(w *client.Workflow) string {
	if w.Number == 0 {
		return w.Name + " " + w.VersionID
	}
	return fmt.Sprintf("%s version %d", w.Name, w.Number)
}
