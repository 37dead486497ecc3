// Package cli is the command line: one file a command, over the REST client or,
// where no server runs, over a server embedded in this process.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/longstop-dev/longstop/internal/client"
	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/server"
	"github.com/longstop-dev/longstop/internal/show"
)

// The exit codes.
const (
	exitOK          = 0   // succeeded
	exitFailed      = 1   // the run failed, the answer is invalid
	exitUsage       = 2   // usage, or an invalid definition
	exitWaits       = 3   // waits for a person
	exitUnreachable = 4   // the server cannot be reached or does not allow it
	exitInterrupted = 130 // Ctrl-C
)

// commands is the tree of commands: a field each.
type commands struct {
	Demo        demoCmd        `cmd:"" help:"The main job in one process: real runs that break, mended by agents over A2A and MCP."`
	Dev         devCmd         `cmd:"" help:"Serve on this machine for development: 127.0.0.1:8080, data in ./.longstop."`
	Serve       serveCmd       `cmd:"" help:"Serve."`
	Init        initCmd        `cmd:"" help:"Write a commented workflow with a step that fails, and how to set your agent."`
	Run         runCmd         `cmd:"" help:"Run a workflow file and follow it live."`
	Validate    validateCmd    `cmd:"" help:"Check workflow files: what is wrong, where, and what would be right."`
	StepTypes   stepTypesCmd   `cmd:"" help:"The step types, and the config of each."`
	Workflows   workflowsCmd   `cmd:"" help:"Workflows: list, show, apply a folder, publish, unpublish, versions, diff."`
	Runs        runsCmd        `cmd:"" help:"Start, list, show, follow, cancel, retry, rerun and compare runs."`
	Logs        logsCmd        `cmd:"" help:"A run's step log."`
	Gates       gatesCmd       `cmd:"" help:"Runs that wait for someone: list, show, answer."`
	Cases       casesCmd       `cmd:"" help:"Frozen failures: list, show, export, replay."`
	Settings    settingsCmd    `cmd:"" help:"The workspace's settings."`
	Notices     noticesCmd     `cmd:"" help:"Signed webhooks to notify.url: list, test."`
	Secrets     secretsCmd     `cmd:"" help:"The workspace's secrets."`
	Keys        keysCmd        `cmd:"" help:"API keys."`
	People      peopleCmd      `cmd:"" help:"Who belongs to the workspace, and their roles."`
	Workspaces  workspacesCmd  `cmd:"" help:"Workspaces."`
	Audit       auditCmd       `cmd:"" help:"Who changed what: list, verify, export."`
	MCPServers  mcpServersCmd  `cmd:"" name:"mcp-servers" help:"The MCP servers of the workspace."`
	Agents      agentsCmd      `cmd:"" help:"Agents: list, show, remove, try a registered one; test one that mends."`
	Push        pushCmd        `cmd:"" help:"Register an agent that is hosted elsewhere, by the URL of its card."`
	Services    servicesCmd    `cmd:"" help:"Agent Services, whose keys register agents: list, create, rotate."`
	Buckets     bucketsCmd     `cmd:"" help:"Where manifests of agents are kept: list, create, reindex."`
	Bridge      bridgeCmd      `cmd:"" help:"Carry calls to an agent that has no public address."`
	Vaults      vaultsCmd      `cmd:"" help:"Vaults: list, create, show, delete; append events, list and follow them."`
	Connections connectionsCmd `cmd:"" help:"Which agents a vault's owner lets in: list, create, update, revoke."`
	Conform     conformCmd     `cmd:"" help:"Try a recovery agent with forty failures: contract, time, safety."`
	Bench       benchCmd       `cmd:"" help:"Measure this binary against its bars, beside what the machine could do."`
	Health      healthCmd      `cmd:"" help:"Whether the server and its database answer, by exit code."`
	Version     versionCmd     `cmd:"" help:"The version."`
}

// app is what every command gets.
type app struct {
	ctx  context.Context
	in   io.Reader
	out  io.Writer
	err  io.Writer
	ink  show.Ink
	args []string
	verb string // of the command: list, show, create
}

// status is an exit code that a command ends with after it has said why.
type status int

// Error is for the interface; a status is never printed.
func (s status) Error() string { return fmt.Sprintf("exit %d", int(s)) }

// Main runs the command line and gives the process's exit code.
func Main(ctx context.Context, args []string, in io.Reader, out, errOut io.Writer) int {
	a := &app{ctx: ctx, in: in, out: out, err: errOut, ink: show.InkFor(out), args: args}
	err := a.run()
	var code status
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &code):
		return int(code)
	}
	a.complain(err)
	return exitCode(ctx, err)
}

func (a *app) run() error {
	var cmd commands
	help := false
	parser, err := kong.New(&cmd, kong.Name("longstop"), kong.Writers(a.out, a.err), kong.Bind(a),
		kong.Description("Workflows whose steps may fail, mended inside the live run by your own agent."),
		kong.UsageOnError(), environment(), kong.Exit(func(int) { help = true }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true}))
	if err != nil {
		return err
	}
	switch {
	case len(a.args) == 0:
		a.args = []string{"--help"}
	case a.args[0] == "--version": // no flag of kong's: runs rerun has one of that name
		a.args = append([]string{"version"}, a.args[1:]...)
	case a.args[0] == "help":
		a.args = append(a.args[1:], "--help")
	}
	parsed, err := parser.Parse(joined(a.args))
	if help {
		return nil
	}
	if err != nil {
		return flow.Errorf(flow.CodeInvalid, "%v", err).Right("longstop --help, or --help after a command")
	}
	if err := filled(parsed); err != nil {
		return err
	}
	a.verb = parsed.Selected().Name
	return parsed.Run(a)
}

// filled refuses a flag that is given and empty, as by a shell whose variable
// is not set: it would mean the opposite of what was meant. Only what an
// environment variable says can be taken back so.
func filled(parsed *kong.Context) error {
	for _, p := range parsed.Path {
		if p.Flag == nil || !empty(p.Flag.Target) || slices.ContainsFunc(p.Flag.Envs, func(name string) bool { return os.Getenv(name) != "" }) {
			continue
		}
		return flow.Errorf(flow.CodeInvalid, "it is empty").At("--" + p.Flag.Name).Right("give it a value, or leave it out")
	}
	return nil
}

// empty tells whether a flag of text, or of texts, says nothing.
func empty(v reflect.Value) bool {
	if texts, ok := v.Interface().([]string); ok {
		return len(texts) == 0 || slices.Contains(texts, "")
	}
	return v.Kind() == reflect.String && v.String() == ""
}

// complain prints an error as whoever has to act on it wants it: what, where,
// what would be right.
func (a *app) complain(err error) {
	if a.ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return
	}
	e := asFlow(err)
	text := e.Error()
	fmt.Fprintf(a.err, "longstop: %s\n", show.Clean(text))
	if flow.CodeOf(e) == flow.CodeInternal || e.Code == flow.CodeUnavailable {
		if e.Err != nil {
			fmt.Fprintf(a.err, "  because: %s\n", show.Line(e.Err.Error(), 300))
		}
	}
}

// asFlow gives the first of our errors in a chain or a list of errors.
func asFlow(err error) *flow.Error {
	var e *flow.Error
	if errors.As(err, &e) {
		return e
	}
	var c *client.Error
	if errors.As(err, &c) {
		return &flow.Error{Code: c.Code, Message: c.Message, Field: c.Field, Fix: c.Fix, Problems: c.Problems, Err: errors.Unwrap(c)}
	}
	return flow.Errorf(flow.CodeInternal, "%v", err)
}

func exitCode(ctx context.Context, err error) int {
	if ctx.Err() != nil {
		return exitInterrupted
	}
	switch asFlow(err).Code {
	case flow.CodeInvalid, flow.CodeTooLarge:
		return exitUsage
	case flow.CodeUnauthenticated, flow.CodeForbidden, flow.CodeUnavailable, flow.CodeRateLimited:
		return exitUnreachable
	}
	return exitFailed
}

// connection says which server a command talks to.
type connection struct {
	Endpoint string `env:"LONGSTOP_ENDPOINT" placeholder:"URL" help:"The server to talk to. Without it: the one that holds the data folder, else one inside this process."`
	Key      string `env:"LONGSTOP_KEY" placeholder:"KEY" help:"The API key for --endpoint."`
	Env      string `env:"LONGSTOP_ENV" aliases:"preset" placeholder:"NAME" help:"A named profile, with endpoint and key, of the file $LONGSTOP_CONFIG or ~/.config/longstop/config.yaml. Also --preset."`
	Data     string `env:"LONGSTOP_DATA" default:"./.longstop" placeholder:"DIR" help:"The data folder."`
	JSON     bool   `name:"json" env:"LONGSTOP_JSON" help:"Print JSON."`

	// Of a server inside this process, as serve has them.
	MasterKeyFile string `env:"LONGSTOP_MASTER_KEY_FILE" hidden:""`
	DatabaseURL   string `name:"database-url" env:"LONGSTOP_DATABASE_URL" hidden:""`
}

// defaultData is the data folder of a command that is told nothing.
const defaultData = "./.longstop"

// where gives the flags by which a command that is copied from what this one
// prints reaches the same server; a key is never printed.
func (c connection) where() string {
	switch {
	case c.Endpoint != "" && c.Endpoint != os.Getenv("LONGSTOP_ENDPOINT"):
		return " --endpoint " + quoted(c.Endpoint) + ` --key "$LONGSTOP_KEY"`
	case c.Endpoint == "" && c.Data != defaultData && c.Data != os.Getenv("LONGSTOP_DATA"):
		return " --data " + quoted(c.Data)
	}
	return ""
}

// session is a client, and what to end when the command is done.
type session struct {
	*client.Client
	embedded bool
	close    func()
}

// open connects: to the server named, to the one that holds the folder, or to
// one that it starts in this process on that folder.
func (c connection) open(a *app) (*session, error) {
	c, err := c.profiled(a.ctx)
	if err != nil {
		return nil, err
	}
	if c.Endpoint != "" {
		if u, err := url.Parse(c.Endpoint); err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" {
			return nil, flow.Errorf(flow.CodeInvalid, "%q is no URL of a server", c.Endpoint).At("--endpoint").Right("such as https://longstop.example.com")
		}
		if c.Key == "" {
			return nil, flow.Errorf(flow.CodeInvalid, "there is no key for %s", c.Endpoint).At("--key").Right("give --key or LONGSTOP_KEY")
		}
		return &session{Client: client.New(c.Endpoint, c.Key, client.Options{}), close: func() {}}, nil
	}
	if h, ok := server.FindHolder(c.Data); ok {
		return &session{Client: client.New(h.URL, h.Key, client.Options{}), close: func() {}}, nil
	}
	if _, err := os.Stat(c.Data); errors.Is(err, os.ErrNotExist) && c.Data != defaultData && looks(a.verb) {
		return nil, flow.Errorf(flow.CodeNotFound, "there is no data folder %s", c.Data).At("--data").Right("the folder of a server or of earlier runs; a command that changes something makes one")
	}
	return embed(a, server.Config{DataDir: c.Data, DatabaseURL: c.DatabaseURL, MasterKeyFile: c.MasterKeyFile})
}

// looks tells whether commands of this name change nothing: in a folder that
// is not there, or is mistyped, they would find nothing.
func looks(verb string) bool {
	return slices.Contains([]string{"list", "show", "get", "follow", "logs", "compare", "diff", "versions", "usage", "pending", "events", "export", "verify", "health"}, verb)
}

// embed starts a server inside this process.
func embed(a *app, config server.Config) (*session, error) {
	config.Listen, config.AllowPrivate, config.AllowStdio = "127.0.0.1:0", true, true
	config.MasterKey, config.BootstrapKey = os.Getenv("LONGSTOP_MASTER_KEY"), os.Getenv("LONGSTOP_BOOTSTRAP_KEY")
	_, missing := os.Stat(config.DataDir)
	s, err := server.Start(a.ctx, config)
	if err != nil {
		return nil, err
	}
	if errors.Is(missing, os.ErrNotExist) { // whoever is in the wrong folder should see it
		fmt.Fprintf(a.err, "made the data folder %s\n", config.DataDir)
	}
	return &session{Client: client.New(s.URL(), s.Key(), client.Options{}), embedded: true, close: func() {
		ctx, release := stopping(a.ctx)
		defer release()
		if err := s.Stop(ctx); err != nil {
			a.complain(err)
		}
	}}, nil
}

// page is the address of a run's page, "" where the server ends with this
// command.
func (s *session) page(run string) string {
	if s.embedded {
		return ""
	}
	return strings.TrimRight(s.BaseURL(), "/") + "/runs/" + run
}

// with opens a session for f.
func (c connection) with(a *app, f func(*session) error) error {
	s, err := c.open(a)
	if err != nil {
		return err
	}
	defer s.close()
	return f(s)
}
