package cli

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/server"
	"github.com/longstop-dev/longstop/internal/show"
)

type stepTypesCmd struct {
	Name string `arg:"" optional:"" help:"Only this type, with its config."`
	JSON bool   `name:"json" help:"Print JSON."`
}

// Help is shown under --help.
func (stepTypesCmd) Help() string {
	return `Examples:
  longstop step-types
  longstop step-types http_request`
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
