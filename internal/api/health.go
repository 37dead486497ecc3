package api

import (
	"context"
	"net/http"
	"time"
)

// mountHealth serves what supervisors ask, open to everybody: whether the
// process is alive, and whether its database answers.
func mountHealth(a *API, ready func(context.Context) error) {
	okay := func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "application/json")
		_ = writeJSON(w, map[string]string{"status": "ok"})
	}
	a.describeOpen("/healthz", "server.health", "Whether the process is alive")
	a.describeOpen("/readyz", "server.ready", "Whether the database answers", http.StatusServiceUnavailable)
	a.router.Get("/healthz", func(w http.ResponseWriter, _ *http.Request) { okay(w) })
	a.router.Get("/readyz", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), 5*time.Second)
		defer cancel()
		if ready != nil {
			if err := ready(ctx); err != nil {
				p := refuse(http.StatusServiceUnavailable, "the database does not answer", "", "")
				a.explain(ctx, "readyz", err, p, nil)
				p.write(w)
				return
			}
		}
		okay(w)
	})
}
