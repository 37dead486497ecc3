package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/longstop-dev/longstop/internal/client"
	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/server"
	"github.com/longstop-dev/longstop/internal/show"
)

type agentsCmd struct {
	List   agentsListCmd   `cmd:"" help:"The agents that are registered."`
	Show   agentsShowCmd   `cmd:"" help:"An agent and its versions."`
	Remove agentsRemoveCmd `cmd:"" help:"Take an agent out of the registry."`
	Try    agentsTryCmd    `cmd:"" help:"One turn of an agent, live."`
	Test   agentsTestCmd   `cmd:"" help:"Send an agent a sample failure: is it found, what does it answer, would that be taken?"`
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
	agent, err := c.agent()
	if err != nil {
		return err
	}
	var input json.RawMessage
	if c.Case != "" {
		b, err := readFile(a.ctx, c.Case, maxValue)
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

// agent tells a URL and a registered server from a command.
func (c *agentsTestCmd) agent() (client.Agent, error) {
	first := c.Agent[0]
	if len(c.Agent) == 1 && (strings.Contains(first, "://") || strings.HasPrefix(first, "mcp:")) {
		return client.Agent{Agent: first, Token: c.Token}, nil
	}
	if _, err := exec.LookPath(first); err != nil && len(c.Agent) == 1 && !strings.ContainsRune(first, filepath.Separator) {
		e := flow.Errorf(flow.CodeInvalid, "%q is no URL, not mcp:ID, and no command that can be started", first).Because(err)
		if strings.ContainsAny(first, ".:") {
			return client.Agent{}, e.Right("for an agent at a URL: https://" + first)
		}
		return client.Agent{}, e.Right("for a registered MCP server: mcp:" + first)
	}
	return client.Agent{Command: c.Agent}, nil
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
