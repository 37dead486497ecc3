package agentkit

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// ToolName is the tool that Longstop calls over MCP.
const ToolName = "diagnose_step_failure"

// toolInput says of RecoveryToolInput what a client has to know; a member
// that is not listed is let through.
const toolInput = `{
	"type": "object",
	"required": ["schema_version", "step", "error"],
	"properties": {
		"schema_version": {"type": "integer"},
		"step": {"type": "object", "description": "type, title, intent, index and config of the step that failed"},
		"error": {"type": "string"},
		"prior_outputs": {"type": "object", "description": "outputs of completed steps by index, 500 characters each"},
		"workflow_input": {},
		"catalog_action": {"type": "object"},
		"resolved_request": {"type": "object", "description": "url and body of what was sent"},
		"human_hint": {"type": "string"}
	}
}`

// MCP serves the agent as an MCP server over streamable HTTP, without
// sessions.
func (a *Agent) MCP() http.Handler {
	s := a.server()
	h := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, &mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !a.allowed(w, r) {
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, a.maxBody())
		h.ServeHTTP(w, r)
	})
}

// Stdio serves the agent as an MCP server over standard input and output,
// until ctx ends or the input does. The log must not go to standard output.
func (a *Agent) Stdio(ctx context.Context) error {
	return a.server().Run(ctx, &mcp.StdioTransport{})
}

func (a *Agent) server() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: a.Name, Version: a.version()}, nil)
	s.AddTool(&mcp.Tool{Name: ToolName, Description: "Says what to do about a failed workflow step. " + a.Description,
		InputSchema: json.RawMessage(toolInput)}, a.call)
	return s
}

func (a *Agent) call(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	act, err := a.answer(ctx, r.Params.Arguments)
	if err != nil {
		return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: err.Error()}}}, nil
	}
	b, err := json.Marshal(act)
	if err != nil {
		return nil, err
	}
	return &mcp.CallToolResult{StructuredContent: json.RawMessage(b), Content: []mcp.Content{&mcp.TextContent{Text: string(b)}}}, nil
}
