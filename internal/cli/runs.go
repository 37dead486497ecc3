package cli

import (
	"fmt"
	"time"

	"github.com/longstop-dev/longstop/internal/client"
	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/show"
)

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
			Answer: func(id string) string {
				for _, g := range r.Gates {
					if g.ID == id { // still open
						return f.how(id)
					}
				}
				return ""
			}}
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
