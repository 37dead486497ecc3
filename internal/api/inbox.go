package api

import (
	"context"
	"net/http"

	"github.com/longstop-dev/longstop/internal/flow"
)

// mountInbox mounts what an agent needs that can run no server: it polls,
// reads and answers.
func mountInbox(a *API, s Inbox) {
	serve(a, s, agents(overMCP(offered("recovery.pending", "Failed steps that wait for an agent, oldest first; may wait for a change", flow.RoleViewer))),
		route{method: http.MethodGet, path: "/v1/recovery/pending", patient: true}, Inbox.Pending)
	serve(a, s, agents(overMCP(offered("recovery.input", "What an agent is shown of a failed step: RecoveryToolInput", flow.RoleViewer))),
		route{method: http.MethodGet, path: "/v1/recovery/{runId}/{stepIndex}"}, Inbox.PendingInput)
	serve(a, s, agents(offered("recovery.case", "The whole case of a failed step", flow.RoleViewer)),
		route{method: http.MethodGet, path: "/v1/recovery/{runId}/{stepIndex}/case"}, Inbox.PendingCase)
	serve(a, s, changing(agents(overMCP(offered("recovery.action", "Answer a failed step with one of the five actions", flow.RoleOperator)))),
		route{method: http.MethodPost, path: "/v1/recovery/{runId}/{stepIndex}/action"}, Inbox.SubmitAction)
	serve(a, s, changing(agents(overMCP(offered("recovery.claim", "Claim a failed step that waits, or prolong the claim, so that no other agent works on it", flow.RoleOperator)))),
		route{method: http.MethodPost, path: "/v1/recovery/{runId}/{stepIndex}/claim"}, Inbox.ClaimCase)
	serve(a, s, changing(agents(overMCP(offered("recovery.release", "Give up a claim", flow.RoleOperator)))),
		route{method: http.MethodDelete, path: "/v1/recovery/{runId}/{stepIndex}/claim"}, Inbox.ReleaseCase)
}

// whileOpen gives a context that ends when the process is about to, or the
// caller's key holds no longer.
func (a *API) whileOpen(ctx context.Context) (context.Context, context.CancelFunc) {
	bearer := callOf(ctx).bearer
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer cancel()
		for {
			revoked := a.c.Access.Revocations()
			if _, err := a.c.Access.Authenticate(ctx, bearer); err != nil {
				return
			}
			select {
			case <-revoked:
			case <-a.closed:
				return
			case <-ctx.Done():
				return
			}
		}
	}()
	return ctx, cancel
}

// validated is an answer that its caller may have already.
type validated interface {
	// Validator gives the entity tag, and whether the caller has it.
	Validator() (tag string, unchanged bool)
}
