package server_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/coder/websocket"

	"github.com/longstop-dev/longstop/internal/nettest"
	"github.com/longstop-dev/longstop/internal/server"
)

// recorder is an A2A agent that keeps the requests it gets.
type recorder struct {
	*httptest.Server
	mu   sync.Mutex
	seen []recorded
}

type recorded struct {
	method, path, auth string
	body               map[string]any
}

// newRecorder is an agent with this card, %s being its own URL; "" is none.
func newRecorder(t *testing.T, card string) *recorder {
	t.Helper()
	a := &recorder{}
	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		one := recorded{method: r.Method, path: r.URL.Path, auth: r.Header.Get("Authorization")}
		b, _ := io.ReadAll(r.Body)
		_ = json.Unmarshal(b, &one.body)
		a.mu.Lock()
		a.seen = append(a.seen, one)
		a.mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.Method == http.MethodPost:
			says(`{"type":"fixed_output","diagnosis":"cached","output":{"id":7}}`)(w, r, asJSON(t, one.body["id"]), nil)
		case card == "" || r.URL.Path != "/.well-known/agent-card.json":
			http.NotFound(w, r)
		default:
			fmt.Fprintf(w, card, a.URL)
		}
	}))
	t.Cleanup(a.Close)
	return a
}

// taken gives the requests until now and forgets them.
func (a *recorder) taken() []recorded {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := a.seen
	a.seen = nil
	return out
}

// asked gives the only POST among requests.
func asked(t *testing.T, all []recorded) recorded {
	t.Helper()
	var out []recorded
	for _, r := range all {
		if r.method == http.MethodPost {
			out = append(out, r)
		}
	}
	if len(out) != 1 {
		t.Fatalf("got %d requests, want 1: %+v", len(out), all)
	}
	return out[0]
}

// TestAnAgentAsTheSpecificationDescribesIt has a card with a name, a
// description and a url, a message endpoint, and nothing else of A2A.
//
// spec: R-071 R-073 R-075 R-078 R-079 R-080 R-081 R-082 R-083 R-084 R-085 R-086 R-089 R-109
func TestAnAgentAsTheSpecificationDescribesIt(t *testing.T) {
	t.Parallel()
	st, up := begin(t), api(t)
	st.must("PUT", "/v1/secrets/api", map[string]any{"value": secretValue}, nil)
	a := newRecorder(t, `{"name":"Mender","description":"Mends user APIs","url":"%s"}`)
	st.set("recovery.a2a_agent_url", a.URL)
	if got := a.taken(); len(got) != 1 || got[0].method != "GET" || got[0].path != "/.well-known/agent-card.json" {
		t.Errorf("at save: got %+v, want one GET of the card", got)
	}
	var v struct{ Value, Name, Description string }
	if st.must("GET", "/v1/settings/recovery.a2a_agent_url", nil, &v); v.Value != a.URL || v.Name != "Mender" || v.Description != "Mends user APIs" {
		t.Errorf("the setting shows %+v, want name and description", v)
	}

	r := st.ended(st.run(fmt.Sprintf(moved, up.URL), map[string]any{"userId": 42}))
	if r.Status != "succeeded" || r.source(0) != "byoa" || string(r.Output) != `{"id":7}` {
		t.Fatalf("got %s by %s with %s (%s)", r.Status, r.source(0), r.Output, r.Steps[0].Message)
	}
	one := asked(t, a.taken())
	if one.path != "/message:send" || one.auth != "" {
		t.Errorf("asked at %q with Authorization %q, want /message:send and none", one.path, one.auth)
	}
	params, _ := one.body["params"].(map[string]any)
	message, _ := params["message"].(map[string]any)
	parts, _ := message["parts"].([]any)
	id, _ := message["messageId"].(string)
	if len(parts) != 1 || len(id) != 36 {
		t.Fatalf("got %d parts and messageId %q in %v", len(parts), id, one.body)
	}
	data := parts[0].(map[string]any)["data"]
	want := map[string]any{"jsonrpc": "2.0", "id": "recovery-" + r.ID + "-0", "method": "SendMessage", "params": map[string]any{
		"message": map[string]any{"messageId": id, "role": "ROLE_USER", "parts": []any{map[string]any{"type": "data", "data": data}}}}}
	if got, want := asJSON(t, one.body), asJSON(t, want); got != want {
		t.Errorf("the envelope: got %s, want %s", got, want)
	}
	var cases struct {
		Items []struct{ Input map[string]any }
	}
	st.must("GET", "/v1/cases?runId="+r.ID, nil, &cases)
	if got, want := asJSON(t, data), asJSON(t, cases.Items[0].Input); got != want {
		t.Errorf("the payload: got %s, want the case's %s", got, want)
	}

	st.set("recovery.a2a_auth_token", "token-of-the-agent")
	a.taken()
	st.ended(st.run(fmt.Sprintf(moved, up.URL), nil))
	if one := asked(t, a.taken()); one.auth != "Bearer token-of-the-agent" {
		t.Errorf("with a token: got Authorization %q", one.auth)
	}
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestAgentURLsThatAreRefused holds for a server as it is started for others
// to use: nothing private is open.
func TestAgentURLsThatAreRefused(t *testing.T) {
	t.Parallel()
	st := begin(t, func(c *server.Config) { c.AllowPrivate = false })
	for _, url := range []string{
		// spec: R-113
		"http://agent.example.com", "ftp://agent.example.com", "agent.example.com",
		// spec: R-114
		"https://localhost", "https://localhost:8443/a2a", "https://127.0.0.1", "https://[::1]", "https://10.0.0.1", "https://172.16.3.4",
		"https://192.168.1.1", "https://[fd00::1]", "https://169.254.169.254", "https://100.100.100.200", "https://2130706433", "https://0x7f000001",
	} {
		if code, b := st.call("PUT", "/v1/settings/recovery.a2a_agent_url", map[string]any{"value": url}, nil); code != http.StatusUnprocessableEntity {
			t.Errorf("%s: got %d %s, want 422", url, code, b)
		}
	}
	var v struct{ Source string }
	if st.must("GET", "/v1/settings/recovery.a2a_agent_url", nil, &v); v.Source != "default" {
		t.Errorf("after the refusals the setting is from %s, want default", v.Source)
	}
}

// TestCardsThatAreRefused are those that are no card of an agent that could be
// called.
//
// spec: R-088
func TestCardsThatAreRefused(t *testing.T) {
	t.Parallel()
	st := begin(t)
	for name, card := range map[string]string{"none": "", "no JSON": "<html>%s", "no name": `{"url":"%s"}`, "no endpoint": `{"name":"n","x":"%s"}`} {
		if code, b := st.call("PUT", "/v1/settings/recovery.a2a_agent_url", map[string]any{"value": newRecorder(t, card).URL}, nil); code != http.StatusUnprocessableEntity {
			t.Errorf("%s: got %d %s, want 422", name, code, b)
		}
	}
}

// TestWhatEarlierStepsFetchedIsShown: a token from a step before is no
// credential of the workspace, and an agent may need it.
//
// spec: R-019 R-066
func TestWhatEarlierStepsFetchedIsShown(t *testing.T) {
	t.Parallel()
	st := begin(t)
	a := newRecorder(t, `{"name":"n","description":"d","url":"%s"}`)
	st.set("recovery.a2a_agent_url", a.URL)
	st.ended(st.run(fmt.Sprintf(expired, api(t).URL), nil))
	if got := asJSON(t, asked(t, a.taken()).body); !strings.Contains(got, `"prior_outputs":{"0":"{\"token\":\"abc\"}"}`) {
		t.Errorf("the agent was sent %s, want the token of step 0", got)
	}
}

// TestAdaptingIsSentOverTheWebSocket follows a run as a page does.
//
// spec: R-054 R-056 R-057 R-058
func TestAdaptingIsSentOverTheWebSocket(t *testing.T) {
	t.Parallel()
	st := begin(t)
	st.must("PUT", "/v1/secrets/api", map[string]any{"value": secretValue}, nil)
	st.set("recovery.a2a_agent_url", agent(t, says(`{"type":"fixed_output","diagnosis":"cached","output":{"id":7}}`)).URL)
	id := st.run(fmt.Sprintf(moved, api(t).URL), nil)
	c, _, err := websocket.Dial(t.Context(), st.s.URL()+"/v1/runs/"+id+"/events",
		&websocket.DialOptions{HTTPClient: nettest.Client(), HTTPHeader: http.Header{"Authorization": {"Bearer " + st.s.Key()}}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseNow()
	for {
		_, b, err := c.Read(t.Context())
		if err != nil {
			t.Fatalf("the socket ended without step:adapting: %v", err)
		}
		var e event
		if err := json.Unmarshal(b, &e); err != nil {
			t.Fatal(err)
		}
		if e.Type != "step:adapting" {
			continue
		}
		for _, want := range []string{`"byoa_attempted":true`, `"byoa_result_summary":"fixed_output: cached"`, `"byoa_timing_ms":`, `"byoa_rejection_reason":null`} {
			if !strings.Contains(string(e.Data), want) {
				t.Errorf("step:adapting is %s, want %s in it", e.Data, want)
			}
		}
		return
	}
}
