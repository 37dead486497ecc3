package api

import (
	"net/http"

	"github.com/longstop-dev/longstop/internal/engine"
	"github.com/longstop-dev/longstop/internal/flow"
)

func mountRuns(a *API, s Runs) {
	serve(a, s, changing(overMCP(offered("runs.start", "Start a run of a workflow", flow.RoleOperator))),
		route{method: http.MethodPost, path: "/v1/workflows/{name}/runs", status: http.StatusCreated, at: func(out any) string {
			return "/v1/runs/" + out.(*engine.RunView).ID
		}}, Runs.StartRun)
	serve(a, s, overMCP(offered("runs.list", "Runs, newest first", flow.RoleViewer)),
		route{method: http.MethodGet, path: "/v1/runs"}, Runs.ListRuns)
	serve(a, s, overMCP(offered("runs.get", "A run with its steps and open gates", flow.RoleViewer)),
		route{method: http.MethodGet, path: "/v1/runs/{id}"}, Runs.GetRun)
	serve(a, s, changing(offered("runs.cancel", "Stop a run", flow.RoleOperator)),
		route{method: http.MethodPost, path: "/v1/runs/{id}/cancel"}, Runs.CancelRun)
	serve(a, s, offered("runs.logs", "A run's step log", flow.RoleViewer),
		route{method: http.MethodGet, path: "/v1/runs/{id}/logs"}, Runs.ListLogs)
	serve(a, s, offered("runs.events", "A run's events: live over a WebSocket, or as text/event-stream if asked for; else a page", flow.RoleViewer),
		route{method: http.MethodGet, path: "/v1/runs/{id}/events", live: true, instead: a.live(ofRun(s))}, Runs.ListEvents)
}
