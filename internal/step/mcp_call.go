package step

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/longstop-dev/longstop/internal/egress"
	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/mcpclient"
)

// mcpCall calls a tool of an MCP server.
type mcpCall struct{ tools Tools }

type mcpCallConfig struct {
	Server string          `json:"server" required:"yes" doc:"The id of an MCP server registered in the workspace."`
	Tool   string          `json:"tool" required:"yes" doc:"The name of one of its tools."`
	Params json.RawMessage `json:"params,omitempty" doc:"The tool's arguments: an object."`
}

// Describe describes mcp_call.
func (mcpCall) Describe() flow.StepType {
	return flow.StepType{
		Name:    "mcp_call",
		Summary: "Calls a tool of a registered MCP server. Its output is the tool's structured content, else its text, parsed if it is JSON.",
		Config:  schemaOf[mcpCallConfig](),
		Clocked: true,
	}
}

// Run calls the tool.
func (m mcpCall) Run(ctx context.Context, c flow.Call) (flow.Outcome, error) {
	config, bad := decode[mcpCallConfig](c)
	if bad != nil {
		return flow.Outcome{}, bad
	}
	params := config.Params
	switch {
	case config.Server == "":
		return flow.Outcome{}, failf(flow.KindConfig, "config.server: the id of a registered MCP server is needed")
	case config.Tool == "":
		return flow.Outcome{}, failf(flow.KindConfig, "config.tool: the name of a tool of %s is needed", config.Server)
	case absent(params):
		params = json.RawMessage("{}")
	case params[0] != '{':
		return flow.Outcome{}, failf(flow.KindConfig, "config.params: a tool's arguments are an object")
	}
	if m.tools == nil {
		return flow.Outcome{}, failf(flow.KindInternal, "MCP servers cannot be called here")
	}
	limit := budget(ctx)
	answer, err := m.tools.Call(ctx, c.Workspace, config.Server, config.Tool, params)
	if err != nil {
		return flow.Outcome{}, toolFailure(ctx, limit, config, err)
	}
	if len(answer) == 0 {
		answer = json.RawMessage("null")
	}
	if c.MaxOutput > 0 && int64(len(answer)) > c.MaxOutput {
		return flow.Outcome{}, tooLarge("the answer of "+config.Server+"/"+config.Tool, c.MaxOutput)
	}
	return flow.Outcome{Value: answer}, nil
}

// toolFailure sorts what a tool's server may fail with.
func toolFailure(ctx context.Context, limit time.Duration, config mcpCallConfig, err error) *flow.StepError {
	where := config.Server + "/" + config.Tool
	var failed *flow.StepError
	var refused *flow.Error
	switch {
	case errors.As(err, &failed):
		return failed
	case ctx.Err() != nil:
		return because(stopped(ctx, limit, "no answer from "+where), err)
	case guardRefused(err):
		return because(failf(flow.KindEgress, "%s: %s", where, excerpt(err.Error(), 300)), err)
	case errors.As(err, &refused):
		return because(failf(codeKind(refused.Code), "%s: %s", where, refused.Message), err)
	}
	return because(failf(clientKind(err), "%s: %s", where, excerpt(err.Error(), 300)), err)
}

// clientKind sorts the errors of the MCP client. What it does not name may go
// better next time.
func clientKind(err error) flow.ErrorKind {
	switch {
	case errors.Is(err, mcpclient.ErrTimeout):
		return flow.KindTimeout
	case errors.Is(err, mcpclient.ErrNoTool), errors.Is(err, mcpclient.ErrStdio), errors.Is(err, mcpclient.ErrArguments):
		return flow.KindConfig
	case errors.Is(err, egress.ErrRefused):
		return flow.KindEgress
	case errors.Is(err, mcpclient.ErrUnauthorized):
		return flow.KindRefused
	case errors.Is(err, mcpclient.ErrTooLarge), errors.Is(err, mcpclient.ErrTooDeep):
		return flow.KindTooLarge
	}
	return flow.KindTransient
}

// codeKind is the kind of failure behind an error of our own.
func codeKind(code flow.Code) flow.ErrorKind {
	switch code {
	case flow.CodeUnavailable, flow.CodeRateLimited:
		return flow.KindTransient
	case flow.CodeTooLarge:
		return flow.KindTooLarge
	case flow.CodeInternal:
		return flow.KindInternal
	}
	return flow.KindConfig // an unknown server or tool, wrong arguments
}
