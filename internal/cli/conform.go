package cli

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/longstop-dev/longstop/examples/agents/firstaid"
	"github.com/longstop-dev/longstop/internal/conform"
	"github.com/longstop-dev/longstop/internal/egress"
	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/server"
	"github.com/longstop-dev/longstop/internal/show"
)

type conformCmd struct {
	Agent   []string      `arg:"" optional:"" name:"agent" help:"The URL of an A2A agent, mcp:URL of an MCP server, inbox for an agent that polls, or after -- the command of an MCP server over stdio."`
	Example bool          `help:"Start the example agent in Go and try that, over A2A and MCP."`
	Token   string        `env:"LONGSTOP_AGENT_TOKEN" help:"A bearer token for the agent."`
	Timeout time.Duration `default:"15s" env:"LONGSTOP_CONFORM_TIMEOUT" help:"For one answer; recovery.timeout_ms allows 1 s to 60 s."`
	Only    []string      `env:"LONGSTOP_CONFORM_ONLY" placeholder:"CASE" help:"Only these cases."`
	Listen  string        `default:"127.0.0.1:0" env:"LONGSTOP_CONFORM_LISTEN" help:"Where the inbox is served, for inbox."`
	For     time.Duration `default:"5m" env:"LONGSTOP_CONFORM_FOR" help:"How long the inbox waits for all answers, for inbox."`
	Verbose bool          `short:"v" env:"LONGSTOP_CONFORM_VERBOSE" help:"Show every case, not only those that fail."`
	JSON    bool          `name:"json" help:"Print the report as JSON."`
}

// Help is shown under --help.
func (conformCmd) Help() string {
	return `Forty failures are put to the agent over each transport that it has. Nothing is applied. Each answer is checked as in a live
run: would it be taken, did it come in time, is it safe?

Examples:
  longstop conform --example
  longstop conform https://my-agent.example.com
  longstop conform mcp:http://127.0.0.1:9000/mcp
  longstop conform -- ./my-agent
  longstop conform inbox --listen 127.0.0.1:8099

Exits with 0 if every answer passed, 1 if not, 4 if the agent cannot be found.`
}

// Run tries the agent.
func (c *conformCmd) Run(a *app) error {
	if c.Timeout < time.Second || c.Timeout > time.Minute {
		return flow.Errorf(flow.CodeInvalid, "%s is out of range", c.Timeout).At("--timeout").Right("1s to 60s, as recovery.timeout_ms")
	}
	agents, done, err := c.agents(a)
	if err != nil {
		return err
	}
	defer done()
	guard, err := egress.New(egress.Policy{AllowPrivate: true}) // the agent may run on this machine
	if err != nil {
		return err
	}
	cache, err := os.MkdirTemp("", "longstop-conform-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(cache)
	reports := []*conform.Report{}
	passed := true
	for _, agent := range agents {
		c.begin(a, agent)
		r, err := conform.Run(a.ctx, agent, conform.Options{HTTP: guard.Client(egress.ClientOptions{}), Types: server.StepTypes(),
			Timeout: c.Timeout, Only: c.Only, Cache: cache, Each: c.each(a)})
		if err != nil {
			return err
		}
		reports = append(reports, r)
		passed = passed && r.Passed
		if !c.JSON {
			reportConformity(a, r)
		}
	}
	if c.JSON {
		var out any = reports
		if len(reports) == 1 {
			out = reports[0]
		}
		if err := a.printJSON(out); err != nil {
			return err
		}
	}
	if !passed {
		return status(exitFailed)
	}
	return nil
}

// agents are whom to try.
func (c *conformCmd) agents(a *app) (agents []conform.Agent, done func(), err error) {
	done = func() {}
	switch {
	case c.Example && len(c.Agent) > 0:
		return nil, done, flow.Errorf(flow.CodeInvalid, "both an agent and --example are given").Right("one of the two")
	case c.Example:
		return startExample(a.ctx, c.Token)
	case len(c.Agent) == 0:
		return nil, done, flow.Errorf(flow.CodeInvalid, "no agent is named").Right("a URL, mcp:URL, inbox, -- COMMAND, or --example")
	}
	first := c.Agent[0]
	server, isMCP := strings.CutPrefix(first, "mcp:")
	switch {
	case len(c.Agent) > 1:
		return []conform.Agent{{Command: c.Agent}}, done, nil
	case first == conform.TransportInbox:
		inbox, err := conform.OpenInbox(c.Listen, c.For)
		return []conform.Agent{{Inbox: inbox}}, done, err
	case isMCP && strings.Contains(server, "://"):
		return []conform.Agent{{MCP: server, Token: c.Token}}, done, nil
	case strings.HasPrefix(first, "http://"), strings.HasPrefix(first, "https://"):
		return []conform.Agent{{URL: first, Token: c.Token}}, done, nil
	case strings.ContainsRune(first, filepath.Separator) && !strings.Contains(first, ":"):
		return []conform.Agent{{Command: c.Agent}}, done, nil
	}
	return nil, done, flow.Errorf(flow.CodeInvalid, "%q names no agent", first).
		Right("the URL of an A2A agent, mcp:URL, inbox, or after -- a command such as ./my-agent")
}

// startExample serves the example agent in this process.
func startExample(ctx context.Context, token string) ([]conform.Agent, func(), error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, func() {}, flow.Errorf(flow.CodeUnavailable, "the example agent cannot be served").Because(err)
	}
	url := "http://" + l.Addr().String()
	agent := firstaid.Agent()
	agent.Token, agent.Log = token, slog.New(slog.DiscardHandler)
	s := &http.Server{Handler: agent.Handler(url), ReadHeaderTimeout: 10 * time.Second, BaseContext: func(net.Listener) context.Context { return ctx }}
	go func() { _ = s.Serve(l) }() // ends with Close
	return []conform.Agent{{URL: url, Token: token}, {MCP: url + "/mcp", Token: token}}, func() { _ = s.Close() }, nil
}

// begin says who is tried, and an agent that polls where to look.
func (c *conformCmd) begin(a *app, agent conform.Agent) {
	if agent.Inbox == nil {
		if !c.JSON {
			fmt.Fprintf(a.out, "%s\n", a.ink.Bold(show.Line(agent.String(), 120)))
		}
		return
	}
	fmt.Fprintf(a.err, "The inbox is open for %s. Point the agent at it:\n  LONGSTOP_ENDPOINT=%s\n  LONGSTOP_KEY=%s\n", c.For, agent.Inbox.URL, agent.Inbox.Key)
}

// each shows a case as soon as it is tried: a mark, and for a failed one what
// is wrong with it.
func (c *conformCmd) each(a *app) func(string, conform.Result, int, int) {
	if c.JSON {
		return nil
	}
	midLine := false
	return func(transport string, r conform.Result, done, of int) {
		if !midLine && (done == 1 || !c.Verbose) {
			fmt.Fprintf(a.out, "  %-8s ", transport)
			midLine = true
		}
		if (c.Verbose || !r.Passed) && midLine {
			fmt.Fprintln(a.out)
			midLine = false
		}
		if c.Verbose || !r.Passed {
			showResult(a, r, done, of)
			return
		}
		fmt.Fprint(a.out, a.ink.Good("✓"))
		if done == of {
			fmt.Fprintln(a.out)
			midLine = false
		}
	}
}

func showResult(a *app, r conform.Result, done, of int) {
	mark := a.ink.Good("✓")
	if !r.Passed {
		mark = a.ink.Bad("✗")
	}
	fmt.Fprintf(a.out, "  %s %2d/%d %-26s %-18s %s\n", mark, done, of, r.Case, r.Type, a.ink.Faint(show.Millis(r.DurationMS)))
	for _, p := range r.Problems {
		fmt.Fprintf(a.out, "           %s %s\n", a.ink.Bad(p.Kind), show.Line(p.Message, 200))
	}
	if !r.Passed {
		fmt.Fprintf(a.out, "           %s\n", a.ink.Faint(show.Line(r.About, 160)))
	}
}

// reportConformity shows the sums.
func reportConformity(a *app, r *conform.Report) {
	for _, t := range r.Transports {
		if t.Skipped != "" {
			fmt.Fprintf(a.out, "  %s %s: %s\n", a.ink.Faint("-"), t.Name, show.Line(t.Skipped, 120))
			continue
		}
		for _, w := range t.Results { // an inbox shows what was never answered, or never put right, only here
			if t.Name == conform.TransportInbox && len(w.Problems) > 0 && w.Problems[0].Kind != conform.KindSafety {
				fmt.Fprintf(a.out, "  %s %s: %s\n", a.ink.Bad("✗"), w.Case, show.Line(w.Problems[0].Message, 160))
			}
		}
		mark := a.ink.Good("✓")
		if t.Failed > 0 {
			mark = a.ink.Bad("✗")
		}
		fmt.Fprintf(a.out, "  %s %s: %d of %d passed; answers after %s in the middle, %s at most\n", mark, t.Name, t.Passed, t.Passed+t.Failed, show.Millis(t.P50MS), show.Millis(t.MaxMS))
	}
	fmt.Fprintln(a.out)
}
