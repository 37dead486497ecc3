package api

import (
	"context"
	"encoding/json"
	"net/http"
	"time"
)

// mountJWKS serves the keys by which agents verify execution tokens, open to
// everybody: they are public halves.
func mountJWKS(a *API, keys func(context.Context) (json.RawMessage, error)) {
	const path = "/.well-known/jwks.json"
	a.describeOpen(path, "server.keys", "The JSON Web Key Set that execution tokens are verified with", http.StatusServiceUnavailable)
	a.router.Get(path, func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), 5*time.Second)
		defer cancel()
		set := json.RawMessage(`{"keys":[]}`)
		if keys != nil {
			var err error
			if set, err = keys(ctx); err != nil {
				p := refuse(http.StatusServiceUnavailable, "the keys cannot be read now", "", "")
				a.explain(ctx, "jwks", err, p, nil)
				p.write(w)
				return
			}
		}
		w.Header().Set("Content-Type", "application/jwk-set+json")
		// A verifier that meets a new key id asks again; a new key must not be hidden for long.
		w.Header().Set("Cache-Control", "public, max-age=30")
		_, _ = w.Write(set)
	})
}
