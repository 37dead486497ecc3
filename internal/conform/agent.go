package conform

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/longstop-dev/longstop/internal/a2a"
	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/mcpclient"
	"github.com/longstop-dev/longstop/internal/recovery"
)

// The transports, by their names in a [Report].
const (
	TransportA2A   = "a2a-1.0"
	TransportA2A03 = "a2a-0.3"
	TransportREST  = "a2a-http" // HTTP+JSON
	TransportMCP   = "mcp"
	TransportInbox = "inbox"
)

// way is a transport with the means to ask over it.
type way struct {
	name    string
	skipped string
	ask     asker
}

// a2aWays are the transports of the agent behind a card. Each is tried with a
// card that declares nothing else; one that the card does not declare is
// skipped.
func a2aWays(ctx context.Context, outside *http.Client, agent Agent) (name string, ways []way, err error) {
	client := &a2a.Client{HTTP: outside, Log: slog.New(slog.DiscardHandler)}
	card, err := client.FetchCard(ctx, agent.URL)
	if err != nil {
		return "", nil, flow.Errorf(flow.CodeUnavailable, "the agent's card cannot be read: %v", err).
			Right("the agent must serve /.well-known/agent-card.json at " + withoutQuery(agent.URL)).Because(err)
	}
	kinds := []struct {
		name string
		is   func(a2a.Interface) bool
	}{
		{TransportA2A, func(i a2a.Interface) bool {
			return i.Binding == a2a.BindingJSONRPC && !strings.HasPrefix(i.Version, "0.")
		}},
		{TransportA2A03, func(i a2a.Interface) bool {
			return i.Binding == a2a.BindingJSONRPC && strings.HasPrefix(i.Version, "0.")
		}},
		{TransportREST, func(i a2a.Interface) bool {
			return i.Binding == a2a.BindingHTTPJSON && !strings.HasPrefix(i.Version, "0.")
		}},
	}
	for _, k := range kinds {
		only := *card
		only.Interfaces = slices.DeleteFunc(slices.Clone(card.Interfaces), func(i a2a.Interface) bool { return !k.is(i) })
		w := way{name: k.name, ask: askA2A(outside, agent, &only)}
		if len(only.Interfaces) == 0 {
			w.skipped = "the card declares no such interface"
			if k.name == TransportA2A && len(card.Interfaces) == 0 { // a minimal card: the recovery specification's own form
				w = way{name: k.name, ask: askA2A(outside, agent, card)}
			}
		}
		ways = append(ways, w)
	}
	return card.Name, ways, nil
}

// askA2A asks over the interfaces that a card declares. A client of its own
// remembers nothing of the other transports.
func askA2A(outside *http.Client, agent Agent, card *a2a.Card) asker {
	client := &a2a.Client{HTTP: outside, Log: slog.New(slog.DiscardHandler)}
	return func(ctx context.Context, q flow.Question) (flow.Answer, error) {
		ask := a2a.RecoveryAsk{URL: agent.URL, Card: card, Token: agent.Token, RunID: q.RunID, StepIndex: q.StepIndex, Input: text(q.Input)}
		to := a2a.Target{Purpose: a2a.ForRecovery, URL: agent.URL, Card: card}.Endpoint()
		if origin, err := a2a.Origin(to); err == nil {
			ask.TokenOrigin = origin
		}
		action, _, err := client.Ask(ctx, ask)
		return flow.Answer{Action: action}, err
	}
}

// mcpWay is the transport of an MCP server.
func mcpWay(ctx context.Context, pool *mcpclient.Pool, srv mcpclient.Server) (way, error) {
	tools, err := pool.Tools(ctx, srv)
	if err != nil {
		return way{}, flow.Errorf(flow.CodeUnavailable, "the MCP server cannot be asked for its tools: %v", err).Because(err)
	}
	if !slices.ContainsFunc(tools, func(t mcpclient.Tool) bool { return t.Name == recovery.ToolName }) {
		return way{}, flow.Errorf(flow.CodeInvalid, "the MCP server does not list the tool %s", recovery.ToolName).
			Right("a recovery agent over MCP is a server with that tool")
	}
	ask := func(ctx context.Context, q flow.Question) (flow.Answer, error) {
		r, err := pool.Call(ctx, srv, recovery.ToolName, text(q.Input))
		switch {
		case err != nil:
			return flow.Answer{}, err
		case r.IsError:
			return flow.Answer{}, flow.Errorf(flow.CodeInvalid, "the tool answered with an error: %s", strings.Join(r.Text, " "))
		}
		return flow.Answer{Action: json.RawMessage(r.Value())}, nil
	}
	return way{name: TransportMCP, ask: ask}, nil
}

func withoutQuery(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return ""
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return u.String()
}
