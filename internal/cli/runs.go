package cli

import (
	"errors"
	"fmt"
	"time"

	"github.com/longstop-dev/longstop/internal/client"
	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/show"
)

type runsCmd struct {
	Start   runsStartCmd   `cmd:"" help:"Start a run of a published workflow."`
	List    runsListCmd    `cmd:"" help:"Runs, newest first."`
	Show    runsShowCmd    `cmd:"" help:"A run's steps, what failed and who mended it."`
	Follow  runsFollowCmd  `cmd:"" help:"Follow a run live."`
	Cancel  runsCancelCmd  `cmd:"" help:"Stop a run."`
	Retry   runsRetryCmd   `cmd:"" help:"Go on with a failed run from the step that failed."`
	Rerun   runsRerunCmd   `cmd:"" help:"A new run from any step of an old one, with other input or on another version."`
	Compare runsCompareCmd `cmd:"" help:"What differs between two runs, step by step."`
}

type runsListCmd struct {
	Workflow string `help:"Only runs of this workflow."`
	Status   string `enum:",queued,running,waiting,succeeded,failed,cancelled" default:"" help:"Only runs in this status."`
	paging
	connection
}

// Help is shown under --help.
func (runsListCmd) Help() string {
	return `Examples:
  longstop runs list
  longstop runs list --workflow nightly-sync --status failed --json`
}

// Run lists runs.
func (c *runsListCmd) Run(a *app) error {
	return c.with(a, func(s *session) error {
		l, err := s.Runs(a.ctx, client.RunFilter{Page: c.page(), Workflow: c.Workflow, Status: c.Status})
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
		defer a.more(c.JSON, l.Next)
		return a.table(c.JSON, l, []string{"run", "workflow", "status", "started", "took", "error"}, rows)
	})
}

type runsShowCmd struct {
	ID string `arg:""`
	connection
}

// Help is shown under --help.
func (runsShowCmd) Help() string {
	return `Example:
  longstop runs show RUN`
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
		if page := s.page(r.ID); page != "" {
			fmt.Fprintf(a.out, "%s\n", a.ink.Faint(page))
		}
		for _, id := range r.Reruns {
			fmt.Fprintf(a.out, "  started again as %s\n", id)
		}
		f := c.follower(a, s, false)
		line := f.timeline(a.out)
		line.Answer = func(id string, kind flow.GateKind) string {
			for _, g := range r.Gates {
				if g.ID == id { // still open
					return f.how(id, kind)
				}
			}
			return ""
		}
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
		var ended status
		if err := f.summary(r.ID); err != nil && !errors.As(err, &ended) {
			return err // how the run ended is no failure of showing it
		}
		return nil
	})
}

type runsFollowCmd struct {
	ID     string `arg:""`
	NoWait bool   `help:"Exit with 3 when the run is parked at a gate."`
	connection
}

// Help is shown under --help.
func (runsFollowCmd) Help() string {
	return `Example:
  longstop runs follow RUN`
}

// Run follows a run.
func (c *runsFollowCmd) Run(a *app) error {
	return c.with(a, func(s *session) error {
		r, err := s.Run(a.ctx, c.ID)
		if err != nil {
			return err
		}
		return c.follower(a, s, c.NoWait).follow(r)
	})
}

type runsCancelCmd struct {
	ID string `arg:""`
	connection
}

// Help is shown under --help.
func (runsCancelCmd) Help() string {
	return `Example:
  longstop runs cancel RUN`
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
