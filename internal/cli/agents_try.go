package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/longstop-dev/longstop/internal/client"
	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/show"
)

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
	if len(text) == 0 && len(data) == 0 {
		return flow.Errorf(flow.CodeInvalid, "the agent would be asked nothing").At("text").Right(`such as "Is order 7 late?", or --payload`)
	}
	payload, err := withText(data, string(text))
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
		fmt.Fprintf(a.err, "made the vault %s, and let the agent into it\n", vault)
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
	watching, seen := context.WithCancel(a.ctx)
	var watch sync.WaitGroup
	if !c.JSON {
		watch.Go(func() { c.tries(watching, a, s, asked.ID) })
	}
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
	seen()
	watch.Wait()
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
		fmt.Fprintf(a.err, "longstop: %s: %s: %s\n", show.Line(c.Agent, 100), show.Line(p.Code, 60), show.Line(p.Error, 500))
		return status(exitFailed)
	case strings.HasSuffix(p.State, "_REQUIRED"):
		fmt.Fprintf(a.err, "it asks back; answer with: longstop agents try %s \"...\"%s\n", quoted(c.Agent), c.where())
		return status(exitWaits)
	}
	return nil
}

// tries tells of tries that failed while the turn goes on: a person who waits
// should see what for.
func (c *agentsTryCmd) tries(ctx context.Context, a *app, s *session, asked string) {
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	told := 0
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		t := s.turnOf(ctx, c.Vault, asked)
		if t == nil || t.Failed == "" || t.NextAt == nil || t.Try == told || ctx.Err() != nil {
			continue
		}
		told = t.Try
		fmt.Fprintf(a.err, "try %d of %d: %s; again in %s\n", t.Try, flow.TurnTries, show.Line(t.Failed, 300), time.Until(*t.NextAt).Round(time.Second))
	}
}

// turnOf finds the turn of an event among the newest of a vault; nil for none.
func (s *session) turnOf(ctx context.Context, vault, asked string) *client.Turn {
	jobs, err := s.Jobs(ctx, vault, "")
	if err != nil {
		return nil
	}
	for _, j := range jobs.Items[:min(len(jobs.Items), 5)] {
		whole, err := s.Job(ctx, j.ID)
		if err != nil {
			return nil
		}
		for i := range whole.Turns {
			if whole.Turns[i].Event == asked {
				return &whole.Turns[i]
			}
		}
	}
	return nil
}
