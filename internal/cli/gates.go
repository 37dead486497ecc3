package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

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
	paging
	connection
}

// Help is shown under --help.
func (gatesListCmd) Help() string {
	return `Examples:
  longstop gates list
  longstop gates list --status all --run RUN`
}

// Run lists gates.
func (c *gatesListCmd) Run(a *app) error {
	f := client.GateFilter{Page: c.page(), RunID: c.RunID, Status: c.Status}
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
			rows = append(rows, []string{g.ID, string(g.Kind), string(g.Status), g.Workflow, fmt.Sprint(g.StepIndex), show.Line(cmp.Or(g.Error, question(g)), 50), ago(g.OpenedAt)})
		}
		defer a.more(c.JSON, l.Next)
		return a.table(c.JSON, l, []string{"gate", "kind", "status", "workflow", "step", "about", "opened"}, rows)
	})
}

// question is what a gate without an error asks of a person.
func question(g flow.Gate) string {
	var p struct{ Message string }
	_ = json.Unmarshal(g.Proposal, &p) // of another form: nothing is asked
	return p.Message
}

type gatesShowCmd struct {
	ID string `arg:""`
	connection
}

// Help is shown under --help.
func (gatesShowCmd) Help() string {
	return `Example:
  longstop gates show GATE`
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
		show.Proposal(a.out, a.ink, "  ", g.Proposal)
		if g.Answer != nil {
			fmt.Fprintf(a.out, "  answered %s by %s %s\n", a.ink.Bold(show.Line(g.Answer.Answer, 20)), names(a, s)(g.AnsweredBy), show.Line(g.Answer.Reason, 120))
		}
		return c.evidence(a, s, g)
	})
}

// evidence shows what a person needs to answer with: what was sent, what came
// back, what the output must be, and the commands.
func (c *gatesShowCmd) evidence(a *app, s *session, g *flow.Gate) error {
	url := ""
	if g.CaseID != "" {
		k, err := s.Case(a.ctx, g.CaseID)
		if err != nil {
			return err
		}
		if _, body, ok := strings.Cut(k.Input.Error, "\n"); ok {
			fmt.Fprintf(a.out, "  it answered: %s\n", show.Line(body, 300))
		}
		if r := k.Input.ResolvedRequest; r != nil {
			url = r.URL
			fmt.Fprintf(a.out, "  sent to: %s\n", show.Line(url, 200))
		}
		if len(k.Contract) > 0 {
			fmt.Fprintf(a.out, "  the output must satisfy: %s\n", show.Line(string(k.Contract), 200))
		}
		fmt.Fprintf(a.out, "  %s\n", a.ink.Faint("longstop cases show "+g.CaseID+c.where()))
	}
	if g.Status != flow.GateOpen {
		return nil
	}
	how := []string{"approve", "refuse --reason ..."}
	if g.Kind == flow.GateNeedsHuman {
		how = []string{"output --output '{...}'", "edit --modifications '{}'          run it again as it is", "hint --hint \"...\"                 ask the agents again", "skip", "fail"}
		if url != "" {
			how = append(how, "edit --modifications '{\"httpRequest\": {\"url\": \""+url+"\"}}'")
		}
	}
	if g.Kind == flow.GateInputRequired {
		how = []string{"output --output '\"the reply\"'", "output --output '{\"text\": \"the reply\"}'", "fail --reason ..."}
	}
	for _, h := range how {
		fmt.Fprintf(a.out, "    longstop gates answer %s%s %s\n", g.ID, c.where(), show.Clean(h))
	}
	return nil
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
		if c.Answer == "fail" || c.Answer == "refuse" {
			fmt.Fprintf(a.out, "answered; see longstop runs show %s%s\n", v.RunID, c.where())
			return nil
		}
		fmt.Fprintf(a.out, "answered; run %s goes on. To see it: longstop runs follow %s%s\n", v.RunID, v.RunID, c.where())
		return nil
	})
}
