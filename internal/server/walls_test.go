package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/longstop-dev/longstop/internal/nettest"
)

// operation is one that the server describes in /openapi.json: all that REST
// offers.
type operation struct {
	name, method, path string
	roles              []string // the least role; agent too if an agent may
	changes            bool
}

func (st *stop) operations() []operation {
	st.t.Helper()
	var d struct {
		Paths map[string]map[string]struct {
			OperationID string `json:"operationId"`
			Role        string `json:"x-longstop-role"`
			Changes     bool   `json:"x-longstop-changes"`
		}
	}
	st.must("GET", "/openapi.json", nil, &d)
	var out []operation
	for path, methods := range d.Paths {
		for method, o := range methods {
			if o.Role != "" { // health asks for no key
				out = append(out, operation{o.OperationID, strings.ToUpper(method), path, strings.Split(o.Role, ", "), o.Changes})
			}
		}
	}
	slices.SortFunc(out, func(a, b operation) int { return strings.Compare(a.name, b.name) })
	return out
}

// allows reports whether a role may call it.
func (o operation) allows(role string) bool {
	order := []string{"viewer", "operator", "editor", "owner"}
	if role == "agent" {
		return slices.Contains(o.roles, "agent")
	}
	return slices.Index(order, role) >= slices.Index(order, o.roles[0])
}

// tenant is a workspace with one of everything in it.
type tenant struct {
	key                              string // an owner's
	workspace, person, member        string
	keyID, run, gate, kase, version  string
	server, secret, workflow, hidden string
	vault, event                     string
	card, bucket, service, agent     string
	connection                       string
}

// furnish fills the first workspace: a run that waits in the inbox, and so on.
func furnish(t *testing.T, st *stop) tenant {
	t.Helper()
	a := tenant{key: st.s.Key(), server: "server-of-a", secret: "secret_of_a", workflow: "workflow-of-a", hidden: "value-nobody-else-may-see"}
	var me struct{ Workspace, Person string }
	st.must("GET", "/v1/me", nil, &me)
	a.workspace, a.person = me.Workspace, me.Person
	var made struct{ ID string }
	st.must("POST", "/v1/people", map[string]any{"name": "Member-of-a", "role": "operator"}, &made)
	a.member = made.ID
	_, a.keyID = st.key("viewer")
	st.must("PUT", "/v1/secrets/"+a.secret, map[string]any{"value": a.hidden}, nil)
	st.must("PUT", "/v1/secrets/api", map[string]any{"value": secretValue}, nil)
	st.must("PUT", "/v1/mcp-servers/"+a.server, map[string]any{"url": "http://127.0.0.1:9/mcp", "headers": map[string]string{"X-Key": a.hidden}}, nil)
	st.set("recovery.mode", "agent")
	var w struct{ VersionID string }
	st.must("POST", "/v1/workflows", strings.Replace(fmt.Sprintf(moved, api(t).URL), "name: moved", "name: "+a.workflow, 1), &w)
	a.version = w.VersionID
	a.run = a.waiting(st)
	r := st.get(a.run)
	a.gate = r.Gates[0].ID
	var g struct{ CaseID string }
	st.must("GET", "/v1/gates/"+a.gate, nil, &g)
	a.kase = g.CaseID
	st.must("POST", "/v1/vaults", map[string]any{"name": "vault-of-a"}, &made)
	a.vault = made.ID
	st.must("POST", "/v1/vaults/"+a.vault+"/events", map[string]any{"type": "note", "payload": map[string]any{"text": a.hidden}}, &made)
	a.event = made.ID
	a.register(t, st)
	return a
}

// register makes an Agent Service and an agent with a connection to the vault.
func (a *tenant) register(t *testing.T, st *stop) {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `{"name":"Agent-of-a","description":"d","url":"http://%s/rpc"}`, r.Host)
	}))
	t.Cleanup(srv.Close)
	a.card, a.agent = srv.URL, "agent-of-a"
	var s struct{ PublicKey, Bucket string }
	st.must("POST", "/v1/agent-services", map[string]any{}, &s)
	a.service, a.bucket = s.PublicKey, s.Bucket
	a.connection = a.connected(st, a.agent)
}

// connected registers an agent and lets it into the vault.
func (a *tenant) connected(st *stop, alias string) string {
	st.t.Helper()
	var agent struct{ AgentID string }
	st.must("POST", "/v1/agents", map[string]any{"kind": "external", "card": a.card, "bucket": a.bucket, "asPubkey": a.service, "alias": alias}, &agent)
	var made struct{ ID string }
	st.must("POST", "/v1/vaults/"+a.vault+"/connections", map[string]any{"agentId": agent.AgentID}, &made)
	return made.ID
}

// waiting starts a run that comes to wait in the inbox.
func (a tenant) waiting(st *stop) string {
	st.t.Helper()
	var r runView
	st.must("POST", "/v1/workflows/"+a.workflow+"/runs", map[string]any{"input": map[string]any{}}, &r)
	return st.gated(r.ID).ID
}

// ids are what nobody of another workspace may read anywhere. The owner's own
// is not among them: they have made the other workspace, and its record says so.
func (a tenant) ids() []string {
	return []string{a.workspace, a.member, a.keyID, a.run, a.gate, a.kase, a.version, a.server, a.secret, a.workflow, a.hidden, a.vault, "vault-of-a", a.event, a.service, a.bucket, a.connection, a.card, secretValue, "Member-of-a"}
}

// fill puts the tenant's ids into a path.
func (a tenant) fill(o operation) string {
	id := map[string]string{"runs": a.run, "gates": a.gate, "cases": a.kase, "mcp-servers": a.server, "keys": a.keyID, "people": a.member,
		"workspaces": a.workspace, "vaults": a.vault, "events": a.vault, "jobs": a.vault, "connections": a.connection, "agents": a.agent, "buckets": a.bucket}[strings.Split(o.name, ".")[0]]
	if o.name == "connections.create" {
		id = a.vault
	}
	key := "recovery.mode"
	if strings.HasPrefix(o.name, "services.") {
		key = a.service
	}
	name := map[string]string{"secrets": a.secret}[strings.Split(o.name, ".")[0]]
	if name == "" {
		name = a.workflow
	}
	return strings.NewReplacer("{id}", id, "{name}", name, "{runId}", a.run, "{stepIndex}", "0", "{key}", key, "{event}", a.event, "{other}", a.run,
		"{number}", "1", "{version}", a.version, "{versionId}", a.version).Replace(o.path)
}

// state is all that a workspace holds, as its owner reads it.
func (st *stop) state(a tenant) string {
	st.t.Helper()
	var b strings.Builder
	for _, path := range []string{"/v1/runs", "/v1/runs/" + a.run, "/v1/runs/" + a.run + "/events", "/v1/gates/" + a.gate, "/v1/cases", "/v1/settings", "/v1/secrets",
		"/v1/mcp-servers", "/v1/workflows", "/v1/vaults", "/v1/vaults/" + a.vault + "/events", "/v1/connections", "/v1/agents", "/v1/agent-services", "/v1/buckets", "/v1/recovery/pending", "/v1/people", "/v1/keys", "/v1/workspaces", "/v1/audit/head"} {
		code, _, text := st.as(a.key, "GET", path, nil)
		if code != http.StatusOK {
			st.t.Fatalf("%s: got %d %s", path, code, text)
		}
		fmt.Fprintf(&b, "%s %s\n", path, text)
	}
	return b.String()
}

// stranger makes another workspace with an owner who knows nobody of the
// first, and gives their key.
func (st *stop) stranger(a tenant) string {
	st.t.Helper()
	var w, p, k struct{ ID, Key string }
	st.must("POST", "/v1/workspaces", map[string]any{"name": "other"}, &w)
	send := func(key, method, path string, body any, out any) {
		st.t.Helper()
		raw, err := json.Marshal(body)
		if err != nil {
			st.t.Fatal(err)
		}
		code, _, text := st.as(key, method, path, raw)
		if code >= 300 || out != nil && json.Unmarshal([]byte(text), out) != nil {
			st.t.Fatalf("%s %s: got %d %s", method, path, code, text)
		}
	}
	send(w.Key, "POST", "/v1/people", map[string]any{"name": "Eve", "role": "owner"}, &p)
	send(w.Key, "POST", "/v1/keys", map[string]any{"name": "Eve's", "role": "owner", "person": p.ID}, &k)
	send(k.Key, "DELETE", "/v1/people/"+a.person, nil, nil)
	return k.Key
}

// foreign says, of each operation, what comes of it for another workspace's
// ids: what is sent, and the status. A new operation needs a line here.
func (a tenant) foreign() map[string]struct {
	body string
	want int
} {
	action := `{"type":"fixed_output","diagnosis":"x","output":{"id":1}}`
	type answer = struct {
		body string
		want int
	}
	const none, made, ok, wrong = http.StatusNotFound, http.StatusCreated, http.StatusOK, http.StatusUnprocessableEntity
	return map[string]answer{
		"me.get": {"", ok}, "step-types.list": {"", ok}, "workflows.schema": {"", ok}, "recovery.schema": {"", ok},
		"runs.list": {"", ok}, "gates.list": {"", ok}, "cases.list": {"", ok}, "recovery.pending": {"", ok}, "workflows.list": {"", ok},
		"settings.list": {"", ok}, "settings.get": {"", ok}, "settings.delete": {"", ok}, "secrets.list": {"", ok}, "mcp-servers.list": {"", ok},
		"keys.list": {"", ok}, "people.list": {"", ok}, "workspaces.list": {"", ok}, "audit.list": {"", ok}, "audit.head": {"", ok},
		"cases.observed": {"", ok}, "model.usage": {"", ok}, "notices.list": {"", ok}, "vaults.list": {"", ok}, "connections.list": {"", ok},
		"notices.test":  {"", wrong}, // it has set no receiver
		"vaults.create": {`{"name":"vault-of-a"}`, made}, "vaults.get": {"", none}, "vaults.update": {`{"retentionDays":1}`, none}, "vaults.delete": {"", none},
		"agents.list": {"", ok}, "agents.get": {"", none}, "agents.remove": {"", none}, "services.list": {"", ok}, "buckets.list": {"", ok},
		"agents.push":     {`{"kind":"external","card":"` + a.card + `","bucket":"` + a.bucket + `","asPubkey":"` + a.service + `"}`, wrong},
		"services.create": {`{"bucket":"` + a.bucket + `"}`, wrong}, "services.rotate": {"", none}, "buckets.create": {`{}`, made}, "buckets.reindex": {"", none},
		"events.append": {`{"type":"note"}`, none}, "events.list": {"", none}, "jobs.list": {"", none}, "bridges.list": {"", ok}, "bridges.connect": {"", wrong}, "jobs.get": {"", none}, "events.get": {"", none},
		"connections.create": {`{"agentId":"` + strings.Repeat("a", 64) + `:x"}`, none}, "connections.get": {"", none}, "connections.update": {`{}`, none}, "connections.revoke": {"", none},
		"workflows.versions": {"", none}, "workflows.version": {"", none}, "workflows.publish": {`{"version":"` + a.version + `"}`, none}, "workflows.unpublish": {"", none},
		"recovery.claim": {"", none}, "recovery.release": {"", none},
		"settings.put":       {`{"value":"sync"}`, ok},
		"secrets.put":        {`{"value":"a value of its own"}`, ok},
		"mcp-servers.put":    {`{"url":"http://127.0.0.1:9/mcp"}`, ok}, // an id is the workspace's own choice
		"mcp-servers.create": {`{"id":"another","url":"http://127.0.0.1:9/mcp"}`, made},
		"workflows.create":   {"name: own\nsteps:\n  - {type: transform, config: {value: 1}}\n", made},
		"workflows.validate": {"name: own\nsteps:\n  - {type: transform, config: {value: 1}}\n", ok},
		"workspaces.create":  {`{"name":"third"}`, made},
		"people.add":         {`{"person":"` + a.member + `","role":"viewer"}`, none},
		"keys.create":        {`{"name":"x","role":"viewer","person":"` + a.member + `"}`, none},
		"agents.test":        {`{"agent":"mcp:` + a.server + `"}`, ok}, // it says that there is none
		"cases.replay":       {`{"agent":"mcp:` + a.server + `"}`, none},
		"runs.get":           {"", none}, "runs.cancel": {"", none}, "runs.logs": {"", none}, "runs.events": {"", none},
		"runs.retry": {"", none}, "runs.rerun": {`{}`, none}, "runs.compare": {"", none},
		"runs.start": {`{"versionId":"` + a.version + `"}`, none}, "workflows.get": {"", none},
		"gates.get": {"", none}, "gates.answer": {`{"answer":"skip"}`, none}, "cases.get": {"", none},
		"recovery.input": {"", none}, "recovery.case": {"", none}, "recovery.action": {action, none},
		"mcp-servers.get": {"", none}, "mcp-servers.delete": {"", none}, "secrets.delete": {"", none},
		"keys.revoke": {"", none}, "keys.rotate": {"", none},
		"people.get": {"", none}, "people.put": {`{"role":"viewer"}`, none}, "people.remove": {"", none},
		"workspaces.put": {`{"name":"mine"}`, none},
	}
}

// TestNothingCrossesWorkspaces calls every operation of REST with the ids of
// another workspace.
func TestNothingCrossesWorkspaces(t *testing.T) {
	t.Parallel()
	st := begin(t)
	a := furnish(t, st)
	eve := st.stranger(a)
	before := st.state(a)
	samples := a.foreign()
	ops := st.operations()
	// What reads goes first, since later on some names of the other's are its own too.
	slices.SortStableFunc(ops, func(x, y operation) int { return strings.Compare(fmt.Sprint(x.changes), fmt.Sprint(y.changes)) })
	if code, _, body := st.as(eve, "PUT", "/v1/settings/recovery.mcp_server_id", []byte(`{"value":"`+a.server+`"}`)); code != http.StatusUnprocessableEntity {
		t.Errorf("a setting that names another's MCP server: got %d %s, want 422", code, body)
	}
	for _, o := range ops {
		s, ok := samples[o.name]
		if !ok {
			t.Errorf("%s has no line in foreign(): say what another workspace's ids come to", o.name)
			continue
		}
		path := a.fill(o)
		if strings.Contains(path, "{") {
			t.Errorf("%s: fill() does not know a name in %s", o.name, path)
			continue
		}
		code, _, body := st.as(eve, o.method, path, []byte(s.body))
		if code != s.want && !(s.want == http.StatusOK && code == http.StatusNoContent) {
			t.Errorf("%s %s %s: got %d %s, want %d", o.name, o.method, path, code, body, s.want)
		}
		for _, id := range a.ids() {
			said := path + s.body // what the caller knows already may be repeated
			if strings.Contains(body, id) && !strings.Contains(said, id) {
				t.Errorf("%s: the answer tells %s: %s", o.name, id, body)
			}
		}
	}
	if after := st.state(a); after != before {
		t.Errorf("something of the workspace was changed:\n%s\nbefore:\n%s", after, before)
	}
}

// TestNothingCrossesWorkspacesOverMCP does the same with every tool and
// resource.
func TestNothingCrossesWorkspacesOverMCP(t *testing.T) {
	t.Parallel()
	st := begin(t)
	a := furnish(t, st)
	s := session(t, st, st.stranger(a))
	before := st.state(a)
	own := "name: own\nsteps:\n  - {type: transform, config: {value: 1}}\n"
	arguments := map[string]struct {
		in   map[string]any
		code string // "" where it acts within the caller's own workspace
	}{
		"submit_recovery_action": {map[string]any{"runId": a.run, "stepIndex": 0, "action": map[string]any{"type": "fixed_output", "diagnosis": "x", "output": map[string]any{"id": 1}}}, "not_found"},
		"deploy_workflow":        {map[string]any{"plan": own}, ""},
		"update_workflow":        {map[string]any{"name": a.workflow, "plan": strings.Replace(own, "own", a.workflow, 1)}, "not_found"},
		"publish_workflow":       {map[string]any{"name": a.workflow, "version": a.version}, "not_found"},
		"unpublish_workflow":     {map[string]any{"name": a.workflow}, "not_found"},
		"claim_recovery_case":    {map[string]any{"runId": a.run, "stepIndex": 0}, "not_found"},
		"release_recovery_claim": {map[string]any{"runId": a.run, "stepIndex": 0}, "not_found"},
		"prevalidate_markdown":   {map[string]any{"markdown": "# Own\n- do it"}, ""},
		"validate_plan":          {map[string]any{"plan": own}, ""},
		"list_workflows":         {map[string]any{}, ""},
		"get_workflow":           {map[string]any{"name": a.workflow}, "not_found"},
		"run_workflow":           {map[string]any{"name": "own", "versionId": a.version}, "not_found"},
		"get_run_status":         {map[string]any{"runId": a.run}, "not_found"},
		"list_runs":              {map[string]any{"workflow": a.workflow}, ""},
	}
	tools, err := s.ListTools(t.Context(), nil)
	if err != nil || len(tools.Tools) == 0 {
		t.Fatalf("tools: %v", err)
	}
	for _, tool := range tools.Tools {
		in, ok := arguments[tool.Name]
		if !ok {
			t.Errorf("the tool %s has no arguments here: say what another workspace's ids come to", tool.Name)
			continue
		}
		r, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: tool.Name, Arguments: in.in})
		if err != nil {
			t.Fatalf("%s: %v", tool.Name, err)
		}
		text, said := jsonText(t, r), jsonText(t, in.in)
		if r.IsError != (in.code != "") || !strings.Contains(text, in.code) {
			t.Errorf("%s: got %s, want %q", tool.Name, text, in.code)
		}
		a.nothingIn(t, tool.Name, text, said)
	}
	resources, err := s.ListResources(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range resources.Resources {
		got, err := s.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: r.URI})
		if err != nil {
			t.Errorf("%s: %v", r.URI, err)
		}
		a.nothingIn(t, r.URI, jsonText(t, got), r.URI)
	}
	for _, uri := range []string{"cffbrw://recovery/" + a.run + "/0", "cffbrw://recovery/" + a.run + "/0?iteration=1"} {
		if got, err := s.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: uri}); err == nil {
			t.Errorf("%s: got %s, want an error", uri, jsonText(t, got))
		} else {
			a.nothingIn(t, uri, err.Error(), uri)
		}
	}
	if after := st.state(a); after != before {
		t.Errorf("something of the workspace was changed:\n%s\nbefore:\n%s", after, before)
	}
}

func (a tenant) nothingIn(t *testing.T, what, text, said string) {
	t.Helper()
	for _, id := range a.ids() {
		if strings.Contains(text, id) && !strings.Contains(said, id) {
			t.Errorf("%s tells %s: %s", what, id, text)
		}
	}
}

func jsonText(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// session opens a session over MCP with a key.
func session(t *testing.T, st *stop, key string) *sdk.ClientSession {
	t.Helper()
	client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	s, err := client.Connect(context.Background(), &sdk.StreamableClientTransport{Endpoint: st.s.URL() + "/mcp", MaxRetries: -1,
		HTTPClient: &http.Client{Transport: withKey(key)}}, nil)
	if err != nil {
		t.Fatalf("connect: %v", err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// withKey sends a key with every request.
type withKey string

func (k withKey) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(k))
	return nettest.Transport().RoundTrip(r)
}

// TestWhatARoleMayNotChangesNothing calls every operation, with what it would
// take, as each role that may not.
func TestWhatARoleMayNotChangesNothing(t *testing.T) {
	t.Parallel()
	st := begin(t)
	a := furnish(t, st)
	samples := a.foreign()
	keys := map[string]string{}
	for _, role := range []string{"agent", "viewer", "operator", "editor", "owner"} {
		keys[role], _ = st.key(role)
	}
	before := st.state(a)
	for _, o := range st.operations() {
		for role, key := range keys {
			if o.allows(role) {
				continue
			}
			code, _, body := st.as(key, o.method, a.fill(o), []byte(samples[o.name].body))
			if code != http.StatusForbidden || !strings.Contains(body, `"code":"forbidden"`) {
				t.Errorf("%s as %s: got %d %s, want 403", o.name, role, code, body)
			}
			a.nothingIn(t, o.name, body, "")
		}
		for what, key := range map[string]string{"no key": "", "a wrong key": strings.Repeat("x", 40)} {
			if code, _, body := st.as(key, o.method, a.fill(o), []byte(samples[o.name].body)); code != http.StatusUnauthorized && code != http.StatusTooManyRequests {
				t.Errorf("%s with %s: got %d %s, want 401", o.name, what, code, body)
			}
		}
	}
	if after := st.state(a); after != before {
		t.Errorf("something was changed:\n%s\nbefore:\n%s", after, before)
	}
	for role, key := range keys { // over MCP what a role may not is not there
		tools, err := session(t, st, key).ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, tool := range tools.Tools {
			if role == "agent" && !strings.Contains(tool.Name, "recovery") || role == "viewer" && !tool.Annotations.ReadOnlyHint {
				t.Errorf("a %s is offered %s", role, tool.Name)
			}
		}
	}
}
