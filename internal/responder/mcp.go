package responder

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/longstop-dev/longstop/internal/flow"
)

// ToolName is the tool that a recovery server lists.
const ToolName = "diagnose_step_failure"

// toolsAge is how long what a server lists is believed.
const toolsAge = time.Minute

// Servers calls the MCP servers of a workspace. Tools lists the names of a
// server's tools. Call gives structured content if there is any, else JSON in
// a text, else the text as a JSON string; a tool that answers with an error is
// an error.
type Servers interface {
	Tools(ctx context.Context, workspace, server string) ([]string, error)
	Call(ctx context.Context, workspace, server, tool string, params json.RawMessage) (json.RawMessage, error)
}

// MCP asks the workspace's own MCP server.
type MCP struct {
	servers Servers
	clock   flow.Clock

	mu    sync.Mutex
	lists map[[2]string]listed // by workspace and server
}

type listed struct {
	tools []string
	at    time.Time
}

// NewMCP makes the responder.
func NewMCP(servers Servers, clock flow.Clock) *MCP {
	return &MCP{servers: servers, clock: clock, lists: map[[2]string]listed{}}
}

// Name is mcp.
func (*MCP) Name() string { return "mcp" }

// Ask calls diagnose_step_failure of the server whose id is in the settings.
func (m *MCP) Ask(ctx context.Context, q flow.Question) (flow.Answer, error) {
	server := q.Settings.MCPServerID
	answer := flow.Answer{Target: server}
	tools, err := m.tools(ctx, q.Workspace, server)
	if err != nil {
		return answer, asAskError(ctx, flow.AskUnreachable, err)
	}
	if !slices.Contains(tools, ToolName) {
		m.forget(q.Workspace, server)
		return answer, failure(flow.AskUnreachable, fmt.Sprintf("the MCP server %q does not list the tool %s", server, ToolName), nil)
	}
	input, err := json.Marshal(q.Input)
	if err != nil {
		return answer, failure(flow.AskInvalid, "the case cannot be written as JSON", err)
	}
	action, err := m.servers.Call(ctx, q.Workspace, server, ToolName, input)
	if err != nil {
		m.forget(q.Workspace, server)
		return answer, asAskError(ctx, callKind(err), err)
	}
	answer.Action = action
	return answer, nil
}

// callKind sorts the errors of a call.
func callKind(err error) flow.AskKind {
	switch flow.CodeOf(err) {
	case flow.CodeUnavailable, flow.CodeNotFound, flow.CodeUnauthenticated, flow.CodeForbidden:
		return flow.AskUnreachable
	}
	return flow.AskInvalid
}

// Has says whether a server is registered in the workspace and lists the tool.
// The error is what the step log shows.
func (m *MCP) Has(ctx context.Context, workspace, server, tool string) error {
	tools, err := m.tools(ctx, workspace, server)
	if err != nil {
		if flow.CodeOf(err) == flow.CodeNotFound {
			return fmt.Errorf("MCP server %q is not registered in this workspace", short(server, 100))
		}
		return fmt.Errorf("MCP server %q cannot be asked for its tools: %s", short(server, 100), asAskError(ctx, flow.AskUnreachable, err).Message)
	}
	if !slices.Contains(tools, tool) {
		m.forget(workspace, server) // it may have been added a moment ago: the next one asks again
		return fmt.Errorf("MCP server %q has no tool %q (it lists %s)", short(server, 100), short(tool, 100), names(tools))
	}
	return nil
}

func names(tools []string) string {
	if len(tools) == 0 {
		return "none"
	}
	text := ""
	for i, name := range tools {
		switch {
		case i == 10:
			return text + fmt.Sprintf(" and %d more", len(tools)-10)
		case i > 0:
			text += ", "
		}
		text += short(name, 60)
	}
	return text
}

// tools lists a server's tools, as seen within the last minute.
func (m *MCP) tools(ctx context.Context, workspace, server string) ([]string, error) {
	key := [2]string{workspace, server}
	m.mu.Lock()
	l, ok := m.lists[key]
	m.mu.Unlock()
	if ok && m.clock.Now().Sub(l.at) <= toolsAge {
		return l.tools, nil
	}
	tools, err := m.servers.Tools(ctx, workspace, server)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.lists) >= maxCards {
		clear(m.lists)
	}
	m.lists[key] = listed{tools: tools, at: m.clock.Now()}
	return tools, nil
}

func (m *MCP) forget(workspace, server string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.lists, [2]string{workspace, server})
}
