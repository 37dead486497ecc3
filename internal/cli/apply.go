package cli

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/longstop-dev/longstop/internal/client"
	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/show"
)

type workflowsApplyCmd struct {
	Dir      string `arg:"" help:"The folder: every .yaml, .yml and .json file in it and below, but for hidden ones."`
	DryRun   bool   `help:"Change nothing: show what would change, as a unified diff of each file."`
	ExitCode bool   `help:"With --dry-run: exit with 1 if something would change."`
	Prune    bool   `help:"Unpublish the workflows that are not in the folder."`
	connection
}

// Help is shown under --help.
func (workflowsApplyCmd) Help() string {
	return `Publishes the files that differ from what is published. All files are checked first, by the
server; if one is not valid, nothing is changed. To apply the same folder again changes nothing.

Examples:
  longstop workflows apply ./workflows --dry-run --exit-code     in a pull request
  longstop workflows apply ./workflows                           on the main branch

Exit codes: 0 applied, or nothing to do; 1 something would change (--dry-run --exit-code);
2 a file is not valid; 4 the server cannot be reached or does not allow it.`
}

// applied is what became, or would become, of a workflow.
type applied struct {
	Name   string `json:"name"`
	File   string `json:"file,omitempty"`
	Change string `json:"change"`           // create, update, unchanged, unpublish; "left" for one that --prune would unpublish
	Number int    `json:"number,omitempty"` // the version that is published afterwards
	Diff   string `json:"diff,omitempty"`

	source []byte
	was    *client.Workflow
}

// would says that the change is one.
func (i *applied) would() bool { return i.Change != "unchanged" && i.Change != "left" }

// Run applies a folder.
func (c *workflowsApplyCmd) Run(a *app) error {
	if c.ExitCode && !c.DryRun {
		return flow.Errorf(flow.CodeInvalid, "it says what would change").At("--exit-code").Right("use it with --dry-run")
	}
	files, err := definitionsIn(c.Dir)
	if err != nil {
		return err
	}
	return c.with(a, func(s *session) error {
		items, err := c.check(a, s, files)
		if err != nil {
			return err
		}
		for _, item := range items {
			if err := c.plan(a, s, item); err != nil {
				return err
			}
		}
		if items, err = c.others(a, s, items); err != nil {
			return err
		}
		return c.carryOut(a, s, items)
	})
}

// definitionsIn lists the files of a folder that may hold workflows.
func definitionsIn(dir string) ([]string, error) {
	var out []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil { // then there may be no entry
			return err
		}
		switch hidden := strings.HasPrefix(d.Name(), ".") && path != dir; {
		case d.IsDir() && hidden:
			return filepath.SkipDir
		case !d.IsDir() && !hidden && isDefinition(path):
			if why := within(dir, path); why != "" {
				return flow.Errorf(flow.CodeInvalid, "%s cannot be applied: %s", path, why).Right("a regular file, or another name")
			}
			out = append(out, path)
		}
		return nil
	})
	var told *flow.Error
	if errors.As(err, &told) {
		return nil, told
	}
	if err != nil {
		return nil, flow.Errorf(flow.CodeInvalid, "%s cannot be read", dir).Right("name a folder").Because(err)
	}
	if len(out) == 0 {
		return nil, flow.Errorf(flow.CodeInvalid, "there is no .yaml, .yml or .json file in %s", dir).Right("name the folder that holds the workflows")
	}
	return out, nil
}

// check reads all files and has the server check them. It says everything
// that is wrong with any of them.
func (c *workflowsApplyCmd) check(a *app, s *session, files []string) ([]*applied, error) {
	var items []*applied
	var wrong []flow.Problem
	by := map[string]string{}
	for _, file := range files {
		source, err := readSource(a, file)
		if err != nil {
			return nil, err
		}
		v, err := s.ValidateWorkflow(a.ctx, client.Definition{Source: source, Filename: filepath.Base(file)})
		switch code := flow.CodeOf(err); {
		case code == flow.CodeInvalid || code == flow.CodeTooLarge:
			for _, p := range problems(err) {
				p.Field = strings.TrimSuffix(file+": "+p.Field, ": ")
				wrong = append(wrong, p)
			}
			continue
		case err != nil:
			return nil, err
		}
		if other := by[v.Name]; other != "" {
			wrong = append(wrong, flow.Problem{Field: file, Message: fmt.Sprintf("workflow %q stands in %s too", v.Name, other), Fix: "give each a name of its own"})
		}
		by[v.Name] = file
		items = append(items, &applied{Name: v.Name, File: file, source: source})
	}
	if len(wrong) == 0 {
		return items, nil
	}
	bad := flow.Errorf(flow.CodeInvalid, "nothing was changed: the folder is not valid").At(c.Dir)
	bad.Problems = wrong
	return nil, bad
}

// plan compares a file with what is published.
func (c *workflowsApplyCmd) plan(a *app, s *session, item *applied) error {
	was, err := s.Workflow(a.ctx, item.Name)
	if err != nil && flow.CodeOf(err) != flow.CodeNotFound {
		return err
	}
	name, old := "/dev/null", ""
	item.Change = "create"
	if err == nil {
		item.was, item.Number, name, old = was, was.Number, versionName(was), was.Source
		item.Change = "update"
	}
	var b strings.Builder
	ink := a.ink
	if c.JSON {
		ink = show.Ink{}
	}
	sum := sha256.Sum256(item.source)
	if item.was != nil && was.Digest == hex.EncodeToString(sum[:]) { // what is shown may be masked
		item.Change = "unchanged"
		return nil
	}
	if !show.Unified(&b, ink, name, item.File, old, string(item.source)) && item.was != nil {
		item.Change = "unchanged"
	}
	item.Diff = b.String()
	return nil
}

// others adds the published workflows that are not in the folder.
func (c *workflowsApplyCmd) others(a *app, s *session, items []*applied) ([]*applied, error) {
	have := map[string]bool{}
	for _, i := range items {
		have[i.Name] = true
	}
	change := "left"
	if c.Prune {
		change = "unpublish"
	}
	for after := ""; ; {
		l, err := s.Workflows(a.ctx, client.Page{After: after, Limit: 200})
		if err != nil {
			return nil, err
		}
		for _, w := range l.Items {
			if !have[w.Name] {
				items = append(items, &applied{Name: w.Name, Change: change, Number: w.Number})
			}
		}
		if after = l.Next; after == "" {
			return items, nil
		}
	}
}

// carryOut changes what is to be changed, or says what would be.
func (c *workflowsApplyCmd) carryOut(a *app, s *session, items []*applied) error {
	some, done := false, 0
	for _, i := range items {
		some = some || i.would()
		if i.would() && !c.DryRun {
			if err := c.one(a, s, i); err != nil {
				if done > 0 && !c.JSON {
					fmt.Fprintf(a.err, "%s done before this; to apply the folder again does the rest\n", count(done, "change"))
				}
				return err
			}
			done++
		}
		if !c.JSON {
			c.tell(a, i)
		}
	}
	if c.JSON {
		if err := a.printJSON(map[string]any{"dryRun": c.DryRun, "items": items}); err != nil {
			return err
		}
	}
	if some && c.ExitCode {
		return status(exitFailed)
	}
	return nil
}

// one carries one change out.
func (c *workflowsApplyCmd) one(a *app, s *session, i *applied) error {
	if i.Change == "unpublish" {
		_, err := s.UnpublishWorkflow(a.ctx, i.Name)
		if flow.CodeOf(err) == flow.CodeNotFound { // somebody else has
			err = nil
		}
		return err
	}
	w, err := s.CreateWorkflow(a.ctx, client.Definition{Source: i.source, Filename: filepath.Base(i.File)})
	if err != nil {
		return err
	}
	i.Number = w.Number
	return nil
}

// tell says what became, or would become, of a workflow.
func (c *workflowsApplyCmd) tell(a *app, i *applied) {
	would := ""
	if c.DryRun {
		would = "would "
	}
	switch {
	case i.Change == "unchanged":
		fmt.Fprintf(a.out, "%s %s version %d %s\n", a.ink.Faint("="), i.Name, i.Number, a.ink.Faint(i.File))
	case i.Change == "left":
		fmt.Fprintf(a.out, "%s %s %s\n", a.ink.Faint("?"), i.Name, a.ink.Faint("is published and not in the folder; --prune unpublishes it"))
	case i.Change == "unpublish":
		fmt.Fprintf(a.out, "%s %s %sunpublish version %d\n", a.ink.Bad("-"), i.Name, would, i.Number)
	case c.DryRun:
		fmt.Fprintf(a.out, "%s %s would %s %s\n%s", a.ink.Good("+"), i.Name, i.Change, a.ink.Faint(i.File), i.Diff)
	default:
		fmt.Fprintf(a.out, "%s %s version %d %s\n", a.ink.Good("+"), i.Name, i.Number, a.ink.Faint(i.File))
	}
}
