package server_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/longstop-dev/longstop/internal/nettest"
)

// late is a text that everything of a tenant holds before it becomes a secret.
const late = "late-value-0123456789"

// beforehand fills the first workspace with late, and gives a run that has
// ended and one whose case was answered.
func beforehand(t *testing.T, st *stop) (a tenant, ended, answered string) {
	t.Helper()
	a = furnish(t, st)
	down := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Token", late)
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"wrong":%q}`, late)
	}))
	t.Cleanup(down.Close)
	st.set("notify.url", down.URL)
	st.set("notify.secret", "whsec_"+strings.Repeat("QUFB", 8))
	a.workflow = "workflow-of-later"
	var w, made struct{ VersionID, ID string }
	st.must("POST", "/v1/workflows", fmt.Sprintf(`
name: %s
description: %[3]s
steps:
  - {type: http_request, title: "Ask %[3]s", intent: "%[3]s", config: {method: POST, url: "%[2]s/x?k=%[3]s", headers: {X-Key: "%[3]s"}, body: {k: "%[3]s"}},
     output: {type: object, required: [id], description: "%[3]s"}}
`, a.workflow, down.URL, late), &w)
	a.version = w.VersionID
	input := map[string]any{"input": map[string]any{"t": late}}
	var r runView
	for _, run := range []*string{&a.run, &answered} {
		st.must("POST", "/v1/workflows/"+a.workflow+"/runs", input, &r)
		*run = st.gated(r.ID).ID
	}
	a.gate = st.get(a.run).Gates[0].ID
	var g struct{ CaseID string }
	st.must("GET", "/v1/gates/"+a.gate, nil, &g)
	a.kase = g.CaseID
	st.must("POST", "/v1/recovery/"+answered+"/0/action", map[string]any{"type": "fixed_output", "diagnosis": late, "output": map[string]any{"id": late}}, nil)
	st.ended(answered)
	ended = st.run("name: said\nsteps:\n  - {type: code, config: {code: \"console.log(input.t); return {t: input.t, n: 1}\"}}\n", map[string]any{"t": late})
	st.ended(ended)
	st.must("POST", "/v1/vaults/"+a.vault+"/events", map[string]any{"type": "note", "payload": map[string]any{"text": late}, "metadata": map[string]any{"who": late}}, &made)
	a.event = made.ID
	return a, ended, answered
}

// streamed follows a log until a line has a text, and gives all that came.
func (st *stop) streamed(path, until string) string {
	st.t.Helper()
	ctx, cancel := context.WithTimeout(st.t.Context(), time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, "GET", st.s.URL()+path, nil)
	if err != nil {
		st.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+st.s.Key())
	req.Header.Set("Accept", "text/event-stream")
	resp, err := nettest.Client().Do(req)
	if err != nil {
		st.t.Fatal(err)
	}
	defer resp.Body.Close()
	var all strings.Builder
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		all.WriteString(lines.Text() + "\n")
		if strings.Contains(lines.Text(), until) {
			return all.String()
		}
	}
	st.t.Fatalf("%s: no %s in %s", path, until, all.String())
	return ""
}

// page is a run's page as a browser gets it.
func (st *stop) page(run string) string {
	st.t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		st.t.Fatal(err)
	}
	resp, err := (&http.Client{Transport: nettest.Transport(), Jar: jar}).PostForm(st.s.URL()+"/login?to=/runs/"+run, url.Values{"key": {st.s.Key()}, "to": {"/runs/" + run}})
	if err != nil {
		st.t.Fatal(err)
	}
	defer resp.Body.Close()
	var all strings.Builder
	if _, err := bufio.NewReader(resp.Body).WriteTo(&all); err != nil || resp.StatusCode != http.StatusOK || !strings.Contains(all.String(), run) {
		st.t.Fatalf("the page of %s: got %d %s (%v)", run, resp.StatusCode, all.String(), err)
	}
	return all.String()
}

// answers is all that the faces show of a tenant: by what was asked, what came.
func (st *stop) answers(a tenant, ended, answered string, s *sdk.ClientSession) map[string]string {
	st.t.Helper()
	out := map[string]string{}
	get := func(name, path string) {
		code, _, body := st.as(a.key, "GET", path, nil)
		if code >= 300 && name != "bridges.connect" && name != "jobs.get" {
			st.t.Errorf("%s %s: got %d %s", name, path, code, body)
		}
		out[name] = body
	}
	for _, o := range st.operations() {
		if o.method == "GET" {
			get(o.name, a.fill(o))
		}
	}
	for _, path := range []string{"", "/logs", "/events", "/compare/" + answered} {
		get("the ended run"+strings.TrimSuffix(path, answered), "/v1/runs/"+ended+path)
	}
	get("the answered case", "/v1/recovery/"+answered+"/0/case")
	_, _, out["a conflict"] = st.as(a.key, "POST", "/v1/recovery/"+answered+"/0/action", []byte(`{"type":"fixed_output","diagnosis":"d","output":{"id":1}}`))
	out["a run's stream"] = st.streamed("/v1/runs/"+a.run+"/events", "gate:opened")
	out["a vault's stream"] = st.streamed("/v1/vaults/"+a.vault+"/events", a.event)
	out["a page"] = st.page(a.run)
	out["another page"] = st.page(ended)
	for name, in := range map[string]map[string]any{"get_run_status": {"runId": ended}, "get_workflow": {"name": a.workflow},
		"submit_recovery_action": {"runId": answered, "stepIndex": 0, "action": map[string]any{"type": "fixed_output", "diagnosis": "d", "output": map[string]any{"id": 1}}}} {
		r, err := s.CallTool(st.t.Context(), &sdk.CallToolParams{Name: name, Arguments: in})
		if err != nil {
			st.t.Fatalf("%s: %v", name, err)
		}
		out["the tool "+name] = jsonText(st.t, r)
	}
	for _, uri := range []string{"cffbrw://recovery/pending", "cffbrw://recovery/" + a.run + "/0"} {
		r, err := s.ReadResource(st.t.Context(), &sdk.ReadResourceParams{URI: uri})
		if err != nil {
			st.t.Fatalf("%s: %v", uri, err)
		}
		out["the resource "+strings.Replace(uri, a.run, "RUN", 1)] = jsonText(st.t, r)
	}
	return out
}

// TestWhatBecomesASecretIsShownNowhere asks every face for everything before
// and after a text that all of it holds is stored as a secret.
func TestWhatBecomesASecretIsShownNowhere(t *testing.T) {
	t.Parallel()
	st := begin(t)
	a, ended, answered := beforehand(t, st)
	s := session(t, st, a.key)
	before := st.answers(a, ended, answered, s)
	st.must("PUT", "/v1/secrets/late", map[string]any{"value": late}, nil)
	logged := len(st.log.String())
	after := st.answers(a, ended, answered, s)
	for name, body := range after {
		if strings.Contains(body, late) && !strings.HasPrefix(name, "audit.") {
			t.Errorf("%s tells it: %s", name, body)
		}
		if strings.Contains(before[name], late) && !strings.Contains(body, "[secret:late]") {
			t.Errorf("%s: got no mask where it stood: %s", name, body)
		}
	}
	for _, name := range []string{"runs.get", "runs.events", "cases.get", "cases.list", "gates.get", "gates.list", "recovery.pending", "recovery.input",
		"recovery.case", "workflows.get", "workflows.version", "events.list", "events.get", "notices.list", "the ended run", "the ended run/logs",
		"the ended run/compare/", "the answered case", "a conflict", "a run's stream", "a vault's stream", "a page", "another page", "the tool get_run_status", "the tool get_workflow",
		"the tool submit_recovery_action", "the resource cffbrw://recovery/pending", "the resource cffbrw://recovery/RUN/0"} {
		if !strings.Contains(before[name], late) {
			t.Errorf("%s did not hold it before, and shows nothing: %s", name, before[name])
		}
	}
	if told := st.log.String()[logged:]; strings.Contains(told, late) {
		t.Errorf("the log tells it: %s", told)
	}
}
