package cli

import (
	"encoding/json"
	"fmt"

	"github.com/longstop-dev/longstop/internal/client"
	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/show"
)

type gatesCmd struct {
	List   gatesListCmd   `cmd:"" help:"Gates, oldest first."`
	Show   gatesShowCmd   `cmd:"" help:"A gate: what failed, what was said."`
	Answer gatesAnswerCmd `cmd:"" help:"Answer a gate and wake its run."`
}

type gatesListCmd struct {
	Status string `default:"open" enum:"open,answered,expired,closed,all" help:"open, answered, expired, closed or all."`
	RunID  string `name:"run" help:"Only those of this run."`
	After  string `help:"The cursor that the page before gave."`
	connection
}

// Run lists gates.
func (c *gatesListCmd) Run(a *app) error {
	f := client.GateFilter{Page: client.Page{After: c.After}, RunID: c.RunID, Status: c.Status}
	if f.Status == "all" {
		f.Status = ""
	}
	return c.with(a, func(s *session) error {
		l, err := s.Gates(a.ctx, f)
		if err != nil {
			return err
		}
		var rows [][]string
		for _, g := range l.Items {
			rows = append(rows, []string{g.ID, string(g.Kind), string(g.Status), g.Workflow, fmt.Sprint(g.StepIndex), show.Line(g.Error, 50), ago(g.OpenedAt)})
		}
		defer a.more(l.Next, "--after")
		return a.table(c.JSON, l, []string{"gate", "kind", "status", "workflow", "step", "error", "opened"}, rows)
	})
}

type gatesShowCmd struct {
	ID string `arg:""`
	connection
}

// Run shows a gate.
func (c *gatesShowCmd) Run(a *app) error {
	return c.with(a, func(s *session) error {
		g, err := s.Gate(a.ctx, c.ID)
		if err != nil {
			return err
		}
		if c.JSON {
			return a.printJSON(g)
		}
		fmt.Fprintf(a.out, "%s  %s, %s; %s step %d %s\n", a.ink.Bold(g.ID), g.Kind, g.Status, g.Workflow, g.StepIndex, show.Line(g.Title, 60))
		if g.Error != "" {
			fmt.Fprintf(a.out, "  %s\n", a.ink.Bad(show.Line(g.Error, 200)))
		}
		said(a, "your agent", g.Agent)
		said(a, "the built-in", g.Builtin)
		proposal(a, g.Proposal)
		if g.Answer != nil {
			fmt.Fprintf(a.out, "  answered %s by %s %s\n", a.ink.Bold(show.Line(g.Answer.Answer, 20)), g.AnsweredBy, show.Line(g.Answer.Reason, 120))
		}
		if g.CaseID != "" {
			fmt.Fprintf(a.out, "  %s\n", a.ink.Faint("longstop cases show "+g.CaseID))
		}
		return nil
	})
}

// proposal shows what is to be approved: a code fix as its code and what it
// changes, anything else as it is.
func proposal(a *app, raw json.RawMessage) {
	if len(raw) == 0 {
		return
	}
	var p struct {
		Type          flow.ActionType `json:"type"`
		Code          string          `json:"code"`
		Input, Output any
	}
	if json.Unmarshal(raw, &p) != nil || p.Type != flow.ActionCodeFix {
		fmt.Fprintf(a.out, "  to approve: %s\n", show.Clean(pretty(raw)))
		return
	}
	fmt.Fprintf(a.out, "  the code:\n%s\n  what it makes of the answer:\n", indent(show.Clean(p.Code), "    "))
	show.Diff(a.out, a.ink, "    ", p.Input, p.Output)
}

func said(a *app, who string, e *flow.Escalation) {
	if e == nil {
		return
	}
	fmt.Fprintf(a.out, "  %s: %s\n", who, show.Line(e.Diagnosis, 200))
	if e.Suggestion != "" {
		fmt.Fprintf(a.out, "    %s\n", show.Line(e.Suggestion, 200))
	}
}

type gatesAnswerCmd struct {
	ID            string `arg:"" help:"The gate."`
	Answer        string `arg:"" help:"approve, refuse, action, output, edit, hint, skip or fail."`
	Reason        string `help:"Why; kept on the record."`
	Output        string `placeholder:"JSON" help:"With output: the step's output. With approve: what the form asks for."`
	Modifications string `placeholder:"JSON" help:"With edit: as in retry_with_params; {} retries as it is."`
	Hint          string `help:"With hint: what the responders should know."`
	Action        string `placeholder:"JSON" help:"With action: one of the five recovery actions."`
	connection
}

// Help is shown under --help.
func (gatesAnswerCmd) Help() string {
	return `Examples:
  longstop gates answer GATE output --output '{"id": 42}' --reason "looked it up"
  longstop gates answer GATE edit --modifications '{"httpRequest": {"url": "https://api.example.com/v2/users/42"}}'
  longstop gates answer GATE hint --hint "v1 was switched off, use v2"
  longstop gates answer GATE skip`
}

// Run answers a gate.
func (c *gatesAnswerCmd) Run(a *app) error {
	g := flow.GateAnswer{Answer: c.Answer, Reason: c.Reason, Hint: c.Hint}
	var err error
	for _, arg := range []struct {
		flag, text string
		to         *json.RawMessage
	}{{"--output", c.Output, &g.Output}, {"--modifications", c.Modifications, &g.Modifications}, {"--action", c.Action, &g.Action}} {
		if *arg.to, err = a.jsonArg(arg.flag, arg.text); err != nil {
			return err
		}
	}
	if c.Answer == "edit" && g.Modifications == nil {
		g.Modifications = json.RawMessage("{}")
	}
	return c.with(a, func(s *session) error {
		v, err := s.AnswerGate(a.ctx, c.ID, g)
		if err != nil {
			return err
		}
		if c.JSON {
			return a.printJSON(v)
		}
		fmt.Fprintf(a.out, "answered; run %s goes on\n", v.RunID)
		return nil
	})
}
