package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/longstop-dev/longstop/internal/client"
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
			{"versions", spaced(v.Versions)}, {"pushed", ago(v.PushedAt) + " by " + v.PushedBy}} {
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

type agentsTryCmd struct {
	Agent string `arg:"" help:"The agent's id or alias."`
	Text  string `arg:"" help:"What it is asked; @file, or - for standard input."`
	Data  string `name:"payload" placeholder:"JSON" help:"Further members of the payload, which the agent gets as data."`
	Vault string `default:"try" placeholder:"VAULT" help:"The vault; it is made if it is missing, and the agent connected to it."`
	connection
}

// Help is shown under --help.
func (agentsTryCmd) Help() string {
	return `Examples:
  longstop agents try helper "Is order 7 late?"
  longstop agents try helper "Look at this" --payload '{"order": 7}'

Exits with 1 if the turn fails, 3 if the agent asks back.`
}

// Run has one turn of an agent.
func (c *agentsTryCmd) Run(a *app) error {
	text, err := a.value(c.Text)
	if err != nil {
		return err
	}
	data, err := a.jsonArg("--payload", c.Data)
	if err != nil {
		return err
	}
	members := map[string]json.RawMessage{}
	if len(data) > 0 && json.Unmarshal(data, &members) != nil {
		return flow.Errorf(flow.CodeInvalid, "it is not an object").At("--payload").Right(`such as '{"order": 7}'`)
	}
	if len(text) == 0 && len(members) == 0 {
		return flow.Errorf(flow.CodeInvalid, "the agent would be asked nothing").At("text").Right(`such as "Is order 7 late?", or --payload`)
	}
	if members["text"], err = json.Marshal(string(text)); err != nil {
		return err
	}
	payload, err := json.Marshal(members)
	if err != nil {
		return err
	}
	return c.with(a, func(s *session) error {
		id, err := s.agentID(a, c.Agent)
		if err != nil {
			return err
		}
		if err := s.introduce(a, c.Vault, id); err != nil {
			return err
		}
		e, err := s.AppendEvent(a.ctx, c.Vault, client.NewEvent{Type: "question.asked", Target: id, Payload: payload}, "")
		if err != nil {
			return err
		}
		return c.follow(a, s, e)
	})
}

// introduce makes the vault if it is missing, and connects the agent to it.
func (s *session) introduce(a *app, vault, agent string) error {
	if _, err := s.Vault(a.ctx, vault); asFlowCode(err) == flow.CodeNotFound {
		if _, err := s.CreateVault(a.ctx, client.NewVault{Name: vault}); err != nil {
			return err
		}
		fmt.Fprintf(a.err, "made the vault %s\n", vault)
	} else if err != nil {
		return err
	}
	l, err := s.Connections(a.ctx, vault)
	if err != nil {
		return err
	}
	for _, con := range l.Items {
		if con.Agent == agent && con.RevokedAt == nil {
			return nil
		}
	}
	_, err = s.Connect(a.ctx, vault, client.NewConnection{Agent: agent, Scopes: []string{flow.DefaultScope}})
	return err
}

func asFlowCode(err error) flow.Code {
	if err == nil {
		return ""
	}
	return asFlow(err).Code
}

// errAnswered ends following.
var errAnswered = errors.New("answered")

// follow shows what the agent says until it has answered.
func (c *agentsTryCmd) follow(a *app, s *session, asked *flow.VaultEvent) error {
	var answer flow.VaultEvent
	err := s.FollowVault(a.ctx, c.Vault, asked.Seq, func(e flow.VaultEvent) error {
		if len(e.Parents) != 1 || e.Parents[0] != asked.ID {
			return nil
		}
		if e.Type == flow.EventAgentAnswered {
			answer = e
			return errAnswered
		}
		if !c.JSON {
			a.event(e)
		}
		return nil
	})
	if !errors.Is(err, errAnswered) {
		return err
	}
	if c.JSON {
		if err := a.printJSON(answer); err != nil {
			return err
		}
	}
	var p struct {
		Text, State, Error, Code string
		Data                     json.RawMessage
	}
	if err := json.Unmarshal(answer.Payload, &p); err != nil {
		return err
	}
	if !c.JSON {
		if p.Text != "" {
			fmt.Fprintln(a.out, show.Clean(p.Text))
		}
		if len(p.Data) > 0 {
			fmt.Fprintln(a.out, show.Clean(string(p.Data)))
		}
	}
	switch {
	case p.Code != "":
		fmt.Fprintf(a.err, "longstop: %s: %s\n", show.Line(p.Code, 60), show.Line(p.Error, 500))
		return status(exitFailed)
	case strings.HasSuffix(p.State, "_REQUIRED"):
		fmt.Fprintf(a.err, "it asks back (%s); answer with another longstop agents try\n", p.State)
		return status(exitWaits)
	}
	return nil
}

func spaced(list []string) string { return strings.Join(list, " ") }
