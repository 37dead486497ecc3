package mcp

import (
	"context"
	"encoding/json"

	"github.com/longstop-dev/longstop/internal/access"
	"github.com/longstop-dev/longstop/internal/definition"
	"github.com/longstop-dev/longstop/internal/engine"
	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/mcpclient"
	"github.com/longstop-dev/longstop/internal/secret"
)

// Workflows stores, checks and describes definitions.
type Workflows interface {
	CreateWorkflow(context.Context, flow.Caller, *engine.CreateWorkflowIn) (*engine.WorkflowView, error)
	ValidateWorkflow(context.Context, flow.Caller, *engine.CreateWorkflowIn) (*engine.ValidateOut, error)
	PrevalidateMarkdown(context.Context, flow.Caller, *engine.PrevalidateIn) (*definition.Outline, error)
	ListWorkflows(context.Context, flow.Caller, *engine.Page) (*engine.List[engine.WorkflowView], error)
	GetWorkflow(context.Context, flow.Caller, *engine.WorkflowIn) (*engine.WorkflowView, error)
	StepTypes(context.Context, flow.Caller, *struct{}) (*engine.List[flow.StepType], error)
	DefinitionSchema(context.Context, flow.Caller, *struct{}) (*json.RawMessage, error)
}

// Versions says which version of a workflow new runs use.
type Versions interface {
	PublishWorkflow(context.Context, flow.Caller, *engine.PublishIn) (*engine.WorkflowView, error)
	UnpublishWorkflow(context.Context, flow.Caller, *engine.WorkflowIn) (*engine.WorkflowView, error)
}

// Runs starts and shows runs.
type Runs interface {
	StartRun(context.Context, flow.Caller, *engine.StartRunIn) (*engine.RunView, error)
	ListRuns(context.Context, flow.Caller, *engine.ListRunsIn) (*engine.List[engine.RunView], error)
	GetRun(context.Context, flow.Caller, *engine.RunIn) (*engine.RunView, error)
}

// Inbox shows the cases that wait for an agent and takes its answers.
type Inbox interface {
	Pending(context.Context, flow.Caller, *engine.PendingIn) (*engine.PendingOut, error)
	PendingInput(context.Context, flow.Caller, *engine.StepIn) (*flow.RecoveryInput, error)
	SubmitAction(context.Context, flow.Caller, *engine.SubmitIn) (*engine.SubmitOut, error)
	ClaimCase(context.Context, flow.Caller, *engine.ClaimIn) (*engine.ClaimOut, error)
	ReleaseCase(context.Context, flow.Caller, *engine.ReleaseIn) (*engine.Released, error)
}

// Servers knows the MCP servers that are registered in a workspace.
type Servers interface {
	ServersList(context.Context, flow.Caller, *access.None) (*access.List[access.ServerView], error)
}

// Secrets gives what takes a workspace's secrets out of all that is shown.
type Secrets interface {
	Masker(ctx context.Context, workspace string) (*secret.Masker, error)
}

// Tools asks a registered MCP server for its tools.
type Tools interface {
	List(ctx context.Context, workspace, server string) ([]mcpclient.Tool, error)
}
