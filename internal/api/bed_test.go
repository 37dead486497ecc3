package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/longstop-dev/longstop/internal/a2a"
	"github.com/longstop-dev/longstop/internal/access"
	"github.com/longstop-dev/longstop/internal/agent/registry"
	"github.com/longstop-dev/longstop/internal/api"
	"github.com/longstop-dev/longstop/internal/bridge"
	"github.com/longstop-dev/longstop/internal/bucket"
	"github.com/longstop-dev/longstop/internal/engine"
	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/flow/flowtest"
	"github.com/longstop-dev/longstop/internal/ident"
	"github.com/longstop-dev/longstop/internal/notify"
	"github.com/longstop-dev/longstop/internal/recovery"
	"github.com/longstop-dev/longstop/internal/secret"
	"github.com/longstop-dev/longstop/internal/store"
	"github.com/longstop-dev/longstop/internal/vault"
)

// bed is the face on real keys and settings and on an engine that the test
// scripts.
type bed struct {
	t      *testing.T
	api    *api.API
	srv    *httptest.Server
	access *access.Service
	eng    *scripted
	desk   *desk
	clock  *flowtest.Clock
	log    *lines
	owner  string
}

func newBed(t *testing.T, change ...func(*api.Config)) *bed {
	t.Helper()
	b := &bed{t: t, eng: newScripted(), desk: &desk{}, clock: flowtest.NewClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)), log: &lines{}}
	s, err := store.Open(t.Context(), store.Options{Path: filepath.Join(t.TempDir(), "t.db")})
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() { s.Close() })
	ring, err := secret.NewKeyring(bytes.Repeat([]byte{1}, secret.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	b.access = access.New(access.Config{Tenants: s, Keys: s, People: s, Audit: s, Settings: s, Secrets: s, Servers: s, Versions: s, Keyring: ring,
		Cards: outside{}, Egress: outside{}, Clock: b.clock, NewID: ident.New})
	if b.owner, _, err = b.access.Bootstrap(t.Context(), access.Founding{}); err != nil {
		t.Fatalf("bootstrap: %v", err)
	}
	vaults := vault.New(vault.Config{Vaults: s, Events: s, Connections: s, Jobs: s, Agents: s, People: s, Clock: b.clock, NewID: ident.New})
	keyring, err := secret.NewKeyring(make([]byte, secret.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	agents := registry.New(registry.Config{Agents: s, Services: s, People: s, Cards: noCards{}, Sealer: keyring, Buckets: bucket.Options{Dir: t.TempDir()}, Clock: b.clock, NewID: ident.New})
	c := api.Config{Registry: agents, Bridges: bridge.NewHub(b.clock), Engine: b.eng, Recovery: b.desk, Notices: notices{}, Access: b.access, Vaults: vaults, Ready: s.Ping, Version: "1.2.3", PublicURL: "https://stop.example", Clock: b.clock,
		Log: slog.New(slog.NewJSONHandler(b.log, &slog.HandlerOptions{Level: slog.LevelDebug}))}
	for _, f := range change {
		f(&c)
	}
	b.api = api.New(c)
	b.srv = httptest.NewServer(b.api)
	t.Cleanup(func() { b.api.Close(); b.srv.Close() })
	return b
}

// noCards has no card anywhere.
type noCards struct{}

func (noCards) Card(context.Context, string, string) (*a2a.Card, error) {
	return nil, a2a.ErrUnreachable
}

// outside has an agent card at every URL.
type outside struct{}

func (outside) Read(_ context.Context, rawURL string) (access.CardInfo, error) {
	return access.CardInfo{Name: "Mender", URLOrigin: rawURL, EndpointOrigin: rawURL}, nil
}

func (outside) CheckURL(context.Context, string) error { return nil }

// key makes a key of a role.
func (b *bed) key(role flow.Role) (key, id string) {
	b.t.Helper()
	by, err := b.access.Authenticate(b.t.Context(), b.owner)
	if err != nil {
		b.t.Fatal(err)
	}
	in := &access.CreateKeyIn{}
	in.Body.Name, in.Body.Role = "test", string(role)
	v, err := b.access.KeysCreate(b.t.Context(), by, in)
	if err != nil {
		b.t.Fatalf("key %s: %v", role, err)
	}
	return v.Key, v.ID
}

// answer is what came back.
type answer struct {
	status int
	header http.Header
	body   string
}

// problem decodes an error answer and checks its form.
func (a answer) problem(t *testing.T) api.Problem {
	t.Helper()
	var p api.Problem
	dec := json.NewDecoder(strings.NewReader(a.body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&p); err != nil {
		t.Fatalf("the problem is none: %v in %d %s", err, a.status, a.body)
	}
	if got := a.header.Get("Content-Type"); got != "application/problem+json" {
		t.Errorf("content type: got %q, want application/problem+json", got)
	}
	if p.Status != a.status || p.Title == "" || p.Detail == "" || p.Code == "" || p.Type != "urn:longstop:error:"+string(p.Code) {
		t.Errorf("problem of status %d: got %+v, want type, title, status, detail and code", a.status, p)
	}
	return p
}

// do sends a request as the owner, unless a header says otherwise.
func (b *bed) do(method, path, kind, body string, header ...string) answer {
	b.t.Helper()
	var rd io.Reader
	if body != "" {
		rd = strings.NewReader(body)
	}
	req, err := http.NewRequestWithContext(b.t.Context(), method, b.srv.URL+path, rd)
	if err != nil {
		b.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+b.owner)
	if kind != "" {
		req.Header.Set("Content-Type", kind)
	}
	for i := 0; i < len(header); i += 2 {
		if req.Header.Del(header[i]); header[i+1] != "" {
			req.Header.Set(header[i], header[i+1])
		}
	}
	resp, err := b.srv.Client().Do(req)
	if err != nil {
		b.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header, string(raw)}
}

// lines keeps what is logged.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// scripted is an engine whose runs have the events that a test gives them.
type scripted struct {
	mu      sync.Mutex
	events  map[string][]flow.Event
	changed map[string]map[chan struct{}]bool
	gone    chan string // the run of each watcher that has left
	started []engine.StartRunIn
	created [][]byte
	fail    error
	panics  any
}

func newScripted() *scripted {
	return &scripted{events: map[string][]flow.Event{"run_1": {}}, changed: map[string]map[chan struct{}]bool{}, gone: make(chan string, 1000)}
}

// happens appends events to a run, numbered, and signals them once.
func (s *scripted) happens(run string, events ...flow.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range events {
		e.Seq = int64(len(s.events[run]) + 1)
		s.events[run] = append(s.events[run], e)
	}
	for ch := range s.changed[run] {
		select {
		case ch <- struct{}{}:
		default:
		}
	}
}

// refuse makes every operation answer err.
func (s *scripted) refuse(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = err
}

func (s *scripted) refusal() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.panics != nil {
		panic(s.panics)
	}
	return s.fail
}

func (s *scripted) Watch(run string) (<-chan struct{}, func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ch := make(chan struct{}, 1)
	if s.changed[run] == nil {
		s.changed[run] = map[chan struct{}]bool{}
	}
	s.changed[run][ch] = true
	return ch, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.changed[run], ch)
		s.gone <- run
	}
}

func (s *scripted) ListEvents(_ context.Context, _ flow.Caller, in *engine.RecordsIn) (*engine.List[flow.Event], error) {
	if err := s.refusal(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	all, ok := s.events[in.ID]
	if !ok {
		return nil, flow.Errorf(flow.CodeNotFound, "there is no run %s", in.ID)
	}
	out := &engine.List[flow.Event]{Items: []flow.Event{}}
	rest := all[min(int(in.After), len(all)):]
	if len(rest) > in.Limit {
		rest, out.Next = rest[:in.Limit], "more"
	}
	out.Items = append(out.Items, rest...)
	return out, nil
}

func (s *scripted) GetRun(_ context.Context, _ flow.Caller, in *engine.RunIn) (*engine.RunView, error) {
	if err := s.refusal(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	v := &engine.RunView{ID: in.ID, Status: flow.RunRunning, Seq: int64(len(s.events[in.ID]))}
	if n := len(s.events[in.ID]); n > 0 && s.events[in.ID][n-1].Type == flow.EventRunSucceeded {
		v.Status = flow.RunSucceeded
	}
	return v, nil
}

func (s *scripted) StartRun(_ context.Context, _ flow.Caller, in *engine.StartRunIn) (*engine.RunView, error) {
	if err := s.refusal(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.started = append(s.started, *in)
	return &engine.RunView{ID: "run_9", Workflow: in.Name, Input: in.Body.Input}, nil
}

func (s *scripted) CreateWorkflow(_ context.Context, _ flow.Caller, in *engine.CreateWorkflowIn) (*engine.WorkflowView, error) {
	if err := s.refusal(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.created = append(s.created, bytes.Clone(in.RawBody))
	return &engine.WorkflowView{Name: "moved", Number: len(s.created), Source: string(in.RawBody)}, nil
}

func (s *scripted) ValidateWorkflow(context.Context, flow.Caller, *engine.CreateWorkflowIn) (*engine.ValidateOut, error) {
	return &engine.ValidateOut{Valid: true}, s.refusal()
}

func (s *scripted) ListWorkflows(context.Context, flow.Caller, *engine.Page) (*engine.List[engine.WorkflowView], error) {
	return &engine.List[engine.WorkflowView]{Items: []engine.WorkflowView{}}, s.refusal()
}

func (s *scripted) GetWorkflow(_ context.Context, _ flow.Caller, in *engine.WorkflowIn) (*engine.WorkflowView, error) {
	return &engine.WorkflowView{Name: in.Name}, s.refusal()
}

func (s *scripted) StepTypes(context.Context, flow.Caller, *struct{}) (*engine.List[flow.StepType], error) {
	return &engine.List[flow.StepType]{Items: []flow.StepType{}}, s.refusal()
}

func (s *scripted) DefinitionSchema(context.Context, flow.Caller, *struct{}) (*json.RawMessage, error) {
	raw := json.RawMessage(`{"type":"object"}`)
	return &raw, s.refusal()
}

func (s *scripted) ListRuns(context.Context, flow.Caller, *engine.ListRunsIn) (*engine.List[engine.RunView], error) {
	return &engine.List[engine.RunView]{Items: []engine.RunView{}}, s.refusal()
}

func (s *scripted) CancelRun(_ context.Context, _ flow.Caller, in *engine.CancelIn) (*engine.RunView, error) {
	return &engine.RunView{ID: in.ID, Status: flow.RunCancelled}, s.refusal()
}

func (s *scripted) RetryRun(_ context.Context, _ flow.Caller, in *engine.RetryIn) (*engine.RunView, error) {
	return &engine.RunView{ID: in.ID, Status: flow.RunRunning}, s.refusal()
}

func (s *scripted) RerunRun(_ context.Context, _ flow.Caller, in *engine.RerunIn) (*engine.RunView, error) {
	return &engine.RunView{ID: "run_10", RerunOf: in.ID}, s.refusal()
}

func (s *scripted) CompareRuns(_ context.Context, _ flow.Caller, in *engine.CompareIn) (*engine.CompareView, error) {
	return &engine.CompareView{A: engine.RunHead{ID: in.ID}, B: engine.RunHead{ID: in.Other}, Steps: []engine.StepCompared{}}, s.refusal()
}

func (s *scripted) ListVersions(context.Context, flow.Caller, *engine.VersionsIn) (*engine.List[engine.WorkflowView], error) {
	return &engine.List[engine.WorkflowView]{Items: []engine.WorkflowView{}}, s.refusal()
}

func (s *scripted) GetVersion(_ context.Context, _ flow.Caller, in *engine.VersionIn) (*engine.WorkflowView, error) {
	return &engine.WorkflowView{Name: in.Name}, s.refusal()
}

func (s *scripted) PublishWorkflow(_ context.Context, _ flow.Caller, in *engine.PublishIn) (*engine.WorkflowView, error) {
	return &engine.WorkflowView{Name: in.Name, Published: true}, s.refusal()
}

func (s *scripted) UnpublishWorkflow(_ context.Context, _ flow.Caller, in *engine.WorkflowIn) (*engine.WorkflowView, error) {
	return &engine.WorkflowView{Name: in.Name}, s.refusal()
}

func (s *scripted) ListLogs(context.Context, flow.Caller, *engine.RecordsIn) (*engine.List[flow.Log], error) {
	return &engine.List[flow.Log]{Items: []flow.Log{{StepID: "a"}}}, s.refusal()
}

func (s *scripted) AnswerGate(_ context.Context, _ flow.Caller, in *engine.AnswerGateIn) (*flow.Gate, error) {
	return &flow.Gate{ID: in.ID, Answer: &in.Body}, s.refusal()
}

func (s *scripted) Pending(_ context.Context, _ flow.Caller, in *engine.PendingIn) (*engine.PendingOut, error) {
	return &engine.PendingOut{Items: []engine.PendingItem{}}, s.refusal()
}

func (s *scripted) PendingInput(context.Context, flow.Caller, *engine.StepIn) (*flow.RecoveryInput, error) {
	return &flow.RecoveryInput{}, s.refusal()
}

func (s *scripted) PendingCase(context.Context, flow.Caller, *engine.StepIn) (*flow.Case, error) {
	return &flow.Case{}, s.refusal()
}

func (s *scripted) SubmitAction(_ context.Context, _ flow.Caller, in *engine.SubmitIn) (*engine.SubmitOut, error) {
	return &engine.SubmitOut{RunID: in.RunID, StepIndex: in.StepIndex}, s.refusal()
}

func (s *scripted) ClaimCase(_ context.Context, _ flow.Caller, in *engine.ClaimIn) (*engine.ClaimOut, error) {
	return &engine.ClaimOut{RunID: in.RunID, StepIndex: in.StepIndex}, s.refusal()
}

func (s *scripted) ReleaseCase(context.Context, flow.Caller, *engine.ReleaseIn) (*engine.Released, error) {
	return &engine.Released{}, s.refusal()
}

// notices has nothing to tell.
type notices struct{}

func (notices) NoticesList(context.Context, flow.Caller, *notify.NoticesIn) (*notify.NoticesOut, error) {
	return &notify.NoticesOut{Items: []notify.NoticeView{}}, nil
}

func (notices) NoticesTest(context.Context, flow.Caller, *struct{}) (*notify.TestView, error) {
	return &notify.TestView{}, nil
}

// desk answers for recovery. Trials wait on it while it has a hold.
type desk struct{ hold chan struct{} }

func (*desk) CasesList(context.Context, flow.Caller, *recovery.CasesListIn) (*recovery.List[flow.Case], error) {
	return &recovery.List[flow.Case]{Items: []flow.Case{}}, nil
}

func (*desk) CasesGet(_ context.Context, _ flow.Caller, in *recovery.CaseIn) (*flow.Case, error) {
	return &flow.Case{ID: in.ID}, nil
}

func (*desk) CasesReplay(_ context.Context, _ flow.Caller, in *recovery.ReplayIn) (*recovery.ReplayView, error) {
	return &recovery.ReplayView{CaseID: in.ID, Now: recovery.TrialResult{Agent: in.Body.Agent}}, nil
}

func (d *desk) AgentsTest(ctx context.Context, _ flow.Caller, in *recovery.AgentsTestIn) (*recovery.TrialResult, error) {
	if d.hold != nil {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-d.hold:
		}
	}
	return &recovery.TrialResult{Agent: in.Body.Agent, Action: in.Body.Input}, nil
}

func (*desk) GatesList(_ context.Context, _ flow.Caller, in *recovery.GatesListIn) (*recovery.List[flow.Gate], error) {
	return &recovery.List[flow.Gate]{Items: []flow.Gate{{ID: "gate_1", Status: flow.GateStatus(in.Status), RunID: in.RunID}}}, nil
}

func (*desk) GatesGet(_ context.Context, _ flow.Caller, in *recovery.GateIn) (*flow.Gate, error) {
	return &flow.Gate{ID: in.ID}, nil
}

func (*desk) RecoverySchema(context.Context, flow.Caller, *recovery.None) (*recovery.Contract, error) {
	c := recovery.Schema()
	return &c, nil
}

func (*desk) ModelUsage(context.Context, flow.Caller, *recovery.ModelUsageIn) (*recovery.List[flow.ModelDay], error) {
	return &recovery.List[flow.ModelDay]{Items: []flow.ModelDay{}}, nil
}

func (*desk) CasesObserved(context.Context, flow.Caller, *recovery.ObservedIn) (*recovery.ObservedView, error) {
	return &recovery.ObservedView{Agents: []recovery.ObservedAgent{}}, nil
}
