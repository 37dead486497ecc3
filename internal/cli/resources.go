package cli

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/term"

	"github.com/longstop-dev/longstop/internal/client"
	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/show"
)

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

type workflowsCmd struct {
	List workflowsListCmd `cmd:"" help:"The published workflows."`
	Show workflowsShowCmd `cmd:"" help:"A workflow's definition, as it was written."`
	Push workflowsPushCmd `cmd:"" help:"Publish a file as the workflow's next version."`
}

type workflowsListCmd struct {
	After string `help:"The cursor that the page before gave."`
	connection
}

// Run lists workflows.
func (c *workflowsListCmd) Run(a *app) error {
	return c.with(a, func(s *session) error {
		l, err := s.Workflows(a.ctx, client.Page{After: c.After})
		if err != nil {
			return err
		}
		var rows [][]string
		for _, w := range l.Items {
			rows = append(rows, []string{w.Name, fmt.Sprint(w.Number), ago(w.UpdatedAt)})
		}
		defer a.more(l.Next, "--after")
		return a.table(c.JSON, l, []string{"workflow", "version", "published"}, rows)
	})
}

type workflowsShowCmd struct {
	Name string `arg:""`
	connection
}

// Run shows a workflow.
func (c *workflowsShowCmd) Run(a *app) error {
	return c.with(a, func(s *session) error {
		w, err := s.Workflow(a.ctx, c.Name)
		if err != nil {
			return err
		}
		if c.JSON {
			return a.printJSON(w)
		}
		fmt.Fprint(a.out, show.Clean(w.Source))
		return nil
	})
}

type workflowsPushCmd struct {
	File string `arg:""`
	connection
}

// Run publishes a file.
func (c *workflowsPushCmd) Run(a *app) error {
	source, err := readSource(a, c.File)
	if err != nil {
		return err
	}
	return c.with(a, func(s *session) error {
		w, err := s.CreateWorkflow(a.ctx, client.Definition{Source: source, Filename: filepath.Base(c.File)})
		if err != nil {
			return err
		}
		if c.JSON {
			return a.printJSON(w)
		}
		fmt.Fprintf(a.out, "%s version %d\n", w.Name, w.Number)
		return nil
	})
}

type settingsCmd struct {
	List  settingsListCmd  `cmd:"" help:"Every setting and where its value comes from."`
	Get   settingsGetCmd   `cmd:"" help:"One setting."`
	Set   settingsSetCmd   `cmd:"" help:"Set a setting."`
	Unset settingsUnsetCmd `cmd:"" help:"Back to the default."`
}

type settingsListCmd struct{ connection }

// Run lists the settings.
func (c *settingsListCmd) Run(a *app) error {
	return c.with(a, func(s *session) error {
		l, err := s.Settings(a.ctx)
		if err != nil {
			return err
		}
		var rows [][]string
		for _, v := range l.Items {
			rows = append(rows, []string{v.Key, settingText(v), v.Source, v.About})
		}
		return a.table(c.JSON, l, []string{"setting", "value", "from", "what it is"}, rows)
	})
}

// settingText is a setting's value as it may be shown.
func settingText(v client.Setting) string {
	switch {
	case v.Value != nil:
		return *v.Value
	case v.Set != nil && *v.Set:
		return "(set)"
	}
	return "-"
}

func (a *app) showSetting(asJSON bool, v *client.Setting) error {
	if asJSON {
		return a.printJSON(v)
	}
	fmt.Fprintf(a.out, "%s = %s  %s\n", v.Key, show.Clean(settingText(*v)), a.ink.Faint("("+v.Source+")"))
	if v.Name != "" {
		fmt.Fprintf(a.out, "  agent: %s  %s\n", show.Line(v.Name, 100), a.ink.Faint(show.Line(v.Description, 120)))
	}
	if v.EndpointOrigin != "" {
		fmt.Fprintf(a.out, "  card from %s, calls go to %s\n", v.URLOrigin, v.EndpointOrigin)
	}
	for _, w := range v.Warnings {
		fmt.Fprintln(a.out, a.ink.Warn("  warning: "+show.Line(w, 300)))
	}
	return nil
}

type settingsGetCmd struct {
	Key string `arg:"" name:"setting" help:"Such as recovery.timeout_ms."`
	connection
}

// Run shows a setting.
func (c *settingsGetCmd) Run(a *app) error {
	return c.with(a, func(s *session) error {
		v, err := s.Setting(a.ctx, c.Key)
		if err != nil {
			return err
		}
		return a.showSetting(c.JSON, v)
	})
}

type settingsSetCmd struct {
	Key   string `arg:"" name:"setting" help:"Such as recovery.a2a_agent_url."`
	Value string `arg:"" help:"The value; - reads it from standard input, so that a token is in no shell history."`
	connection
}

// Run sets a setting.
func (c *settingsSetCmd) Run(a *app) error {
	value := c.Value
	if value == "-" {
		b, err := a.value("-")
		if err != nil {
			return err
		}
		value = strings.TrimSpace(string(b))
	}
	return c.with(a, func(s *session) error {
		v, err := s.PutSetting(a.ctx, c.Key, value)
		if err != nil {
			return err
		}
		return a.showSetting(c.JSON, v)
	})
}

type settingsUnsetCmd struct {
	Key string `arg:"" name:"setting"`
	connection
}

// Run removes a setting.
func (c *settingsUnsetCmd) Run(a *app) error {
	return c.with(a, func(s *session) error {
		v, err := s.DeleteSetting(a.ctx, c.Key)
		if err != nil {
			return err
		}
		return a.showSetting(c.JSON, v)
	})
}

type secretsCmd struct {
	List  secretsListCmd  `cmd:"" help:"The names of the secrets."`
	Set   secretsSetCmd   `cmd:"" help:"Store a secret; its value is read from standard input or asked for."`
	Unset secretsUnsetCmd `cmd:"" help:"Remove a secret."`
}

type secretsListCmd struct{ connection }

// Run lists the secrets' names.
func (c *secretsListCmd) Run(a *app) error {
	return c.with(a, func(s *session) error {
		l, err := s.Secrets(a.ctx)
		if err != nil {
			return err
		}
		var rows [][]string
		for _, v := range l.Items {
			rows = append(rows, []string{v.Name, ago(v.UpdatedAt)})
		}
		return a.table(c.JSON, l, []string{"secret", "changed"}, rows)
	})
}

type secretsSetCmd struct {
	Name string `arg:"" help:"Templates use it as {{ secrets.NAME }}."`
	connection
}

// Help is shown under --help.
func (secretsSetCmd) Help() string {
	return "Example:\n  printf %s \"$TOKEN\" | longstop secrets set api"
}

// Run stores a secret.
func (c *secretsSetCmd) Run(a *app) error {
	value, err := a.secretValue()
	if err != nil {
		return err
	}
	return c.with(a, func(s *session) error {
		v, err := s.PutSecret(a.ctx, c.Name, value)
		if err != nil {
			return err
		}
		if c.JSON {
			return a.printJSON(v)
		}
		fmt.Fprintf(a.out, "stored %s\n", v.Name)
		return nil
	})
}

// secretValue reads a value without showing it: never from an argument, which
// other people on the machine can see.
func (a *app) secretValue() (string, error) {
	if f, ok := a.in.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		fmt.Fprint(a.err, "value: ")
		b, err := term.ReadPassword(int(f.Fd()))
		fmt.Fprintln(a.err)
		return string(b), err
	}
	b, err := a.value("-")
	return strings.TrimRight(string(b), "\r\n"), err
}

type secretsUnsetCmd struct {
	Name string `arg:""`
	connection
}

// Run removes a secret.
func (c *secretsUnsetCmd) Run(a *app) error {
	return c.with(a, func(s *session) error { return s.DeleteSecret(a.ctx, c.Name) })
}

type keysCmd struct {
	List   keysListCmd   `cmd:"" help:"The workspace's API keys."`
	Create keysCreateCmd `cmd:"" help:"Make a key; it is shown once."`
	Revoke keysRevokeCmd `cmd:"" help:"Revoke a key."`
}

type keysListCmd struct{ connection }

// Run lists keys.
func (c *keysListCmd) Run(a *app) error {
	return c.with(a, func(s *session) error {
		l, err := s.Keys(a.ctx)
		if err != nil {
			return err
		}
		var rows [][]string
		for _, k := range l.Items {
			state := "holds"
			if k.RevokedAt != nil {
				state = "revoked " + ago(*k.RevokedAt)
			}
			rows = append(rows, []string{k.ID, k.Name, string(k.Role), k.Prefix, state})
		}
		return a.table(c.JSON, l, []string{"id", "name", "role", "begins with", "state"}, rows)
	})
}

type keysCreateCmd struct {
	Name string `arg:"" help:"What it is for."`
	Role string `default:"operator" enum:"viewer,operator,editor,owner,agent" help:"viewer, operator, editor, owner or agent."`
	connection
}

// Run makes a key.
func (c *keysCreateCmd) Run(a *app) error {
	return c.with(a, func(s *session) error {
		k, err := s.CreateKey(a.ctx, c.Name, flow.Role(c.Role))
		if err != nil {
			return err
		}
		if c.JSON {
			return a.printJSON(k)
		}
		fmt.Fprintf(a.out, "%s  %s, shown this once:\n%s\n", k.ID, k.Role, k.Key)
		return nil
	})
}

type keysRevokeCmd struct {
	ID string `arg:""`
	connection
}

// Run revokes a key.
func (c *keysRevokeCmd) Run(a *app) error {
	return c.with(a, func(s *session) error { return s.RevokeKey(a.ctx, c.ID) })
}

type mcpServersCmd struct {
	List   mcpListCmd   `cmd:"" help:"The registered MCP servers."`
	Add    mcpAddCmd    `cmd:"" help:"Register an MCP server, by its URL or as a command."`
	Remove mcpRemoveCmd `cmd:"" help:"Remove an MCP server."`
}

type mcpListCmd struct{ connection }

// Run lists MCP servers.
func (c *mcpListCmd) Run(a *app) error {
	return c.with(a, func(s *session) error {
		l, err := s.Servers(a.ctx)
		if err != nil {
			return err
		}
		var rows [][]string
		for _, v := range l.Items {
			where := v.URL
			if len(v.Command) > 0 {
				where = strings.Join(v.Command, " ")
			}
			rows = append(rows, []string{v.ID, where, v.Transport, strings.Join(v.Headers, ", ")})
		}
		return a.table(c.JSON, l, []string{"id", "where", "transport", "headers"}, rows)
	})
}

type mcpAddCmd struct {
	ID        string            `arg:"" help:"Chosen by you."`
	Where     []string          `arg:"" name:"url-or-command" help:"A URL, or after -- a command and its arguments (dev and run only)."`
	Transport string            `enum:",streamable-http,sse" default:"" help:"streamable-http or sse; found out if absent."`
	Header    map[string]string `placeholder:"NAME=VALUE" help:"A header to send with every call. Repeatable; the value is write-only."`
	connection
}

// Help is shown under --help.
func (mcpAddCmd) Help() string {
	return `Examples:
  longstop mcp-servers add mine https://my-agent.example.com/mcp --header Authorization='Bearer ...'
  longstop mcp-servers add mine -- ./my-agent --verbose`
}

// Run registers an MCP server.
func (c *mcpAddCmd) Run(a *app) error {
	spec := client.ServerSpec{Transport: c.Transport, Headers: c.Header}
	if len(c.Where) == 1 && strings.Contains(c.Where[0], "://") {
		spec.URL = c.Where[0]
	} else {
		spec.Command, spec.Transport = c.Where, "stdio"
		if strings.ContainsRune(spec.Command[0], filepath.Separator) { // the server may run in another folder
			abs, err := filepath.Abs(spec.Command[0])
			if err != nil {
				return err
			}
			spec.Command = append([]string{abs}, spec.Command[1:]...)
		}
	}
	return c.with(a, func(s *session) error {
		v, err := s.PutServer(a.ctx, c.ID, spec)
		if err != nil {
			return err
		}
		if c.JSON {
			return a.printJSON(v)
		}
		fmt.Fprintf(a.out, "registered %s\nto have it mend failed steps: longstop settings set recovery.mcp_server_id %s\n", v.ID, v.ID)
		for _, w := range v.Warnings {
			fmt.Fprintln(a.out, a.ink.Warn("warning: "+show.Line(w, 300)))
		}
		return nil
	})
}

type mcpRemoveCmd struct {
	ID string `arg:""`
	connection
}

// Run removes an MCP server.
func (c *mcpRemoveCmd) Run(a *app) error {
	return c.with(a, func(s *session) error { return s.DeleteServer(a.ctx, c.ID) })
}
