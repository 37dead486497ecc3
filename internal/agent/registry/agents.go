package registry

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"strings"
	"time"

	"github.com/longstop-dev/longstop/internal/flow"
)

// AgentView is an agent as every face shows it: the version that is called.
type AgentView struct {
	ID          string    `json:"id" doc:"<pubkey>:<alias>, the target of events."`
	Kind        string    `json:"kind" doc:"external: it runs elsewhere."`
	Alias       string    `json:"alias"`
	Name        string    `json:"name"`
	Description string    `json:"description"`
	Version     string    `json:"version"`
	Card        string    `json:"card" doc:"The URL of its card, which is read at every call."`
	Scopes      []string  `json:"scopes" doc:"That it asks for; vault owners grant them."`
	IdleTimeout int64     `json:"idleTimeout" doc:"Seconds that a conversation survives without events."`
	Service     string    `json:"service" doc:"The public key of its Agent Service."`
	PushedBy    string    `json:"pushedBy"`
	PushedAt    time.Time `json:"pushedAt"`
	Versions    []string  `json:"versions,omitempty" doc:"Every version pushed, in that order."`
}

// AgentIn names an agent.
type AgentIn struct {
	ID string `path:"id" doc:"<pubkey>:<alias>, or the alias where only one agent has it."`
}

// ReindexIn names a bucket.
type ReindexIn struct {
	ID string `path:"id" doc:"A bucket's id."`
}

// ReindexOut says what a bucket held.
type ReindexOut struct {
	Indexed int      `json:"indexed" doc:"Manifests."`
	Left    []string `json:"left" doc:"What was left out, and why."`
}

func viewAgent(a flow.Agent) AgentView {
	m := a.Manifest
	return AgentView{ID: a.ID, Kind: m.Kind, Alias: m.Alias, Name: m.Name, Description: m.Description, Version: m.Version, Card: m.Card, Scopes: m.Scopes,
		IdleTimeout: m.IdleTimeout, Service: a.Service, PushedBy: a.PushedBy, PushedAt: a.PushedAt}
}

// ListAgents lists the workspace's agents, by id.
func (r *Registry) ListAgents(ctx context.Context, by flow.Caller, _ *None) (*List[AgentView], error) {
	all, err := r.c.Agents.Agents(ctx, by.Workspace)
	if err != nil {
		return nil, err
	}
	out := &List[AgentView]{Items: []AgentView{}}
	for _, a := range all {
		out.Items = append(out.Items, viewAgent(a))
	}
	return out, nil
}

// GetAgent gives an agent with its versions; not_found, and conflict for an
// alias that several have.
func (r *Registry) GetAgent(ctx context.Context, by flow.Caller, in *AgentIn) (*AgentView, error) {
	id, err := r.find(ctx, by, in.ID)
	if err != nil {
		return nil, err
	}
	versions, err := r.c.Agents.AgentVersions(ctx, by.Workspace, id)
	if err != nil {
		return nil, err
	}
	called, err := r.called(ctx, by.Workspace, id)
	if err != nil {
		return nil, err
	}
	var out AgentView
	var names []string
	for _, a := range versions {
		if names = append(names, a.Manifest.Version); a.Manifest.Version == called {
			out = viewAgent(a)
		}
	}
	out.Versions = names
	return &out, nil
}

// find gives the id that a text stands for.
func (r *Registry) find(ctx context.Context, by flow.Caller, text string) (string, error) {
	if strings.Contains(text, ":") {
		return text, nil
	}
	all, err := r.c.Agents.Agents(ctx, by.Workspace)
	if err != nil {
		return "", err
	}
	var ids []string
	for _, a := range all {
		if a.Manifest.Alias == text {
			ids = append(ids, a.ID)
		}
	}
	switch len(ids) {
	case 0:
		return "", flow.Errorf(flow.CodeNotFound, "there is no agent %q", text).Right("an id or alias that agents list prints")
	case 1:
		return ids[0], nil
	}
	return "", flow.Errorf(flow.CodeConflict, "%d agents have the alias %q", len(ids), text).Right("one of " + strings.Join(ids, ", "))
}

// RemoveAgent takes an agent out of the registry, with its manifests in its
// service's bucket: events that target it are answered with not_connected
// from then on.
func (r *Registry) RemoveAgent(ctx context.Context, by flow.Caller, in *AgentIn) (*None, error) {
	id, err := r.find(ctx, by, in.ID)
	if err != nil {
		return nil, err
	}
	if err := r.withdraw(ctx, by, id); err != nil {
		return nil, err
	}
	return &None{}, r.c.Agents.DeleteAgent(ctx, by.Workspace, id, by.Did("agents.remove", "agent/"+id, r.c.Clock.Now(), nil))
}

// withdraw removes the manifests of an agent, so that the index is not built
// with it again.
func (r *Registry) withdraw(ctx context.Context, by flow.Caller, id string) error {
	versions, err := r.c.Agents.AgentVersions(ctx, by.Workspace, id)
	if err != nil {
		return err
	}
	service, err := r.c.Services.Service(ctx, by.Workspace, strings.SplitN(id, ":", 2)[0])
	if err != nil {
		return err
	}
	b, err := r.c.Services.Bucket(ctx, by.Workspace, service.Bucket)
	if err != nil {
		return err
	}
	place, err := r.open(b)
	if err != nil {
		return err
	}
	for _, v := range versions {
		key := manifestKey(v.Manifest)
		body, err := place.Get(ctx, key)
		if flow.CodeOf(err) == flow.CodeNotFound {
			continue
		}
		if m, why := readManifest(key, body, err); why != "" || m.AgentID != id {
			continue // somebody else's by now
		}
		if err := place.Delete(ctx, key); err != nil {
			return err
		}
	}
	return nil
}

// Reindex builds the index of the manifests in a bucket again: what was pushed
// and not indexed, or lost with a database, is there afterwards. What is no
// manifest of a service held here is left out and named.
func (r *Registry) Reindex(ctx context.Context, by flow.Caller, in *ReindexIn) (*ReindexOut, error) {
	b, err := r.c.Services.Bucket(ctx, by.Workspace, in.ID)
	if err != nil {
		return nil, err
	}
	place, err := r.open(b)
	if err != nil {
		return nil, err
	}
	keys, err := place.List(ctx, "agents/")
	if err != nil {
		return nil, err
	}
	out := &ReindexOut{Left: []string{}}
	for _, key := range keys {
		if !strings.HasSuffix(key, "/manifest.json") {
			continue
		}
		body, err := place.Get(ctx, key)
		if flow.CodeOf(err) == flow.CodeUnavailable {
			return nil, err
		}
		m, why := readManifest(key, body, err)
		if why == "" && m.AgentID != "" {
			if err := r.checkService(ctx, by, strings.SplitN(m.AgentID, ":", 2)[0]); err != nil {
				why = "its Agent Service is not held here"
			}
		}
		switch {
		case why != "":
			out.Left = append(out.Left, key+": "+why)
			continue
		case m.AgentID == "":
			out.Left = append(out.Left, key+": it has no agent id; push it again with --as-pubkey")
			continue
		}
		if err := r.index(ctx, by, m, "buckets.reindex"); err != nil {
			return nil, err
		}
		out.Indexed++
	}
	return out, nil
}

// readManifest reads what a bucket holds under a key; why says what is wrong
// with it.
func readManifest(key string, body []byte, err error) (m flow.Manifest, why string) {
	switch {
	case err != nil:
		return m, err.Error()
	case json.Unmarshal(body, &m) != nil:
		return m, "it is no JSON"
	case m.Kind != flow.KindExternal:
		return m, "it is of another kind than external"
	case !isAlias(m.Alias) || !isVersion(m.Version) || manifestKey(m) != key:
		return m, "its alias and version are not those of its place"
	case m.AgentID != "" && !isID(m.AgentID, m.Alias):
		return m, "its agent id is not that of an Agent Service's key and its alias"
	case m.Card == "" || len(m.Card) > maxURL || m.IdleTimeout <= 0 || m.IdleTimeout > maxIdle || checkScopes(m.Scopes) != nil || len(m.Scopes) == 0:
		return m, "its card, scopes or idle timeout are out of bounds"
	}
	return m, ""
}

// isID tells whether an id is that of a key, 64 hexadecimal digits in lower
// case, and an alias.
func isID(id, alias string) bool {
	key, name, _ := strings.Cut(id, ":")
	raw, err := hex.DecodeString(key)
	return err == nil && len(raw) == 32 && strings.ToLower(key) == key && name == alias
}
