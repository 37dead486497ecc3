package server_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/longstop-dev/longstop/internal/nettest"
)

// TestContractOfAMendedRun: what a run leaves behind that an own agent mended.
func TestContractOfAMendedRun(t *testing.T) {
	t.Parallel()
	st, up := begin(t), api(t)
	st.must("PUT", "/v1/secrets/api", map[string]any{"value": secretValue}, nil)
	a := newRecorder(t, `{"name":"Mender","description":"Mends user APIs","url":"%s"}`)
	golden(t, "setting.default", st.answered(200, "GET", "/v1/settings/recovery.timeout_ms", nil))
	golden(t, "setting.put", st.answered(200, "PUT", "/v1/settings/recovery.timeout_ms", map[string]any{"value": "15000"}))
	golden(t, "setting.agent-url", st.answered(200, "PUT", "/v1/settings/recovery.a2a_agent_url", map[string]any{"value": a.URL}))
	golden(t, "setting.token", st.answered(200, "PUT", "/v1/settings/recovery.a2a_auth_token", map[string]any{"value": "token-of-the-agent"}))
	golden(t, "setting.removed", st.answered(200, "DELETE", "/v1/settings/recovery.timeout_ms", nil))
	golden(t, "problem.setting", st.answered(422, "PUT", "/v1/settings/recovery.timeout_ms", map[string]any{"value": 60001}))
	golden(t, "problem.not-found", st.answered(404, "GET", "/v1/runs/run_none", nil))

	golden(t, "workflow.created", st.answered(201, "POST", "/v1/workflows", fmt.Sprintf(moved, up.URL)))
	golden(t, "workflows", st.answered(200, "GET", "/v1/workflows", nil))
	golden(t, "problem.definition", st.answered(422, "POST", "/v1/workflows", "name: x\nsteps:\n  - {type: transform, config: {value: 1}, timeout: soon}\n"))
	golden(t, "problem.no-workflow", st.answered(404, "POST", "/v1/workflows/nobody/runs", map[string]any{"input": nil}))
	var r runView
	st.must("POST", "/v1/workflows/moved/runs", map[string]any{"input": map[string]any{"userId": 42}}, &r)
	st.ended(r.ID)
	golden(t, "a2a.request", asJSON(t, asked(t, a.taken()).body))
	golden(t, "run", st.answered(200, "GET", "/v1/runs/"+r.ID, nil))
	golden(t, "runs", st.answered(200, "GET", "/v1/runs", nil))
	golden(t, "logs", st.answered(200, "GET", "/v1/runs/"+r.ID+"/logs", nil))
	golden(t, "events", st.answered(200, "GET", "/v1/runs/"+r.ID+"/events", nil))
	golden(t, "event.adapting", st.adapting(r.ID)[0])
	golden(t, "cases", st.answered(200, "GET", "/v1/cases?runId="+r.ID, nil))
	var cases struct {
		Items []struct{ Input json.RawMessage }
	}
	st.must("GET", "/v1/cases?runId="+r.ID, nil, &cases)
	golden(t, "input.http_request", string(cases.Items[0].Input))
	golden(t, "problem.conflict", st.answered(409, "POST", "/v1/runs/"+r.ID+"/cancel", nil))
	golden(t, "secrets", st.answered(200, "GET", "/v1/secrets", nil))
	golden(t, "key.created", st.answered(201, "POST", "/v1/keys", map[string]any{"name": "ci", "role": "viewer"}))
}

// TestContractOfTheMessage: the recovery message in each form that a card may
// ask for.
func TestContractOfTheMessage(t *testing.T) {
	t.Parallel()
	for name, card := range map[string]string{
		"a2a.request.1.0":  `{"name":"n","description":"d","supportedInterfaces":[{"url":"%s/rpc","protocolBinding":"JSONRPC","protocolVersion":"1.0"}]}`,
		"a2a.request.0.3":  `{"name":"n","description":"d","protocolVersion":"0.3.0","url":"%s/rpc"}`,
		"a2a.request.rest": `{"name":"n","description":"d","supportedInterfaces":[{"url":"%s/rest","protocolBinding":"HTTP+JSON","protocolVersion":"1.0"}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			st := begin(t)
			a := newRecorder(t, card)
			st.set("recovery.a2a_agent_url", a.URL)
			st.ended(st.run(`{"name":"w","steps":[{"type":"transform","title":"Sum up","config":{"value":"{{ input.nope }}"}}]}`, nil))
			golden(t, name, asJSON(t, asked(t, a.taken()).body))
		})
	}
}

// TestContractOfTheInbox: what an agent reads and writes that polls, over REST
// and over MCP, and what a person does.
func TestContractOfTheInbox(t *testing.T) {
	t.Parallel()
	st := begin(t)
	r := inboxed(t, st)
	golden(t, "inbox", st.answered(200, "GET", "/v1/recovery/pending", nil))
	golden(t, "inbox.item", first(t, st.answered(200, "GET", "/v1/recovery/pending", nil)))
	golden(t, "inbox.case", st.answered(200, "GET", "/v1/recovery/"+r.ID+"/0/case", nil))
	golden(t, "run.waiting", st.answered(200, "GET", "/v1/runs/"+r.ID, nil))
	place := "/v1/recovery/" + r.ID + "/0/action"
	golden(t, "problem.action", st.answered(422, "POST", place, map[string]any{"type": "fixed_output", "diagnosis": "x"}))
	golden(t, "inbox.applied", st.answered(200, "POST", place, json.RawMessage(actionFiles(t)["fixed_output"])))
	golden(t, "problem.answered-already", st.answered(409, "POST", place, json.RawMessage(actionFiles(t)["fixed_output"])))
	golden(t, "recovery.schema", st.answered(200, "GET", "/v1/recovery/schema", nil))
	s := st.overMCP()
	list, err := s.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range list.Tools {
		if tool.Name == "submit_recovery_action" {
			golden(t, "mcp.submit_recovery_action", asJSON(t, tool.InputSchema))
			return
		}
	}
	t.Error("submit_recovery_action is not offered")
}

// TestContractOfAPersonsGate: a gate, its answers, and what the next agent is
// shown of a hint.
func TestContractOfAPersonsGate(t *testing.T) {
	t.Parallel()
	st := begin(t)
	var count atomic.Int64
	r := called(t, st, &count)
	g := r.Gates[0].ID
	golden(t, "gate.needs_human", st.answered(200, "GET", "/v1/gates/"+g, nil))
	golden(t, "gates", st.answered(200, "GET", "/v1/gates?runId="+r.ID, nil))
	golden(t, "problem.gate-answer", st.answered(422, "POST", "/v1/gates/"+g+"/answer", map[string]any{"answer": "approve"}))
	golden(t, "gate.answered", st.answered(200, "POST", "/v1/gates/"+g+"/answer", map[string]any{"answer": "hint", "hint": "use the cache", "reason": "the login is down"}))
	st.ended(r.ID)
	var cases struct {
		Items []struct{ Input json.RawMessage }
	}
	st.must("GET", "/v1/cases?runId="+r.ID, nil, &cases)
	golden(t, "input.human_hint", string(cases.Items[0].Input))
}

// TestContractOfTheActions: each action as the recovery specification writes
// it is valid, and comes back as it was sent.
//
// spec: R-029
func TestContractOfTheActions(t *testing.T) {
	t.Parallel()
	st := begin(t)
	var asked atomic.Int64
	st.register("my-mcp-server-id", toolServer(t, `{}`, &asked).URL)
	golden(t, "mcp-servers", st.answered(200, "GET", "/v1/mcp-servers", nil))
	for kind, action := range actionFiles(t) {
		var out struct {
			Valid     bool
			Rejection string
			Action    map[string]any
		}
		st.must("POST", "/v1/agents/test", map[string]any{"agent": agent(t, says(action)).URL}, &out)
		var want map[string]any
		if err := json.Unmarshal([]byte(action), &want); err != nil {
			t.Fatal(err)
		}
		if !out.Valid || asJSON(t, out.Action) != asJSON(t, want) {
			t.Errorf("%s: got %+v, want it valid and as it was sent", kind, out)
		}
	}
}

// TestContractOfNobody: what somebody without a key is told.
func TestContractOfNobody(t *testing.T) {
	t.Parallel()
	st := begin(t)
	resp, err := nettest.Client().Get(st.s.URL() + "/v1/runs")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if kind := resp.Header.Get("Content-Type"); resp.StatusCode != 401 || kind != "application/problem+json" {
		t.Errorf("got %d %s, want 401 and application/problem+json", resp.StatusCode, kind)
	}
	golden(t, "problem.unauthorized", string(body))
}

// TestContractFilesAreCompared: a file whose test is gone says nothing.
func TestContractFilesAreCompared(t *testing.T) {
	t.Parallel()
	var source []byte
	for _, name := range []string{"contract_test.go", "contract_bed_test.go"} {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		source = append(source, b...)
	}
	files, err := os.ReadDir("testdata/contract")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		name := strings.TrimSuffix(strings.TrimPrefix(f.Name(), "action."), ".json")
		if !bytes.Contains(source, []byte(`"`+name+`"`)) {
			t.Errorf("nothing compares testdata/contract/%s: remove it", f.Name())
		}
	}
}
