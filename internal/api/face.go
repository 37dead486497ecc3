package api

import (
	"net/http"

	"github.com/longstop-dev/longstop/internal/flow"
)

// Face is another face that stands behind this one's door: whoever reaches it
// has shown a key, and what it answers is observed and logged like the rest.
type Face interface {
	ServeAs(w http.ResponseWriter, r *http.Request, by flow.Caller)
}

// Mount serves another face at a path. It is called before the first request.
func (a *API) Mount(path string, face Face) {
	a.router.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
		c := callOf(r.Context())
		if err := a.authenticate(r, c); err != nil {
			problemOf(err).write(w)
			return
		}
		face.ServeAs(w, r, c.by)
	})
}

// Pages serves pages at paths, which end with /* for all below. They see to
// who calls by themselves; what they answer is observed and logged like the
// rest. It is called before the first request.
func (a *API) Pages(paths []string, pages http.Handler) {
	for _, p := range paths {
		a.router.Handle(p, pages)
	}
}

// overMCP is op, offered to agents over MCP too.
func overMCP(op flow.Op) flow.Op {
	op.Faces = append(op.Faces, "mcp")
	return op
}
