package recovery

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/flow/flowtest"
	"github.com/longstop-dev/longstop/internal/secret"
)

// bed is a desk whose surroundings the test sets.
type bed struct {
	t        *testing.T
	clock    *flowtest.Clock
	settings flow.RecoverySettings
	limits   flow.Limits
	secrets  map[string]string
	refused  map[string]string   // URL and why the guard refuses it
	tools    map[string][]string // by server
	own      *fake               // a2a
	mcp      *fake
	rules    *fake
	model    *fake
	broken   error // reading settings fails with it
	layers   []map[string]string
	trier    Trier
	cases    []flow.Case
	gates    []flow.Gate
	seen     map[string]flow.Observation // by case
	statuses map[string]flow.StepStatus  // by run

	mu     sync.Mutex
	ids    int
	losses int // times that what had no answer was marked lost
}

func newBed(t *testing.T) *bed {
	return &bed{t: t, clock: flowtest.NewClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)),
		settings: flow.RecoverySettings{Mode: "sync", Timeout: 5 * time.Second, MaxAttempts: 2, Builtin: "rules", HumanTimeout: time.Hour,
			AgentTimeout: 5 * time.Minute},
		limits:  flow.Limits{OutputBytes: 10 << 20, AnswerBytes: 4 << 20, StepTimeout: 10 * time.Minute},
		secrets: map[string]string{"api": "sk-live-0123456789"},
		refused: map[string]string{}, tools: map[string][]string{},
		own:   &fake{name: "a2a"},
		mcp:   &fake{name: "mcp"},
		rules: &fake{name: "rules", answer: `{"type":"needs_human","diagnosis":"no rule applies","suggestion":"look at it"}`}}
}

func (b *bed) desk() *Desk {
	responders := []Responder{b.own, b.mcp, b.rules}
	if b.model != nil {
		responders = append(responders, b.model)
	}
	return New(Config{Settings: b, Secrets: b, Egress: b, Tools: b, Records: b, Observations: b, Trier: b.trier,
		Responders: responders,
		Types: []flow.StepType{{Name: "http_request", Mendable: []string{"url", "method", "headers", "query", "body"}},
			{Name: "transform"}},
		Clock: b.clock, NewID: b.id, Log: slog.New(slog.DiscardHandler)})
}

func (b *bed) id(prefix string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ids++
	return fmt.Sprintf("%s_%d", prefix, b.ids)
}

func (b *bed) Recovery(_ context.Context, _ string, layers ...map[string]string) (flow.RecoverySettings, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.layers = layers
	return b.settings, b.broken
}
func (b *bed) Limits(context.Context, string) (flow.Limits, error) { return b.limits, nil }
func (b *bed) Masker(context.Context, string) (*secret.Masker, error) {
	return secret.NewMasker(b.secrets, nil), nil
}
func (b *bed) CheckURL(_ context.Context, url string) error {
	if why, ok := b.refused[url]; ok {
		return errors.New(why)
	}
	return nil
}
func (b *bed) Has(_ context.Context, _, server, tool string) error {
	list, ok := b.tools[server]
	if !ok {
		return fmt.Errorf("MCP server %q is not registered in this workspace", server)
	}
	for _, name := range list {
		if name == tool {
			return nil
		}
	}
	return fmt.Errorf("MCP server %q has no tool %q", server, tool)
}

// fake is a responder that answers what the test says.
type fake struct {
	name   string
	answer string
	after  time.Duration
	err    error
	hang   bool
	panics bool

	mu      sync.Mutex
	asked   []flow.Question
	allowed chan time.Duration // if set: told how long it is until the deadline that came along
}

func (f *fake) Name() string { return f.name }

func (f *fake) Ask(ctx context.Context, q flow.Question) (flow.Answer, error) {
	f.mu.Lock()
	f.asked = append(f.asked, q)
	f.mu.Unlock()
	if at, ok := ctx.Deadline(); ok && f.allowed != nil {
		f.allowed <- time.Until(at)
	}
	if f.panics {
		panic("boom")
	}
	if f.hang {
		<-ctx.Done()
		return flow.Answer{}, ctx.Err()
	}
	return flow.Answer{Action: json.RawMessage(f.answer), After: f.after, Target: "https://agent.example.com"}, f.err
}

func (f *fake) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.asked)
}

const stepConfig = `{"method":"GET","url":"https://api.example.com/users/{{ input.id }}",
	"headers":{"Authorization":"Bearer {{ secrets.api }}","X-Plain":"1"},"query":{"page":"{{ input.page }}","size":10},
	"body":{"who":"{{ input.name }}","kind":"a","list":["{{ input.id }}","b"]}}`

const resolvedConfig = `{"method":"GET","url":"https://api.example.com/users/42",
	"headers":{"Authorization":"Bearer sk-live-0123456789","X-Plain":"1"},"query":{"page":"7","size":10},
	"body":{"who":"Ada","kind":"a","list":["42","b"]}}`

// httpFailure is an http_request that got a 404.
func httpFailure() flow.Failure {
	return flow.Failure{
		Run: flow.Run{ID: "run_1", Workspace: "ws", Workflow: "w", Input: json.RawMessage(`{"id":42,"access_token":"tok","note":"sk-live-0123456789"}`)},
		Step: &flow.Step{Index: 2, ID: "user", Type: "http_request", Title: "Fetch user", Intent: "get the profile",
			Config: json.RawMessage(stepConfig), Timeout: 30 * time.Second},
		Config: json.RawMessage(resolvedConfig),
		Prior:  []flow.PriorOutput{{Index: 0, Output: json.RawMessage(`{"token":"abc"}`)}},
		Failed: flow.Failed{Error: "HTTP 404: Not Found\nno sk-live-0123456789 here", Kind: flow.KindRefused,
			Response: &flow.Response{Status: 404, Header: map[string]string{"X": "sk-live-0123456789"}, Body: "no sk-live-0123456789 here"}},
		Left: time.Minute,
	}
}

// decide freezes and decides a failure.
func (b *bed) decide(f flow.Failure) flow.Verdict {
	b.t.Helper()
	d := b.desk()
	k, err := d.Freeze(b.t.Context(), f)
	if err != nil {
		b.t.Fatalf("freeze: %v", err)
	}
	return d.Decide(b.t.Context(), f, k)
}

func (b *bed) Case(_ context.Context, workspace, id string) (flow.Case, error) {
	for _, k := range b.cases {
		if k.ID == id && k.Workspace == workspace {
			return k, nil
		}
	}
	return flow.Case{}, flow.Errorf(flow.CodeNotFound, "there is no case %s", id)
}
func (b *bed) Cases(_ context.Context, _, _, before string, limit int) ([]flow.Case, error) {
	var out []flow.Case
	for _, k := range b.cases {
		if (before == "" || k.ID < before) && len(out) < limit {
			out = append(out, k)
		}
	}
	return out, nil
}
func (b *bed) Gate(_ context.Context, workspace, id string) (flow.Gate, error) {
	for _, g := range b.gates {
		if g.ID == id && g.Workspace == workspace {
			return g, nil
		}
	}
	return flow.Gate{}, flow.Errorf(flow.CodeNotFound, "there is no gate %s", id)
}
func (b *bed) Gates(_ context.Context, _, _, _, after string, limit int) ([]flow.Gate, error) {
	var out []flow.Gate
	for _, g := range b.gates {
		if g.ID > after && len(out) < limit {
			out = append(out, g)
		}
	}
	return out, nil
}

func (b *bed) ModelDays(_ context.Context, _, before string, limit int) ([]flow.ModelDay, error) {
	var out []flow.ModelDay
	for _, day := range []string{"2026-03-03", "2026-03-02", "2026-03-01"} {
		if (before == "" || day < before) && len(out) < limit {
			out = append(out, flow.ModelDay{Day: day})
		}
	}
	return out, nil
}

func (b *bed) PutObservation(_ context.Context, _, caseID string, o flow.Observation) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.seen == nil {
		b.seen = map[string]flow.Observation{}
	}
	b.seen[caseID] = o
	return nil
}
func (b *bed) LoseObservations(context.Context) (int64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.losses++
	return 1, nil
}
func (b *bed) ObservedCases(ctx context.Context, workspace, before string, limit int) ([]flow.Case, error) {
	return b.Cases(ctx, workspace, "", before, limit)
}
func (b *bed) StepStatus(_ context.Context, runID string, _ flow.StepKey) (flow.StepStatus, error) {
	return b.statuses[runID], nil
}

// observation is what was recorded about a case.
func (b *bed) observation(id string) (flow.Observation, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	o, ok := b.seen[id]
	return o, ok
}
