package demo

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/longstop-dev/longstop/internal/client"
	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/server"
	"github.com/longstop-dev/longstop/internal/show"
)

// Options say how the demo is to run.
type Options struct {
	Out  io.Writer
	Keep bool // leave the server up until ctx ends
	JSON bool // one JSON object at the end, a Report, and nothing else
	// DatabaseURL is an empty PostgreSQL database to play on; what the demo
	// writes stays there.
	DatabaseURL string

	list []scenario // what is played; nil for all
}

// stage is what the scenarios play on.
type stage struct {
	out     io.Writer
	ink     show.Ink
	server  *server.Server
	client  *client.Client
	api     string
	agents  map[agent]string // where they answer
	closers []func() error
}

// result is what became of a scenario.
type result struct {
	scenario
	run  *client.Run
	took time.Duration
	fail string // why it is not what was expected
}

// Run plays every scenario and reports whether all ended as expected.
func Run(ctx context.Context, o Options) (ok bool, err error) {
	began := time.Now()
	told := o
	if o.JSON {
		told.Out = io.Discard
	}
	st, err := set(ctx, told)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, st.clear()) }()
	st.title(st.ink.Bold("Longstop, the main job: a failing step is mended by your own agent, inside the live run"))
	fmt.Fprintf(st.out, "server %s, an unreliable API %s\nagents over A2A %s and over MCP %s\n", st.server.URL(), st.api, st.agents[a2aAgent], st.agents[mcpAgent])
	if o.list == nil {
		o.list = scenarios()
	}
	results, err := st.play(ctx, o.list)
	if err != nil {
		return false, err
	}
	ok = st.summary(results, time.Since(began))
	st.next(o.Keep)
	if o.JSON {
		if err := st.report(o, results, ok, time.Since(began)); err != nil {
			return false, err
		}
	}
	if o.Keep {
		<-ctx.Done()
	}
	return ok, nil
}

// set builds the stage.
func set(ctx context.Context, o Options) (*stage, error) {
	st := &stage{out: o.Out, ink: show.InkFor(o.Out), agents: map[agent]string{}}
	dir, err := os.MkdirTemp("", "longstop-demo-")
	if err != nil {
		return nil, err
	}
	st.closers = append(st.closers, func() error { return os.RemoveAll(dir) })
	serve := func(url string, closed func() error, err error) (string, error) {
		if err == nil {
			st.closers = append(st.closers, closed)
		}
		return url, err
	}
	var errs [3]error
	st.api, errs[0] = serve(local(newUnreliable()))
	st.agents[a2aAgent], errs[1] = serve(serveA2A())
	st.agents[mcpAgent], errs[2] = serve(serveMCP())
	if err := errors.Join(errs[:]...); err != nil {
		return nil, errors.Join(err, st.clear())
	}
	config := server.Config{DataDir: dir, Listen: "127.0.0.1:0", AllowPrivate: true, Log: slog.New(slog.DiscardHandler)}
	if o.DatabaseURL != "" { // with a key of its own, as it would have in a folder
		config.DatabaseURL, config.OnlyEmpty, config.MasterKey = o.DatabaseURL, true, masterKey()
	}
	st.server, err = server.Start(ctx, config)
	if err != nil {
		return nil, errors.Join(err, st.clear())
	}
	st.closers = append(st.closers, func() error {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		return st.server.Stop(ctx)
	})
	st.client = client.New(st.server.URL(), st.server.Key(), client.Options{})
	_, err = st.client.PutServer(ctx, "demo-agent", client.ServerSpec{URL: st.agents[mcpAgent]})
	if err != nil {
		return nil, errors.Join(err, st.clear())
	}
	return st, nil
}

func masterKey() string {
	b := make([]byte, 32)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

// clear takes the stage down, the last first.
func (st *stage) clear() error {
	var errs []error
	for i := len(st.closers) - 1; i >= 0; i-- {
		errs = append(errs, st.closers[i]())
	}
	return errors.Join(errs...)
}

func (st *stage) title(text string) { fmt.Fprintf(st.out, "\n%s\n", text) }

// play runs the scenarios in turn, each with its agent in the settings.
func (st *stage) play(ctx context.Context, list []scenario) ([]result, error) {
	var out []result
	now := noAgent
	for _, s := range list {
		if s.agent != now {
			if err := st.employ(ctx, s.agent); err != nil {
				return nil, err
			}
			now = s.agent
		}
		r, err := st.one(ctx, s)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.name, err)
		}
		out = append(out, r)
	}
	return out, nil
}

// employ sets the workspace's own agent, as the specification's lines do.
func (st *stage) employ(ctx context.Context, who agent) error {
	a2a, mcp := "", ""
	switch who {
	case a2aAgent:
		a2a = st.agents[a2aAgent]
	case mcpAgent:
		mcp = "demo-agent"
	}
	_, err := st.client.PutSetting(ctx, "recovery.a2a_agent_url", a2a)
	if err == nil {
		_, err = st.client.PutSetting(ctx, "recovery.mcp_server_id", mcp)
	}
	return err
}

// one plays a scenario and follows its run.
func (st *stage) one(ctx context.Context, s scenario) (result, error) {
	r := result{scenario: s}
	began := time.Now()
	w, err := st.client.CreateWorkflow(ctx, client.Definition{Source: s.definition(st.api), Unpublished: true})
	if err != nil {
		return r, err
	}
	run, err := st.client.StartRun(ctx, w.Name, client.StartRun{VersionID: w.VersionID})
	if err != nil {
		return r, err
	}
	st.title(st.ink.Bold(s.name))
	line := &show.Timeline{W: st.out, Ink: st.ink,
		Case: func(id string) (*flow.Case, error) { return st.client.Case(ctx, id) },
		Gate: func(id string) (*flow.Gate, error) { return st.client.Gate(ctx, id) }}
	err = st.client.Follow(ctx, run.ID, 0, func(e flow.Event) error {
		line.Event(e)
		if e.Type == flow.EventGateOpened {
			return st.answer(ctx, e, s)
		}
		return nil
	})
	if err != nil {
		return r, err
	}
	r.took = time.Since(began)
	if r.run, err = st.client.Run(ctx, run.ID); err != nil {
		return r, err
	}
	r.fail = s.check(r.run)
	return r, nil
}

// answer is whoever stands at the gate: a person, or the agent that polls. A gate that the scenario does not expect
// fails the run, so that the demo ends.
func (st *stage) answer(ctx context.Context, e flow.Event, s scenario) error {
	var d struct {
		GateID string        `json:"gateId"`
		Kind   flow.GateKind `json:"kind"`
	}
	if err := json.Unmarshal(e.Data, &d); err != nil {
		return err
	}
	if d.Kind == flow.GateNeedsAgent {
		return poll(ctx, st.client)
	}
	a := flow.GateAnswer{Answer: "fail", Reason: "the demo did not expect a gate here"}
	if s.answer != nil {
		a = *s.answer
		a.Modifications = json.RawMessage(strings.ReplaceAll(string(a.Modifications), "%s", st.api))
		if len(a.Modifications) == 0 {
			a.Modifications = nil
		}
	}
	_, err := st.client.AnswerGate(ctx, d.GateID, a)
	return err
}

// summary writes the table and says whether all is well.
func (st *stage) summary(results []result, took time.Duration) bool {
	st.title(st.ink.Bold("What was expected, and what happened"))
	ok, rows := true, [][]string{}
	for _, r := range results {
		mark := st.ink.Good("✓")
		if r.fail != "" {
			ok, mark = false, st.ink.Bad("✗")
		}
		last := r.run.Steps[len(r.run.Steps)-1]
		by := "-"
		if last.RecoverySource != flow.SourceNone {
			by = show.Who(last.RecoverySource)
		}
		rows = append(rows, []string{mark, r.name, string(r.agent), string(r.want.status), string(r.run.Status), by, show.Millis(float64(r.took.Milliseconds()))})
	}
	show.Table(st.out, st.ink, []string{" ", "scenario", "agent", "expected", "happened", "mended by", "took"}, rows)
	for _, r := range results {
		if r.fail != "" {
			fmt.Fprintf(st.out, "%s %s: %s\n", st.ink.Bad("✗"), r.name, r.fail)
		}
	}
	verdict := st.ink.Good("every run ended as expected")
	if !ok {
		verdict = st.ink.Bad("not every run ended as expected")
	}
	fmt.Fprintf(st.out, "\n%s, %d runs in %s\n", verdict, len(results), took.Round(10*time.Millisecond))
	return ok
}

// next says what to try.
func (st *stage) next(keep bool) {
	st.title(st.ink.Bold("Try next"))
	if keep {
		fmt.Fprintf(st.out, "  this server stays up until Ctrl-C\n    export LONGSTOP_ENDPOINT=%s LONGSTOP_KEY=%s\n    longstop runs list\n    longstop cases list\n",
			st.server.URL(), st.server.Key())
		return
	}
	fmt.Fprint(st.out, `  longstop demo --keep                       the same, and the server stays up to look at
  longstop init                              a workflow of your own, with a step that fails
  longstop run workflow.yaml                 run it, follow it live
  longstop agents test https://your-agent    would your agent's answer be taken?
  longstop dev                               a server on this machine
`)
}
