package api

import (
	"net/http"
	"net/url"
	"slices"

	"github.com/longstop-dev/longstop/internal/access"
	"github.com/longstop-dev/longstop/internal/flow"
)

// declared gives an operation as package access describes it.
func declared(name string) flow.Op {
	ops := access.Ops()
	at := slices.IndexFunc(ops, func(op flow.Op) bool { return op.Name == name })
	return ops[at] // a name that is not there is ours to correct: every start shows it
}

func mountSettings(a *API, s Settings) {
	serve(a, s, declared("settings.list"), route{method: http.MethodGet, path: "/v1/settings"}, Settings.SettingsList)
	serve(a, s, declared("settings.get"), route{method: http.MethodGet, path: "/v1/settings/{key}"}, Settings.SettingsGet)
	serve(a, s, declared("settings.put"), route{method: http.MethodPut, path: "/v1/settings/{key}"}, Settings.SettingsPut)
	serve(a, s, declared("settings.delete"), route{method: http.MethodDelete, path: "/v1/settings/{key}"}, Settings.SettingsDelete)
}

func mountServers(a *API, s Servers) {
	serve(a, s, overMCP(declared("mcp-servers.list")), route{method: http.MethodGet, path: "/v1/mcp-servers"}, Servers.ServersList)
	serve(a, s, declared("mcp-servers.get"), route{method: http.MethodGet, path: "/v1/mcp-servers/{id}"}, Servers.ServersGet)
	serve(a, s, declared("mcp-servers.create"), route{method: http.MethodPost, path: "/v1/mcp-servers", status: http.StatusCreated,
		at: func(out any) string { return "/v1/mcp-servers/" + url.PathEscape(out.(*access.ServerView).ID) }}, Servers.ServersCreate)
	serve(a, s, declared("mcp-servers.put"), route{method: http.MethodPut, path: "/v1/mcp-servers/{id}"}, Servers.ServersPut)
	serve(a, s, declared("mcp-servers.delete"), route{method: http.MethodDelete, path: "/v1/mcp-servers/{id}"}, Servers.ServersDelete)
}

func mountSecrets(a *API, s Secrets) {
	serve(a, s, declared("secrets.list"), route{method: http.MethodGet, path: "/v1/secrets"}, Secrets.SecretsList)
	serve(a, s, declared("secrets.put"), route{method: http.MethodPut, path: "/v1/secrets/{name}"}, Secrets.SecretsPut)
	serve(a, s, declared("secrets.delete"), route{method: http.MethodDelete, path: "/v1/secrets/{name}"}, Secrets.SecretsDelete)
}

func mountKeys(a *API, s Keys) {
	serve(a, s, declared("me.get"), route{method: http.MethodGet, path: "/v1/me"}, Keys.Me)
	serve(a, s, declared("keys.list"), route{method: http.MethodGet, path: "/v1/keys"}, Keys.KeysList)
	serve(a, s, declared("keys.create"), route{method: http.MethodPost, path: "/v1/keys", status: http.StatusCreated}, Keys.KeysCreate)
	serve(a, s, declared("keys.revoke"), route{method: http.MethodDelete, path: "/v1/keys/{id}"}, Keys.KeysRevoke)
	serve(a, s, declared("keys.rotate"), route{method: http.MethodPost, path: "/v1/keys/{id}/rotate", status: http.StatusCreated}, Keys.KeysRotate)
}

func mountPeople(a *API, s People) {
	serve(a, s, declared("people.list"), route{method: http.MethodGet, path: "/v1/people"}, People.PeopleList)
	serve(a, s, declared("people.get"), route{method: http.MethodGet, path: "/v1/people/{id}"}, People.PeopleGet)
	serve(a, s, declared("people.add"), route{method: http.MethodPost, path: "/v1/people", status: http.StatusCreated,
		at: func(out any) string { return "/v1/people/" + url.PathEscape(out.(*access.PersonView).ID) }}, People.PeopleAdd)
	serve(a, s, declared("people.put"), route{method: http.MethodPut, path: "/v1/people/{id}"}, People.PeoplePut)
	serve(a, s, declared("people.remove"), route{method: http.MethodDelete, path: "/v1/people/{id}"}, People.PeopleRemove)
}

func mountWorkspaces(a *API, s Workspaces) {
	serve(a, s, declared("workspaces.list"), route{method: http.MethodGet, path: "/v1/workspaces"}, Workspaces.WorkspacesList)
	serve(a, s, declared("workspaces.create"), route{method: http.MethodPost, path: "/v1/workspaces", status: http.StatusCreated}, Workspaces.WorkspacesCreate)
	serve(a, s, declared("workspaces.put"), route{method: http.MethodPut, path: "/v1/workspaces/{id}"}, Workspaces.WorkspacesPut)
}

func mountAudit(a *API, s Audit) {
	serve(a, s, declared("audit.list"), route{method: http.MethodGet, path: "/v1/audit"}, Audit.AuditList)
	serve(a, s, declared("audit.head"), route{method: http.MethodGet, path: "/v1/audit/head"}, Audit.AuditHead)
}
