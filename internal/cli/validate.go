package cli

import (
	_ "embed"
	"fmt"

	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/server"
	"github.com/longstop-dev/longstop/internal/show"
)

type validateCmd struct {
	Files []string `arg:"" help:"Workflows in YAML or JSON; - for standard input."`
	JSON  bool     `name:"json" help:"Print JSON."`
}

// Help is shown under --help.
func (validateCmd) Help() string {
	return `Examples:
  longstop validate workflow.yaml
  longstop validate --json workflows/*.yaml | jq '.[].problems'

Needs no server. Exits with 2 if a file is not valid.`
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

func count(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
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
		fmt.Fprintf(a.out, "%s %s: %s, %s\n", a.ink.Good("✓"), v.File, v.Name, count(v.Steps, "step"))
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
