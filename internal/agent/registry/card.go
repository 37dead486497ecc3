package registry

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/longstop-dev/longstop/internal/a2a"
	"github.com/longstop-dev/longstop/internal/egress"
	"github.com/longstop-dev/longstop/internal/flow"
)

// readCard reads the card and refuses one that declares no endpoint that a
// turn can call.
func (r *Registry) readCard(ctx context.Context, by flow.Caller, at string) (*a2a.Card, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	card, err := r.c.Cards.Card(ctx, by.Workspace, at)
	if err == nil && !card.HasJSONRPC() {
		return nil, flow.Errorf(flow.CodeInvalid, "the agent card declares no endpoint that speaks JSON-RPC").At("card").
			Right("an interface whose protocolBinding, or transport in a card of 0.3, is JSONRPC, or a top-level url")
	}
	if err == nil {
		return card, nil
	}
	return nil, badCard(at, err)
}

// badCard says why the card at a URL cannot be used, and what would be right.
func badCard(at string, err error) error {
	out := flow.Errorf(flow.CodeInvalid, "the agent card cannot be read: %v", err)
	if errors.Is(err, a2a.ErrCard) {
		out = flow.Errorf(flow.CodeInvalid, "%v", err)
	}
	var status *a2a.StatusError
	name, bridged := strings.CutPrefix(at, "bridge:")
	switch {
	case errors.Is(err, egress.ErrRefused): // it says so itself
	case !bridged && !strings.Contains(at, "://"):
		out = out.Right("https://" + clip(at))
	case bridged && errors.Is(err, a2a.ErrUnreachable):
		out = out.Right("hold the bridge: longstop bridge --name " + clip(name) + " --to URL")
	case errors.Is(err, a2a.ErrUnreachable), errors.Is(err, a2a.ErrTimeout), errors.Is(err, a2a.ErrTLS):
		out = out.Right("a URL at which this server reaches the agent")
	case errors.As(err, &status) && (status.Status == http.StatusUnauthorized || status.Status == http.StatusForbidden):
		out = out.Right("a card that anybody may read: it is asked for without a credential")
	case errors.As(err, &status) && status.Status >= 300 && status.Status < 400:
		out = out.Right("the URL that it redirects to")
	case errors.As(err, &status), errors.Is(err, a2a.ErrHTML):
		out = out.Right("the URL of the agent's card, or the origin that has it at /.well-known/agent-card.json")
	default:
		out = out.Right("a card with a name and a JSON-RPC endpoint")
	}
	return out.At("card").Because(err)
}

// clip bounds a text of the caller's that an error repeats.
func clip(text string) string {
	if r := []rune(text); len(r) > 100 {
		return string(r[:100]) + "…"
	}
	return text
}

// otherCredential says that a card asks for a credential that no turn sends;
// "" if it does not.
func otherCredential(card *a2a.Card) string {
	token, err := card.NeedsToken()
	anonymous := len(card.Alternatives) == 0 || slices.ContainsFunc(card.Alternatives, func(a []string) bool { return len(a) == 0 })
	switch {
	case err != nil:
		return "the card cannot be called as it is: " + err.Error()
	case !token && !anonymous:
		return "the card requires " + clip(strings.Join(card.Alternatives[0], " and ")) + ", and nothing but the execution token is ever sent: oauth2, openIdConnect, or http bearer with bearerFormat JWT"
	}
	return ""
}

// shut says that a card's endpoint may not be called from here; "" if it may,
// or if it is called through a bridge.
func (r *Registry) shut(ctx context.Context, at string, card *a2a.Card) string {
	if strings.HasPrefix(at, "bridge:") {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	endpoint := a2a.Target{Purpose: a2a.ForAgent, URL: at, Card: card}.Endpoint()
	if err := r.c.Guard.CheckURL(ctx, endpoint); err != nil {
		return "as it is now the agent cannot be called: " + err.Error()
	}
	return ""
}
