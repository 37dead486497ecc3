package api

import (
	"context"
	"net/http"

	"github.com/coder/websocket"

	"github.com/longstop-dev/longstop/internal/bridge"
	"github.com/longstop-dev/longstop/internal/flow"
)

func mountBridges(a *API, s Bridges) {
	connect := offered("bridges.connect", "Hold a bridge, over a WebSocket: calls to an agent without a public address come through it", flow.RoleEditor)
	serve(a, s, connect, route{method: http.MethodGet, path: "/v1/bridge", instead: a.bridge(s, connect)}, Bridges.Connect)
	serve(a, s, offered("bridges.list", "The bridges that are connected", flow.RoleViewer),
		route{method: http.MethodGet, path: "/v1/bridges"}, Bridges.Bridges)
}

// bridge takes a WebSocket by which a bridge is held.
func (a *API) bridge(s Bridges, op flow.Op) func(http.ResponseWriter, *http.Request, *call) bool {
	return func(w http.ResponseWriter, r *http.Request, c *call) bool {
		if !isUpgrade(r) || s == nil {
			return false
		}
		name := r.URL.Query().Get("name")
		if err := s.Free(c.by, name); err != nil {
			a.problem(r.Context(), op.Name, c.by, err).write(w)
			return true
		}
		conn, err := websocket.Accept(&handshake{ResponseWriter: w}, r, &websocket.AcceptOptions{Subprotocols: []string{bridge.Subprotocol}})
		if err != nil {
			return true // it has answered
		}
		defer conn.CloseNow()
		ctx, cancel := a.whileOpen(context.WithoutCancel(r.Context()))
		defer cancel()
		err = s.Hold(ctx, conn, c.by, name, func(ctx context.Context) error { return a.stillMay(ctx, op) })
		switch code := flow.CodeOf(err); {
		case err == nil:
		case code == flow.CodeUnauthenticated || code == flow.CodeForbidden:
			conn.Close(websocket.StatusPolicyViolation, "the key holds no longer")
		default:
			conn.Close(websocket.StatusProtocolError, "that is no bridge")
		}
		return true
	}
}
