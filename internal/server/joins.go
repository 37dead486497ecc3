package server

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/longstop-dev/longstop/internal/a2a"
	"github.com/longstop-dev/longstop/internal/access"
	"github.com/longstop-dev/longstop/internal/bridge"
	"github.com/longstop-dev/longstop/internal/engine"
	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/responder"
	"github.com/longstop-dev/longstop/internal/store"
	"github.com/longstop-dev/longstop/internal/vault"
)

// cards reads agent cards for whoever saves an agent's URL: services do not
// import each other, and this joins two of them.
type cards struct{ agents *responder.A2A }

// Read fetches and checks the card of the agent at rawURL.
func (c cards) Read(ctx context.Context, rawURL string) (access.CardInfo, error) {
	info, err := c.agents.Read(ctx, rawURL)
	return access.CardInfo(info), err
}

// agents calls agents that are hosted elsewhere: whoever drives a turn does not
// care whether they are reached through a bridge.
type agents struct {
	wire   *a2a.Client
	access *access.Service
	hub    *bridge.Hub
}

// behind is where requests go that a bridge carries: of a URL it looks at the
// path only.
const behind = "http://bridge.invalid"

// through is a client for requests of one bridge.
type through struct {
	hub             *bridge.Hub
	workspace, name string
}

// Do sends a request over the bridge.
func (t through) Do(req *http.Request) (*http.Response, error) {
	return t.hub.Do(t.workspace, t.name, req)
}

// client gives who calls the agent with a card.
func (a agents) client(workspace, card string) (c *a2a.Client, bridged bool) {
	name, bridged := bridge.Name(card)
	if !bridged {
		return a.wire, false
	}
	return &a2a.Client{HTTP: through{a.hub, workspace, name}, Log: a.wire.Log}, true
}

// Card reads the card at a URL, or below it, or through a bridge.
func (a agents) Card(ctx context.Context, workspace, url string) (*a2a.Card, error) {
	policy, err := a.access.Cards(ctx, workspace)
	if err != nil {
		return nil, err
	}
	c, bridged := a.client(workspace, url)
	if !bridged {
		return c.FetchSigned(ctx, url, policy)
	}
	card, err := c.FetchSigned(ctx, behind, policy)
	var at *a2a.PlaceError
	switch {
	case errors.As(err, &at):
		return nil, at.Err // the place is ours
	case err != nil:
		return nil, err
	}
	// Wherever the card says that the agent is, it is called through the bridge.
	for i := range card.Interfaces {
		card.Interfaces[i].URL = moved(card.Interfaces[i].URL)
	}
	card.TopURL, card.Source = moved(card.TopURL), url
	return card, nil
}

// moved is a URL's path behind a bridge.
func moved(raw string) string {
	u, err := url.Parse(raw)
	if raw == "" || err != nil {
		return raw
	}
	return behind + u.RequestURI()
}

// Send belongs to turn.Wire.
func (a agents) Send(ctx context.Context, workspace string, t a2a.Target, o a2a.Out) (*a2a.Answer, a2a.Route, error) {
	c, _ := a.client(workspace, t.URL)
	return c.Send(ctx, t, o)
}

// GetTask belongs to turn.Wire.
func (a agents) GetTask(ctx context.Context, workspace string, t a2a.Target, r a2a.Route, id string) (*a2a.Answer, error) {
	c, _ := a.client(workspace, t.URL)
	return c.GetTask(ctx, t, r, id)
}

// CancelTask belongs to turn.Wire.
func (a agents) CancelTask(ctx context.Context, workspace string, t a2a.Target, r a2a.Route, id string) (*a2a.Answer, error) {
	c, _ := a.client(workspace, t.URL)
	return c.CancelTask(ctx, t, r, id)
}

// talks lets a workflow's steps ask agents through vaults.
type talks struct {
	vaults  *vault.Service
	store   *store.Store
	maskers *access.Service
}

// Ask appends the asking event of a run, on behalf of whoever started it.
func (t *talks) Ask(ctx context.Context, q flow.AgentAsk) (*flow.VaultEvent, error) {
	run, err := t.store.Run(ctx, q.Workspace, q.RunID)
	if err != nil {
		return nil, err
	}
	behalf := ""
	if run.Author != "" {
		person, err := t.store.Person(ctx, run.Author)
		if err != nil {
			return nil, err
		}
		behalf = hex.EncodeToString(person.PublicKey)
	}
	masker, err := t.maskers.Masker(ctx, q.Workspace)
	if err != nil {
		return nil, err
	}
	for _, f := range []struct {
		field string
		holds bool
	}{
		{"payload", string(masker.JSON(q.Payload)) != string(q.Payload)},
		{"conversation", masker.Text(q.Conversation) != q.Conversation},
		{"eventType", masker.Text(q.EventType) != q.EventType},
		{"scope", masker.Text(q.Scope) != q.Scope},
		{"agent", masker.Text(q.Agent) != q.Agent},
	} {
		if f.holds {
			return nil, flow.Errorf(flow.CodeInvalid, "it holds a secret of the workspace, and a vault keeps its events").At(f.field).
				Right("leave it out: the agent has a token of its own")
		}
	}
	target, err := t.agent(ctx, q)
	if err != nil {
		return nil, err
	}
	metadata, err := json.Marshal(map[string]string{"correlation": q.Correlation, "conversation": q.Conversation})
	if err != nil {
		return nil, err
	}
	e := vault.NewEvent{Scope: q.Scope, Type: q.EventType, Target: target, Payload: q.Payload, Metadata: metadata, Parents: q.Parents}
	author := flow.EventAuthor{Kind: flow.AuthorRun, ID: q.RunID}
	return t.vaults.Publish(ctx, q.Workspace, q.Vault, e, author, behalf, vault.StepKeys+q.Correlation)
}

// agent gives the id of an agent that may be named by its alias.
func (t *talks) agent(ctx context.Context, q flow.AgentAsk) (string, error) {
	if strings.Contains(q.Agent, ":") {
		return q.Agent, nil
	}
	all, err := t.store.Agents(ctx, q.Workspace)
	if err != nil {
		return "", err
	}
	var ids []string
	for _, a := range all {
		if a.Manifest.Alias == q.Agent {
			ids = append(ids, a.ID)
		}
	}
	if len(ids) == 1 {
		return ids[0], nil
	}
	return "", flow.Errorf(flow.CodeInvalid, "%d agents have the alias %q", len(ids), q.Agent).At("agent").
		Right("the id of one, <pubkey>:<alias>, as agents list prints it")
}

// Answer finds the answer to an asking event with its correlation.
func (t *talks) Answer(ctx context.Context, vaultID, asked, correlation string) (*flow.VaultEvent, error) {
	found, err := t.store.VaultEvents(ctx, flow.EventFilter{Vault: vaultID, Type: flow.EventAgentAnswered, Parent: asked, Correlation: correlation, Limit: 1})
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return &found[0], nil
}

// arrivals tells the engine of answers to what its runs have asked.
type arrivals struct{ engine *engine.Engine }

// Turn is nothing to the engine.
func (arrivals) Turn(flow.Turn) {}

// Revoked is nothing to the engine: the turn's answer tells.
func (arrivals) Revoked(string) {}

// Appended looks for answers whose correlation begins with a run's id.
func (a arrivals) Appended(events []flow.VaultEvent) {
	for i := range events {
		e := &events[i]
		token := store.Correlation(e.Metadata)
		run, _, ok := strings.Cut(token, "/")
		if ok && e.Type == flow.EventAgentAnswered && strings.HasPrefix(run, "run_") {
			a.engine.Arrived(run, token)
		}
	}
}
