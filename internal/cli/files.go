package cli

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/server"
	"github.com/longstop-dev/longstop/internal/show"
)

//go:embed workflow.yaml
var starter []byte

type initCmd struct {
	File  string `arg:"" optional:"" default:"workflow.yaml" help:"Where to write."`
	Force bool   `help:"Overwrite a file that is there."`
}

// Run writes the starter workflow.
func (c *initCmd) Run(a *app) error {
	mode := os.O_CREATE | os.O_WRONLY | os.O_EXCL
	if c.Force {
		mode = os.O_CREATE | os.O_WRONLY | os.O_TRUNC
	}
	f, err := os.OpenFile(c.File, mode, 0o644)
	if errors.Is(err, os.ErrExist) {
		return flow.Errorf(flow.CodeInvalid, "%s is there already", c.File).Right("name another file, or give --force")
	}
	if err != nil {
		return flow.Errorf(flow.CodeInvalid, "%s cannot be written", c.File).Because(err)
	}
	if _, err := f.Write(starter); err != nil {
		return errors.Join(err, f.Close())
	}
	if err := f.Close(); err != nil {
		return err
	}
	fmt.Fprintf(a.out, "wrote %s\n\nnext:\n  longstop run %s --input '{\"userId\": 42}'\n", c.File, c.File)
	return nil
}

type validateCmd struct {
	Files []string `arg:"" help:"Workflows in YAML or JSON; - for standard input."`
	JSON  bool     `name:"json" help:"Print JSON."`
}

// Help is shown under --help.
func (validateCmd) Help() string {
	return "Needs no server. Exits with 2 if a file is not valid."
}

// checked is what validate says of a file.
type checked struct {
	File     string         `json:"file"`
	Valid    bool           `json:"valid"`
	Name     string         `json:"name,omitempty"`
	Steps    int            `json:"steps,omitempty"`
	Problems []flow.Problem `json:"problems,omitempty"`
}

// Run checks the files.
func (c *validateCmd) Run(a *app) error {
	var all []checked
	good := true
	for _, file := range c.Files {
		src, err := readSource(a, file)
		if err != nil {
			return err
		}
		v := checked{File: file}
		def, err := server.Validate(file, src)
		if err == nil {
			v.Valid, v.Name = true, def.Name
			def.Walk(func(*flow.Step) { v.Steps++ })
		} else {
			good = false
			v.Problems = problems(err)
		}
		all = append(all, v)
		if !c.JSON {
			c.show(a, v)
		}
	}
	if c.JSON {
		if err := a.printJSON(all); err != nil {
			return err
		}
	}
	if !good {
		return status(exitUsage)
	}
	return nil
}

// problems lists what an error says is wrong: itself if it lists nothing.
func problems(err error) []flow.Problem {
	e := asFlow(err)
	if len(e.Problems) > 0 {
		return e.Problems
	}
	return []flow.Problem{{Message: e.Message, Fix: e.Fix}}
}

func (c *validateCmd) show(a *app, v checked) {
	if v.Valid {
		fmt.Fprintf(a.out, "%s %s: %s, %d steps\n", a.ink.Good("✓"), v.File, v.Name, v.Steps)
		return
	}
	for _, p := range v.Problems {
		at := v.File
		if p.Line > 0 {
			at = fmt.Sprintf("%s:%d", v.File, p.Line)
		}
		text := at + ": "
		if p.Field != "" {
			text += p.Field + ": "
		}
		text += p.Message
		if p.Fix != "" {
			text += "; " + a.ink.Faint(p.Fix)
		}
		fmt.Fprintf(a.out, "%s %s\n", a.ink.Bad("✗"), show.Clean(text))
	}
}

type stepTypesCmd struct {
	Name string `arg:"" optional:"" help:"Only this type, with its config."`
	JSON bool   `name:"json" help:"Print JSON."`
}

// Run shows the step types.
func (c *stepTypesCmd) Run(a *app) error {
	types := server.StepTypes()
	if c.Name != "" {
		for _, t := range types {
			if t.Name == c.Name {
				return c.one(a, t)
			}
		}
		var names []string
		for _, t := range types {
			names = append(names, t.Name)
		}
		return flow.Errorf(flow.CodeInvalid, "there is no step type %q", c.Name).Right("one of " + strings.Join(names, ", "))
	}
	var rows [][]string
	for _, t := range types {
		rows = append(rows, []string{t.Name, t.Summary})
	}
	return a.table(c.JSON, types, []string{"type", "what it does"}, rows)
}

func (c *stepTypesCmd) one(a *app, t flow.StepType) error {
	if c.JSON {
		return a.printJSON(t)
	}
	var schema struct {
		Properties map[string]struct {
			Description string `json:"description"`
		} `json:"properties"`
		Required []string `json:"required"`
	}
	if err := json.Unmarshal(t.Config, &schema); err != nil {
		return err
	}
	fmt.Fprintf(a.out, "%s  %s\n\n", a.ink.Bold(t.Name), t.Summary)
	var rows [][]string
	for _, name := range sorted(schema.Properties) {
		must := ""
		for _, r := range schema.Required {
			if r == name {
				must = "required"
			}
		}
		rows = append(rows, []string{name, must, schema.Properties[name].Description})
	}
	show.Table(a.out, a.ink, []string{"config", "", ""}, rows)
	return nil
}
