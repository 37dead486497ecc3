package responder

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/mcpclient"
)

// ToolName is the tool that a recovery server lists.
const ToolName = "diagnose_step_failure"

// MCP asks the workspace's own MCP server.
type MCP struct{ tools *Tools }

// NewMCP makes the responder.
func NewMCP(tools *Tools) *MCP { return &MCP{tools: tools} }

// Name is mcp.
func (*MCP) Name() string { return "mcp" }

// Ask calls diagnose_step_failure of the server whose id is in the settings.
func (m *MCP) Ask(ctx context.Context, q flow.Question) (flow.Answer, error) {
	server := q.Settings.MCPServerID
	answer := flow.Answer{Target: server}
	list, err := m.tools.Names(ctx, q.Workspace, server)
	if err != nil {
		return answer, askError(ctx, err)
	}
	if !slices.Contains(list, ToolName) {
		m.tools.Forget(q.Workspace, server)
		return answer, failure(flow.AskUnreachable, noTool(server, list), nil)
	}
	input, err := json.Marshal(q.Input)
	if err != nil {
		return answer, failure(flow.AskInvalid, "the case cannot be written as JSON", err)
	}
	if answer.Action, err = m.tools.Call(ctx, q.Workspace, server, ToolName, input); err != nil {
		return answer, askError(ctx, err)
	}
	return answer, nil
}

func noTool(server string, list []string) string {
	return fmt.Sprintf("the MCP server %q does not list the tool %s (it lists %s)", short(server, 100), ToolName, enumerated(list))
}

// askError sorts what asking an MCP server fails with.
func askError(ctx context.Context, err error) *flow.AskError {
	var said *flow.StepError
	var ours *flow.Error
	kind := flow.AskUnreachable
	switch {
	case errors.Is(err, mcpclient.ErrTimeout):
		kind = flow.AskTimeout
	case errors.Is(err, mcpclient.ErrProtocol):
		kind = flow.AskInvalid
	case errors.As(err, &said) && said.Kind != flow.KindRefused:
		kind = flow.AskInvalid
	case errors.As(err, &ours):
		return failure(kind, ours.Message, err)
	}
	return asAskError(ctx, kind, err)
}
