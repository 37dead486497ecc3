package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/show"
)

type agentsListCmd struct{ connection }

// Help is shown under --help.
func (agentsListCmd) Help() string {
	return `Example:
  longstop agents list`
}

// Run lists agents.
func (c *agentsListCmd) Run(a *app) error {
	return c.with(a, func(s *session) error {
		l, err := s.Agents(a.ctx)
		if err != nil {
			return err
		}
		var rows [][]string
		for _, v := range l.Items {
			where := v.Kind
			if v.Kind == flow.KindExternal {
				where = "runs elsewhere"
			}
			rows = append(rows, []string{v.Alias, show.Line(v.Name, 40), v.Version, where, v.ID})
		}
		return a.table(c.JSON, l, []string{"alias", "name", "version", "", "id"}, rows)
	})
}

type agentsShowCmd struct {
	Agent string `arg:"" help:"The agent's id or alias."`
	connection
}

// Help is shown under --help.
func (agentsShowCmd) Help() string {
	return `Example:
  longstop agents show helper`
}

// Run shows an agent.
func (c *agentsShowCmd) Run(a *app) error {
	return c.with(a, func(s *session) error {
		v, err := s.Agent(a.ctx, c.Agent)
		if err != nil {
			return err
		}
		if c.JSON {
			return a.printJSON(v)
		}
		fmt.Fprintf(a.out, "%s %s, external\n", a.ink.Bold(show.Line(v.Name, 100)), v.Version)
		if v.Description != "" {
			fmt.Fprintln(a.out, show.Line(v.Description, 300))
		}
		for _, row := range [][2]string{{"id", v.ID}, {"card", v.Card}, {"asks for", spaced(v.Scopes)}, {"idle", (time.Duration(v.IdleTimeout) * time.Second).String()},
			{"versions", spaced(v.Versions)}, {"pushed", ago(v.PushedAt) + " by " + names(a, s)(v.PushedBy)}} {
			fmt.Fprintf(a.out, "%-9s %s\n", row[0], show.Line(row[1], 300))
		}
		return nil
	})
}

type agentsRemoveCmd struct {
	Agent string `arg:"" help:"The agent's id or alias."`
	connection
}

// Help is shown under --help.
func (agentsRemoveCmd) Help() string {
	return `Example:
  longstop agents remove helper

Events that target it are answered with not_connected from then on. Its manifests go too, as far as
they are in the bucket of its service.`
}

// Run removes an agent.
func (c *agentsRemoveCmd) Run(a *app) error {
	return c.with(a, func(s *session) error {
		if err := s.RemoveAgent(a.ctx, c.Agent); err != nil {
			return err
		}
		return c.said(a, "removed %s\n", c.Agent)
	})
}

func spaced(list []string) string { return strings.Join(list, " ") }
