package access_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/longstop-dev/longstop/internal/access"
	"github.com/longstop-dev/longstop/internal/flow"
)

// spec: R-045 R-068 R-103 R-106
func TestDefaultsAreTheContracts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	got, err := w.Recovery(t.Context(), w.by.Workspace)
	want := flow.RecoverySettings{Mode: "sync", Timeout: 15 * time.Second, AgentTimeout: 300 * time.Second, HumanTimeout: 7 * 24 * time.Hour,
		MaxAttempts: 2, Builtin: "rules", CodeFixApproval: "always",
		Model: flow.ModelSettings{URL: "https://generativelanguage.googleapis.com/v1beta/openai", Name: "gemini-2.5-flash-lite", DailyTokens: 1000000}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("Recovery = %+v, %v\nwant %+v", got, err, want)
	}
	if got, err := w.Limits(t.Context(), w.by.Workspace); err != nil || got != flow.DefaultLimits() {
		t.Errorf("Limits = %+v, %v; want the defaults", got, err)
	}
	defaults := map[string]string{
		"recovery.mcp_server_id": "", "recovery.timeout_ms": "15000", "recovery.a2a_agent_url": "", "recovery.mode": "sync",
		"recovery.agent_timeout": "300", "recovery.max_attempts": "2", "recovery.builtin": "rules", "recovery.code_fix_approval": "always",
		"recovery.allowed_hosts": "", "recovery.human_timeout": "604800", "recovery.a2a_auth_token": "<none>",
		"notify.url": "", "notify.secret": "<none>", "gates.self_approval": "allow", "gates.remind_every": "86400",
		"limits.output_bytes": "10485760", "limits.answer_bytes": "4194304", "limits.step_timeout_ms": "600000",
		"model.url": "https://generativelanguage.googleapis.com/v1beta/openai", "model.name": "gemini-2.5-flash-lite", "model.key": "<none>",
		"model.daily_tokens": "1000000", "agents.card_signatures": "off", "agents.card_keys": "",
	}
	list, err := w.SettingsList(t.Context(), w.by, &access.SettingsIn{})
	if err != nil || len(list.Items) != len(defaults) {
		t.Fatalf("%d settings, %v; want %d", len(list.Items), err, len(defaults))
	}
	for _, v := range list.Items {
		if want, ok := defaults[v.Key]; !ok || text(&v) != want || v.Source != "default" {
			t.Errorf("%s = %s from %s, want %s from default", v.Key, text(&v), v.Source, want)
		}
	}
}

// spec: R-046 R-048 R-104 R-107
func TestPutTakesStringsAndNumbersInRange(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, tt := range []struct{ key, value, want string }{
		{"recovery.timeout_ms", `"1000"`, "1000"}, {"recovery.timeout_ms", `60000`, "60000"}, {"recovery.timeout_ms", `" 2000 "`, "2000"},
		{"recovery.agent_timeout", `30`, "30"}, {"recovery.agent_timeout", `"3600"`, "3600"},
		{"recovery.max_attempts", `1`, "1"}, {"recovery.max_attempts", `5`, "5"},
		{"recovery.human_timeout", `60`, "60"}, {"recovery.human_timeout", `2592000`, "2592000"},
		{"recovery.mode", `"sync"`, "sync"}, {"recovery.mode", `"agent"`, "agent"}, {"recovery.mode", `"observe"`, "observe"}, {"recovery.builtin", `"off"`, "off"}, {"recovery.code_fix_approval", `"never"`, "never"},
		{"recovery.allowed_hosts", `"api.example.com, B.example.com:8443,10.1.2.3,[::1]:80"`, "api.example.com, B.example.com:8443,10.1.2.3,[::1]:80"},
		{"recovery.allowed_hosts", `["a.example","b.example"]`, "a.example,b.example"},
		{"gates.remind_every", `0`, "0"}, {"gates.self_approval", `"deny"`, "deny"},
		{"limits.output_bytes", `1048576`, "1048576"}, {"limits.step_timeout_ms", `30000`, "30000"},
	} {
		if v := w.mustPut(t, tt.key, tt.value); text(v) != tt.want || v.Source != "workspace" {
			t.Errorf("put %s %s = %s from %s, want %s from workspace", tt.key, tt.value, text(v), v.Source, tt.want)
		}
		if v := w.get(t, tt.key); text(v) != tt.want || v.Source != "workspace" {
			t.Errorf("get %s = %s from %s, want %s from workspace", tt.key, text(v), v.Source, tt.want)
		}
	}
	got, err := w.Recovery(t.Context(), w.by.Workspace)
	if err != nil || got.Timeout != 2*time.Second || got.Builtin != "off" || !slices.Equal(got.AllowedHosts, []string{"a.example", "b.example"}) {
		t.Errorf("Recovery = %+v, %v; want what was put", got, err)
	}
	limits, err := w.Limits(t.Context(), w.by.Workspace)
	if err != nil || limits.OutputBytes != 1<<20 || limits.StepTimeout != 30*time.Second || limits.AnswerBytes != 4<<20 {
		t.Errorf("Limits = %+v, %v; want what was put", limits, err)
	}
}

// spec: R-046 R-060 R-088 R-104
func TestPutRefuses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, tt := range []struct {
		key, value string
		code       flow.Code
		says       string
	}{
		{"recovery.timeout_ms", `999`, flow.CodeInvalid, `recovery.timeout_ms: "999" is out of range (a whole number, 1000 to 60000 milliseconds)`},
		{"recovery.timeout_ms", `60001`, flow.CodeInvalid, "1000 to 60000"},
		{"recovery.timeout_ms", `"99999999999999999999"`, flow.CodeInvalid, "out of range"},
		{"recovery.timeout_ms", `"15s"`, flow.CodeInvalid, "not a whole number"},
		{"recovery.timeout_ms", `15000.5`, flow.CodeInvalid, "not a whole number"},
		{"recovery.timeout_ms", `true`, flow.CodeInvalid, "must be a string or a number"},
		{"recovery.timeout_ms", `{"a":1}`, flow.CodeInvalid, "must be a string or a number"},
		{"recovery.timeout_ms", ``, flow.CodeInvalid, "there is no value"},
		{"recovery.agent_timeout", `29`, flow.CodeInvalid, "30 to 3600 seconds"},
		{"recovery.agent_timeout", `3601`, flow.CodeInvalid, "30 to 3600 seconds"},
		{"recovery.max_attempts", `0`, flow.CodeInvalid, "1 to 5"},
		{"recovery.max_attempts", `6`, flow.CodeInvalid, "1 to 5"},
		{"recovery.human_timeout", `59`, flow.CodeInvalid, "60 to 2592000 seconds"},
		{"recovery.human_timeout", `2592001`, flow.CodeInvalid, "60 to 2592000 seconds"},
		{"notify.url", `"http://hooks.example.com"`, flow.CodeInvalid, "may not be called: only https"},
		{"notify.url", `"https://10.0.0.1/a?token=s3cr3t"`, flow.CodeInvalid, "may not be called"},
		{"notify.url", `"hooks.example.com"`, flow.CodeInvalid, "the value is no absolute URL"},
		{"notify.secret", `"whsec_c2hvcnQ="`, flow.CodeInvalid, "the value is not base64 of 24 to 64 bytes"},
		{"notify.secret", `"not base64 of anything at all"`, flow.CodeInvalid, "openssl rand -base64 32"},
		{"gates.self_approval", `"maybe"`, flow.CodeInvalid, "allow or deny"},
		{"gates.remind_every", `59`, flow.CodeInvalid, "60 to 2592000 seconds, or 0 for never"},
		{"recovery.mode", `"async"`, flow.CodeInvalid, "none of the values (sync or agent or observe)"},
		{"recovery.builtin", `"gpt"`, flow.CodeInvalid, "none of the values (rules or model or off)"},
		{"model.url", `"http://model.example.com/v1"`, flow.CodeInvalid, "may not be called: only https"},
		{"model.url", `"https://u:p@model.example.com/v1"`, flow.CodeInvalid, "user name"},
		{"model.url", `"model.example.com"`, flow.CodeInvalid, "no absolute URL"},
		{"model.name", `"a b"`, flow.CodeInvalid, "cannot be the name of a model"},
		{"model.key", `"short"`, flow.CodeInvalid, "8 to 8192"},
		{"model.daily_tokens", `-1`, flow.CodeInvalid, "0 to 1000000000000"},
		{"model.daily_tokens", `"many"`, flow.CodeInvalid, "not a whole number"},
		{"recovery.code_fix_approval", `"sometimes"`, flow.CodeInvalid, "always or never"},
		{"recovery.allowed_hosts", `"https://a.example"`, flow.CodeInvalid, "which is no host"},
		{"recovery.allowed_hosts", `"*.example"`, flow.CodeInvalid, "which is no host"},
		{"recovery.allowed_hosts", `"a.example:99999"`, flow.CodeInvalid, "which is no host"},
		{"recovery.allowed_hosts", `"a.example:0"`, flow.CodeInvalid, "which is no host"},
		{"recovery.allowed_hosts", `"a.example, 0x7f.1"`, flow.CodeInvalid, "which is no host"},
		{"recovery.allowed_hosts", `"127.1"`, flow.CodeInvalid, "which is no host"},
		{"recovery.allowed_hosts", `" , "`, flow.CodeInvalid, "names no host"},
		{"recovery.max_attempts", `"05"`, flow.CodeInvalid, "plain number"},
		{"recovery.mcp_server_id", `"nobody"`, flow.CodeInvalid, "not registered in this workspace"},
		{"recovery.a2a_auth_token", `"short"`, flow.CodeInvalid, "8 to 8192"},
		{"recovery.a2a_auth_token", `"Bearer abcdefgh"`, flow.CodeInvalid, "without the word Bearer"},
		{"recovery.a2a_agent_url", `"agent.example.com"`, flow.CodeInvalid, "no absolute URL"},
		{"recovery.a2a_agent_url", `"https://u:p@agent.example.com"`, flow.CodeInvalid, "user name"},
		{"recovery.a2a_agent_url", `"http://agent.example.com"`, flow.CodeInvalid, "may not be called: only https"},
		{"recovery.a2a_agent_url", `"https://10.0.0.1/a"`, flow.CodeInvalid, "may not be called"},
		{"recovery.a2a_agent_url", `"https://nobody.example.com"`, flow.CodeInvalid, "card cannot be used: HTTP 404"},
		{"recovery.a2a_agent_url", `"https://nameless.example.com"`, flow.CodeInvalid, "lacks a name"},
		{"recovery.a2a_agent_url", `"https://inside.example.com"`, flow.CodeInvalid, "https://10.0.0.1, which may not be called"},
		{"limits.output_bytes", `0`, flow.CodeInvalid, "1024 to 104857600 bytes"},
		{"limits.retention_days", `5`, flow.CodeInvalid, "not served by this version yet"},
		{"recovery.nonsense", `1`, flow.CodeNotFound, "recovery.timeout_ms"},
	} {
		_, err := w.put(t, tt.key, tt.value)
		wantError(t, tt.key+" "+tt.value, err, tt.code, tt.says)
	}
	for _, key := range []string{"recovery.nonsense", "limits.retention_days"} {
		_, err := w.SettingsGet(t.Context(), w.by, &access.GetSettingIn{Key: key})
		wantError(t, "get "+key, err, flow.CodeNotFound)
		_, err = w.SettingsDelete(t.Context(), w.by, &access.SettingIn{Key: key})
		wantError(t, "delete "+key, err, flow.CodeNotFound)
	}
	list, err := w.SettingsList(t.Context(), w.by, &access.SettingsIn{})
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range list.Items {
		if v.Source != "default" {
			t.Errorf("%s is set, want nothing of this stored", v.Key)
		}
	}
}

func TestEmptyValueAndDeleteRemove(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, empty := range []string{`""`, `" "`, `null`, "delete"} {
		w.mustPut(t, "recovery.max_attempts", `3`)
		if got, _ := w.Recovery(t.Context(), w.by.Workspace); got.MaxAttempts != 3 {
			t.Fatalf("MaxAttempts = %d, want 3", got.MaxAttempts)
		}
		if empty == "delete" {
			if _, err := w.SettingsDelete(t.Context(), w.by, &access.SettingIn{Key: "recovery.max_attempts"}); err != nil {
				t.Fatal(err)
			}
		} else {
			w.mustPut(t, "recovery.max_attempts", empty)
		}
		if v := w.get(t, "recovery.max_attempts"); text(v) != "2" || v.Source != "default" {
			t.Errorf("after %s: %s from %s, want 2 from default", empty, text(v), v.Source)
		}
		if got, _ := w.Recovery(t.Context(), w.by.Workspace); got.MaxAttempts != 2 {
			t.Errorf("after %s: MaxAttempts = %d, want 2", empty, got.MaxAttempts)
		}
	}
}

// spec: R-082
func TestAgentURLShowsCardAndOrigins(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	v := w.mustPut(t, "recovery.a2a_agent_url", `"https://agent.example.com"`)
	if v.Name != "Mender" || v.Description != "Mends" || v.EndpointOrigin != "https://agent.example.com" || len(v.Warnings) != 0 {
		t.Errorf("got %+v, want the card's name, description and origin, no warnings", v)
	}
	v = w.mustPut(t, "recovery.a2a_agent_url", `"https://elsewhere.example.com"`)
	warnings := strings.Join(v.Warnings, "\n")
	if !strings.Contains(warnings, "no description") || !strings.Contains(warnings, "https://elsewhere.example.com") || !strings.Contains(warnings, "https://api.other.example") {
		t.Errorf("warnings %q, want the missing description and both origins", v.Warnings)
	}
	if v := w.get(t, "recovery.a2a_agent_url"); v.URLOrigin != "https://elsewhere.example.com" || v.EndpointOrigin != "https://api.other.example" || v.Name != "Mover" {
		t.Errorf("get: %+v, want name and both origins kept", v)
	}
	got, err := w.Recovery(t.Context(), w.by.Workspace)
	if err != nil || got.A2AAgentURL != "https://elsewhere.example.com" || got.A2AOrigin != "https://api.other.example" {
		t.Errorf("Recovery = %+v, %v; want URL and the endpoint's origin", got, err)
	}
}

func TestTokenIsWriteOnlySealedAndMasked(t *testing.T) {
	t.Parallel()
	const token = "agent-token-4711"
	w := newWorld(t)
	w.mustPut(t, "recovery.a2a_agent_url", `"https://agent.example.com"`)
	put := w.mustPut(t, "recovery.a2a_auth_token", `"`+token+`"`)
	got := w.get(t, "recovery.a2a_auth_token")
	for what, v := range map[string]*access.SettingView{"put": put, "get": got} {
		raw, _ := json.Marshal(v)
		if strings.Contains(string(raw), token) || v.Set == nil || !*v.Set || v.Value != nil {
			t.Errorf("%s answers %s, want only that it is set", what, raw)
		}
	}
	r, err := w.Recovery(t.Context(), w.by.Workspace)
	if err != nil || r.A2AAuthToken != token || string(r.A2ACard) != `{"name":"Mender"}` {
		t.Errorf("Recovery: token %q, card %s, %v; want both", r.A2AAuthToken, r.A2ACard, err)
	}
	if got, want := w.mask(t, "sent "+token), "sent [secret:recovery.a2a_auth_token]"; got != want {
		t.Errorf("masked %q, want %q", got, want)
	}
	w.notStored(t, token)
}

func TestTokenStaysWithItsOrigin(t *testing.T) {
	t.Parallel()
	const token = "agent-token-4711"
	tests := []struct {
		name string
		do   func(t *testing.T, w *world)
		want string
	}{
		{"token first, then the URL", func(t *testing.T, w *world) {
			w.mustPut(t, "recovery.a2a_auth_token", `"`+token+`"`)
			w.mustPut(t, "recovery.a2a_agent_url", `"https://agent.example.com"`)
		}, token},
		{"the same URL again", func(t *testing.T, w *world) {
			w.mustPut(t, "recovery.a2a_agent_url", `"https://agent.example.com"`)
			w.mustPut(t, "recovery.a2a_auth_token", `"`+token+`"`)
			w.mustPut(t, "recovery.a2a_agent_url", `"https://agent.example.com"`)
		}, token},
		{"a URL elsewhere", func(t *testing.T, w *world) {
			w.mustPut(t, "recovery.a2a_agent_url", `"https://agent.example.com"`)
			w.mustPut(t, "recovery.a2a_auth_token", `"`+token+`"`)
			v := w.mustPut(t, "recovery.a2a_agent_url", `"https://elsewhere.example.com"`)
			if !strings.Contains(strings.Join(v.Warnings, " "), "recovery.a2a_auth_token was removed") {
				t.Errorf("warnings %q, want to hear that the token is gone", v.Warnings)
			}
			if set := w.get(t, "recovery.a2a_auth_token").Set; *set {
				t.Error("the token is still set")
			}
		}, ""},
		{"the URL removed in between", func(t *testing.T, w *world) {
			w.mustPut(t, "recovery.a2a_agent_url", `"https://agent.example.com"`)
			w.mustPut(t, "recovery.a2a_auth_token", `"`+token+`"`)
			w.mustPut(t, "recovery.a2a_agent_url", `""`)
			w.mustPut(t, "recovery.a2a_agent_url", `"https://elsewhere.example.com"`)
		}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			tt.do(t, w)
			got, err := w.Recovery(t.Context(), w.by.Workspace)
			if err != nil || got.A2AAuthToken != tt.want {
				t.Errorf("the token is %q, %v; want %q", got.A2AAuthToken, err, tt.want)
			}
		})
	}
}

// TestTokenIsTiedEvenIfTheRowsDisagree: were the URL's row ever to name
// another origin than the token's, by a restored backup or another process,
// the token stays home.
func TestTokenIsTiedEvenIfTheRowsDisagree(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.mustPut(t, "recovery.a2a_agent_url", `"https://agent.example.com"`)
	w.mustPut(t, "recovery.a2a_auth_token", `"agent-token-4711"`)
	row := flow.Setting{Workspace: w.by.Workspace, Key: "recovery.a2a_agent_url", Value: "https://x.example",
		Meta: json.RawMessage(`{"name":"X","urlOrigin":"https://x.example","endpointOrigin":"https://x.example"}`), UpdatedAt: w.clock.Now()}
	if err := w.store.PutSetting(t.Context(), row); err != nil {
		t.Fatal(err)
	}
	got, err := w.service(1, false).Recovery(t.Context(), w.by.Workspace)
	if err != nil || got.A2AOrigin != "https://x.example" || got.A2AAuthToken != "" {
		t.Errorf("token %q for %s, %v; want none", got.A2AAuthToken, got.A2AOrigin, err)
	}
}

func TestRecoveryLayers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.mustPut(t, "recovery.timeout_ms", `5000`)
	w.mustPut(t, "recovery.max_attempts", `4`)
	got, err := w.Recovery(t.Context(), w.by.Workspace,
		map[string]string{"recovery.timeout_ms": "2000", "recovery.builtin": "off"}, nil, map[string]string{"recovery.timeout_ms": "3000"})
	if err != nil || got.Timeout != 3*time.Second || got.Builtin != "off" || got.MaxAttempts != 4 {
		t.Errorf("got %+v, %v; want the step's time-out, the workflow's built-in, the workspace's attempts", got, err)
	}
	if got, _ := w.Recovery(t.Context(), w.by.Workspace); got.Timeout != 5*time.Second || got.Builtin != "rules" {
		t.Errorf("got %+v; want the workspace's, which layers leave alone", got)
	}
	_, err = w.Recovery(t.Context(), w.by.Workspace, map[string]string{"recovery.timeout_ms": "5"})
	wantError(t, "a wrong layer", err, flow.CodeInvalid, `recovery.timeout_ms: "5" is out of range`)
}

func TestCheckRecovery(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if got := w.CheckRecovery(map[string]string{"recovery.mode": "sync", "recovery.mcp_server_id": "mine"}); got != nil {
		t.Errorf("got %+v, want no problems", got)
	}
	got := w.CheckRecovery(map[string]string{"recovery.mode": "watch", "recovery.a2a_agent_url": "https://x.example", "recovery.a2a_auth_token": "12345678",
		"recovery.typo": "1", "limits.output_bytes": "2000", "recovery.timeout_ms": "", "recovery.mcp_server_id": "no/id"})
	var fields []string
	for _, p := range got {
		fields = append(fields, p.Field+": "+p.Message)
		if p.Fix == "" {
			t.Errorf("%s has no remedy", p.Field)
		}
	}
	want := []string{"limits.output_bytes: only the workspace has this setting", "recovery.a2a_agent_url: only the workspace has this setting",
		"recovery.a2a_auth_token: only the workspace has this setting", `recovery.mcp_server_id: "no/id" is no id of an MCP server`,
		`recovery.mode: "watch" is none of the values`, "recovery.timeout_ms: the value is empty", "recovery.typo: there is no such recovery setting"}
	if !slices.Equal(fields, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(fields, "\n"), strings.Join(want, "\n"))
	}
}

func TestSettingsDoNotCrossWorkspaces(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.mustPut(t, "recovery.max_attempts", `5`)
	stranger := w.by
	stranger.Workspace = "ws_other"
	v, err := w.SettingsGet(t.Context(), stranger, &access.GetSettingIn{Key: "recovery.max_attempts"})
	if err != nil || text(v) != "2" {
		t.Errorf("got %s, %v; want the default", text(v), err)
	}
	if got, err := w.Recovery(t.Context(), "ws_other"); err != nil || got.MaxAttempts != 2 {
		t.Errorf("got %d, %v; want the default", got.MaxAttempts, err)
	}
}
