package api

import (
	"net/http"
	"net/url"

	"github.com/longstop-dev/longstop/internal/access"
	"github.com/longstop-dev/longstop/internal/engine"
	"github.com/longstop-dev/longstop/internal/flow"
)

func (f *face) workflows() {
	e := f.Engine
	create := place{method: http.MethodPost, path: "/v1/workflows", status: http.StatusCreated, max: maxDefinition,
		location: func(v any) string { return "/v1/workflows/" + url.PathEscape(v.(*engine.WorkflowView).Name) }}
	validate := post("/v1/workflows/validate")
	validate.max = maxDefinition
	mount(f, op("workflows.create", "Check a definition and publish it", flow.RoleEditor, true), create, e.CreateWorkflow)
	mount(f, op("workflows.validate", "Check a definition and store nothing", flow.RoleViewer, false), validate, e.ValidateWorkflow)
	mount(f, op("workflows.list", "The published workflows", flow.RoleViewer, false), get("/v1/workflows"), e.ListWorkflows)
	mount(f, op("workflows.schema", "The JSON Schema of definitions", flow.RoleViewer, false), get("/v1/workflows/schema"), e.DefinitionSchema)
	mount(f, op("workflows.get", "A workflow's published version", flow.RoleViewer, false), get("/v1/workflows/{name}"), e.GetWorkflow)
	mount(f, op("step-types.list", "The step types that definitions may use", flow.RoleViewer, false), get("/v1/step-types"), e.StepTypes)
}

func (f *face) runs() {
	e := f.Engine
	start := place{method: http.MethodPost, path: "/v1/workflows/{name}/runs", status: http.StatusCreated,
		location: func(v any) string { return "/v1/runs/" + v.(*engine.RunView).ID }}
	mount(f, op("runs.start", "Start a run", flow.RoleOperator, true), start, e.StartRun)
	mount(f, op("runs.list", "Runs, newest first", flow.RoleViewer, false), get("/v1/runs"), e.ListRuns)
	mount(f, op("runs.get", "A run with its steps and open gates", flow.RoleViewer, false), get("/v1/runs/{id}"), e.GetRun)
	mount(f, runEvents(), get("/v1/runs/{id}/events"), e.ListEvents)
	mount(f, op("runs.logs", "A run's step log", flow.RoleViewer, false), get("/v1/runs/{id}/logs"), e.ListLogs)
	mount(f, op("runs.cancel", "Stop a run", flow.RoleOperator, true), post("/v1/runs/{id}/cancel"), e.CancelRun)
}

// runEvents is the operation behind all three forms of the events.
func runEvents() flow.Op {
	return op("runs.events", "A run's events: a WebSocket, SSE with Accept: text/event-stream, a JSON page otherwise; ?after=seq resumes", flow.RoleViewer, false)
}

func (f *face) gates() {
	mount(f, op("gates.list", "Gates, oldest first", flow.RoleViewer, false), get("/v1/gates"), f.Recovery.GatesList)
	mount(f, op("gates.get", "A gate", flow.RoleViewer, false), get("/v1/gates/{id}"), f.Recovery.GatesGet)
	mount(f, op("gates.answer", "Answer a gate and wake its run", flow.RoleOperator, true), post("/v1/gates/{id}/answer"), f.Engine.AnswerGate)
}

func (f *face) cases() {
	d := f.Recovery
	agents := func(o flow.Op) flow.Op { o.Agents = true; return o }
	mount(f, agents(op("cases.list", "Cases, newest first", flow.RoleViewer, false)), get("/v1/cases"), d.CasesList)
	mount(f, agents(op("cases.get", "A case: what failed, who was asked, what came back", flow.RoleViewer, false)), get("/v1/cases/{id}"), d.CasesGet)
	mount(f, op("cases.replay", "Ask an agent about a frozen case; nothing is applied", flow.RoleOperator, false), post("/v1/cases/{id}/replay"), d.CasesReplay)
	mount(f, op("agents.test", "Send an agent a sample failure; nothing is applied", flow.RoleOperator, false), post("/v1/agents/test"), d.AgentsTest)
	mount(f, agents(op("recovery.schema", "The JSON Schema of what an agent gets and answers", flow.RoleViewer, false)), get("/v1/recovery/schema"), d.RecoverySchema)
}

// accessOp is one of the operations that package access describes itself.
func accessOp(name string) flow.Op {
	for _, o := range access.Ops() {
		if o.Name == name {
			return o
		}
	}
	panic("no operation " + name) // a typing error here, found by any test
}

func (f *face) settings() {
	a := f.Access
	mount(f, accessOp("me.get"), get("/v1/me"), a.Me)
	mount(f, accessOp("settings.list"), get("/v1/settings"), a.SettingsList)
	mount(f, accessOp("settings.get"), get("/v1/settings/{key}"), a.SettingsGet)
	mount(f, accessOp("settings.put"), put("/v1/settings/{key}"), a.SettingsPut)
	mount(f, accessOp("settings.delete"), del("/v1/settings/{key}"), a.SettingsDelete)
}

func (f *face) servers() {
	a := f.Access
	create := post("/v1/mcp-servers")
	create.status = http.StatusCreated
	mount(f, accessOp("mcp-servers.list"), get("/v1/mcp-servers"), a.ServersList)
	mount(f, accessOp("mcp-servers.create"), create, a.ServersCreate)
	mount(f, accessOp("mcp-servers.get"), get("/v1/mcp-servers/{id}"), a.ServersGet)
	mount(f, accessOp("mcp-servers.put"), put("/v1/mcp-servers/{id}"), a.ServersPut)
	mount(f, accessOp("mcp-servers.delete"), del("/v1/mcp-servers/{id}"), a.ServersDelete)
}

func (f *face) secrets() {
	a := f.Access
	mount(f, accessOp("secrets.list"), get("/v1/secrets"), a.SecretsList)
	mount(f, accessOp("secrets.put"), put("/v1/secrets/{name}"), a.SecretsPut)
	mount(f, accessOp("secrets.delete"), del("/v1/secrets/{name}"), a.SecretsDelete)
}

func (f *face) keys() {
	a := f.Access
	create := post("/v1/keys")
	create.status = http.StatusCreated
	mount(f, accessOp("keys.list"), get("/v1/keys"), a.KeysList)
	mount(f, accessOp("keys.create"), create, a.KeysCreate)
	mount(f, accessOp("keys.revoke"), del("/v1/keys/{id}"), a.KeysRevoke)
}
