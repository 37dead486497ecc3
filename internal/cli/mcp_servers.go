package cli

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/longstop-dev/longstop/internal/client"
	"github.com/longstop-dev/longstop/internal/show"
)

type mcpServersCmd struct {
	List   mcpListCmd   `cmd:"" help:"The registered MCP servers."`
	Add    mcpAddCmd    `cmd:"" help:"Register an MCP server, by its URL or as a command."`
	Remove mcpRemoveCmd `cmd:"" help:"Remove an MCP server."`
}

type mcpListCmd struct{ connection }

// Help is shown under --help.
func (mcpListCmd) Help() string {
	return `Example:
  longstop mcp-servers list`
}

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
	Replace   bool              `help:"Change a server that is there already."`
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
		save := s.CreateServer
		if c.Replace {
			save = s.PutServer
		}
		v, err := save(a.ctx, c.ID, spec)
		if err != nil {
			return err
		}
		if c.JSON {
			return a.printJSON(v)
		}
		fmt.Fprintf(a.out, "registered %s\nwould its answers be taken?     longstop agents test mcp:%s\nto have it mend failed steps:   longstop settings set recovery.mcp_server_id %s\n", v.ID, v.ID, v.ID)
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

// Help is shown under --help.
func (mcpRemoveCmd) Help() string {
	return `Example:
  longstop mcp-servers remove mine`
}

// Run removes an MCP server.
func (c *mcpRemoveCmd) Run(a *app) error {
	return c.with(a, func(s *session) error {
		if err := s.DeleteServer(a.ctx, c.ID); err != nil {
			return err
		}
		return c.said(a, "removed %s\n", c.ID)
	})
}
