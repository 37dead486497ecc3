package api

import (
	"net/http"
	"net/url"

	"github.com/longstop-dev/longstop/internal/engine"
	"github.com/longstop-dev/longstop/internal/flow"
)

// offered describes an operation that people reach over REST and the command
// line.
func offered(name, summary string, least flow.Role) flow.Op {
	return flow.Op{Name: name, Summary: summary, Min: least, Faces: []string{"rest", "cli"}}
}

// changing is op, which changes something.
func changing(op flow.Op) flow.Op {
	op.Changes = true
	return op
}

// agents is op, open to a key of the role agent too.
func agents(op flow.Op) flow.Op {
	op.Agents = true
	return op
}

func mountWorkflows(a *API, s Workflows) {
	serve(a, s, changing(overMCP(offered("workflows.create", "Publish a definition as the workflow's next version", flow.RoleEditor))),
		route{method: http.MethodPost, path: "/v1/workflows", status: http.StatusCreated, text: true, at: func(out any) string {
			return "/v1/workflows/" + url.PathEscape(out.(*engine.WorkflowView).Name)
		}}, Workflows.CreateWorkflow)
	serve(a, s, overMCP(offered("workflows.validate", "Check a definition and store nothing", flow.RoleViewer)),
		route{method: http.MethodPost, path: "/v1/workflows/validate", text: true}, Workflows.ValidateWorkflow)
	serve(a, s, overMCP(offered("workflows.list", "The published workflows", flow.RoleViewer)),
		route{method: http.MethodGet, path: "/v1/workflows"}, Workflows.ListWorkflows)
	serve(a, s, overMCP(offered("workflows.get", "A workflow's published version", flow.RoleViewer)),
		route{method: http.MethodGet, path: "/v1/workflows/{name}"}, Workflows.GetWorkflow)
	serve(a, s, overMCP(offered("workflows.schema", "The JSON Schema of definitions", flow.RoleViewer)),
		route{method: http.MethodGet, path: "/v1/workflows/schema"}, Workflows.DefinitionSchema)
	serve(a, s, overMCP(offered("step-types.list", "The step types that definitions may use", flow.RoleViewer)),
		route{method: http.MethodGet, path: "/v1/step-types"}, Workflows.StepTypes)
}

func mountVersions(a *API, s Versions) {
	serve(a, s, offered("workflows.versions", "A workflow's versions, newest first", flow.RoleViewer),
		route{method: http.MethodGet, path: "/v1/workflows/{name}/versions"}, Versions.ListVersions)
	serve(a, s, offered("workflows.version", "A version of a workflow", flow.RoleViewer),
		route{method: http.MethodGet, path: "/v1/workflows/{name}/versions/{version}"}, Versions.GetVersion)
	serve(a, s, changing(overMCP(offered("workflows.publish", "Have new runs use a version that is stored", flow.RoleEditor))),
		route{method: http.MethodPost, path: "/v1/workflows/{name}/publish"}, Versions.PublishWorkflow)
	serve(a, s, changing(overMCP(offered("workflows.unpublish", "Have a workflow start no new runs; its versions and runs stay", flow.RoleEditor))),
		route{method: http.MethodPost, path: "/v1/workflows/{name}/unpublish"}, Versions.UnpublishWorkflow)
}
