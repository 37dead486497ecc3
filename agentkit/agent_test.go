package agentkit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/longstop-dev/longstop/internal/a2a"
	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/nettest"
)

const caseText = `{"schema_version":1,"step":{"type":"http_request","title":"Fetch user","intent":"get it","index":2,
	"config":{"url":"https://api.example.com/v1/users/42","method":"GET"}},"error":"HTTP 404: Not Found\ntry /v2",
	"prior_outputs":{"0":"{\"token\":\"abc\"}","1":"{\"cut\":\"…"},"workflow_input":{"userId":42},
	"resolved_request":{"url":"https://api.example.com/v1/users/42","body":null}}`

func moved(_ context.Context, c *Case) (Action, error) {
	return RetryWithParams("v1 is gone", Changes{URL: strings.Replace(c.URL(), "/v1/", "/v2/", 1), Timeout: 5 * time.Second}), nil
}

func agent(mend func(context.Context, *Case) (Action, error)) *Agent {
	return &Agent{Name: "test agent", Description: "Knows the API.", Mend: mend, Log: slog.New(slog.DiscardHandler)}
}

// serve gives the URL of an agent that is served whole.
func serve(t *testing.T, a *Agent) string {
	t.Helper()
	var h http.Handler
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.ServeHTTP(w, r) }))
	t.Cleanup(srv.Close)
	h = a.Handler(srv.URL)
	return srv.URL
}

// wantMoved checks moved's answer, as Longstop's own type reads it.
func wantMoved(t *testing.T, raw []byte) {
	t.Helper()
	var got flow.Action
	if err := json.Unmarshal(raw, &got); err != nil {
		t.Fatalf("the answer %s is no action: %v", raw, err)
	}
	if got.Type != flow.ActionRetryWithParams || got.Diagnosis != "v1 is gone" {
		t.Errorf("got %+v", got)
	}
	if want := `{"httpRequest":{"url":"https://api.example.com/v2/users/42"},"timeout":5000}`; string(got.Modifications) != want {
		t.Errorf("modifications: got %s, want %s", got.Modifications, want)
	}
}

func TestCaseIsRecoveryToolInput(t *testing.T) {
	t.Parallel()
	var ours Case
	var theirs flow.RecoveryInput
	full := strings.TrimSuffix(caseText, "}") + `,"catalog_action":{"params":{}},"human_hint":"look"}`
	if err := json.Unmarshal([]byte(full), &ours); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(full), &theirs); err != nil {
		t.Fatal(err)
	}
	a, _ := json.Marshal(ours)
	b, _ := json.Marshal(theirs)
	if !bytes.Equal(a, b) {
		t.Errorf("the kit's case is another:\n got %s\nwant %s", a, b)
	}
}

func TestCaseHelpers(t *testing.T) {
	t.Parallel()
	var c Case
	if err := json.Unmarshal([]byte(caseText), &c); err != nil {
		t.Fatal(err)
	}
	if c.Status() != 404 {
		t.Errorf("status: got %d, want 404", c.Status())
	}
	var zero struct{ Token string }
	if err := c.Prior(0, &zero); err != nil || zero.Token != "abc" {
		t.Errorf("prior 0: got %+v, %v", zero, err)
	}
	if err := c.Prior(1, &zero); err == nil || !strings.Contains(err.Error(), "cut at 500") {
		t.Errorf("a cut output: got %v", err)
	}
	if err := c.Prior(9, &zero); err == nil {
		t.Error("an output that is not there was read")
	}
	var in struct{ UserID int }
	if err := c.Input(&in); err != nil || in.UserID != 42 {
		t.Errorf("input: got %+v, %v", in, err)
	}
	var config struct{ Method string }
	if err := c.Config(&config); err != nil || config.Method != "GET" {
		t.Errorf("config: got %+v, %v", config, err)
	}
	if got := (&Case{Error: "no answer within 30s"}).Status(); got != 0 {
		t.Errorf("status of a time-out: got %d, want 0", got)
	}
	if got := (&Case{}).URL(); got != "" {
		t.Errorf("URL without a request: got %q", got)
	}
}

func TestActions(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		got  Action
		want string
	}{
		{"retry as it was", RetryWithParams("d", Changes{}), `{"type":"retry_with_params","diagnosis":"d","modifications":{}}`},
		{"retry", RetryWithParams("d", Changes{Method: "PUT", Headers: map[string]any{"A": "b", "Gone": nil}, Body: map[string]any{"x": 1}}),
			`{"type":"retry_with_params","diagnosis":"d","modifications":{"httpRequest":{"method":"PUT","headers":{"A":"b","Gone":null},"body":{"x":1}}}}`},
		{"output", FixedOutput("d", nil), `{"type":"fixed_output","diagnosis":"d","output":null}`},
		{"code", CodeFix("d", "return 1;"), `{"type":"code_fix","diagnosis":"d","code":"return 1;"}`},
		{"tool", RetryWithTool("d", "s", "t", nil), `{"type":"retry_with_tool","diagnosis":"d","toolCall":{"server":"s","tool":"t","params":{}}}`},
		{"human", NeedsHuman("d", "s"), `{"type":"needs_human","diagnosis":"d","suggestion":"s"}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got, err := json.Marshal(tc.got)
			if err != nil || string(got) != tc.want {
				t.Errorf("got %s, %v, want %s", got, err, tc.want)
			}
			if err := tc.got.Check(); err != nil {
				t.Errorf("it is refused: %v", err)
			}
		})
	}
	if a := FixedOutput("d", func() {}); a.Type != TypeNeedsHuman || !strings.Contains(a.Suggestion, "cannot be written") {
		t.Errorf("an output that is no JSON: got %+v", a)
	}
}

func TestIncompleteActionsAreRefused(t *testing.T) {
	t.Parallel()
	for _, a := range []Action{{}, {Type: TypeCodeFix, Code: "x"}, {Type: "undo", Diagnosis: "d"}, {Type: TypeFixedOutput, Diagnosis: "d"},
		{Type: TypeRetryWithParams, Diagnosis: "d"}, {Type: TypeCodeFix, Diagnosis: "d"}, {Type: TypeRetryWithTool, Diagnosis: "d"},
		{Type: TypeRetryWithTool, Diagnosis: "d", ToolCall: &ToolCall{Server: "s"}}, {Type: TypeNeedsHuman, Diagnosis: "d"}} {
		if err := a.Check(); err == nil {
			t.Errorf("%+v passed", a)
		}
	}
}

// TestOverA2A asks the way Longstop does, over each form that the card
// declares or the recovery specification names.
func TestOverA2A(t *testing.T) {
	t.Parallel()
	a := agent(moved)
	a.Token = "token-0123456789"
	base := serve(t, a)
	client := &a2a.Client{HTTP: nettest.Client(), Log: slog.New(slog.DiscardHandler)}
	whole, err := client.FetchCard(t.Context(), base)
	if err != nil {
		t.Fatal(err)
	}
	if err := whole.Validate(); err != nil || whole.Name != "test agent" || whole.Description != "Knows the API." {
		t.Errorf("card: %+v, %v", whole, err)
	}
	only := func(keep func(a2a.Interface) bool) *a2a.Card {
		c := *whole
		c.Interfaces, c.TopURL = nil, ""
		for _, i := range whole.Interfaces {
			if keep(i) {
				c.Interfaces = append(c.Interfaces, i)
			}
		}
		return &c
	}
	for name, tc := range map[string]struct {
		card  *a2a.Card
		route a2a.Route
	}{
		"JSON-RPC 1.0": {only(func(i a2a.Interface) bool { return i.Binding == a2a.BindingJSONRPC && i.Version == "1.0" }), a2a.Route{URL: base + "/", Dialect: a2a.V1}},
		"JSON-RPC 0.3": {only(func(i a2a.Interface) bool { return strings.HasPrefix(i.Version, "0.") }), a2a.Route{URL: base + "/", Dialect: a2a.V03}},
		"HTTP+JSON":    {only(func(i a2a.Interface) bool { return i.Binding == a2a.BindingHTTPJSON }), a2a.Route{URL: base, Dialect: a2a.V1, REST: true}},
		"no card":      {nil, a2a.Route{URL: base + "/message:send", Dialect: a2a.Recovery}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &a2a.Client{HTTP: nettest.Client(), Log: slog.New(slog.DiscardHandler)}
			got, meta, err := c.Ask(t.Context(), a2a.RecoveryAsk{URL: base, Card: tc.card, Token: a.Token, TokenOrigin: base, RunID: "r", StepIndex: 2, Input: json.RawMessage(caseText)})
			if err != nil {
				t.Fatal(err)
			}
			wantMoved(t, got)
			if meta.Route != tc.route {
				t.Errorf("route: got %+v, want %+v", meta.Route, tc.route)
			}
		})
	}
	if _, _, err := client.Ask(t.Context(), a2a.RecoveryAsk{URL: base, Card: whole, RunID: "r", Input: json.RawMessage(caseText)}); err == nil || !strings.Contains(err.Error(), "401") {
		t.Errorf("without the token: got %v, want 401", err)
	}
}

func TestOverMCP(t *testing.T) {
	t.Parallel()
	base := serve(t, agent(moved))
	c := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	s, err := c.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: base + "/mcp", HTTPClient: nettest.Client()}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	tools, err := s.ListTools(t.Context(), nil)
	if err != nil || len(tools.Tools) != 1 || tools.Tools[0].Name != ToolName {
		t.Fatalf("tools: %+v, %v", tools, err)
	}
	r, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: ToolName, Arguments: json.RawMessage(caseText)})
	if err != nil || r.IsError {
		t.Fatalf("got %+v, %v", r, err)
	}
	got, err := json.Marshal(r.StructuredContent)
	if err != nil {
		t.Fatal(err)
	}
	wantMoved(t, got)
	wantMoved(t, []byte(r.Content[0].(*mcp.TextContent).Text))
}

// TestAgentsThatFail: whatever an agent does, the caller gets an error that it
// can read, and the agent goes on serving.
func TestAgentsThatFail(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		mend func(context.Context, *Case) (Action, error)
		want string
	}{
		"an error":           {func(context.Context, *Case) (Action, error) { return Action{}, errors.New("no idea") }, "no idea"},
		"a panic":            {func(context.Context, *Case) (Action, error) { panic("boom") }, "failed while it looked"},
		"half an action":     {func(context.Context, *Case) (Action, error) { return Action{Type: TypeCodeFix, Diagnosis: "d"}, nil }, "needs code"},
		"longer than it may": {func(ctx context.Context, _ *Case) (Action, error) { <-ctx.Done(); return Action{}, ctx.Err() }, "deadline exceeded"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := agent(tc.mend)
			a.Timeout = 20 * time.Millisecond
			base := serve(t, a)
			for range 2 {
				status, body := post(t, base+"/", `{"jsonrpc":"2.0","id":"recovery-r-2","method":"SendMessage","params":{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"data":`+caseText+`}]}}}`)
				if status != http.StatusOK || !strings.Contains(body, `"code":-32000`) || !strings.Contains(body, tc.want) || !strings.Contains(body, `"id":"recovery-r-2"`) {
					t.Errorf("got %d %s, want the error %q", status, body, tc.want)
				}
			}
		})
	}
}

func TestBadRequests(t *testing.T) {
	t.Parallel()
	a := agent(moved)
	a.MaxBody = 4096
	base := serve(t, a)
	rpc := func(method, params string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":` + params + `}`
	}
	for name, tc := range map[string]struct {
		path, body string
		status     int
		want       string
	}{
		"not JSON":         {"/", "hello", 200, `"code":-32700`},
		"no method":        {"/", `{"jsonrpc":"2.0","id":1}`, 200, `"code":-32600`},
		"unknown method":   {"/", rpc("SubscribeToTask", "{}"), 200, `"code":-32601`},
		"a task":           {"/", rpc("GetTask", `{"id":"t"}`), 200, `"code":-32001`},
		"no data part":     {"/", rpc("SendMessage", `{"message":{"parts":[{"text":"hi"}]}}`), 200, `"code":-32602`},
		"a newer case":     {"/", rpc("SendMessage", `{"message":{"parts":[{"data":{"schema_version":2}}]}}`), 200, "newer than this agent knows"},
		"not a case":       {"/", rpc("SendMessage", `{"message":{"parts":[{"data":{"step":7}}]}}`), 200, "this is no case"},
		"too large":        {"/", `{"jsonrpc":"` + strings.Repeat("x", 5000) + `"}`, 413, "larger"},
		"HTTP+JSON, empty": {"/message:send", `{}`, 400, "no data part"},
		"elsewhere":        {"/other", `{}`, 404, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			status, body := post(t, base+tc.path, tc.body)
			if status != tc.status || !strings.Contains(body, tc.want) {
				t.Errorf("got %d %s, want %d with %q", status, body, tc.status, tc.want)
			}
		})
	}
}

func post(t *testing.T, url, body string) (int, string) {
	t.Helper()
	resp, err := nettest.Client().Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}
