package client_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/longstop-dev/longstop/internal/api"
	"github.com/longstop-dev/longstop/internal/client"
	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/nettest"
	"github.com/longstop-dev/longstop/internal/server"
)

// recording remembers which requests were sent.
type recording struct {
	mu   sync.Mutex
	sent []string
}

func (r *recording) RoundTrip(req *http.Request) (*http.Response, error) {
	r.mu.Lock()
	r.sent = append(r.sent, req.Method+" "+req.URL.Path)
	r.mu.Unlock()
	return nettest.Transport().RoundTrip(req)
}

// start starts a whole Longstop and gives a client of it.
func start(t *testing.T) (*client.Client, *recording) {
	t.Helper()
	s, err := server.Start(t.Context(), server.Config{DataDir: t.TempDir(), Listen: "127.0.0.1:0", AllowPrivate: true})
	if err != nil {
		t.Fatalf("start: %v", err)
	}
	t.Cleanup(func() {
		if err := s.Stop(t.Context()); err != nil && t.Context().Err() == nil {
			t.Errorf("stop: %v", err)
		}
	})
	rec := &recording{}
	return client.New(s.URL()+"/", s.Key(), client.Options{HTTP: &http.Client{Transport: rec}}), rec
}

const broken = `
name: broken
input: {type: object}
steps:
  - {id: one, type: transform, config: {value: "{{ input.a }}"}}
  - {id: two, type: transform, config: {value: "{{ steps.one.output.missing }}"}}
`

// ok stops the test at an error.
func ok[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatalf("got %v", err)
		}
		return v
	}
}

// TestEveryOperation uses each operation of the REST API against a whole
// server, and checks that none was left out.
func TestEveryOperation(t *testing.T) {
	t.Parallel()
	c, rec := start(t)
	ctx := t.Context()
	workflows(t, c)
	run := ok[*client.Run](t)(c.StartRun(ctx, "broken", client.StartRun{Input: json.RawMessage(`{"a":{"b":1}}`)}))
	var gate string
	err := c.Follow(ctx, run.ID, 0, func(e flow.Event) error {
		if e.Type == flow.EventGateOpened {
			for _, g := range ok[*client.List[flow.Gate]](t)(c.Gates(ctx, client.GateFilter{Status: "open", RunID: run.ID})).Items {
				gate = g.ID
				ok[*flow.Gate](t)(c.Gate(ctx, g.ID))
				ok[*flow.Gate](t)(c.AnswerGate(ctx, g.ID, flow.GateAnswer{Answer: "output", Output: json.RawMessage(`[7]`), Reason: "known"}))
			}
		}
		return nil
	})
	if err != nil || gate == "" {
		t.Fatalf("follow: %v, gate %q; want the run's end and a gate", err, gate)
	}
	run = ok[*client.Run](t)(c.Run(ctx, run.ID))
	if run.Status != flow.RunSucceeded || string(run.Output) != "[7]" || len(run.Steps) != 2 || run.Steps[1].RecoverySource != flow.SourceHuman {
		t.Errorf("run: got %s %s %+v, want succeeded with [7] by human", run.Status, run.Output, run.Steps)
	}
	records(t, c, run.ID)
	looks(t, c, run.ID)
	cases(t, c, run.ID)
	inbox(t, c)
	settings(t, c)
	notices(t, c)
	keys(t, c)
	vaults(t, c)
	agents(t, c)
	people(t, c)
	_, err = c.CancelRun(ctx, run.ID)
	if flow.CodeOf(err) != flow.CodeConflict {
		t.Errorf("cancel a run that has ended: got %v, want conflict", err)
	}
	for _, op := range api.New(api.Config{}).Operations() {
		at := regexp.MustCompile("^" + op.Method + " " + regexp.MustCompile(`\{[a-zA-Z]+\}`).ReplaceAllString(op.Path, "[^/]+") + "$")
		called := false
		for _, s := range rec.sent {
			called = called || at.MatchString(s)
		}
		if !called {
			t.Errorf("%s is not among the client's methods, or not called here", op.Name)
		}
	}
}

// looks takes second looks at a run that has succeeded.
func looks(t *testing.T, c *client.Client, id string) {
	t.Helper()
	ctx := t.Context()
	r := ok[*client.Run](t)(c.RerunRun(ctx, id, client.Rerun{From: "two", Version: "newest"}))
	if r.RerunOf != id || r.RerunFrom != "two" || r.ID == id {
		t.Errorf("rerun: got %+v, want a new run of %s from two", r, id)
	}
	if v := ok[*client.Comparison](t)(c.CompareRuns(ctx, id, r.ID)); v.A.ID != id || v.B.RerunOf != id || len(v.Steps) != 2 || v.Steps[0].B.CarriedFrom != id {
		t.Errorf("compare: got %+v", v)
	}
	ok[*client.Run](t)(c.CancelRun(ctx, r.ID))
	if _, err := c.RetryRun(ctx, id, "look again"); flow.CodeOf(err) != flow.CodeConflict {
		t.Errorf("retry of a run that has succeeded: got %v, want conflict", err)
	}
}

func workflows(t *testing.T, c *client.Client) {
	t.Helper()
	ctx := t.Context()
	if err := c.Ready(ctx); err != nil {
		t.Errorf("ready: %v", err)
	}
	if v := ok[*client.Validation](t)(c.ValidateWorkflow(ctx, client.Definition{Source: []byte(broken)})); v.Steps != 2 {
		t.Errorf("validate: got %+v, want 2 steps", v)
	}
	kept := ok[*client.Workflow](t)(c.CreateWorkflow(ctx, client.Definition{Source: []byte(broken), Unpublished: true}))
	made := ok[*client.Workflow](t)(c.CreateWorkflow(ctx, client.Definition{Source: []byte(broken), Filename: "broken.yaml"}))
	if kept.Number != 0 || made.Number != 1 {
		t.Errorf("numbers: got %d and %d, want 0 and 1", kept.Number, made.Number)
	}
	if w := ok[*client.Workflow](t)(c.Workflow(ctx, "broken")); w.VersionID != made.VersionID || w.Source != broken {
		t.Errorf("workflow: got %+v, want version %s", w, made.VersionID)
	}
	ok[*client.Workflow](t)(c.UnpublishWorkflow(ctx, "broken"))
	if w := ok[*client.Workflow](t)(c.PublishWorkflow(ctx, "broken", "1")); !w.Published || w.VersionID != made.VersionID {
		t.Errorf("publish: got %+v, want version 1", w)
	}
	if l := ok[*client.List[client.Workflow]](t)(c.Versions(ctx, "broken", client.Page{})); len(l.Items) != 1 || !l.Items[0].Published {
		t.Errorf("versions: got %+v, want one, published", l)
	}
	if w := ok[*client.Workflow](t)(c.Version(ctx, "broken", "1")); w.Source != broken || w.Digest == "" {
		t.Errorf("version: got %+v, want its source", w)
	}
	if l := ok[*client.List[client.Workflow]](t)(c.Workflows(ctx, client.Page{Limit: 5})); len(l.Items) != 1 {
		t.Errorf("workflows: got %+v, want 1", l)
	}
	if s := ok[json.RawMessage](t)(c.WorkflowSchema(ctx)); !strings.Contains(string(s), "steps") {
		t.Errorf("schema: got %s", s)
	}
	if l := ok[*client.List[flow.StepType]](t)(c.StepTypes(ctx)); len(l.Items) < 5 {
		t.Errorf("step types: got %d, want 5 or more", len(l.Items))
	}
	_, err := c.CreateWorkflow(ctx, client.Definition{Source: []byte("name: x\nsteps:\n  - {type: http_reqest}\n"), Filename: "x.yaml"})
	if flow.CodeOf(err) != flow.CodeInvalid || !strings.Contains(err.Error(), "http_request") {
		t.Errorf("a wrong definition: got %v, want invalid and what would be right", err)
	}
}

func records(t *testing.T, c *client.Client, run string) {
	t.Helper()
	ctx := t.Context()
	if l := ok[*client.List[client.Run]](t)(c.Runs(ctx, client.RunFilter{Workflow: "broken", Status: "succeeded", Page: client.Page{Limit: 1}})); len(l.Items) != 1 || l.Items[0].ID != run {
		t.Errorf("runs: got %+v, want %s", l, run)
	}
	all := ok[*client.List[flow.Event]](t)(c.Events(ctx, run, client.Records{}))
	later := ok[*client.List[flow.Event]](t)(c.Events(ctx, run, client.Records{After: 2, Limit: 1}))
	if len(all.Items) < 5 || len(later.Items) != 1 || later.Items[0].Seq != 3 || later.Next != "3" {
		t.Errorf("events: got %d and %+v, want the third after 2", len(all.Items), later)
	}
	if l := ok[*client.List[flow.Log]](t)(c.Logs(ctx, run, client.Records{})); len(l.Items) < 2 {
		t.Errorf("logs: got %+v, want 2 or more", l)
	}
}

func cases(t *testing.T, c *client.Client, run string) {
	t.Helper()
	if o := ok[*client.Observed](t)(c.Observed(t.Context(), "broken", 10)); o.Cases != 0 || len(o.Agents) != 0 {
		t.Errorf("observed: got %+v, want nothing", o)
	}
	if l := ok[*client.List[flow.Case]](t)(c.Cases(t.Context(), client.CaseFilter{Observed: true})); len(l.Items) != 0 {
		t.Errorf("observed cases: got %d, want none", len(l.Items))
	}
	if l := ok[*client.List[flow.ModelDay]](t)(c.ModelUsage(t.Context(), client.Page{Limit: 5})); len(l.Items) != 0 {
		t.Errorf("model usage: got %+v, want none", l.Items)
	}
	ctx := t.Context()
	l := ok[*client.List[flow.Case]](t)(c.Cases(ctx, client.CaseFilter{RunID: run}))
	if len(l.Items) == 0 {
		t.Fatal("cases: got none, want some")
	}
	k := ok[*flow.Case](t)(c.Case(ctx, l.Items[0].ID))
	gone := client.Agent{Agent: "http://127.0.0.1:1/agent"}
	if r := ok[*client.Replay](t)(c.ReplayCase(ctx, k.ID, gone)); r.CaseID != k.ID || r.Now.Valid {
		t.Errorf("replay: got %+v, want nothing valid of an agent that is not there", r)
	}
	if r := ok[*client.Trial](t)(c.TestAgent(ctx, gone, nil)); r.Found.Found {
		t.Errorf("test: got %+v, want not found", r)
	}
	if s := ok[*client.Contract](t)(c.RecoverySchema(ctx)); s.Tool != "diagnose_step_failure" {
		t.Errorf("schema: got %+v", s)
	}
}

const forAgent = `
name: for-agent
recovery: {mode: agent}
steps:
  - {id: two, type: transform, title: Two, config: {value: "{{ input.a }}"}}
`

func inbox(t *testing.T, c *client.Client) {
	t.Helper()
	ctx := t.Context()
	empty := ok[*client.Inbox](t)(c.Pending(ctx, client.PendingFilter{}))
	if len(empty.Items) != 0 || empty.Tag == "" {
		t.Errorf("an empty inbox: got %+v, want no items and a tag", empty)
	}
	if again := ok[*client.Inbox](t)(c.Pending(ctx, client.PendingFilter{Tag: empty.Tag})); !again.Unchanged || again.Tag != empty.Tag {
		t.Errorf("with its tag: got %+v, want unchanged", again)
	}
	made := ok[*client.Workflow](t)(c.CreateWorkflow(ctx, client.Definition{Source: []byte(forAgent)}))
	run := ok[*client.Run](t)(c.StartRun(ctx, made.Name, client.StartRun{}))
	l := ok[*client.Inbox](t)(c.Pending(ctx, client.PendingFilter{Tag: empty.Tag, Wait: 30 * time.Second}))
	if len(l.Items) != 1 || l.Items[0].RunID != run.ID || l.Items[0].Title != "Two" || l.Items[0].Type != "transform" {
		t.Fatalf("after a wait: got %+v, want the run's step", l)
	}
	at := l.Items[0].StepRef()
	if in := ok[*flow.RecoveryInput](t)(c.PendingInput(ctx, at)); in.SchemaVersion != 1 || in.Step.Type != "transform" {
		t.Errorf("input: got %+v", in)
	}
	if k := ok[*flow.Case](t)(c.PendingCase(ctx, at)); k.RunID != run.ID || k.Attempt != 0 {
		t.Errorf("case: got %+v, want the run's, attempt 0", k)
	}
	if v := ok[*client.Claimed](t)(c.Claim(ctx, at, time.Minute, "one")); !strings.HasPrefix(v.ClaimedBy, "one (") || v.RunID != at.RunID {
		t.Errorf("claim: got %+v", v)
	}
	_, err := c.Claim(ctx, at, 0, "two")
	if flow.CodeOf(err) != flow.CodeConflict {
		t.Errorf("another's claim: got %v, want conflict", err)
	}
	if err := c.Release(ctx, at, "one"); err != nil {
		t.Errorf("release: %v", err)
	}
	_, err = c.SubmitAction(ctx, at, json.RawMessage(`{"type":"fixed_output","diagnosis":"x"}`))
	if flow.CodeOf(err) != flow.CodeInvalid || !strings.Contains(err.Error(), "output") {
		t.Errorf("an invalid action: got %v, want invalid that names output", err)
	}
	v := ok[*client.Submitted](t)(c.SubmitAction(ctx, at, json.RawMessage(`{"type":"fixed_output","diagnosis":"known","output":7}`)))
	if v.Applied != flow.ActionFixedOutput || v.RunID != run.ID || v.AppliedAt.IsZero() {
		t.Errorf("submitted: got %+v, want fixed_output", v)
	}
	_, err = c.SubmitAction(ctx, at, json.RawMessage(`{"type":"fixed_output","diagnosis":"late","output":8}`))
	if flow.CodeOf(err) != flow.CodeConflict || !strings.Contains(err.Error(), "fixed_output: known") {
		t.Errorf("a second answer: got %v, want conflict with what was applied", err)
	}
}

func settings(t *testing.T, c *client.Client) {
	t.Helper()
	ctx := t.Context()
	ok[*client.Setting](t)(c.PutSetting(ctx, "recovery.timeout_ms", 20000))
	if s := ok[*client.Setting](t)(c.Setting(ctx, "recovery.timeout_ms")); *s.Value != "20000" || s.Source != "workspace" {
		t.Errorf("setting: got %+v, want 20000 of the workspace", s)
	}
	if s := ok[*client.Setting](t)(c.DeleteSetting(ctx, "recovery.timeout_ms")); s.Source != "default" {
		t.Errorf("deleted: got %+v, want the default", s)
	}
	if l := ok[*client.List[client.Setting]](t)(c.Settings(ctx)); len(l.Items) < 6 {
		t.Errorf("settings: got %d, want 6 or more", len(l.Items))
	}
	_, err := c.PutSetting(ctx, "recovery.timeout_ms", 5)
	if flow.CodeOf(err) != flow.CodeInvalid || !strings.Contains(err.Error(), "1000") {
		t.Errorf("out of range: got %v, want invalid with the range", err)
	}
	ok[*client.Server](t)(c.CreateServer(ctx, "mine", client.ServerSpec{URL: "http://127.0.0.1:1/mcp"}))
	ok[*client.Server](t)(c.PutServer(ctx, "mine", client.ServerSpec{URL: "http://127.0.0.1:2/mcp", Headers: map[string]string{"X-A": "b"}}))
	if s := ok[*client.Server](t)(c.Server(ctx, "mine")); s.URL != "http://127.0.0.1:2/mcp" || len(s.Headers) != 1 {
		t.Errorf("server: got %+v, want the changed one", s)
	}
	if l := ok[*client.List[client.Server]](t)(c.Servers(ctx)); len(l.Items) != 1 {
		t.Errorf("servers: got %+v, want 1", l)
	}
	if err := c.DeleteServer(ctx, "mine"); err != nil {
		t.Errorf("delete: %v", err)
	}
	ok[*client.Secret](t)(c.PutSecret(ctx, "api", "sk-0123456789"))
	if l := ok[*client.List[client.Secret]](t)(c.Secrets(ctx)); len(l.Items) != 1 || l.Items[0].Name != "api" {
		t.Errorf("secrets: got %+v, want api", l)
	}
	if err := c.DeleteSecret(ctx, "api"); err != nil {
		t.Errorf("delete: %v", err)
	}
}

func keys(t *testing.T, c *client.Client) {
	t.Helper()
	ctx := t.Context()
	if me := ok[*client.Me](t)(c.Me(ctx)); me.Role != flow.RoleOwner || me.Person == "" {
		t.Errorf("me: got %+v, want an owner", me)
	}
	k := ok[*client.Key](t)(c.CreateKey(ctx, "reader", flow.RoleViewer))
	reader := client.New(c.BaseURL(), k.Key, client.Options{})
	if _, err := reader.CancelRun(ctx, "run_x"); flow.CodeOf(err) != flow.CodeForbidden {
		t.Errorf("as a viewer: got %v, want forbidden", err)
	}
	if l := ok[*client.List[client.Key]](t)(c.Keys(ctx)); len(l.Items) < 2 || l.Items[1].Key != "" {
		t.Errorf("keys: got %+v, want two without the key", l)
	}
	if err := c.RevokeKey(ctx, k.ID); err != nil {
		t.Errorf("revoke: %v", err)
	}
	var e *client.Error
	if _, err := reader.Me(ctx); !asError(err, &e) || e.Status != 401 || e.Fix == "" {
		t.Errorf("a revoked key: got %v, want 401 and what to do", err)
	}
}

// TestFollowFindsARunThatIsOver asks for the events of a run that has ended.
func TestFollowFindsARunThatIsOver(t *testing.T) {
	t.Parallel()
	c, _ := start(t)
	ok[*client.Workflow](t)(c.CreateWorkflow(t.Context(), client.Definition{Source: []byte("name: quick\nsteps:\n  - {type: transform, config: {value: 1}}\n")}))
	run := ok[*client.Run](t)(c.StartRun(t.Context(), "quick", client.StartRun{}))
	var last int64
	seen := func(e flow.Event) error { last = e.Seq; return nil }
	if err := c.Follow(t.Context(), run.ID, 0, seen); err != nil || last == 0 {
		t.Fatalf("got %v after event %d, want the run's end", err, last)
	}
	again := time.Now()
	if err := c.Follow(t.Context(), run.ID, last, func(e flow.Event) error { t.Errorf("got event %d again", e.Seq); return nil }); err != nil {
		t.Errorf("after the last: got %v after %s, want the end at once", err, time.Since(again))
	}
	if err := c.Follow(t.Context(), "run_none", 0, seen); flow.CodeOf(err) != flow.CodeNotFound {
		t.Errorf("no such run: got %v, want not found", err)
	}
}

func notices(t *testing.T, c *client.Client) {
	t.Helper()
	if l := ok[*client.List[client.Notice]](t)(c.Notices(t.Context(), client.Page{})); len(l.Items) != 0 {
		t.Errorf("notices: got %+v, want none", l)
	}
	if _, err := c.TestNotice(t.Context()); flow.CodeOf(err) != flow.CodeInvalid {
		t.Errorf("a test without a receiver: got %v, want invalid", err)
	}
}

// agents registers an agent that is hosted elsewhere and gives its service a
// new key.
func agents(t *testing.T, c *client.Client) {
	t.Helper()
	ctx := t.Context()
	card := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `{"name":"My Helper","description":"helps","url":"http://%s/rpc"}`, r.Host)
	}))
	t.Cleanup(card.Close)
	service := ok[*client.AgentService](t)(c.CreateAgentService(ctx, client.NewAgentService{Name: "ours"}))
	if l := ok[*client.List[client.AgentService]](t)(c.AgentServices(ctx)); len(l.Items) != 1 || !l.Items[0].Default || l.Items[0].Bucket == "" {
		t.Errorf("services: %+v", l.Items)
	}
	other := ok[*client.Bucket](t)(c.CreateBucket(ctx, client.NewBucket{}))
	if l := ok[*client.List[client.Bucket]](t)(c.Buckets(ctx)); len(l.Items) != 2 || l.Items[0].ID != service.Bucket || other.Default {
		t.Errorf("buckets: %+v", l.Items)
	}
	p := ok[*client.Pushed](t)(c.PushAgent(ctx, client.Push{Kind: "external", Card: card.URL, Bucket: service.Bucket, AsPubkey: service.PublicKey}))
	if p.AgentID != service.PublicKey+":my-helper" || p.Card != card.URL+"/.well-known/agent-card.json" || p.Called != "1.0.0" {
		t.Errorf("pushed: %+v", p)
	}
	if got := ok[*client.RegisteredAgent](t)(c.Agent(ctx, "my-helper")); got.ID != p.AgentID || len(got.Versions) != 1 {
		t.Errorf("agent: %+v", got)
	}
	if l := ok[*client.List[client.RegisteredAgent]](t)(c.Agents(ctx)); len(l.Items) != 1 || l.Items[0].Kind != "external" {
		t.Errorf("agents: %+v", l.Items)
	}
	ok[*client.Vault](t)(c.CreateVault(ctx, client.NewVault{Name: "talks"}))
	con := ok[*client.Connection](t)(c.Connect(ctx, "talks", client.NewConnection{Agent: p.AgentID}))
	rotated := ok[*client.Rotated](t)(c.RotateAgentService(ctx, service.PublicKey))
	moved := ok[*client.Connection](t)(c.Connection(ctx, con.ID))
	if len(rotated.Agents) != 1 || moved.Agent != rotated.Agents[0] || moved.Agent != rotated.Service.PublicKey+":my-helper" {
		t.Errorf("rotated: %+v, connection %+v", rotated, moved)
	}
	if got := ok[*client.Reindexed](t)(c.Reindex(ctx, service.Bucket)); got.Indexed != 1 || len(got.Left) != 0 {
		t.Errorf("reindexed: %+v", got)
	}
	if l := ok[*client.List[client.Bridge]](t)(c.Bridges(ctx)); len(l.Items) != 0 {
		t.Errorf("bridges: %+v", l.Items)
	}
	if _, err := c.Bridge(ctx, "desk"); flow.CodeOf(err) != flow.CodeInvalid {
		t.Errorf("a bridge without a WebSocket: %v", err)
	}
	if err := c.RemoveAgent(ctx, "my-helper"); err != nil {
		t.Error(err)
	}
	if _, err := c.Agent(ctx, moved.Agent); flow.CodeOf(err) != flow.CodeNotFound {
		t.Errorf("removed: %v", err)
	}
}

func vaults(t *testing.T, c *client.Client) {
	t.Helper()
	ctx := t.Context()
	v := ok[*client.Vault](t)(c.CreateVault(ctx, client.NewVault{Name: "notes", Scopes: []string{"mail"}}))
	days := 30
	if got := ok[*client.Vault](t)(c.UpdateVault(ctx, v.ID, client.VaultChange{AddScopes: []string{"more"}, RetentionDays: &days})); got.RetentionDays != 30 || len(got.Scopes) != 3 {
		t.Errorf("vault: got %+v, want three scopes and 30 days", got)
	}
	if l := ok[*client.List[client.Vault]](t)(c.Vaults(ctx)); len(l.Items) != 1 {
		t.Errorf("vaults: got %+v, want one", l)
	}
	note := client.NewEvent{Type: "note", Payload: json.RawMessage(`{"a":1}`), Metadata: json.RawMessage(`{"correlation":"c"}`)}
	e := ok[*flow.VaultEvent](t)(c.AppendEvent(ctx, "notes", note, "k"))
	if again := ok[*flow.VaultEvent](t)(c.AppendEvent(ctx, "notes", note, "k")); again.ID != e.ID {
		t.Errorf("the same key: got %s, want %s", again.ID, e.ID)
	}
	ok[*flow.VaultEvent](t)(c.AppendEvent(ctx, v.ID, client.NewEvent{Type: "reply", Parents: []string{e.ID}}, ""))
	if l := ok[*client.List[flow.VaultEvent]](t)(c.VaultEvents(ctx, v.ID, client.EventFilter{Parent: e.ID})); len(l.Items) != 1 || l.Items[0].Type != "reply" {
		t.Errorf("events: got %+v, want the reply", l.Items)
	}
	if got := ok[*flow.VaultEvent](t)(c.VaultEvent(ctx, v.ID, e.ID)); got.Seq != 1 {
		t.Errorf("event: got %+v, want the first", got)
	}
	if l := ok[*client.List[client.Job]](t)(c.Jobs(ctx, v.ID, "")); len(l.Items) != 0 {
		t.Errorf("jobs: got %+v, want none", l)
	}
	if _, err := c.Job(ctx, "job_none"); flow.CodeOf(err) != flow.CodeNotFound {
		t.Errorf("an unknown job: got %v, want not found", err)
	}
	if got := ok[*client.Vault](t)(c.Vault(ctx, "notes")); got.Seq != 2 {
		t.Errorf("vault: got %+v, want two events", got)
	}
	if _, err := c.Connect(ctx, v.ID, client.NewConnection{Agent: "ab:none"}); flow.CodeOf(err) != flow.CodeNotFound {
		t.Errorf("connect an unknown agent: got %v, want not found", err)
	}
	if l := ok[*client.List[client.Connection]](t)(c.Connections(ctx, v.ID)); len(l.Items) != 0 {
		t.Errorf("connections: got %+v, want none", l)
	}
	for what, call := range map[string]func() (*client.Connection, error){
		"get": func() (*client.Connection, error) { return c.Connection(ctx, "con_none") },
		"change": func() (*client.Connection, error) {
			return c.UpdateConnection(ctx, "con_none", client.ConnectionChange{})
		},
		"revoke": func() (*client.Connection, error) { return c.RevokeConnection(ctx, "con_none") },
	} {
		if _, err := call(); flow.CodeOf(err) != flow.CodeNotFound {
			t.Errorf("%s a connection that is not there: got %v, want not found", what, err)
		}
	}
	if err := c.DeleteVault(ctx, v.ID); err != nil {
		t.Errorf("delete: %v", err)
	}
}
