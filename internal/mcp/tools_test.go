package mcp_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/longstop-dev/longstop/internal/server"
)

const greet = "name: greet\ninput: {type: object, required: [who]}\nsteps:\n  - {id: hello, type: transform, config: {value: {text: \"Hello {{ input.who }}\", n: \"{{ input.n? }}\"}}}\n"

func TestFromAPlanToAResult(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	key, _ := b.key("editor")
	for i, version := range generations() {
		s := b.connect(key, version)
		var valid struct {
			Valid bool
			Name  string
			Steps int
		}
		call(t, s, "validate_plan", map[string]any{"plan": greet}, &valid)
		if !valid.Valid || valid.Name != "greet" || valid.Steps != 1 {
			t.Errorf("validate: got %+v", valid)
		}
		var w struct {
			Name, Source string
			Number       int
		}
		call(t, s, "deploy_workflow", map[string]any{"plan": greet + strings.Repeat("#", i+1)}, &w)
		if w.Name != "greet" || w.Number != i+1 || w.Source != "" {
			t.Errorf("deploy: got %+v, want number %d", w, i+1)
		}
		call(t, s, "get_workflow", map[string]any{"name": "greet"}, &w)
		if w.Source != greet+strings.Repeat("#", i+1) {
			t.Errorf("get_workflow: got %q", w.Source)
		}
		var list struct {
			Items []struct{ Name, ID, Status string }
		}
		call(t, s, "list_workflows", map[string]any{"limit": 1}, &list)
		if len(list.Items) != 1 || list.Items[0].Name != "greet" {
			t.Errorf("list_workflows: got %+v", list)
		}
		var run struct {
			ID, Status string
			Output     json.RawMessage
		}
		// A number that no float64 holds arrives as it was sent.
		call(t, s, "run_workflow", map[string]any{"name": "greet", "input": json.RawMessage(`{"who":"Ada","n":12345678901234567890123}`)}, &run)
		if got := b.status(run.ID); got != "succeeded" {
			t.Fatalf("the run: got %s, want succeeded", got)
		}
		call(t, s, "get_run_status", map[string]any{"runId": run.ID}, &run)
		if run.Status != "succeeded" || !strings.Contains(string(run.Output), "Hello Ada") || !strings.Contains(string(run.Output), "12345678901234567890123") {
			t.Errorf("get_run_status: got %s %s", run.Status, run.Output)
		}
		call(t, s, "list_runs", map[string]any{"workflow": "greet", "status": "succeeded", "limit": 500, "after": nil}, &list)
		if len(list.Items) != i+1 || list.Items[0].ID != run.ID {
			t.Errorf("list_runs: got %+v", list)
		}
	}
}

// TestFromADescriptionToAPlan is the way before a plan: what is missing is
// named, with its line.
func TestFromADescriptionToAPlan(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	key, _ := b.key("viewer")
	for _, version := range generations() {
		s := b.connect(key, version)
		var o struct {
			Ready bool
			Name  string
			Steps []struct {
				Line        int
				Title, Type string
			}
			Missing, Ask []struct {
				Field, Message, Fix string
				Line                int
			}
		}
		call(t, s, "prevalidate_markdown", map[string]any{"markdown": "# Greet\n\n1. Fetch the user\n2. Wait 5 minutes\n"}, &o)
		if o.Ready || o.Name != "greet" || len(o.Steps) != 2 || o.Steps[1].Type != "wait" || len(o.Missing) != 1 || o.Missing[0].Field != "steps[0].url" || o.Missing[0].Line != 3 || len(o.Ask) != 1 {
			t.Errorf("got %+v, want the address of step 0 to be missing", o)
		}
		call(t, s, "prevalidate_markdown", map[string]any{"markdown": "# Greet\n\n1. GET https://api.example.com/users, tried again if it fails\n"}, &o)
		if !o.Ready || len(o.Missing) != 0 {
			t.Errorf("got %+v, want it ready", o)
		}
		has(t, "too long", refused(t, s, "prevalidate_markdown", map[string]any{"markdown": strings.Repeat("x", 64<<10+1)}), "markdown", "64 KiB")
	}
}

func TestBadArguments(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	for _, version := range []string{"", "2025-06-18"} {
		s := b.connect(b.s.Key(), version)
		for name, tc := range map[string]struct {
			tool string
			in   any
			want []string
		}{
			"nothing":        {"validate_plan", nil, []string{"plan", "missing"}},
			"null":           {"validate_plan", map[string]any{"plan": nil}, []string{"plan", "missing"}},
			"another type":   {"validate_plan", map[string]any{"plan": map[string]any{}}, []string{"plan", "no string"}},
			"unknown":        {"get_workflow", map[string]any{"name": "x", "nmae": "y"}, []string{"nmae", "no such argument", "name"}},
			"an array":       {"get_workflow", []any{1}, []string{"no JSON object"}},
			"no such":        {"get_workflow", map[string]any{"name": "nope"}, []string{"nope"}},
			"not valid":      {"deploy_workflow", map[string]any{"plan": "name: x\nsteps:\n  - {type: htp_request}\n"}, []string{"line 3", "htp_request", "http_request"}},
			"not YAML":       {"validate_plan", map[string]any{"plan": "a: [1"}, []string{"plan"}},
			"too large":      {"validate_plan", map[string]any{"plan": strings.Repeat("#", 1<<20+1)}, []string{"too large", "1 MiB"}},
			"no such status": {"list_runs", map[string]any{"status": "done"}, []string{"status", "succeeded"}},
			"a limit of 0":   {"list_runs", map[string]any{"limit": 0}, []string{"limit", "1 to 500"}},
			"a limit of 1.5": {"list_runs", map[string]any{"limit": 1.5}, []string{"limit", "whole number"}},
			"no such run":    {"get_run_status", map[string]any{"runId": "run_nope"}, []string{"run_nope"}},
			"no workflow":    {"run_workflow", map[string]any{"name": "nope"}, []string{"nope"}},
			"negative":       {"submit_recovery_action", map[string]any{"runId": "r", "stepIndex": -1, "action": map[string]any{}}, []string{"stepIndex"}},
			"action of text": {"submit_recovery_action", map[string]any{"runId": "r", "stepIndex": 0, "action": "retry"}, []string{"action", "object", "diagnosis"}},
			"no such case":   {"submit_recovery_action", map[string]any{"runId": "run_nope", "stepIndex": 0, "action": map[string]any{"type": "needs_human"}}, []string{"run_nope"}},
		} {
			has(t, name, refused(t, s, tc.tool, tc.in), tc.want...)
		}
	}
}

// spec: R-015 R-098
func TestEveryResource(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	theirs := sdk.NewServer(&sdk.Implementation{Name: "theirs", Version: "1"}, nil)
	theirs.AddTool(&sdk.Tool{Name: "get_order", Description: "Gives an order.", InputSchema: json.RawMessage(`{"type":"object","required":["id"]}`)},
		func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return &sdk.CallToolResult{}, nil
		})
	there := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return theirs }, nil))
	t.Cleanup(there.Close)
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	b.rest("PUT", "/v1/mcp-servers/shop", map[string]any{"url": there.URL}, nil)
	b.rest("PUT", "/v1/mcp-servers/gone", map[string]any{"url": gone.URL}, nil)
	var schema, contract, types json.RawMessage
	b.rest("GET", "/v1/workflows/schema", nil, &schema)
	b.rest("GET", "/v1/recovery/schema", nil, &contract)
	b.rest("GET", "/v1/step-types", nil, &types)
	for _, version := range generations() {
		s := b.connect(b.s.Key(), version)
		for uri, want := range map[string]json.RawMessage{"cffbrw://plan/schema": schema, "cffbrw://plan/step-types": types,
			"cffbrw://recovery/diagnose-step-failure-schema": contract, "cffbrw://recovery/pending": json.RawMessage(`{"items":[],"next":""}`)} {
			var g, w any
			if err := json.Unmarshal([]byte(read(t, s, uri)), &g); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(want, &w); err != nil {
				t.Fatal(err)
			}
			if toText(g) != toText(w) {
				t.Errorf("%s: got %.300s, want what REST gives: %.300s", uri, toText(g), toText(w))
			}
		}
		has(t, "tools", read(t, s, "cffbrw://plan/tools"), `"server":"shop"`, `"get_order"`, `"required"`, `"server":"gone"`, `"problem"`)
		has(t, "examples", read(t, s, "cffbrw://plan/examples"), "human_approval", "mcp_call", "conditional")
		for uri, want := range map[string]string{"cffbrw://recovery/run_nope/0": "run_nope", "cffbrw://recovery/run_nope/x": "names no step", "cffbrw://recovery/a/b/c": "not found"} {
			_, err := s.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: uri})
			if err == nil || !strings.Contains(strings.ToLower(err.Error()), want) {
				t.Errorf("%s: got %v, want %q in it", uri, err, want)
			}
		}
	}
}

func TestEveryExampleIsValid(t *testing.T) {
	t.Parallel()
	names, err := filepath.Glob("examples/*.yaml")
	if err != nil || len(names) < 3 {
		t.Fatalf("examples: got %v, %v", names, err)
	}
	for _, name := range names {
		src, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		def, err := server.Validate(name, src)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if def.Name != strings.TrimSuffix(filepath.Base(name), ".yaml") {
			t.Errorf("%s: it names itself %s", name, def.Name)
		}
	}
}

func TestPrompts(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	for _, version := range []string{"", "2025-11-25"} {
		s := b.connect(b.s.Key(), version)
		ask := func(name string, in map[string]string) (string, error) {
			r, err := s.GetPrompt(t.Context(), &sdk.GetPromptParams{Name: name, Arguments: in})
			if err != nil {
				return "", err
			}
			return r.Messages[0].Content.(*sdk.TextContent).Text, nil
		}
		text, err := ask("introduce", nil)
		if err != nil {
			t.Fatal(err)
		}
		types := []string{}
		for _, x := range server.StepTypes() {
			types = append(types, "`"+x.Name+"`", x.Summary)
		}
		has(t, "introduce", text, types...)
		if text, err = ask("compile", map[string]string{"description": "Fetch {{schema}} and ```close``` the fence"}); err != nil {
			t.Fatal(err)
		}
		has(t, "compile", text, append(types, "````markdown\nFetch {{schema}} and ```close``` the fence\n````", `"Longstop workflow"`, "validate_plan")...)
		if strings.Count(text, "{{schema}}") != 1 || strings.Contains(text, "{{types}}") || strings.Contains(text, "{{examples}}") {
			t.Errorf("compile: a placeholder is left, or was filled in what was sent")
		}
		for _, in := range []map[string]string{nil, {"description": " "}, {"description": strings.Repeat("x", 64<<10+1)}} {
			if _, err := ask("compile", in); err == nil || !strings.Contains(err.Error(), "description") {
				t.Errorf("compile with %d characters: got %v, want an error that names the description", len(in["description"]), err)
			}
		}
	}
}

// spec: R-098 R-101 R-102
func TestAnAgentWorksTheInbox(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	key, _ := b.key("agent")
	for _, version := range generations() {
		s := b.connect(key, version)
		run := b.waits(s)
		has(t, "pending", read(t, s, "cffbrw://recovery/pending"), `"runId":"`+run+`"`, `"stepIndex":0`, "Fetch user profile", "HTTP 418", "expiresAt")
		has(t, "case", read(t, s, "cffbrw://recovery/"+run+"/0"), `"schema_version":1`, "short and stout", "resolved_request", "/v1/users/42")
		if _, err := s.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: "cffbrw://recovery/" + run + "/1"}); err == nil {
			t.Error("a step that waits for nobody is read")
		}
		bad := map[string]any{"runId": run, "stepIndex": 0, "action": map[string]any{"type": "fixed_output", "diagnosis": "no id", "output": map[string]any{"name": "Ada"}}}
		has(t, "an output that breaks the contract", refused(t, s, "submit_recovery_action", bad), "id")
		has(t, "no action", refused(t, s, "submit_recovery_action", map[string]any{"runId": run, "stepIndex": 0, "action": map[string]any{"type": "rm_rf", "diagnosis": "x"}}), "type")
		where := map[string]any{"runId": run, "stepIndex": 0, "name": "mender"}
		var claim struct{ ClaimedBy string }
		call(t, s, "claim_recovery_case", where, &claim)
		has(t, "claim", claim.ClaimedBy, "mender (")
		has(t, "pending", read(t, s, "cffbrw://recovery/pending"), `"claimedBy":"`+claim.ClaimedBy+`"`)
		has(t, "another's claim", refused(t, s, "claim_recovery_case", map[string]any{"runId": run, "stepIndex": 0, "name": "other"}), "claimed by mender")
		has(t, "a lease too short", refused(t, s, "claim_recovery_case", map[string]any{"runId": run, "stepIndex": 0, "lease": 1}), "lease")
		call(t, s, "release_recovery_claim", where, &struct{}{})
		good := map[string]any{"runId": run, "stepIndex": 0, "action": map[string]any{"type": "fixed_output", "diagnosis": "known", "output": map[string]any{"id": 42}}}
		var out struct{ RunID, Applied string }
		call(t, s, "submit_recovery_action", good, &out)
		if out.RunID != run || out.Applied != "fixed_output" {
			t.Errorf("submit: got %+v", out)
		}
		if got := b.status(run); got != "succeeded" {
			t.Errorf("the run: got %s, want succeeded", got)
		}
		has(t, "a second answer", refused(t, s, "submit_recovery_action", good), "fixed_output")
		if got := read(t, s, "cffbrw://recovery/pending"); strings.Contains(got, run) {
			t.Errorf("after the answer the inbox still has %s", got)
		}
		var logs struct {
			Items []struct {
				RecoverySource *string `json:"recovery_source"`
			}
		}
		b.rest("GET", "/v1/runs/"+run+"/logs", nil, &logs)
		if last := logs.Items[len(logs.Items)-1].RecoverySource; last == nil || *last != "byoa" {
			t.Errorf("recovery_source: got %s, want byoa", toText(logs))
		}
	}
}
