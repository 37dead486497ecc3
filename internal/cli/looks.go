package cli

import (
	"fmt"
	"path/filepath"
	"strconv"

	"github.com/longstop-dev/longstop/internal/client"
	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/show"
)

type runsRetryCmd struct {
	ID     string `arg:""`
	Hint   string `placeholder:"TEXT" help:"Told to whoever is asked if the step fails again."`
	NoWait bool   `help:"Exit with 3 when the run is parked at a gate."`
	Detach bool   `help:"Do not follow the run."`
	connection
}

// Help is shown under --help.
func (runsRetryCmd) Help() string {
	return `Goes on in the same run: the step that failed is executed again, and if it fails once more
your own agent is asked first again. To begin elsewhere or with other input: runs rerun.

Example:
  longstop runs retry RUN --hint 'the API moved to /v2'`
}

// Run goes on with a failed run and follows it.
func (c *runsRetryCmd) Run(a *app) error {
	return c.with(a, func(s *session) error {
		if err := lasts(s, c.Detach); err != nil {
			return err
		}
		had, err := s.Run(a.ctx, c.ID)
		if err != nil {
			return err
		}
		r, err := s.RetryRun(a.ctx, c.ID, c.Hint)
		if err != nil {
			return err
		}
		return c.begun(a, s, r, begun{detach: c.Detach, noWait: c.NoWait, after: had.Seq})
	})
}

type runsRerunCmd struct {
	ID      string `arg:""`
	From    string `placeholder:"STEP" help:"The step to begin with, by id or index: what earlier steps gave is carried over. Without it: the first."`
	Input   string `placeholder:"JSON" help:"Instead of the run's own input: JSON, or @file."`
	Version string `default:"pinned" help:"pinned (the run's own), newest (the published one), or a version's number or id."`
	File    string `placeholder:"FILE" help:"Run this definition of the same workflow instead; it is kept unpublished."`
	NoWait  bool   `help:"Exit with 3 when the run is parked at a gate."`
	Detach  bool   `help:"Do not follow the run."`
	connection
}

// Help is shown under --help.
func (runsRerunCmd) Help() string {
	return `Starts a new run; old and new name each other. Earlier steps are not executed again.

Examples:
  longstop runs rerun RUN
  longstop runs rerun RUN --from notify --input '{"userId": 43}'
  longstop runs rerun RUN --from notify --version newest
  longstop runs rerun RUN --from notify --file mended.yaml`
}

// Run starts a run again and follows it.
func (c *runsRerunCmd) Run(a *app) error {
	input, err := a.jsonArg("--input", c.Input)
	if err != nil {
		return err
	}
	var source []byte
	if c.File != "" {
		if c.Version != "pinned" {
			return flow.Errorf(flow.CodeInvalid, "a file is a version of its own").At("--version").Right("leave out --version or --file")
		}
		if source, err = readSource(a, c.File); err != nil {
			return err
		}
	}
	return c.with(a, func(s *session) error {
		if err := lasts(s, c.Detach); err != nil {
			return err
		}
		how := client.Rerun{From: c.From, Input: input, Version: c.Version}
		if source != nil {
			w, err := s.CreateWorkflow(a.ctx, client.Definition{Source: source, Filename: filepath.Base(c.File), Unpublished: true})
			if err != nil {
				return err
			}
			how.Version = w.VersionID
		}
		r, err := s.RerunRun(a.ctx, c.ID, how)
		if err != nil {
			return err
		}
		return c.begun(a, s, r, begun{detach: c.Detach, noWait: c.NoWait})
	})
}

// lasts refuses to leave a run behind in a process that ends.
func lasts(s *session, detach bool) error {
	if detach && s.embedded {
		return flow.Errorf(flow.CodeInvalid, "no server holds this data folder, and the one inside this command would end with it").
			At("--detach").Right("leave it out, or start longstop dev or serve first")
	}
	return nil
}

// begun says how a run that a command has set going is shown.
type begun struct {
	detach, noWait bool
	after          int64 // the event that was seen last
}

func (c connection) begun(a *app, s *session, r *client.Run, how begun) error {
	if !how.detach {
		f := c.follower(a, s, how.noWait)
		f.after = how.after
		return f.follow(r)
	}
	if c.JSON {
		return a.printJSON(r)
	}
	fmt.Fprintf(a.out, "%s is %s; to see how it goes: longstop runs follow %s%s\n", r.ID, r.Status, r.ID, c.where())
	return nil
}

type runsCompareCmd struct {
	A string `arg:"" help:"A run."`
	B string `arg:"" help:"Another one."`
	connection
}

// Help is shown under --help.
func (runsCompareCmd) Help() string {
	return `Shows, step by step, what went (-) and what came (+) from the first run to the second.

Example:
  longstop runs compare RUN RERUN`
}

// Run compares two runs.
func (c *runsCompareCmd) Run(a *app) error {
	return c.with(a, func(s *session) error {
		v, err := s.CompareRuns(a.ctx, c.A, c.B)
		if err != nil {
			return err
		}
		if c.JSON {
			return a.printJSON(v)
		}
		a.compared(v)
		return nil
	})
}

// compared shows a comparison as one text.
func (a *app) compared(v *client.Comparison) {
	a.heads(v)
	a.differences("  ", "input", v.Input)
	for _, s := range v.Steps {
		name := s.ID
		if s.Iteration != "" {
			name += "@" + s.Iteration
		}
		mark := " "
		if !s.Same {
			mark = a.ink.Warn("~")
		}
		fmt.Fprintf(a.out, "%s %-14s %s\n", mark, show.Line(name, 40), a.ink.Faint(show.Line(s.Title, 60)))
		one, two := sideText(s.A), sideText(s.B)
		switch {
		case one == two:
			fmt.Fprintf(a.out, "      %s\n", one)
		case s.Same: // but for how long it took, or which run executed it
			fmt.Fprintf(a.out, "      %s  %s\n", one, a.ink.Faint("and then "+two))
		default:
			fmt.Fprintf(a.out, "    %s\n    %s\n", a.ink.Bad("- "+one), a.ink.Good("+ "+two))
		}
		a.differences("    ", "", s.Output)
	}
	a.differences("  ", "output", v.Output)
	if v.Same {
		fmt.Fprintln(a.out, a.ink.Good("the same input, statuses and outputs"))
	}
}

func (a *app) heads(v *client.Comparison) {
	text := func(r client.RunHead) string {
		t := fmt.Sprintf("%s  %s  %s  %s", r.ID, r.Workflow, r.Status, millisOr(r.DurationMS))
		if r.RerunOf != "" {
			t += "  (started again from " + r.RerunOf + ")"
		}
		return show.Line(t, 200)
	}
	fmt.Fprintf(a.out, "%s\n%s\n", a.ink.Bad("- "+text(v.A)), a.ink.Good("+ "+text(v.B)))
	if v.A.VersionID != v.B.VersionID {
		fmt.Fprintf(a.out, "  %s\n", a.ink.Faint("other versions: "+v.A.VersionID+" and "+v.B.VersionID))
	}
}

// sideText is a step in one of two runs, in one line.
func sideText(s *client.StepSide) string {
	if s == nil {
		return "there is no such step"
	}
	t := string(s.Status)
	switch {
	case s.CarriedFrom != "":
		t += "  carried over from " + s.CarriedFrom
	case s.DurationMS != nil:
		t += "  " + show.Millis(*s.DurationMS)
	}
	if s.Attempts > 1 {
		t += "  " + strconv.Itoa(s.Attempts) + " attempts"
	}
	if s.RecoverySource != flow.SourceNone {
		t += "  mended by " + show.Who(s.RecoverySource)
	}
	if s.Error != "" {
		t += "  " + s.Error
	}
	return show.Line(t, 200)
}

func millisOr(ms *float64) string {
	if ms == nil {
		return "-"
	}
	return show.Millis(*ms)
}

// differences shows where two values differ, under a name.
func (a *app) differences(indent, name string, all []client.Difference) {
	for _, d := range all {
		path := name
		if path != "" && d.Path != "" {
			path += "."
		}
		path += d.Path
		if path != "" {
			path += ": "
		}
		if d.A != nil {
			fmt.Fprintf(a.out, "%s%s\n", indent, a.ink.Bad("- "+show.Line(path+string(d.A), 200)))
		}
		if d.B != nil {
			fmt.Fprintf(a.out, "%s%s\n", indent, a.ink.Good("+ "+show.Line(path+string(d.B), 200)))
		}
	}
}
