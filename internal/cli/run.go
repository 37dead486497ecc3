package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"

	"github.com/longstop-dev/longstop/internal/client"
	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/show"
)

type runCmd struct {
	File   string `arg:"" help:"The workflow, in YAML or JSON; - for standard input."`
	Input  string `placeholder:"JSON" help:"The run's input: JSON, or @file."`
	NoWait bool   `help:"Do not wait for people: exit with 3 when the run is parked at a gate."`
	connection
}

// Help is shown under --help.
func (runCmd) Help() string {
	return `Examples:
  longstop run workflow.yaml --input '{"userId": 42}'
  longstop run workflow.yaml --input @input.json --json | jq .type

Exit codes: 0 succeeded, 1 failed, 2 the file or the input is not valid, 3 waits for a person
(--no-wait), 4 the server cannot be reached or does not allow it, 130 interrupted.`
}

// Run stores the file as an unpublished version, starts a run of it and
// follows it to its end.
func (c *runCmd) Run(a *app) error {
	source, err := readSource(a, c.File)
	if err != nil {
		return err
	}
	input, err := a.jsonArg("--input", c.Input)
	if err != nil {
		return err
	}
	return c.with(a, func(s *session) error {
		w, err := s.CreateWorkflow(a.ctx, client.Definition{Source: source, Filename: filepath.Base(c.File), Unpublished: true})
		if err != nil {
			return err
		}
		r, err := s.StartRun(a.ctx, w.Name, client.StartRun{Input: input, VersionID: w.VersionID})
		if err != nil {
			return err
		}
		return c.follower(a, s, c.NoWait).follow(r)
	})
}

func readSource(a *app, file string) ([]byte, error) {
	if file == "-" {
		return a.value("-")
	}
	b, err := readFile(a.ctx, file, maxDefinition)
	if err != nil {
		return nil, unreadable(file, err, "name a workflow in YAML or JSON; `longstop init` writes one")
	}
	return b, nil
}

// follower shows a run live.
type follower struct {
	a      *app
	s      *session
	json   bool
	noWait bool
	after  int64  // only events after this one
	where  string // what a copied command needs to reach the same server
}

func (c connection) follower(a *app, s *session, noWait bool) follower {
	return follower{a: a, s: s, json: c.JSON, noWait: noWait, where: c.where()}
}

// errParked ends the following of a run that waits for a person.
var errParked = errors.New("the run waits for a person")

// follow shows the run until it ends, and gives the command's exit status.
func (f follower) follow(r *client.Run) error {
	a := f.a
	each, done := f.lines(r)
	open := map[string]bool{} // gates that wait for a person
	err := f.s.Follow(a.ctx, r.ID, f.after, func(e flow.Event) error {
		each(e)
		switch e.Type {
		case flow.EventGateOpened:
			open[gateOf(e)] = !forAgent(e)
		case flow.EventGateAnswered, flow.EventGateExpired:
			open[gateOf(e)] = false
		case flow.EventRunWaiting: // nothing is at work any more, in no branch
			if f.noWait && slices.Contains(slices.Collect(maps.Values(open)), true) {
				return errParked
			}
		}
		return nil
	})
	done()
	switch {
	case errors.Is(err, errParked):
		return f.parked(r.ID)
	case a.ctx.Err() != nil:
		return f.interrupted(r.ID)
	case err != nil:
		return err
	}
	return f.summary(r.ID)
}

// gateOf is the gate that an event is about.
func gateOf(e flow.Event) string {
	var d struct {
		GateID string `json:"gateId"`
	}
	_ = json.Unmarshal(e.Data, &d) // our own server's; without it all are one
	return d.GateID
}

// forAgent reports that a gate has opened for the workspace's own agent: no
// person is waited for.
func forAgent(e flow.Event) bool {
	var d struct {
		Kind flow.GateKind `json:"kind"`
	}
	return json.Unmarshal(e.Data, &d) == nil && d.Kind == flow.GateNeedsAgent
}

// lines gives what shows an event, and what ends the showing.
func (f follower) lines(r *client.Run) (each func(flow.Event), done func()) {
	if f.json {
		e := json.NewEncoder(f.a.out)
		e.SetEscapeHTML(false)
		return func(ev flow.Event) { _ = e.Encode(ev) }, func() {}
	}
	fmt.Fprintf(f.a.out, "%s  %s\n", f.a.ink.Bold(r.Workflow), f.a.ink.Faint(cmp.Or(f.s.page(r.ID), r.ID)))
	spin := newSpinner(f.a.out, f.a.ink)
	line := f.timeline(spin)
	return func(ev flow.Event) {
		line.Event(ev)
		if ev.Type == flow.EventGateOpened && !f.noWait && !forAgent(ev) {
			fmt.Fprintln(spin, f.a.ink.Faint("          from another terminal in this folder; Ctrl-C here loses nothing: the run stays at its gate"))
		}
		spin.at(ev)
	}, spin.stop
}

func (f follower) timeline(w io.Writer) *show.Timeline {
	return &show.Timeline{W: w, Ink: f.a.ink, Answer: f.how,
		Case: func(id string) (*flow.Case, error) { return f.s.Case(f.a.ctx, id) },
		Gate: func(id string) (*flow.Gate, error) { return f.s.Gate(f.a.ctx, id) }}
}

// how is the command that answers a gate.
func (f follower) how(gate string, kind flow.GateKind) string {
	command := "longstop gates answer " + gate
	switch kind {
	case flow.GateApproval:
		return command + " approve" + f.where + "   (or refuse --reason '...')"
	case flow.GateNeedsAgent:
		return "longstop cases pending" + f.where + "   (then cases answer RUN STEP ACTION)"
	case flow.GateInputRequired:
		return command + ` output --output '"..."'` + f.where + "   (your reply; or fail)"
	case flow.GateNeedsHuman:
		return command + " output --output '{...}'" + f.where + "   (or edit, hint, skip, fail)"
	}
	return "longstop gates show " + gate + f.where
}

func (f follower) parked(id string) error {
	if f.json {
		if err := f.final(id); err != nil {
			return err
		}
		return status(exitWaits)
	}
	fmt.Fprintln(f.a.out, f.a.ink.Warn("the run is parked until its gate is answered; then: longstop runs follow "+id+f.where))
	return status(exitWaits)
}

func (f follower) interrupted(id string) error {
	if f.s.embedded {
		fmt.Fprintf(f.a.err, "interrupted; run %s goes on at the next start on this data folder, such as: longstop runs follow %s%s\n", id, id, f.where)
	} else {
		fmt.Fprintf(f.a.err, "no longer following; run %s goes on. To stop it: longstop runs cancel %s%s\n", id, id, f.where)
	}
	return status(exitInterrupted)
}

// final prints the run itself, the last line of --json.
func (f follower) final(id string) error {
	r, err := f.s.Run(f.a.ctx, id)
	if err != nil {
		return err
	}
	e := json.NewEncoder(f.a.out)
	e.SetEscapeHTML(false)
	return e.Encode(r)
}

// summary says how the run has ended.
func (f follower) summary(id string) error {
	r, err := f.s.Run(context.WithoutCancel(f.a.ctx), id)
	if err != nil {
		return err
	}
	var code error
	if r.Status != flow.RunSucceeded {
		code = status(exitFailed)
	}
	if f.json {
		if err := f.final(id); err != nil {
			return err
		}
		return code
	}
	a := f.a
	took := ""
	if r.FinishedAt != nil {
		took = show.Millis(float64(r.FinishedAt.Sub(r.CreatedAt).Milliseconds()))
	}
	switch r.Status {
	case flow.RunSucceeded:
		fmt.Fprintf(a.out, "%s in %s\n%s\n", a.ink.Good("succeeded"), took, show.Clean(pretty(r.Output)))
	case flow.RunCancelled:
		fmt.Fprintf(a.out, "%s after %s\n", a.ink.Warn("cancelled"), took)
	default:
		fmt.Fprintf(a.out, "%s after %s\n%s\n", a.ink.Bad("failed"), took, show.Clean(r.Error))
	}
	return code
}

// pretty is JSON for people, shortened when it is long.
func pretty(raw json.RawMessage) string {
	const most = 4000
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return string(raw)
	}
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return string(raw)
	}
	if len(b) > most {
		return string(b[:most]) + "\n… (longer; see longstop runs show --json)"
	}
	return string(b)
}
