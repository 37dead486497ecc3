package api

import (
	"context"
	"encoding/json"

	"github.com/coder/websocket"

	"github.com/longstop-dev/longstop/internal/access"
	"github.com/longstop-dev/longstop/internal/agent/registry"
	"github.com/longstop-dev/longstop/internal/bridge"
	"github.com/longstop-dev/longstop/internal/engine"
	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/notify"
	"github.com/longstop-dev/longstop/internal/recovery"
	"github.com/longstop-dev/longstop/internal/secret"
	"github.com/longstop-dev/longstop/internal/vault"
)

// Engine is what this face needs of the engine.
type Engine interface {
	Workflows
	Versions
	Runs
	Looks
	Answers
	Inbox
}

// Workflows stores and checks definitions.
type Workflows interface {
	CreateWorkflow(context.Context, flow.Caller, *engine.CreateWorkflowIn) (*engine.WorkflowView, error)
	ValidateWorkflow(context.Context, flow.Caller, *engine.CreateWorkflowIn) (*engine.ValidateOut, error)
	ListWorkflows(context.Context, flow.Caller, *engine.Page) (*engine.List[engine.WorkflowView], error)
	GetWorkflow(context.Context, flow.Caller, *engine.WorkflowIn) (*engine.WorkflowView, error)
	StepTypes(context.Context, flow.Caller, *struct{}) (*engine.List[flow.StepType], error)
	DefinitionSchema(context.Context, flow.Caller, *struct{}) (*json.RawMessage, error)
}

// Versions shows a workflow's versions and says which of them new runs use.
type Versions interface {
	ListVersions(context.Context, flow.Caller, *engine.VersionsIn) (*engine.List[engine.WorkflowView], error)
	GetVersion(context.Context, flow.Caller, *engine.VersionIn) (*engine.WorkflowView, error)
	PublishWorkflow(context.Context, flow.Caller, *engine.PublishIn) (*engine.WorkflowView, error)
	UnpublishWorkflow(context.Context, flow.Caller, *engine.WorkflowIn) (*engine.WorkflowView, error)
}

// Runs starts, shows and stops runs. Watch signals on changed after each
// commit of a run; the watcher calls stop.
type Runs interface {
	StartRun(context.Context, flow.Caller, *engine.StartRunIn) (*engine.RunView, error)
	ListRuns(context.Context, flow.Caller, *engine.ListRunsIn) (*engine.List[engine.RunView], error)
	GetRun(context.Context, flow.Caller, *engine.RunIn) (*engine.RunView, error)
	CancelRun(context.Context, flow.Caller, *engine.CancelIn) (*engine.RunView, error)
	ListEvents(context.Context, flow.Caller, *engine.RecordsIn) (*engine.List[flow.Event], error)
	ListLogs(context.Context, flow.Caller, *engine.RecordsIn) (*engine.List[flow.Log], error)
	Watch(runID string) (changed <-chan struct{}, stop func())
}

// Looks takes a second look at runs: goes on with them, starts them again,
// compares them.
type Looks interface {
	RetryRun(context.Context, flow.Caller, *engine.RetryIn) (*engine.RunView, error)
	RerunRun(context.Context, flow.Caller, *engine.RerunIn) (*engine.RunView, error)
	CompareRuns(context.Context, flow.Caller, *engine.CompareIn) (*engine.CompareView, error)
}

// Answers takes answers to gates.
type Answers interface {
	AnswerGate(context.Context, flow.Caller, *engine.AnswerGateIn) (*flow.Gate, error)
}

// Inbox shows failed steps to agents that poll, and takes their answers.
type Inbox interface {
	Pending(context.Context, flow.Caller, *engine.PendingIn) (*engine.PendingOut, error)
	PendingInput(context.Context, flow.Caller, *engine.StepIn) (*flow.RecoveryInput, error)
	PendingCase(context.Context, flow.Caller, *engine.StepIn) (*flow.Case, error)
	SubmitAction(context.Context, flow.Caller, *engine.SubmitIn) (*engine.SubmitOut, error)
	ClaimCase(context.Context, flow.Caller, *engine.ClaimIn) (*engine.ClaimOut, error)
	ReleaseCase(context.Context, flow.Caller, *engine.ReleaseIn) (*engine.Released, error)
}

// Recovery shows cases and gates and tries agents.
type Recovery interface {
	Cases
	CasesReplay(context.Context, flow.Caller, *recovery.ReplayIn) (*recovery.ReplayView, error)
	AgentsTest(context.Context, flow.Caller, *recovery.AgentsTestIn) (*recovery.TrialResult, error)
	GatesList(context.Context, flow.Caller, *recovery.GatesListIn) (*recovery.List[flow.Gate], error)
	GatesGet(context.Context, flow.Caller, *recovery.GateIn) (*flow.Gate, error)
	RecoverySchema(context.Context, flow.Caller, *recovery.None) (*recovery.Contract, error)
}

// Cases shows frozen failures, and what answering them has cost.
type Cases interface {
	CasesList(context.Context, flow.Caller, *recovery.CasesListIn) (*recovery.List[flow.Case], error)
	CasesGet(context.Context, flow.Caller, *recovery.CaseIn) (*flow.Case, error)
	CasesObserved(context.Context, flow.Caller, *recovery.ObservedIn) (*recovery.ObservedView, error)
	ModelUsage(context.Context, flow.Caller, *recovery.ModelUsageIn) (*recovery.List[flow.ModelDay], error)
}

// Vaults keeps vaults, what is in them and who was let in.
type Vaults interface {
	Create(context.Context, flow.Caller, *vault.CreateIn) (*vault.View, error)
	ListVaults(context.Context, flow.Caller, *vault.None) (*vault.List[vault.View], error)
	Get(context.Context, flow.Caller, *vault.In) (*vault.View, error)
	Update(context.Context, flow.Caller, *vault.UpdateIn) (*vault.View, error)
	Delete(context.Context, flow.Caller, *vault.In) (*vault.None, error)
	VaultEvents
	VaultConnections
	ListJobs(context.Context, flow.Caller, *vault.JobsIn) (*vault.List[vault.JobView], error)
	GetJob(context.Context, flow.Caller, *vault.JobIn) (*vault.JobView, error)
}

// VaultEvents are what is in vaults.
type VaultEvents interface {
	Append(context.Context, flow.Caller, *vault.AppendIn) (*flow.VaultEvent, error)
	ListEvents(context.Context, flow.Caller, *vault.EventsIn) (*vault.List[flow.VaultEvent], error)
	GetEvent(context.Context, flow.Caller, *vault.EventIn) (*flow.VaultEvent, error)
	// Watch signals that the vault with an id has grown, until stop is called.
	Watch(id string) (grown <-chan struct{}, stop func())
}

// VaultConnections are who was let into vaults.
type VaultConnections interface {
	Connect(context.Context, flow.Caller, *vault.ConnectIn) (*vault.ConnectionView, error)
	ListConnections(context.Context, flow.Caller, *vault.ConnectionsIn) (*vault.List[vault.ConnectionView], error)
	GetConnection(context.Context, flow.Caller, *vault.ConnectionIn) (*vault.ConnectionView, error)
	UpdateConnection(context.Context, flow.Caller, *vault.UpdateConnectionIn) (*vault.ConnectionView, error)
	RevokeConnection(context.Context, flow.Caller, *vault.ConnectionIn) (*vault.ConnectionView, error)
}

// Access is what this face needs of keys, settings, secrets and servers.
type Access interface {
	Keys
	People
	Workspaces
	Audit
	Settings
	Servers
	Secrets
}

// Notices shows what is told outside, and tries it.
type Notices interface {
	NoticesList(context.Context, flow.Caller, *notify.NoticesIn) (*notify.NoticesOut, error)
	NoticesTest(context.Context, flow.Caller, *struct{}) (*notify.TestView, error)
}

// Keys says who calls, and keeps the API keys.
type Keys interface {
	Authenticate(ctx context.Context, bearer string) (flow.Caller, error)
	Me(context.Context, flow.Caller, *access.None) (*access.MeView, error)
	KeysList(context.Context, flow.Caller, *access.None) (*access.List[access.KeyView], error)
	KeysCreate(context.Context, flow.Caller, *access.CreateKeyIn) (*access.KeyView, error)
	KeysRevoke(context.Context, flow.Caller, *access.KeyIn) (*access.None, error)
	KeysRotate(context.Context, flow.Caller, *access.KeyIn) (*access.KeyView, error)
	// Revocations gives a channel that is closed when keys may have ended.
	Revocations() <-chan struct{}
}

// People keeps who belongs to the workspace.
type People interface {
	PeopleList(context.Context, flow.Caller, *access.None) (*access.List[access.PersonView], error)
	PeopleGet(context.Context, flow.Caller, *access.PersonIn) (*access.PersonView, error)
	PeopleAdd(context.Context, flow.Caller, *access.AddPersonIn) (*access.PersonView, error)
	PeoplePut(context.Context, flow.Caller, *access.PutPersonIn) (*access.PersonView, error)
	PeopleRemove(context.Context, flow.Caller, *access.PersonIn) (*access.None, error)
}

// Workspaces makes and names workspaces.
type Workspaces interface {
	WorkspacesList(context.Context, flow.Caller, *access.None) (*access.List[access.WorkspaceView], error)
	WorkspacesCreate(context.Context, flow.Caller, *access.CreateWorkspaceIn) (*access.WorkspaceView, error)
	WorkspacesPut(context.Context, flow.Caller, *access.PutWorkspaceIn) (*access.WorkspaceView, error)
}

// Audit reads the audit record.
type Audit interface {
	AuditList(context.Context, flow.Caller, *access.AuditIn) (*access.List[flow.Audit], error)
	AuditHead(context.Context, flow.Caller, *access.None) (*flow.AuditHead, error)
}

// Settings keeps the settings of a workspace.
type Settings interface {
	SettingsList(context.Context, flow.Caller, *access.SettingsIn) (*access.List[access.SettingView], error)
	SettingsGet(context.Context, flow.Caller, *access.GetSettingIn) (*access.SettingView, error)
	SettingsPut(context.Context, flow.Caller, *access.PutSettingIn) (*access.SettingView, error)
	SettingsDelete(context.Context, flow.Caller, *access.SettingIn) (*access.SettingView, error)
}

// Servers keeps the MCP servers of a workspace.
type Servers interface {
	ServersList(context.Context, flow.Caller, *access.None) (*access.List[access.ServerView], error)
	ServersGet(context.Context, flow.Caller, *access.ServerIn) (*access.ServerView, error)
	ServersCreate(context.Context, flow.Caller, *access.CreateServerIn) (*access.ServerView, error)
	ServersPut(context.Context, flow.Caller, *access.PutServerIn) (*access.ServerView, error)
	ServersDelete(context.Context, flow.Caller, *access.ServerIn) (*access.None, error)
}

// Secrets keeps the secrets of a workspace.
type Secrets interface {
	SecretsList(context.Context, flow.Caller, *access.None) (*access.List[access.SecretView], error)
	SecretsPut(context.Context, flow.Caller, *access.PutSecretIn) (*access.SecretView, error)
	SecretsDelete(context.Context, flow.Caller, *access.SecretIn) (*access.None, error)
	// Masker takes the workspace's secrets out of what is shown.
	Masker(ctx context.Context, workspace string) (*secret.Masker, error)
}

// Agents registers agents that are hosted elsewhere.
type Agents interface {
	Push(context.Context, flow.Caller, *registry.PushIn) (*registry.PushOut, error)
	ListAgents(context.Context, flow.Caller, *registry.None) (*registry.List[registry.AgentView], error)
	GetAgent(context.Context, flow.Caller, *registry.AgentIn) (*registry.AgentView, error)
	RemoveAgent(context.Context, flow.Caller, *registry.AgentIn) (*registry.None, error)
}

// AgentServices keeps the keys that register agents, and the buckets of their
// manifests.
type AgentServices interface {
	CreateService(context.Context, flow.Caller, *registry.CreateServiceIn) (*registry.ServiceView, error)
	ListServices(context.Context, flow.Caller, *registry.None) (*registry.List[registry.ServiceView], error)
	Rotate(context.Context, flow.Caller, *registry.RotateIn) (*registry.RotateOut, error)
	CreateBucket(context.Context, flow.Caller, *registry.CreateBucketIn) (*registry.BucketView, error)
	ListBuckets(context.Context, flow.Caller, *registry.None) (*registry.List[registry.BucketView], error)
	Reindex(context.Context, flow.Caller, *registry.ReindexIn) (*registry.ReindexOut, error)
}

// Bridges are how agents without a public address are reached.
type Bridges interface {
	Connect(context.Context, flow.Caller, *bridge.ConnectIn) (*bridge.List, error)
	Bridges(context.Context, flow.Caller, *bridge.None) (*bridge.List, error)
	// Free says whether the caller may hold a bridge.
	Free(by flow.Caller, name string) error
	// Hold serves it over a connection; holds says whether the key still does.
	Hold(ctx context.Context, c *websocket.Conn, by flow.Caller, name string, holds func(context.Context) error) error
}

// Registry is what this face needs of the registry.
type Registry interface {
	Agents
	AgentServices
}
