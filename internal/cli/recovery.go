package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/longstop-dev/longstop/internal/client"
	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/server"
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
		if len(g.Proposal) > 0 {
			fmt.Fprintf(a.out, "  to approve: %s\n", show.Clean(pretty(g.Proposal)))
		}
		if g.Answer != nil {
			fmt.Fprintf(a.out, "  answered %s by %s %s\n", a.ink.Bold(show.Line(g.Answer.Answer, 20)), g.AnsweredBy, show.Line(g.Answer.Reason, 120))
		}
		if g.CaseID != "" {
			fmt.Fprintf(a.out, "  %s\n", a.ink.Faint("longstop cases show "+g.CaseID))
		}
		return nil
	})
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

type casesCmd struct {
	List   casesListCmd   `cmd:"" help:"Cases, newest first."`
	Show   casesShowCmd   `cmd:"" help:"A case: what failed, who was asked, what came back."`
	Export casesExportCmd `cmd:"" help:"What an agent is shown, as JSON: for its tests."`
	Replay casesReplayCmd `cmd:"" help:"Ask an agent about a case again; nothing is applied."`
}

type casesListCmd struct {
	RunID string `name:"run" help:"Only those of this run."`
	After string `help:"The cursor that the page before gave."`
	connection
}

// Run lists cases.
func (c *casesListCmd) Run(a *app) error {
	return c.with(a, func(s *session) error {
		l, err := s.Cases(a.ctx, client.CaseFilter{Page: client.Page{After: c.After}, RunID: c.RunID})
		if err != nil {
			return err
		}
		var rows [][]string
		for _, k := range l.Items {
			rows = append(rows, []string{k.ID, k.Workflow, fmt.Sprint(k.StepIndex), show.Line(k.Input.Error, 40), show.Line(k.Outcome, 40), ago(k.OpenedAt)})
		}
		defer a.more(l.Next, "--after")
		return a.table(c.JSON, l, []string{"case", "workflow", "step", "error", "outcome", "opened"}, rows)
	})
}

type casesShowCmd struct {
	ID string `arg:""`
	connection
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
	for _, n := range k.Notes {
		fmt.Fprintf(a.out, "      %s\n", a.ink.Faint(show.Line(n, 200)))
	}
}

type casesExportCmd struct {
	ID string `arg:""`
	connection
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

type agentsCmd struct {
	Test agentsTestCmd `cmd:"" help:"Send an agent a sample failure: is it found, what does it answer, would that be taken?"`
}

type agentsTestCmd struct {
	Agent []string `arg:"" name:"agent" help:"The URL of an A2A agent, mcp:ID of a registered MCP server, or after -- the command of an MCP server over stdio."`
	Token string   `env:"LONGSTOP_AGENT_TOKEN" help:"A bearer token for the agent at a URL."`
	Case  string   `placeholder:"FILE" help:"What to send instead of the sample: a RecoveryToolInput, as cases export prints it."`
	connection
}

// Help is shown under --help.
func (agentsTestCmd) Help() string {
	return `Examples:
  longstop agents test https://my-agent.example.com
  longstop agents test mcp:mine
  longstop agents test -- ./my-agent

Exits with 0 if the answer would be taken, 1 if not.`
}

// Run tries an agent.
func (c *agentsTestCmd) Run(a *app) error {
	agent := client.Agent{Token: c.Token}
	if len(c.Agent) == 1 && (strings.Contains(c.Agent[0], "://") || strings.HasPrefix(c.Agent[0], "mcp:")) {
		agent.Agent = c.Agent[0]
	} else {
		agent.Command = c.Agent
	}
	var input json.RawMessage
	if c.Case != "" {
		b, err := os.ReadFile(c.Case)
		if err != nil {
			return flow.Errorf(flow.CodeInvalid, "%s cannot be read", c.Case).At("--case").Because(err)
		}
		input = b
	}
	s, err := c.session(a, len(agent.Command) > 0)
	if err != nil {
		return err
	}
	defer s.close()
	t, err := s.TestAgent(a.ctx, agent, input)
	if err != nil {
		return err
	}
	if c.JSON {
		if err := a.printJSON(t); err != nil {
			return err
		}
		return verdict(*t)
	}
	trial(a, *t)
	return verdict(*t)
}

// session is where the trial runs: a command is started by this process, in a
// folder that is gone afterwards.
func (c *agentsTestCmd) session(a *app, command bool) (*session, error) {
	if !command {
		return c.open(a)
	}
	dir, err := os.MkdirTemp("", "longstop-agents-test-")
	if err != nil {
		return nil, err
	}
	s, err := embed(a, server.Config{DataDir: dir})
	if err != nil {
		return nil, err
	}
	end := s.close
	s.close = func() {
		end()
		if err := os.RemoveAll(dir); err != nil {
			a.complain(err)
		}
	}
	return s, nil
}

// trial shows what came of asking an agent.
func trial(a *app, t client.Trial) {
	f := t.Found
	if !f.Found {
		fmt.Fprintf(a.out, "  %s %s: %s\n", a.ink.Bad("✗"), show.Line(t.Agent, 80), show.Line(f.Problem, 200))
		return
	}
	what := "agent card"
	if f.Kind == "mcp" {
		what = "tool diagnose_step_failure"
	}
	fmt.Fprintf(a.out, "  %s %s found: %s %s\n", a.ink.Good("✓"), what, a.ink.Bold(show.Line(f.Name, 60)), a.ink.Faint(show.Line(f.Description, 100)))
	if f.Endpoint != "" {
		fmt.Fprintf(a.out, "    %s\n", a.ink.Faint("calls go to "+show.Line(f.Endpoint, 160)))
	}
	if !t.Sent {
		return
	}
	fmt.Fprintf(a.out, "  a failure was sent, an answer came after %s\n", show.Millis(t.DurationMS))
	if len(t.Action) > 0 {
		fmt.Fprintf(a.out, "%s\n", indent(show.Clean(pretty(t.Action)), "    "))
	}
	if t.Valid {
		fmt.Fprintf(a.out, "  %s it would be taken\n", a.ink.Good("✓"))
	} else {
		fmt.Fprintf(a.out, "  %s it would be passed over: %s\n", a.ink.Bad("✗"), show.Line(t.Rejection, 300))
	}
	for _, n := range t.Notes {
		fmt.Fprintf(a.out, "    %s\n", a.ink.Faint(show.Line(n, 200)))
	}
}

func indent(s, by string) string { return by + strings.ReplaceAll(s, "\n", "\n"+by) }

type runsCmd struct {
	List   runsListCmd   `cmd:"" help:"Runs, newest first."`
	Show   runsShowCmd   `cmd:"" help:"A run's steps, what failed and who mended it."`
	Follow runsFollowCmd `cmd:"" help:"Follow a run live."`
	Cancel runsCancelCmd `cmd:"" help:"Stop a run."`
}

type runsListCmd struct {
	Workflow string `help:"Only runs of this workflow."`
	Status   string `enum:",queued,running,waiting,succeeded,failed,cancelled" default:"" help:"Only runs in this status."`
	After    string `help:"The cursor that the page before gave."`
	connection
}

// Run lists runs.
func (c *runsListCmd) Run(a *app) error {
	return c.with(a, func(s *session) error {
		l, err := s.Runs(a.ctx, client.RunFilter{Page: client.Page{After: c.After}, Workflow: c.Workflow, Status: c.Status})
		if err != nil {
			return err
		}
		var rows [][]string
		for _, r := range l.Items {
			took := "-"
			if r.FinishedAt != nil {
				took = show.Millis(float64(r.FinishedAt.Sub(r.CreatedAt).Milliseconds()))
			}
			rows = append(rows, []string{r.ID, r.Workflow, string(r.Status), ago(r.CreatedAt), took, show.Line(r.Error, 60)})
		}
		defer a.more(l.Next, "--after")
		return a.table(c.JSON, l, []string{"run", "workflow", "status", "started", "took", "error"}, rows)
	})
}

type runsShowCmd struct {
	ID string `arg:""`
	connection
}

// Run shows a run: its events as a timeline, or with --json the run itself.
func (c *runsShowCmd) Run(a *app) error {
	return c.with(a, func(s *session) error {
		r, err := s.Run(a.ctx, c.ID)
		if err != nil {
			return err
		}
		if c.JSON {
			return a.printJSON(r)
		}
		fmt.Fprintf(a.out, "%s  %s  started %s\n", a.ink.Bold(r.Workflow), r.ID, r.CreatedAt.Local().Format(time.DateTime))
		f := follower{a: a, s: s}
		line := &show.Timeline{W: a.out, Ink: a.ink, Case: func(id string) (*flow.Case, error) { return s.Case(a.ctx, id) },
			Answer: func(id string) string { return f.how(id) }}
		for after := int64(0); ; {
			l, err := s.Events(a.ctx, r.ID, client.Records{After: after})
			if err != nil {
				return err
			}
			for _, e := range l.Items {
				line.Event(e)
				after = e.Seq
			}
			if l.Next == "" {
				break
			}
		}
		if !r.Status.Finished() {
			fmt.Fprintf(a.out, "%s\n", a.ink.Warn(string(r.Status)))
			return nil
		}
		_ = f.summary(r.ID)
		return nil
	})
}

type runsFollowCmd struct {
	ID     string `arg:""`
	NoWait bool   `help:"Exit with 3 when the run is parked at a gate."`
	connection
}

// Run follows a run.
func (c *runsFollowCmd) Run(a *app) error {
	return c.with(a, func(s *session) error {
		r, err := s.Run(a.ctx, c.ID)
		if err != nil {
			return err
		}
		return follower{a: a, s: s, json: c.JSON, noWait: c.NoWait}.follow(r)
	})
}

type runsCancelCmd struct {
	ID string `arg:""`
	connection
}

// Run cancels a run.
func (c *runsCancelCmd) Run(a *app) error {
	return c.with(a, func(s *session) error {
		r, err := s.CancelRun(a.ctx, c.ID)
		if err != nil {
			return err
		}
		if c.JSON {
			return a.printJSON(r)
		}
		fmt.Fprintf(a.out, "%s is %s\n", r.ID, r.Status)
		return nil
	})
}

type logsCmd struct {
	ID    string `arg:"" name:"run" help:"The run."`
	After int64  `help:"Only rows with a higher sequence number."`
	connection
}

// Run shows a run's step log.
func (c *logsCmd) Run(a *app) error {
	return c.with(a, func(s *session) error {
		l, err := s.Logs(a.ctx, c.ID, client.Records{After: c.After})
		if err != nil {
			return err
		}
		var rows [][]string
		for _, v := range l.Items {
			source := string(v.RecoverySource)
			if source == "" {
				source = "-"
			}
			text := v.Message
			if text == "" {
				text = v.Error
			}
			rows = append(rows, []string{v.At.Local().Format("15:04:05.000"), fmt.Sprint(v.StepIndex), v.StepID, fmt.Sprint(v.Attempt), v.Status, source, show.Millis(v.DurationMS), show.Line(text, 100)})
		}
		defer a.more(l.Next, "--after")
		return a.table(c.JSON, l, []string{"at", "step", "id", "attempt", "what", "recovery_source", "took", "message"}, rows)
	})
}
