package server_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/longstop-dev/longstop/internal/nettest"
)

// as sends a request with a key of its own and any headers.
func (st *stop) as(key, method, path string, body []byte, header ...string) (int, http.Header, string) {
	st.t.Helper()
	req, err := http.NewRequest(method, st.s.URL()+path, bytes.NewReader(body))
	if err != nil {
		st.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	if len(body) > 0 {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := nettest.Client().Do(req)
	if err != nil {
		st.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		st.t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, string(b)
}

// key makes a key of a role.
func (st *stop) key(role string) (key, id string) {
	st.t.Helper()
	var k struct{ ID, Key string }
	st.must("POST", "/v1/keys", map[string]any{"name": role, "role": role}, &k)
	return k.Key, k.ID
}

type pending struct {
	Items []struct {
		RunID     string
		StepIndex int
		ExpiresAt string
	}
}

// inboxed starts a run that comes to wait in the inbox.
func inboxed(t *testing.T, st *stop) runView {
	t.Helper()
	st.must("PUT", "/v1/secrets/api", map[string]any{"value": secretValue}, nil)
	st.set("recovery.mode", "agent")
	return st.gated(st.run(fmt.Sprintf(moved, api(t).URL), map[string]any{"userId": 42, "access_token": "oauth-0123456789"}))
}

func members(t *testing.T, body string) []string {
	t.Helper()
	var v map[string]json.RawMessage
	if err := json.Unmarshal([]byte(body), &v); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	return slices.Sorted(maps.Keys(v))
}

// TestAgentModeAsTheSpecificationSaysIt goes through "Agent Mode - Async
// Recovery via Inbox" sentence by sentence.
//
// spec: R-022 R-053 R-095 R-097 R-099 R-100 R-102 R-104
func TestAgentModeAsTheSpecificationSaysIt(t *testing.T) {
	t.Parallel()
	st := begin(t)
	var asked atomic.Int64
	st.set("recovery.a2a_agent_url", agent(t, func(w http.ResponseWriter, r *http.Request, id string, in map[string]any) {
		asked.Add(1)
		says(`{"type":"fixed_output","diagnosis":"called","output":{"id":1}}`)(w, r, id, in)
	}).URL)
	for value, want := range map[string]int{"29": 422, "3601": 422, "30": 200, "3600": 200, "600": 200} {
		if code, b := st.call("PUT", "/v1/settings/recovery.agent_timeout", map[string]any{"value": value}, nil); code != want {
			t.Errorf("agent_timeout %s: got %d %s, want %d", value, code, b, want)
		}
	}
	st.set("recovery.agent_timeout", "600")
	r := inboxed(t, st)
	if r.Status != "waiting" || r.Gates[0].Kind != "needs_agent" || asked.Load() != 0 {
		t.Fatalf("got %s at a gate %s, the agent called %d times; want waiting at needs_agent, and no call", r.Status, r.Gates[0].Kind, asked.Load())
	}
	key, _ := st.key("agent")

	// 1. Poll for pending gates.
	_, _, b := st.as(key, "GET", "/v1/recovery/pending", nil)
	var list struct{ Items []json.RawMessage }
	if err := json.Unmarshal([]byte(b), &list); err != nil || len(list.Items) != 1 {
		t.Fatalf("pending: got %v, %s, want one", err, b)
	}
	want := []string{"claimedBy", "error", "expiresAt", "iteration", "openedAt", "runId", "stepIndex", "title", "type", "workflow"}
	if got := members(t, string(list.Items[0])); !slices.Equal(got, want) {
		t.Errorf("pending has %v, want exactly %v", got, want)
	}
	for _, part := range []string{`"runId":"` + r.ID + `"`, `"stepIndex":0`, `"workflow":"moved"`, `"title":"Fetch user profile"`, `"type":"http_request"`, `"error":"HTTP 404: Not Found`, `"claimedBy":null`} {
		if !strings.Contains(string(list.Items[0]), part) {
			t.Errorf("pending: got %s, want %s in it", list.Items[0], part)
		}
	}

	// 2. Read failure context.
	_, _, b = st.as(key, "GET", "/v1/recovery/"+r.ID+"/0", nil)
	want = []string{"error", "prior_outputs", "resolved_request", "schema_version", "step", "workflow_input"}
	if got := members(t, b); !slices.Equal(got, want) {
		t.Errorf("input has %v, want exactly %v", got, want)
	}
	if strings.Contains(b, "oauth-0123456789") {
		t.Errorf("the input shows an OAuth token: %s", b)
	}
	if where := st.holds(secretValue, "/v1/recovery/"+r.ID+"/0", "/v1/recovery/"+r.ID+"/0/case", "/v1/recovery/pending"); len(where) > 0 {
		t.Errorf("the secret is in %v", where)
	}
	code, _, b := st.as(key, "GET", "/v1/recovery/"+r.ID+"/0/case", nil)
	if code != 200 || !strings.Contains(b, `"response":{"status":404`) || !strings.Contains(b, `"attempt":0`) {
		t.Errorf("case: got %d %s, want what the step got and attempt 0", code, b)
	}
	if strings.Contains(eventTypes(st, r.ID), "step:adapting") {
		t.Errorf("step:adapting was sent before the decision: %s", eventTypes(st, r.ID))
	}

	// 3. Submit a fix. 4. The workflow resumes with it.
	action := `{"type":"fixed_output","diagnosis":"from the cache","output":{"id":7},"confidence":0.9}`
	code, _, b = st.as(key, "POST", "/v1/recovery/"+r.ID+"/0/action", []byte(action))
	if code != 200 || !strings.Contains(b, `"applied":"fixed_output"`) {
		t.Fatalf("action: got %d %s, want 200 and what was applied", code, b)
	}
	r = st.ended(r.ID)
	if r.Status != "succeeded" || r.source(0) != "byoa" || string(r.Output) != `{"id":7}` || asked.Load() != 0 {
		t.Errorf("got %s by %s with %s, the agent called %d times", r.Status, r.source(0), r.Output, asked.Load())
	}
	if !strings.Contains(r.Steps[0].Message, "confidence") {
		t.Errorf("message: got %q, want that confidence was ignored", r.Steps[0].Message)
	}
	if got := eventTypes(st, r.ID); !strings.Contains(got, "gate:opened run:waiting gate:answered step:adapting") {
		t.Errorf("events: got %s", got)
	}
	adapting := st.adapting(r.ID)
	if len(adapting) != 1 || !strings.Contains(adapting[0], `"byoa_attempted":true`) || !strings.Contains(adapting[0], `"byoa_result_summary":"fixed_output: from the cache"`) ||
		strings.Contains(adapting[0], `"byoa_timing_ms":null`) || !strings.Contains(adapting[0], `"byoa_rejection_reason":null`) {
		t.Errorf("step:adapting: got %v", adapting)
	}
	var logs struct {
		Items []struct {
			Status string
			Source *string `json:"recovery_source"`
		}
	}
	st.must("GET", "/v1/runs/"+r.ID+"/logs", nil, &logs)
	last := logs.Items[len(logs.Items)-1]
	if last.Source == nil || *last.Source != "byoa" {
		t.Errorf("log: got %+v, want byoa", logs.Items)
	}
}

func eventTypes(st *stop, run string) string {
	st.t.Helper()
	var l struct{ Items []event }
	st.must("GET", "/v1/runs/"+run+"/events", nil, &l)
	var out []string
	for _, e := range l.Items {
		out = append(out, e.Type)
	}
	return strings.Join(out, " ")
}

// adapting gives the payloads of a run's step:adapting events.
func (st *stop) adapting(run string) []string {
	st.t.Helper()
	var l struct{ Items []event }
	st.must("GET", "/v1/runs/"+run+"/events", nil, &l)
	var out []string
	for _, e := range l.Items {
		if e.Type == "step:adapting" {
			out = append(out, string(e.Data))
		}
	}
	return out
}

// spec: R-100 R-102 R-108
func TestWhatTheInboxTakes(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		action string // %s is the upstream
		status int
		source string // who mended it in the end; "" if it waits still
		holds  string // in the answer
	}{
		"retry_with_params":  {`{"type":"retry_with_params","diagnosis":"v2","modifications":{"httpRequest":{"url":"%s/v2/users/42"}}}`, 200, "byoa", `"applied":"retry_with_params"`},
		"retry_with_tool":    {`{"type":"retry_with_tool","diagnosis":"other","toolCall":{"server":"mine","tool":"get_user_fallback","params":{}}}`, 200, "byoa", `"applied":"retry_with_tool"`},
		"needs_human":        {`{"type":"needs_human","diagnosis":"no idea","suggestion":"look"}`, 200, "builtin", `"applied":"needs_human"`},
		"no type":            {`{"diagnosis":"x"}`, 422, "", `"field":"type"`},
		"no output":          {`{"type":"fixed_output","diagnosis":"x"}`, 422, "", `"field":"output"`},
		"against a contract": {`{"type":"fixed_output","diagnosis":"x","output":{"no":1}}`, 422, "", `"field":"output"`},
		"forbidden field":    {`{"type":"retry_with_params","diagnosis":"x","modifications":{"title":"x"}}`, 422, "", `"field":"modifications.title"`},
		"unknown tool":       {`{"type":"retry_with_tool","diagnosis":"x","toolCall":{"server":"none","tool":"x"}}`, 422, "", `"field":"toolCall"`},
		"a list":             {`[1]`, 422, "", `"code":"invalid"`},
		"null":               {`null`, 422, "", `"code":"invalid"`},
		"nothing":            {``, 422, "", `"code":"invalid"`},
		"not JSON":           {`{"type":`, 400, "", `"code":"invalid"`},
		"10 MB":              {`{"type":"fixed_output","diagnosis":"x","output":"` + strings.Repeat("x", 10<<20) + `"}`, 413, "", `"code":"too_large"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			st, up := begin(t), api(t)
			var asked atomic.Int64
			st.register("mine", toolServer(t, `{}`, &asked).URL)
			st.must("PUT", "/v1/secrets/api", map[string]any{"value": secretValue}, nil)
			r := st.gated(st.run(strings.Replace(fmt.Sprintf(moved, up.URL), "steps:", "recovery: {mode: agent}\nsteps:", 1), nil))
			key, _ := st.key("agent")
			code, _, b := st.as(key, "POST", "/v1/recovery/"+r.ID+"/0/action", []byte(strings.ReplaceAll(tc.action, "%s", up.URL)))
			if code != tc.status || !strings.Contains(b, tc.holds) {
				t.Fatalf("got %d %s, want %d with %s", code, b, tc.status, tc.holds)
			}
			if tc.source == "" {
				var l pending
				if st.must("GET", "/v1/recovery/pending", nil, &l); len(l.Items) != 1 {
					t.Errorf("after a refused action: %d wait, want 1", len(l.Items))
				}
				return
			}
			if r = st.ended(r.ID); r.Status != "succeeded" || r.source(0) != tc.source {
				t.Errorf("got %s by %s (%s), want %s", r.Status, r.source(0), r.Error, tc.source)
			}
		})
	}
}

// TestCodeFromTheInboxNeedsAPerson holds the specification's sentence that
// code_fix goes through the same approval as any other's.
//
// spec: R-110
func TestCodeFromTheInboxNeedsAPerson(t *testing.T) {
	t.Parallel()
	for answer, source := range map[string]string{"approve": "byoa", "refuse": "builtin"} {
		t.Run(answer, func(t *testing.T) {
			t.Parallel()
			st := begin(t)
			r := inboxed(t, st)
			body := map[string]any{"type": "code_fix", "diagnosis": "made", "code": "return { id: 8 };"}
			st.must("POST", "/v1/recovery/"+r.ID+"/0/action", body, nil)
			r = st.gatedBy(r.ID, "approval")
			st.must("POST", "/v1/gates/"+r.Gates[0].ID+"/answer", map[string]any{"answer": answer}, nil)
			if r = st.ended(r.ID); r.Status != "succeeded" || r.source(0) != source {
				t.Errorf("got %s by %s (%s), want %s", r.Status, r.source(0), r.Error, source)
			}
		})
	}
}

func TestWrongPlacesInTheInbox(t *testing.T) {
	t.Parallel()
	st := begin(t)
	r := inboxed(t, st)
	for path, want := range map[string]int{
		"/v1/recovery/" + r.ID + "/1": 404, "/v1/recovery/" + r.ID + "/0?iteration=3": 404, "/v1/recovery/run_none/0": 404,
		"/v1/recovery/" + r.ID + "/-1": 422, "/v1/recovery/" + r.ID + "/x": 422, "/v1/recovery/" + r.ID + "/0?iterations=1": 422,
		"/v1/recovery/pending?limit=0": 422, "/v1/recovery/pending?limit=501": 422, "/v1/recovery/pending?wait=51": 422, "/v1/recovery/pending?wait=-1": 422,
		"/v1/recovery/" + r.ID + "/0": 200, "/v1/recovery/pending?limit=500": 200,
	} {
		if code, b := st.call("GET", path, nil, nil); code != want {
			t.Errorf("GET %s: got %d %s, want %d", path, code, b, want)
		}
	}
	body := map[string]any{"type": "fixed_output", "diagnosis": "x", "output": map[string]any{"id": 1}}
	for _, path := range []string{"/v1/recovery/" + r.ID + "/1/action", "/v1/recovery/run_none/0/action"} {
		if code, b := st.call("POST", path, body, nil); code != 404 {
			t.Errorf("POST %s: got %d %s, want 404", path, code, b)
		}
	}
}

func TestOfTwoAnswersOneWins(t *testing.T) {
	t.Parallel()
	st := begin(t)
	key, _ := st.key("agent")
	for round := range 5 {
		r := inboxed(t, st)
		const n = 8
		codes, bodies := make([]int, n), make([]string, n)
		var wg sync.WaitGroup
		for i := range n {
			wg.Go(func() {
				action := fmt.Sprintf(`{"type":"fixed_output","diagnosis":"answer %d","output":{"id":%d}}`, i, i)
				codes[i], _, bodies[i] = st.as(key, "POST", "/v1/recovery/"+r.ID+"/0/action", []byte(action))
			})
		}
		wg.Wait()
		r = st.ended(r.ID)
		won := -1
		for i, code := range codes {
			if code == 200 {
				if won >= 0 {
					t.Errorf("round %d: both %d and %d won", round, won, i)
				}
				won = i
			}
		}
		if won < 0 || string(r.Output) != fmt.Sprintf(`{"id":%d}`, won) {
			t.Fatalf("round %d: got %v and %s, want one winner, applied", round, codes, r.Output)
		}
		for i, code := range codes {
			if i != won && (code != http.StatusConflict || !strings.Contains(bodies[i], fmt.Sprintf("fixed_output: answer %d", won))) {
				t.Errorf("round %d, loser: got %d %s, want 409 with what was applied", round, code, bodies[i])
			}
		}
	}
}

func TestACancelledRunLeavesTheInbox(t *testing.T) {
	t.Parallel()
	st := begin(t)
	r := inboxed(t, st)
	st.must("POST", "/v1/runs/"+r.ID+"/cancel", nil, nil)
	var l pending
	if st.must("GET", "/v1/recovery/pending", nil, &l); len(l.Items) != 0 {
		t.Errorf("pending: got %d, want none", len(l.Items))
	}
	body := map[string]any{"type": "fixed_output", "diagnosis": "x", "output": map[string]any{"id": 1}}
	if code, b := st.call("POST", "/v1/recovery/"+r.ID+"/0/action", body, nil); code != http.StatusConflict || !strings.Contains(b, "nothing was applied") {
		t.Errorf("an action for it: got %d %s, want 409", code, b)
	}
}

func TestAnAgentsKeyOpensTheInboxAndNothingElse(t *testing.T) {
	t.Parallel()
	st := begin(t)
	r := inboxed(t, st)
	key, _ := st.key("agent")
	for path, want := range map[string]int{"/v1/recovery/pending": 200, "/v1/recovery/" + r.ID + "/0": 200, "/v1/recovery/" + r.ID + "/0/case": 200,
		"/v1/recovery/schema": 200, "/v1/cases": 200, "/v1/me": 200, "/v1/runs": 403, "/v1/runs/" + r.ID: 403, "/v1/runs/" + r.ID + "/events": 403,
		"/v1/gates": 403, "/v1/gates/" + r.Gates[0].ID: 403, "/v1/settings": 403, "/v1/secrets": 403, "/v1/workflows": 403, "/v1/mcp-servers": 403, "/v1/keys": 403} {
		if code, _, b := st.as(key, "GET", path, nil); code != want {
			t.Errorf("GET %s: got %d %s, want %d", path, code, b, want)
		}
	}
	if code, _, b := st.as(key, "POST", "/v1/gates/"+r.Gates[0].ID+"/answer", []byte(`{"answer":"action"}`)); code != 403 {
		t.Errorf("gates.answer: got %d %s, want 403", code, b)
	}
	viewer, _ := st.key("viewer")
	if code, _, b := st.as(viewer, "POST", "/v1/recovery/"+r.ID+"/0/action", []byte(`{}`)); code != 403 {
		t.Errorf("an action by a viewer: got %d %s, want 403", code, b)
	}
}
