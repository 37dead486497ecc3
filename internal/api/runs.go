package api

import (
	"net/http"

	"github.com/longstop-dev/longstop/internal/engine"
	"github.com/longstop-dev/longstop/internal/flow"
)

func mountRuns(a *API, s Runs) {
	serve(a, s, changing(overMCP(offered("runs.start", "Start a run of a workflow", flow.RoleOperator))),
		route{method: http.MethodPost, path: "/v1/workflows/{name}/runs", status: http.StatusCreated, at: runAt}, Runs.StartRun)
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

func mountLooks(a *API, s Looks) {
	serve(a, s, changing(offered("runs.retry", "Go on with a failed run from the step that failed", flow.RoleOperator)),
		route{method: http.MethodPost, path: "/v1/runs/{id}/retry"}, Looks.RetryRun)
	serve(a, s, changing(offered("runs.rerun", "Start a new run from any step of an old one", flow.RoleOperator)),
		route{method: http.MethodPost, path: "/v1/runs/{id}/rerun", status: http.StatusCreated, at: runAt}, Looks.RerunRun)
	serve(a, s, offered("runs.compare", "What differs between two runs, step by step", flow.RoleViewer),
		route{method: http.MethodGet, path: "/v1/runs/{id}/compare/{other}"}, Looks.CompareRuns)
}

// runAt is where a run is read.
func runAt(out any) string { return "/v1/runs/" + out.(*engine.RunView).ID }
