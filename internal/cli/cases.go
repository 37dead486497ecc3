package cli

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/longstop-dev/longstop/internal/client"
	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/show"
)

type casesCmd struct {
	List   casesListCmd   `cmd:"" help:"Cases, newest first."`
	Show   casesShowCmd   `cmd:"" help:"A case: what failed, who was asked, what came back."`
	Export casesExportCmd `cmd:"" help:"What an agent is shown, as JSON: for its tests."`
	Replay casesReplayCmd `cmd:"" help:"Ask an agent about a case again; nothing is applied."`
	Usage  casesUsageCmd  `cmd:"" help:"Tokens that the built-in model has used, by day."`

	Pending casesPendingCmd `cmd:"" help:"The inbox: failed steps that wait for an agent."`
	Answer  casesAnswerCmd  `cmd:"" help:"Answer a case in the inbox with a recovery action."`
	Claim   casesClaimCmd   `cmd:"" help:"Claim a case in the inbox, or prolong the claim, so that no other agent works on it."`
	Release casesReleaseCmd `cmd:"" help:"Give up a claim."`
}

type casesListCmd struct {
	RunID    string `name:"run" help:"Only those of this run."`
	Observed bool   `help:"What your agent would have done where it is only observed, and a sum."`
	paging
	connection
}

// Help is shown under --help.
func (casesListCmd) Help() string {
	return `Examples:
  longstop cases list
  longstop cases list --run RUN --json | jq .items[].id
  longstop cases list --observed        # recovery.mode is observe: has your agent earned trust?`
}

// Run lists cases.
func (c *casesListCmd) Run(a *app) error {
	return c.with(a, func(s *session) error {
		l, err := s.Cases(a.ctx, client.CaseFilter{Page: c.page(), RunID: c.RunID, Observed: c.Observed})
		if err != nil {
			return err
		}
		if c.Observed {
			return a.observed(s, c.JSON, l)
		}
		var rows [][]string
		for _, k := range l.Items {
			rows = append(rows, []string{k.ID, k.Workflow, fmt.Sprint(k.StepIndex), show.Line(k.Input.Error, 40), show.Line(k.Outcome, 40), ago(k.OpenedAt)})
		}
		defer a.more(c.JSON, l.Next)
		return a.table(c.JSON, l, []string{"case", "workflow", "step", "error", "outcome", "opened"}, rows)
	})
}

type casesShowCmd struct {
	ID string `arg:""`
	connection
}

// Help is shown under --help.
func (casesShowCmd) Help() string {
	return `Example:
  longstop cases show CASE`
}

// Run shows a case.
func (c *casesShowCmd) Run(a *app) error {
	return c.with(a, func(s *session) error {
		k, err := s.Case(a.ctx, c.ID)
		if err != nil {
			return err
		}
		if c.JSON {
			return a.printJSON(k)
		}
		fmt.Fprintf(a.out, "%s  %s step %d, recovery attempt %d\n", a.ink.Bold(k.ID), k.Workflow, k.StepIndex, k.Attempt)
		fmt.Fprintf(a.out, "  %s %s\n", a.ink.Bad("✗"), show.Line(k.Input.Error, 200))
		if r := k.Input.ResolvedRequest; r != nil {
			fmt.Fprintf(a.out, "    %s\n", a.ink.Faint("sent to "+show.Line(r.URL, 200)))
		}
		for _, asked := range k.Asked {
			answered(a, asked)
		}
		if k.Observed != nil {
			a.wouldHave(*k.Observed)
		}
		if k.Before != nil || k.After != nil {
			show.Diff(a.out, a.ink, "      ", k.Before, k.After)
		}
		if k.Outcome != "" {
			fmt.Fprintf(a.out, "  → %s\n", show.Line(k.Outcome, 200))
		}
		return nil
	})
}

// answered shows what one responder said.
func answered(a *app, k flow.Asked) {
	mark, rest := a.ink.Good("✓"), show.Summary(k.Action)
	if !k.Accepted {
		mark, rest = a.ink.Warn("·"), "passed over: "+k.Rejection
	}
	fmt.Fprintf(a.out, "  %s %s %s  %s\n", mark, show.Line(strings.TrimSpace(k.Responder+" "+k.Target), 70), a.ink.Faint(show.Millis(k.DurationMS)), show.Line(rest, 200))
	if u := k.Usage; u != nil {
		fmt.Fprintf(a.out, "      %s\n", a.ink.Faint(tokens(*u)))
	}
	for _, n := range k.Notes {
		fmt.Fprintf(a.out, "      %s\n", a.ink.Faint(show.Line(n, 200)))
	}
}

type casesExportCmd struct {
	ID string `arg:""`
	connection
}

// Help is shown under --help.
func (casesExportCmd) Help() string {
	return `Examples:
  longstop cases export CASE > failure.json
  longstop agents test https://my-agent.example.com --case failure.json`
}

// Run prints what an agent is shown.
func (c *casesExportCmd) Run(a *app) error {
	return c.with(a, func(s *session) error {
		k, err := s.Case(a.ctx, c.ID)
		if err != nil {
			return err
		}
		return a.printJSON(k.Input)
	})
}

type casesReplayCmd struct {
	ID    string `arg:""`
	Agent string `required:"" help:"The URL of an A2A agent, or mcp:ID of a registered MCP server."`
	Token string `env:"LONGSTOP_AGENT_TOKEN" help:"A bearer token for the agent at a URL."`
	connection
}

// Help is shown under --help.
func (casesReplayCmd) Help() string {
	return `Examples:
  longstop cases replay CASE --agent https://my-agent.example.com
  longstop cases replay CASE --agent mcp:mine`
}

// Run asks an agent about a case.
func (c *casesReplayCmd) Run(a *app) error {
	return c.with(a, func(s *session) error {
		r, err := s.ReplayCase(a.ctx, c.ID, client.Agent{Agent: c.Agent, Token: c.Token})
		if err != nil {
			return err
		}
		if c.JSON {
			if err := a.printJSON(r); err != nil {
				return err
			}
			return verdict(r.Now)
		}
		fmt.Fprintln(a.out, a.ink.Bold("then"))
		for _, k := range r.Then {
			answered(a, k)
		}
		if r.Outcome != "" {
			fmt.Fprintf(a.out, "  → %s\n", show.Line(r.Outcome, 200))
		}
		fmt.Fprintln(a.out, a.ink.Bold("now"), a.ink.Faint("(nothing of it is applied)"))
		trial(a, r.Now)
		if len(r.Then) > 0 {
			fmt.Fprintln(a.out, a.ink.Bold("what differs"))
			show.Diff(a.out, a.ink, "  ", decoded(r.Then[len(r.Then)-1].Action), decoded(r.Now.Action))
		}
		return verdict(r.Now)
	})
}

func decoded(raw json.RawMessage) any {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return nil
	}
	return v
}

func verdict(t client.Trial) error {
	if t.Valid {
		return nil
	}
	return status(exitFailed)
}
