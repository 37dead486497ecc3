package mcp_test

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"sort"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/longstop-dev/longstop/internal/nettest"
	"github.com/longstop-dev/longstop/internal/server"
)

// offers is all that a session lists, by kind.
func offers(t *testing.T, s *sdk.ClientSession) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	caps := s.InitializeResult().Capabilities
	if caps.Tools != nil {
		for x, err := range s.Tools(t.Context(), nil) {
			if err != nil {
				t.Fatalf("tools: %v", err)
			}
			out["tools"] = append(out["tools"], x.Name)
		}
	}
	for x, err := range s.Resources(t.Context(), nil) {
		if err != nil {
			t.Fatalf("resources: %v", err)
		}
		out["resources"] = append(out["resources"], x.URI)
	}
	for x, err := range s.ResourceTemplates(t.Context(), nil) {
		if err != nil {
			t.Fatalf("templates: %v", err)
		}
		out["templates"] = append(out["templates"], x.URITemplate)
	}
	for x, err := range s.Prompts(t.Context(), nil) {
		if err != nil {
			t.Fatalf("prompts: %v", err)
		}
		out["prompts"] = append(out["prompts"], x.Name)
	}
	for _, l := range out {
		sort.Strings(l)
	}
	return out
}

func TestEachRoleIsShownWhatItMayUse(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	templates := "cffbrw://recovery/{runId}/{stepIndex} cffbrw://recovery/{runId}/{stepIndex}{?iteration}"
	inbox := "cffbrw://recovery/diagnose-step-failure-schema cffbrw://recovery/pending"
	plans := "cffbrw://plan/examples cffbrw://plan/schema cffbrw://plan/step-types cffbrw://plan/tools "
	reads := "get_run_status get_workflow list_runs list_workflows prevalidate_markdown"
	for role, want := range map[string][4]string{
		"agent":    {"claim_recovery_case release_recovery_claim submit_recovery_action", inbox, templates, ""},
		"viewer":   {reads + " validate_plan", plans + inbox, templates, "compile introduce"},
		"operator": {"claim_recovery_case " + reads + " release_recovery_claim run_workflow submit_recovery_action validate_plan", plans + inbox, templates, "compile introduce"},
		"editor":   {"claim_recovery_case deploy_workflow " + reads + " publish_workflow release_recovery_claim run_workflow submit_recovery_action unpublish_workflow update_workflow validate_plan", plans + inbox, templates, "compile introduce"},
		"owner":    {"claim_recovery_case deploy_workflow " + reads + " publish_workflow release_recovery_claim run_workflow submit_recovery_action unpublish_workflow update_workflow validate_plan", plans + inbox, templates, "compile introduce"},
	} {
		key, _ := b.key(role)
		for _, version := range generations() {
			s, sent := connect(t, b.s.URL()+"/mcp", key, version)
			got := offers(t, s)
			for i, kind := range []string{"tools", "resources", "templates", "prompts"} {
				if have := strings.Join(got[kind], " "); have != want[i] {
					t.Errorf("%s of %s over %q: got %s, want %s", kind, role, version, have, want[i])
				}
			}
			wantVersion := version
			if version == "" {
				wantVersion = "2026-07-28"
			}
			if v := s.InitializeResult().ProtocolVersion; v != wantVersion {
				t.Errorf("version asked for %q: got %s, want %s", version, v, wantVersion)
			}
			if stood := s.ID() == ""; stood != (version == "") {
				t.Errorf("over %q: got the session %q (requests by version: %v)", version, s.ID(), sent.versions)
			}
			if c := s.InitializeResult().Capabilities; c.Resources == nil || c.Resources.Subscribe || c.Resources.ListChanged || c.Tools.ListChanged || c.Logging != nil {
				t.Errorf("capabilities: got %s, want neither subscriptions nor logging", toText(c))
			}
			if role == "agent" && !strings.Contains(s.InitializeResult().Instructions, "submit_recovery_action") {
				t.Errorf("instructions for agents: got %q", s.InitializeResult().Instructions)
			}
		}
	}
}

func TestWhatIsNotShownCannotBeUsed(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	agent, _ := b.key("agent")
	viewer, _ := b.key("viewer")
	for _, version := range generations() {
		s := b.connect(agent, version)
		for _, tool := range []string{"deploy_workflow", "validate_plan", "list_workflows", "run_workflow", "get_run_status", "list_runs", "get_workflow", "nope"} {
			if r, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: map[string]any{}}); err == nil && !r.IsError {
				t.Errorf("%s as an agent: got %s, want an error", tool, textOf(t, r))
			}
		}
		for _, uri := range []string{"cffbrw://plan/schema", "cffbrw://plan/tools", "cffbrw://plan/examples", "cffbrw://plan/step-types", "cffbrw://nope"} {
			if _, err := s.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: uri}); err == nil {
				t.Errorf("%s as an agent is read", uri)
			}
		}
		if _, err := s.GetPrompt(t.Context(), &sdk.GetPromptParams{Name: "introduce"}); err == nil {
			t.Errorf("an agent is given a prompt")
		}
		v := b.connect(viewer, version)
		for _, tool := range []string{"deploy_workflow", "run_workflow", "submit_recovery_action"} {
			if r, err := v.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: map[string]any{}}); err == nil && !r.IsError {
				t.Errorf("%s as a viewer: got %s, want an error", tool, textOf(t, r))
			}
		}
	}
}

// post sends a message as it is.
func post(t *testing.T, url, key, body string, header ...string) (int, http.Header, string) {
	t.Helper()
	return send(t, "POST", url, key, body, header...)
}

func send(t *testing.T, method, url, key, body string, header ...string) (int, http.Header, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := nettest.Client().Do(req)
	if err != nil {
		t.Fatalf("%s: %v", method, err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, string(b)
}

const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`

func TestNobodyWithoutAKey(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	for name, header := range map[string][]string{"none": nil, "wrong": {"Authorization", "Bearer nonsense"}, "basic": {"Authorization", "Basic eDp5"},
		"another's session": {"Authorization", "Bearer nonsense", "Mcp-Session-Id", "x"}, "newest": {"Mcp-Protocol-Version", "2026-07-28"}} {
		for _, method := range []string{"POST", "GET", "DELETE"} {
			status, h, body := send(t, method, b.s.URL()+"/mcp", "", initialize, header...)
			if status != http.StatusUnauthorized || h.Get("WWW-Authenticate") != "Bearer" {
				t.Errorf("%s with %s: got %d, WWW-Authenticate %q, %s; want 401 and Bearer", method, name, status, h.Get("WWW-Authenticate"), body)
			}
		}
	}
	if _, _, err := dial(t, b.s.URL()+"/mcp", "nonsense", ""); err == nil {
		t.Error("a client with a wrong key connects")
	}
}

func TestARevokedKeyAndASessionOfAnother(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	mine, id := b.key("viewer")
	other, _ := b.key("owner")
	url := b.s.URL() + "/mcp"
	for _, version := range generations() {
		connect(t, url, mine, version)
	}
	s := b.connect(mine, "2025-06-18")
	list := `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`
	if status, _, body := post(t, url, other, list, "Mcp-Session-Id", s.ID(), "Mcp-Protocol-Version", "2025-06-18"); status != http.StatusForbidden {
		t.Errorf("another's session: got %d %s, want 403", status, body)
	}
	if status, _, body := send(t, "DELETE", url, other, "", "Mcp-Session-Id", s.ID()); status != http.StatusForbidden {
		t.Errorf("end another's session: got %d %s, want 403", status, body)
	}
	if status, _, body := post(t, url, mine, list, "Mcp-Session-Id", s.ID(), "Mcp-Protocol-Version", "2025-06-18"); status != http.StatusOK || !strings.Contains(body, "list_runs") {
		t.Errorf("my session: got %d %s, want its tools", status, body)
	}
	b.rest("DELETE", "/v1/keys/"+id, nil, nil)
	if status, _, body := post(t, url, mine, list, "Mcp-Session-Id", s.ID(), "Mcp-Protocol-Version", "2025-06-18"); status != http.StatusUnauthorized {
		t.Errorf("a revoked key in its session: got %d %s, want 401", status, body)
	}
}

func TestWrongMessages(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	url, key := b.s.URL()+"/mcp", b.s.Key()
	many := "[" + strings.TrimSuffix(strings.Repeat(`{"jsonrpc":"2.0","id":1,"method":"ping"},`, 21), ",") + "]"
	newest := []string{"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/list"}
	for name, tc := range map[string]struct {
		method, body string
		header       []string
		status       int
	}{
		"a page of another site":     {"POST", initialize, []string{"Origin", "https://evil.example"}, 403},
		"a page that rebinds":        {"POST", initialize, []string{"Origin", "http://evil.example", "Host", "evil.example"}, 403},
		"a page without an origin":   {"POST", initialize, []string{"Origin", "null"}, 403},
		"a page of this machine":     {"POST", initialize, []string{"Origin", "http://localhost:6274"}, 200},
		"a page of this server":      {"POST", initialize, []string{"Origin", b.s.URL()}, 200},
		"GET":                        {"GET", "", nil, 405},
		"PUT":                        {"PUT", initialize, nil, 405},
		"no JSON":                    {"POST", "{", nil, 400},
		"nothing":                    {"POST", "", nil, 400},
		"another type":               {"POST", initialize, []string{"Content-Type", "text/plain"}, 415},
		"too large":                  {"POST", `{"x":"` + strings.Repeat("x", 10<<20) + `"}`, nil, 413},
		"too large, newest":          {"POST", `{"x":"` + strings.Repeat("x", 10<<20) + `"}`, newest, 413},
		"too many":                   {"POST", many, nil, 400},
		"a session that is none":     {"POST", initialize, []string{"Mcp-Session-Id", "nope"}, 404},
		"an old version":             {"POST", initialize, []string{"Mcp-Protocol-Version", "2024-01-01"}, 400},
		"a version to come":          {"POST", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, []string{"Mcp-Protocol-Version", "2030-01-01"}, 400},
		"nonsense for a version":     {"POST", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, []string{"Mcp-Protocol-Version", "zzz"}, 400},
		"newest without what it has": {"POST", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, newest, 400},
		"end of no session":          {"DELETE", "", nil, 400},
	} {
		status, h, body := send(t, tc.method, url, key, tc.body, tc.header...)
		if status != tc.status {
			t.Errorf("%s: got %d %.300s, want %d", name, status, body, tc.status)
		}
		if status == http.StatusMethodNotAllowed && h.Get("Allow") != "POST, DELETE" {
			t.Errorf("%s: got Allow %q", name, h.Get("Allow"))
		}
		if h.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: got %v, want the headers that every answer carries", name, h)
		}
	}
	if strings.Contains(b.log.String(), `"level":"ERROR"`) {
		t.Errorf("the log has errors: %s", b.log)
	}
}

// TestTheNewestWithoutItsHeader has only the metadata in the message to say
// which generation it is of.
func TestTheNewestWithoutItsHeader(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	_, h, body := post(t, b.s.URL()+"/mcp", b.s.Key(), `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",
		"io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`)
	if h.Get("Mcp-Session-Id") != "" || !json.Valid([]byte(body)) || !strings.Contains(body, `"jsonrpc"`) {
		t.Errorf("got session %q and %s, want an answer without a session", h.Get("Mcp-Session-Id"), body)
	}
}

func TestNothingIsForACacheThatOthersShare(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	s := b.connect(b.s.Key(), "")
	r, err := s.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: "cffbrw://recovery/pending"})
	if err != nil || r.CacheScope != "private" {
		t.Errorf("a document: got scope %q, %v, want private", r.CacheScope, err)
	}
	l, err := s.ListTools(t.Context(), nil)
	if err != nil || l.CacheScope != "private" {
		t.Errorf("a list: got scope %q, %v, want private", l.CacheScope, err)
	}
}

func TestOperationsThatAreDeclaredAreOffered(t *testing.T) {
	t.Parallel()
	declared, offered := server.OpsOverMCP()
	sort.Strings(offered)
	sort.Strings(declared)
	if !slices.Equal(declared, offered) || len(offered) < 12 {
		t.Errorf("declared with the face mcp: %v\noffered: %v", declared, offered)
	}
}
