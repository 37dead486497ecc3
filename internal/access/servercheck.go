package access

import (
	"context"
	"regexp"
	"slices"
	"strings"

	"github.com/longstop-dev/longstop/internal/flow"
)

const transportStdio = "stdio"

// serverID is what users may call an MCP server.
func serverID() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`) }

func noStdio() error {
	return flow.Errorf(flow.CodeForbidden, "this server starts no commands, so an MCP server over stdio cannot be used").At("command").
		Right("give the URL of a server that runs; commands are for longstop dev and longstop run")
}

// checkServer says what is wrong with an MCP server and settles its transport.
func (s *Service) checkServer(ctx context.Context, row *flow.MCPServer, headers map[string]string) error {
	if !serverID().MatchString(row.ID) {
		return flow.Errorf(flow.CodeInvalid, "%q cannot be the id of an MCP server", clip(row.ID)).At("id").
			Right("letters, digits, dots, dashes and underscores, 64 at most")
	}
	if row.Transport == "" && len(row.Command) > 0 {
		row.Transport = transportStdio
	}
	switch row.Transport {
	case "", "streamable-http", "sse":
		return s.checkRemote(ctx, row, headers)
	case transportStdio:
		return s.checkCommand(row, headers)
	}
	return flow.Errorf(flow.CodeInvalid, "%q is no transport", clip(row.Transport)).At("transport").
		Right("streamable-http, sse, stdio, or nothing to find out")
}

func (s *Service) checkRemote(ctx context.Context, row *flow.MCPServer, headers map[string]string) error {
	if len(row.Command) > 0 {
		return flow.Errorf(flow.CodeInvalid, "a server at a URL has no command").At("command").Right("leave it out, or give transport stdio")
	}
	if row.URL == "" {
		return flow.Errorf(flow.CodeInvalid, "there is no URL").At("url").Right("the server's URL, such as https://example.com/mcp")
	}
	if why := checkAgentURL(row.URL); why != "" {
		return flow.Errorf(flow.CodeInvalid, "the URL %s", why).At("url").Right("an absolute https URL")
	}
	if err := s.c.Egress.CheckURL(ctx, row.URL); err != nil {
		return refusedURL("url", "the URL may not be called", err)
	}
	return checkHeaders(headers)
}

func (s *Service) checkCommand(row *flow.MCPServer, headers map[string]string) error {
	switch {
	case !s.c.AllowStdio:
		return noStdio()
	case row.URL != "":
		return flow.Errorf(flow.CodeInvalid, "a server over stdio has no URL").At("url").Right("leave it out")
	case len(headers) > 0:
		return flow.Errorf(flow.CodeInvalid, "a server over stdio has no headers").At("headers").Right("leave them out")
	case len(row.Command) == 0 || strings.TrimSpace(row.Command[0]) == "":
		return flow.Errorf(flow.CodeInvalid, "there is no command").At("command").Right("the program and its arguments, as a list")
	case len(row.Command) > 100 || slices.ContainsFunc(row.Command, func(a string) bool { return len(a) > 4096 || strings.ContainsRune(a, 0) }):
		return flow.Errorf(flow.CodeInvalid, "the command is too long").At("command").Right("at most 100 arguments of 4,096 bytes")
	}
	return nil
}

// checkHeaders refuses what a request cannot carry or what is the client's own
// business. No error repeats a value.
func checkHeaders(headers map[string]string) error {
	if len(headers) > 50 {
		return flow.Errorf(flow.CodeInvalid, "there are %d headers", len(headers)).At("headers").Right("at most 50")
	}
	token := regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}$")
	taken := []string{"host", "content-length", "transfer-encoding", "connection", "upgrade", "te", "trailer", "keep-alive", "proxy-connection", "mcp-session-id"}
	seen := map[string]bool{}
	for name, value := range headers {
		lower, field := strings.ToLower(name), "headers."+clip(name)
		switch {
		case !token.MatchString(name):
			return flow.Errorf(flow.CodeInvalid, "%q is no header name", clip(name)).At("headers").Right("a name such as Authorization")
		case slices.Contains(taken, lower):
			return flow.Errorf(flow.CodeInvalid, "the client sets this header itself").At(field).Right("leave it out")
		case seen[lower]:
			return flow.Errorf(flow.CodeInvalid, "the header is given twice, in other letters").At(field).Right("once")
		case len(value) > 8192 || strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r > '~' }):
			return flow.Errorf(flow.CodeInvalid, "the value is too long or holds something that a header cannot carry").At(field).
				Right("at most 8,192 printable ASCII characters")
		}
		seen[lower] = true
	}
	return nil
}
