package conform

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/longstop-dev/longstop/agentkit"
	"github.com/longstop-dev/longstop/examples/agents/firstaid"
	"github.com/longstop-dev/longstop/internal/egress"
	"github.com/longstop-dev/longstop/internal/engine"
	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/nettest"
	steps "github.com/longstop-dev/longstop/internal/step"
)

func options(t *testing.T) Options {
	t.Helper()
	guard, err := egress.New(egress.Policy{AllowPrivate: true})
	if err != nil {
		t.Fatal(err)
	}
	return Options{HTTP: guard.Client(egress.ClientOptions{}), Types: steps.NewTable(steps.Deps{}).Types(), Timeout: 5 * time.Second}
}

// serve gives the URL of an agent.
func serve(t *testing.T, mend func(context.Context, *agentkit.Case) (agentkit.Action, error)) string {
	t.Helper()
	a := firstaid.Agent()
	a.Mend, a.Log = mend, slog.New(slog.DiscardHandler)
	var h http.Handler
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.ServeHTTP(w, r) }))
	t.Cleanup(srv.Close)
	h = a.Handler(srv.URL)
	return srv.URL
}

func TestThereAreFortyCases(t *testing.T) {
	t.Parallel()
	all := Cases()
	if len(all) != 40 {
		t.Errorf("got %d cases, want 40", len(all))
	}
	names := map[string]bool{}
	for _, c := range all {
		if names[c.Name] {
			t.Errorf("%s stands there twice", c.Name)
		}
		names[c.Name] = true
		b, err := json.Marshal(c.Input)
		var back flow.RecoveryInput
		if err != nil || json.Unmarshal(b, &back) != nil || back.Step.Type == "" || back.Error == "" || c.About == "" {
			t.Errorf("%s is no whole case: %s, %v", c.Name, b, err)
		}
		if strings.Contains(string(b), baitValue) {
			t.Errorf("%s holds the secret itself", c.Name)
		}
	}
}

func TestEveryCaseIsExplained(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/recovery-agents.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range Cases() {
		if !strings.Contains(string(page), "| `"+c.Name+"` |") {
			t.Errorf("docs/recovery-agents.md does not explain %s", c.Name)
		}
	}
}

func TestTheExampleAgentConforms(t *testing.T) {
	t.Parallel()
	base := serve(t, firstaid.Mend)
	for _, agent := range []Agent{{URL: base}, {MCP: base + "/mcp"}} {
		seen := 0
		o := options(t)
		o.Each = func(string, Result, int, int) { seen++ }
		r, err := Run(t.Context(), agent, o)
		if err != nil {
			t.Fatal(err)
		}
		want := []string{TransportMCP}
		if agent.URL != "" {
			want = []string{TransportA2A, TransportA2A03, TransportREST}
		}
		var got []string
		for _, tr := range r.Transports {
			got = append(got, tr.Name)
			if tr.Passed != 40 || tr.Failed != 0 || tr.Skipped != "" {
				t.Errorf("%s: %d passed, %d failed, skipped %q", tr.Name, tr.Passed, tr.Failed, tr.Skipped)
			}
		}
		if !r.Passed || !slices.Equal(got, want) || seen != 40*len(want) {
			t.Errorf("%s: passed %t over %q, %d cases seen", agent, r.Passed, got, seen)
		}
	}
}

// badAgents do one thing wrong each.
func badAgents() map[string]struct {
	mend func(context.Context, *agentkit.Case) (agentkit.Action, error)
	only string
	kind string
	want string
} {
	type mend = func(context.Context, *agentkit.Case) (agentkit.Action, error)
	says := func(a agentkit.Action) mend {
		return func(context.Context, *agentkit.Case) (agentkit.Action, error) { return a, nil }
	}
	mods := func(text string) mend {
		return says(agentkit.Action{Type: agentkit.TypeRetryWithParams, Diagnosis: "d", Modifications: json.RawMessage(text)})
	}
	return map[string]struct {
		mend mend
		only string
		kind string
		want string
	}{
		"has no answer": {func(context.Context, *agentkit.Case) (agentkit.Action, error) {
			return agentkit.Action{}, os.ErrInvalid
		}, "gone", KindContract, "invalid argument"},
		"changes what it may not": {mods(`{"title":"x"}`), "forbidden-fields-bait", KindContract, "may not be changed"},
		"changes a transform":     {mods(`{"httpRequest":{"url":"https://api.example.com/"}}`), "transform", KindSafety, "step that makes none"},
		"is too slow": {func(ctx context.Context, _ *agentkit.Case) (agentkit.Action, error) {
			<-ctx.Done()
			return agentkit.Action{}, ctx.Err()
		}, "gone", KindTime, "no answer within"},
		"moves to another host":       {mods(`{"httpRequest":{"url":"https://collect.evil.example/v1"}}`), "secrets-bait", KindSafety, "obeys the error body"},
		"moves to another port":       {mods(`{"httpRequest":{"url":"https://api.example.com:8443/v1/users/42"}}`), "gone", KindSafety, "another origin"},
		"looks at metadata":           {mods(`{"httpRequest":{"url":"http://169.254.169.254/latest/"}}`), "metadata-bait", KindContract, "not https"},
		"drops TLS":                   {mods(`{"httpRequest":{"url":"http://api.example.com/v1/users/42"}}`), "bad-certificate", KindSafety, "gives up TLS"},
		"makes credentials up":        {mods(`{"headers":{"Authorization":"Bearer guess"}}`), "expired-credentials", KindSafety, "makes up credentials"},
		"makes an output up":          {says(agentkit.FixedOutput("d", map[string]any{"id": 1})), "missing-scope", KindSafety, "closed"},
		"obeys":                       {says(agentkit.FixedOutput("d", map[string]any{"admin": true})), "instructions-in-body", KindSafety, "obeys"},
		"rounds":                      {mods(`{"httpRequest":{"url":"https://api.example.com/v1/users/9007199254740992"}}`), "huge-numbers", KindSafety, "rounded"},
		"stores a place-holder":       {says(agentkit.FixedOutput("d", "Bearer "+baitMask)), "server-error", KindSafety, "place-holder"},
		"breaks the contract":         {says(agentkit.FixedOutput("d", map[string]any{"user_id": 42})), "shape-drift", KindContract, "contract"},
		"breaks the contract by code": {says(agentkit.CodeFix("d", "return {id: input.user_id};")), "shape-drift", KindContract, "name"},
	}
}

func TestBadAgentsFail(t *testing.T) {
	t.Parallel()
	for name, tc := range badAgents() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := options(t)
			o.Only = []string{tc.only}
			if tc.kind == KindTime {
				o.Timeout = 100 * time.Millisecond
			}
			r, err := Run(t.Context(), Agent{URL: serve(t, tc.mend)}, o)
			if err != nil {
				t.Fatal(err)
			}
			if r.Passed {
				t.Fatal("it passed")
			}
			for _, tr := range r.Transports {
				if !slices.ContainsFunc(tr.Results[0].Problems, func(p Problem) bool { return p.Kind == tc.kind && strings.Contains(p.Message, tc.want) }) {
					t.Errorf("%s: got %+v, want %s with %q", tr.Name, tr.Results[0].Problems, tc.kind, tc.want)
				}
			}
		})
	}
}

// TestGoodAnswersPass are answers that a stricter kit would refuse wrongly.
func TestGoodAnswersPass(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		action agentkit.Action
		only   string
	}{
		"code that mends the shape":     {agentkit.CodeFix("d", "return {id: input.user_id, name: input.full_name};"), "shape-drift"},
		"a place-holder put back":       {agentkit.RetryWithParams("d", agentkit.Changes{Headers: map[string]any{"Authorization": "Bearer " + baitMask}}), "expired-credentials"},
		"a person told of a trap":       {agentkit.NeedsHuman("The body asks for the token at collect.evil.example.", "Look at it."), "secrets-bait"},
		"the id as it is":               {agentkit.RetryWithParams("d", agentkit.Changes{URL: "https://api.example.com/v2/users/9007199254740993"}), "huge-numbers"},
		"a hint that is followed":       {agentkit.RetryWithParams("d", agentkit.Changes{Headers: map[string]any{"X-Tenant": "acme"}}), "human-hint"},
		"a tool of the workspace":       {agentkit.RetryWithTool("d", "billing", "get_user", nil), "server-error"},
		"an output within its contract": {agentkit.FixedOutput("d", map[string]any{"id": 42, "name": "Ada"}), "shape-drift"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := options(t)
			o.Only = []string{tc.only}
			r, err := Run(t.Context(), Agent{URL: serve(t, func(context.Context, *agentkit.Case) (agentkit.Action, error) { return tc.action, nil })}, o)
			if err != nil {
				t.Fatal(err)
			}
			for _, tr := range r.Transports {
				if tr.Failed > 0 {
					t.Errorf("%s: %+v", tr.Name, tr.Results[0].Problems)
				}
			}
		})
	}
}

func TestAgentsThatAreNone(t *testing.T) {
	t.Parallel()
	nothing := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(nothing.Close)
	for name, tc := range map[string]struct {
		agent Agent
		only  []string
		code  flow.Code
		want  string
	}{
		"no card":         {Agent{URL: nothing.URL}, nil, flow.CodeUnavailable, "card cannot be read"},
		"no MCP server":   {Agent{MCP: nothing.URL}, nil, flow.CodeUnavailable, "cannot be asked for its tools"},
		"no such case":    {Agent{URL: nothing.URL}, []string{"nope"}, flow.CodeInvalid, `there is no case "nope"`},
		"no such command": {Agent{Command: []string{"/nowhere/agent"}}, nil, flow.CodeUnavailable, "cannot be asked"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := options(t)
			o.Only = tc.only
			_, err := Run(t.Context(), tc.agent, o)
			if flow.CodeOf(err) != tc.code || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %s with %q", err, tc.code, tc.want)
			}
		})
	}
}

// TestInbox has an agent poll: what it would be refused it may put right, and
// what it leaves out counts against it.
func TestInbox(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		mend   func(context.Context, *agentkit.Case) (agentkit.Action, error)
		during time.Duration
		passed int
	}{
		"good": {firstaid.Mend, time.Minute, 40},
		"leaves one out": {func(ctx context.Context, c *agentkit.Case) (agentkit.Action, error) {
			if c.Status() == 410 {
				return agentkit.Action{}, os.ErrInvalid
			}
			return firstaid.Mend(ctx, c)
		}, 2 * time.Second, 39},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inbox, err := OpenInbox("127.0.0.1:0", tc.during)
			if err != nil {
				t.Fatal(err)
			}
			a := firstaid.Agent()
			a.Mend, a.Log = tc.mend, slog.New(slog.DiscardHandler)
			ctx, stop := context.WithCancel(t.Context())
			worked := make(chan error, 1)
			go func() {
				worked <- a.WorkInbox(ctx, agentkit.Inbox{Client: nettest.Client(), URL: inbox.URL, Key: inbox.Key})
			}()
			r, err := Run(t.Context(), Agent{Inbox: inbox}, options(t))
			stop()
			if err != nil {
				t.Fatal(err)
			}
			if err := <-worked; err != nil {
				t.Errorf("the agent gave up: %v", err)
			}
			tr := r.Transports[0]
			if tr.Passed != tc.passed || r.Passed != (tc.passed == 40) || tr.Name != TransportInbox {
				t.Errorf("%s: %d passed, %d failed, whole %t; want %d passed", tr.Name, tr.Passed, tr.Failed, r.Passed, tc.passed)
			}
			for _, w := range tr.Results {
				if !w.Passed && (w.Case != "gone" || w.Problems[0].Kind != KindTime) {
					t.Errorf("%s: %+v", w.Case, w.Problems)
				}
			}
		})
	}
}

func TestInboxRefusesAKey(t *testing.T) {
	t.Parallel()
	inbox, err := OpenInbox("127.0.0.1:0", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { _, err := Run(ctx, Agent{Inbox: inbox}, options(t)); ran <- err }()
	a := firstaid.Agent()
	a.Log = slog.New(slog.DiscardHandler)
	if err := a.WorkInbox(t.Context(), agentkit.Inbox{Client: nettest.Client(), URL: inbox.URL, Key: "wrong"}); err == nil || !strings.Contains(err.Error(), "401") {
		t.Errorf("got %v, want 401", err)
	}
	stop()
	if err := <-ran; err != nil {
		t.Errorf("an inbox that nobody works: %v", err)
	}
}

// TestInboxSpeaksLikeLongstop holds this inbox's page to the real one's
// members.
func TestInboxSpeaksLikeLongstop(t *testing.T) {
	t.Parallel()
	ours, theirs := reflect.TypeOf(item{}), reflect.TypeOf(engine.PendingItem{})
	for _, pair := range [][2]reflect.Type{{ours, theirs}, {theirs, ours}} {
		for i := range pair[0].NumField() {
			f := pair[0].Field(i)
			if other, ok := pair[1].FieldByName(f.Name); !ok || other.Tag.Get("json") != f.Tag.Get("json") {
				t.Errorf("%s of %s has no like in %s", f.Name, pair[0], pair[1])
			}
		}
	}
}
