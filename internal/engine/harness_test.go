package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/longstop-dev/longstop/internal/dispatch"
	"github.com/longstop-dev/longstop/internal/engine"
	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/flow/flowtest"
	"github.com/longstop-dev/longstop/internal/secret"
	"github.com/longstop-dev/longstop/internal/store"
)

// harness is an engine on a real store, with a clock that the test moves,
// step types that the test scripts, and verdicts that the test dictates.
type harness struct {
	t      testing.TB
	db     store.Options
	store  *store.Store
	clock  *flowtest.Clock
	types  *scripted
	desk   *desk
	eng    *engine.Engine
	limit  flow.Limits
	policy flow.GatePolicy
	ids    atomic.Int64
	max    int
	breaks func(what string, do func() error) error // stands between engine and store; nil for none

	stopping chan struct{} // closed when the engine has begun to stop
	moves    *flowtest.Transitions
}

// noting tells the test when the engine has begun to stop.
type noting struct {
	*dispatch.Local
	h *harness
}

func (n noting) Stop() {
	close(n.h.stopping)
	n.Local.Stop()
}

var by = flow.Caller{Workspace: "ws", Person: "person_1", Role: flow.RoleOwner}

func newHarness(t testing.TB) *harness {
	t.Helper()
	h := &harness{t: t, db: emptyDatabase(t), clock: flowtest.NewClock(time.Date(2026, 1, 1, 3, 0, 0, 0, time.UTC)),
		types: &scripted{calls: map[string][]flow.Call{}, run: map[string]stepFunc{}}, desk: &desk{}, limit: flow.DefaultLimits(), max: 64,
		moves: flowtest.NewTransitions()}
	h.start()
	t.Cleanup(func() { h.stop() })
	return h
}

func (h *harness) start() {
	h.t.Helper()
	s, err := store.Open(context.Background(), h.db)
	if err != nil {
		h.t.Fatalf("open: %v", err)
	}
	h.store = s
	_, err = s.Found(context.Background(), flow.Workspace{ID: "ws"}, flow.Person{ID: "person_1"}, flow.Key{ID: "key_1", Workspace: "ws", Person: "person_1"})
	if err != nil {
		h.t.Fatalf("found: %v", err)
	}
	h.desk.clock, h.stopping = h.clock, make(chan struct{})
	h.eng = engine.New(engine.Config{Runs: watched{s, h}, Records: watched{s, h}, Inbox: s, Versions: s, Types: h.types, Recovery: h.desk, Workspaces: space{h},
		Dispatch: noting{dispatch.NewLocal(h.clock, s), h}, Clock: h.clock, NewID: h.id, Jitter: func() float64 { return 1 }, Node: "n1",
		MaxActive: h.max, Log: slog.New(slog.DiscardHandler)})
	if err := h.eng.Start(context.Background()); err != nil {
		h.t.Fatalf("start: %v", err)
	}
}

func (h *harness) id(prefix string) string { return fmt.Sprintf("%s_%06d", prefix, h.ids.Add(1)) }

// stop interrupts whatever runs, as a kill would between two checkpoints.
func (h *harness) stop() {
	if h.eng == nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	h.eng.Stop(ctx)
	if err := h.store.Close(); err != nil {
		h.t.Errorf("close: %v", err)
	}
	h.eng = nil
}

// steps numbers steps in the order written.
func steps(list ...flow.Step) []flow.Step {
	n := 0
	var number func([]flow.Step)
	number = func(list []flow.Step) {
		for i := range list {
			s := &list[i]
			s.Index = n
			n++
			if s.ID == "" {
				s.ID = fmt.Sprintf("s%d", s.Index)
			}
			if s.Retry.Attempts == 0 {
				s.Retry = flow.Retry{Attempts: 1, Backoff: time.Second, MaxBackoff: 30 * time.Second}
			}
			if s.Timeout == 0 {
				s.Timeout = flow.DefaultTimeout
			}
			if s.TotalTimeout == 0 {
				s.TotalTimeout = flow.DefaultTotalTimeout
			}
			for j := range s.Nested {
				number(s.Nested[j].Steps)
			}
		}
	}
	number(list)
	return list
}

// begin stores a definition and starts a run of it.
func (h *harness) begin(def flow.Definition, input string) string {
	h.t.Helper()
	if def.Name == "" {
		def.Name = "w"
	}
	raw, err := json.Marshal(def)
	if err != nil {
		h.t.Fatal(err)
	}
	v, err := h.store.Publish(context.Background(), flow.WorkflowVersion{ID: h.id("ver"), Workspace: "ws", Workflow: def.Name,
		Digest: h.id("digest"), Definition: raw, CreatedAt: h.clock.Now()}, nil)
	if err != nil {
		h.t.Fatal(err)
	}
	in := &engine.StartRunIn{Name: def.Name}
	in.Body.Input, in.Body.VersionID = json.RawMessage(input), v.ID
	r, err := h.eng.StartRun(context.Background(), by, in)
	if err != nil {
		h.t.Fatalf("start run: %v", err)
	}
	return r.ID
}

// await blocks until the run satisfies ok.
func (h *harness) await(runID, what string, ok func(*engine.RunView) bool) *engine.RunView {
	h.t.Helper()
	changed, stop := h.eng.Watch(runID)
	defer stop()
	deadline := time.After(20 * time.Second)
	for {
		v, err := h.eng.GetRun(context.Background(), by, &engine.RunIn{ID: runID})
		if err != nil {
			h.t.Fatalf("get run: %v", err)
		}
		if ok(v) {
			return v
		}
		select {
		case <-changed:
		case <-deadline:
			b, _ := json.MarshalIndent(v, "", " ")
			h.t.Fatalf("run did not come to be %s: %s", what, b)
		}
	}
}

func (h *harness) ended(runID string) *engine.RunView {
	h.t.Helper()
	return h.await(runID, "finished", func(v *engine.RunView) bool { return v.Status.Finished() })
}

func (h *harness) waits(runID string) *engine.RunView {
	h.t.Helper()
	return h.await(runID, "waiting", func(v *engine.RunView) bool { return v.Status == flow.RunWaiting })
}

// undriven checks that nobody drives any run, once these have been put down:
// that a run waits is seen a moment before its driver has ended.
func (h *harness) undriven(runIDs ...string) {
	h.t.Helper()
	for _, id := range runIDs {
		if err := h.eng.Settled(context.Background(), id); err != nil {
			h.t.Fatal(err)
		}
	}
	if n := h.eng.Active(); n != 0 {
		h.t.Errorf("driven runs: got %d, want none", n)
	}
}

func (h *harness) events(runID string) []string {
	h.t.Helper()
	l, err := h.eng.ListEvents(context.Background(), by, &engine.RecordsIn{ID: runID, Limit: 1000})
	if err != nil {
		h.t.Fatal(err)
	}
	var out []string
	for i, e := range l.Items {
		if e.Seq != int64(i+1) {
			h.t.Errorf("event %d has sequence number %d", i+1, e.Seq)
		}
		out = append(out, e.Type)
	}
	return out
}

func wantStatus(t *testing.T, v *engine.RunView, want flow.RunStatus) {
	t.Helper()
	if v.Status != want {
		t.Fatalf("run: got %s (%s), want %s", v.Status, v.Error, want)
	}
}

func wantEqual[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s:\n got %v\nwant %v", what, got, want)
	}
}

type stepFunc func(ctx context.Context, c flow.Call, nth int) (flow.Outcome, error)

// scripted are step types of the test's own making.
type scripted struct {
	mu    sync.Mutex
	calls map[string][]flow.Call
	run   map[string]stepFunc
}

func (s *scripted) on(name string, f stepFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.run[name] = f
}

func (s *scripted) made(name string) []flow.Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]flow.Call(nil), s.calls[name]...)
}

func (s *scripted) Types() []flow.StepType {
	var out []flow.StepType
	for _, name := range []string{"ok", "a", "b", "c", "mcp_call"} {
		out = append(out, flow.StepType{Name: name, Config: json.RawMessage(`{}`), Clocked: true, Mendable: []string{"url"}})
	}
	return append(out, flow.StepType{Name: "pause", Config: json.RawMessage(`{}`)}, flow.StepType{Name: "ask", Config: json.RawMessage(`{}`)},
		flow.StepType{Name: "fork", Config: json.RawMessage(`{}`), Nested: []string{"branches.*"}, Clocked: true, Concurrent: true},
		flow.StepType{Name: "choose", Config: json.RawMessage(`{}`), Nested: []string{"then", "else"}, Lazy: []string{"if"}, Clocked: true})
}

func (s *scripted) Check(string, json.RawMessage) []flow.Problem { return nil }

func (s *scripted) Run(ctx context.Context, name string, c flow.Call) (flow.Outcome, error) {
	s.mu.Lock()
	s.calls[name] = append(s.calls[name], c)
	f, nth := s.run[name], len(s.calls[name])
	s.mu.Unlock()
	switch {
	case f != nil:
		return f(ctx, c, nth)
	case name == "fork":
		return flow.Outcome{Branch: flow.AllBranches}, nil
	case name == "ask":
		return flow.Outcome{Approval: &flow.Approval{Message: "May it?"}}, nil
	}
	return flow.Outcome{Value: c.Config}, nil
}

func value(v string) (flow.Outcome, error) { return flow.Outcome{Value: json.RawMessage(v)}, nil }

func transient(message string) (flow.Outcome, error) {
	return flow.Outcome{}, &flow.StepError{Kind: flow.KindTransient, Message: message}
}

func refused(message string) (flow.Outcome, error) {
	return flow.Outcome{}, &flow.StepError{Kind: flow.KindRefused, Message: message}
}

// desk gives the verdicts that the test dictates, in order; without one it
// fails the step.
type desk struct {
	mu       sync.Mutex
	clock    flow.Clock
	verdicts []flow.Verdict
	answers  func(flow.GateAnswer) (flow.Verdict, error)
	expired  flow.Verdict
	said     []flow.Asked // who has spoken in each case
	failures []flow.Failure
	decide   func(context.Context, flow.Failure) flow.Verdict // if set: instead of what is dictated
	asked    chan struct{}                                    // if set: Decide signals here, then waits for its context
	takes    func()                                           // if set: what happens while Decide decides
	n        int
}

func (d *desk) dictate(v ...flow.Verdict) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.verdicts = append(d.verdicts, v...)
}

func (d *desk) saw() []flow.Failure {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]flow.Failure(nil), d.failures...)
}

func (d *desk) Freeze(_ context.Context, f flow.Failure) (flow.Case, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.n++
	return flow.Case{ID: fmt.Sprintf("case_%s_%d", f.Run.ID, d.n), Workspace: f.Run.Workspace, RunID: f.Run.ID, StepIndex: f.Step.Index,
		Attempt: f.Instance.Progress.Round, Episode: f.Instance.Progress.Episode, OpenedAt: d.clock.Now()}, nil
}

func (d *desk) Decide(ctx context.Context, f flow.Failure, c flow.Case) flow.Verdict {
	d.mu.Lock()
	d.failures = append(d.failures, f)
	hold := d.asked
	v := flow.Verdict{Kind: flow.VerdictFail, Message: "nobody can mend this"}
	if len(d.verdicts) > 0 && hold == nil {
		v, d.verdicts = d.verdicts[0], d.verdicts[1:]
	}
	decide := d.decide
	d.mu.Unlock()
	if d.takes != nil {
		d.takes()
	}
	if decide != nil {
		v = decide(ctx, f)
	}
	if hold != nil {
		hold <- struct{}{}
		<-ctx.Done()
	}
	c.Outcome, c.Asked = string(v.Kind), d.said
	v.Case = c
	if v.Gate != nil {
		g := *v.Gate
		g.ID, g.Workspace, g.RunID, g.StepIndex, g.CaseID = fmt.Sprint("gate_", f.Run.ID, "_", f.Step.Index), f.Run.Workspace, f.Run.ID, f.Step.Index, c.ID
		g.Status, g.OpenedAt = flow.GateOpen, d.clock.Now()
		v.Gate = &g
	}
	return v
}

func (d *desk) Answered(_ context.Context, _ flow.Caller, _ flow.Failure, _ flow.Case, _ flow.Gate, a flow.GateAnswer) (flow.Verdict, error) {
	return d.answers(a)
}

func (d *desk) Expired(context.Context, flow.Failure, flow.Case, flow.Gate) flow.Verdict {
	return d.expired
}

// space is what holds in the test's workspace.
type space struct{ h *harness }

func (space) Masker(context.Context, string) (*secret.Masker, error) {
	return secret.NewMasker(map[string]string{"api": "s3cr3t-value"}, nil), nil
}
func (space) Values(context.Context, string) (map[string]string, error) {
	return map[string]string{"api": "s3cr3t-value"}, nil
}
func (s space) Limits(context.Context, string) (flow.Limits, error)    { return s.h.limit, nil }
func (s space) Gates(context.Context, string) (flow.GatePolicy, error) { return s.h.policy, nil }
func (space) CheckRecovery(layer map[string]string) []flow.Problem     { return nil }

func joined(list []string) string { return strings.Join(list, " ") }
