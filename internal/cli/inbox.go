package cli

import (
	"fmt"
	"time"

	"github.com/longstop-dev/longstop/internal/client"
	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/show"
)

type casesPendingCmd struct {
	RunID     string        `arg:"" optional:"" name:"run" help:"A run: print what an agent is shown of its failed step."`
	Step      int           `arg:"" optional:"" help:"The step's index."`
	Iteration string        `help:"Inside a loop: which time round."`
	Wait      time.Duration `placeholder:"30s" help:"If nothing waits, wait so long for something (at most 50s)."`
	After     string        `help:"The cursor that the page before gave."`
	connection
}

// Help is shown under --help.
func (casesPendingCmd) Help() string {
	return `Cases come here where recovery.mode is agent.

Examples:
  longstop cases pending --wait 30s --json
  longstop cases pending RUN 2                     what the agent is shown
  longstop cases answer RUN 2 '{"type": "fixed_output", "diagnosis": "cached", "output": {"id": 42}}'`
}

// Run lists the inbox, or prints one case of it.
func (c *casesPendingCmd) Run(a *app) error {
	return c.with(a, func(s *session) error {
		if c.RunID != "" {
			in, err := s.PendingInput(a.ctx, client.StepRef{RunID: c.RunID, StepIndex: c.Step, Iteration: c.Iteration})
			if err != nil {
				return err
			}
			return a.printJSON(in)
		}
		l, err := s.Pending(a.ctx, client.PendingFilter{Page: client.Page{After: c.After}, Wait: c.Wait})
		if err != nil {
			return err
		}
		var rows [][]string
		for _, p := range l.Items {
			step := fmt.Sprint(p.StepIndex)
			if p.Iteration != "" {
				step += "@" + p.Iteration
			}
			rows = append(rows, []string{p.RunID, step, p.Type, p.Workflow, show.Line(p.Title, 30), show.Line(p.Error, 40), ago(p.OpenedAt), ago(p.ExpiresAt), claimedBy(p)})
		}
		defer a.more(c.JSON, l.Next)
		return a.table(c.JSON, l.List, []string{"run", "step", "type", "workflow", "title", "error", "opened", "expires", "claimed by"}, rows)
	})
}

type casesAnswerCmd struct {
	RunID     string `arg:"" name:"run" help:"The run."`
	Step      int    `arg:"" help:"The step's index."`
	Action    string `arg:"" help:"One of the five recovery actions as JSON; @file, or - for standard input."`
	Iteration string `help:"Inside a loop: which time round."`
	connection
}

// Help is shown under --help.
func (casesAnswerCmd) Help() string {
	return `Examples:
  longstop cases answer RUN 2 '{"type": "fixed_output", "diagnosis": "cached", "output": {"id": 42}}'
  longstop cases answer RUN 2 @action.json`
}

// Run answers a case that waits in the inbox, as an agent does.
func (c *casesAnswerCmd) Run(a *app) error {
	action, err := a.jsonArg("action", c.Action)
	if err != nil {
		return err
	}
	if action == nil {
		return flow.Errorf(flow.CodeInvalid, "there is no action").At("action").Right("one of the five recovery actions as JSON")
	}
	return c.with(a, func(s *session) error {
		v, err := s.SubmitAction(a.ctx, client.StepRef{RunID: c.RunID, StepIndex: c.Step, Iteration: c.Iteration}, action)
		if err != nil {
			return err
		}
		if c.JSON {
			return a.printJSON(v)
		}
		fmt.Fprintf(a.out, "applied %s; run %s goes on\n", v.Applied, v.RunID)
		return nil
	})
}
