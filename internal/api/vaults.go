package api

import (
	"net/http"

	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/vault"
)

func mountVaults(a *API, s Vaults) {
	serve(a, s, changing(offered("vaults.create", "Make a vault, which the caller owns", flow.RoleEditor)),
		route{method: http.MethodPost, path: "/v1/vaults", status: http.StatusCreated, at: func(out any) string { return "/v1/vaults/" + out.(*vault.View).ID }}, Vaults.Create)
	serve(a, s, offered("vaults.list", "The workspace's vaults", flow.RoleViewer),
		route{method: http.MethodGet, path: "/v1/vaults"}, Vaults.ListVaults)
	serve(a, s, offered("vaults.get", "A vault", flow.RoleViewer),
		route{method: http.MethodGet, path: "/v1/vaults/{id}"}, Vaults.Get)
	serve(a, s, changing(offered("vaults.update", "Add scopes to a vault, or change its retention; its owner only", flow.RoleEditor)),
		route{method: http.MethodPatch, path: "/v1/vaults/{id}"}, Vaults.Update)
	serve(a, s, changing(offered("vaults.delete", "Remove a vault with all that is in it; its owner only", flow.RoleEditor)),
		route{method: http.MethodDelete, path: "/v1/vaults/{id}"}, Vaults.Delete)

	serve(a, s, changing(offered("events.append", "Append an event to a vault; one with a target asks that agent", flow.RoleOperator)),
		route{method: http.MethodPost, path: "/v1/vaults/{id}/events", status: http.StatusCreated, at: func(out any) string {
			e := out.(*flow.VaultEvent)
			return "/v1/vaults/" + e.Vault + "/events/" + e.ID
		}}, Vaults.Append)
	serve(a, s, offered("events.list", "A vault's events: live over a WebSocket, or as text/event-stream if asked for; else a page", flow.RoleViewer),
		route{method: http.MethodGet, path: "/v1/vaults/{id}/events", live: true, instead: a.live(ofVault(s))}, Vaults.ListEvents)
	serve(a, s, offered("events.get", "An event of a vault", flow.RoleViewer),
		route{method: http.MethodGet, path: "/v1/vaults/{id}/events/{event}"}, Vaults.GetEvent)

	serve(a, s, offered("jobs.list", "A vault's Jobs: conversations of agents", flow.RoleViewer),
		route{method: http.MethodGet, path: "/v1/vaults/{id}/jobs"}, Vaults.ListJobs)
	serve(a, s, offered("jobs.get", "A Job and its turns", flow.RoleViewer),
		route{method: http.MethodGet, path: "/v1/jobs/{id}"}, Vaults.GetJob)

	serve(a, s, changing(offered("connections.create", "Let an agent into a vault; its owner only", flow.RoleEditor)),
		route{method: http.MethodPost, path: "/v1/vaults/{id}/connections", status: http.StatusCreated, at: func(out any) string {
			return "/v1/connections/" + out.(*vault.ConnectionView).ID
		}}, Vaults.Connect)
	serve(a, s, offered("connections.list", "Who was let into vaults", flow.RoleViewer),
		route{method: http.MethodGet, path: "/v1/connections"}, Vaults.ListConnections)
	serve(a, s, offered("connections.get", "A connection", flow.RoleViewer),
		route{method: http.MethodGet, path: "/v1/connections/{id}"}, Vaults.GetConnection)
	serve(a, s, changing(offered("connections.update", "Change what a connection grants; the vault's owner only", flow.RoleEditor)),
		route{method: http.MethodPatch, path: "/v1/connections/{id}"}, Vaults.UpdateConnection)
	serve(a, s, changing(offered("connections.revoke", "End a connection; the vault's owner only", flow.RoleEditor)),
		route{method: http.MethodDelete, path: "/v1/connections/{id}"}, Vaults.RevokeConnection)
}
