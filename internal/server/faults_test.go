package server_test

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

const secretValue = "sk-live-0123456789abcdef"

// agent is an A2A agent of the test's own making: answer gets the data part
// that it was sent, or the task that it was asked for.
func agent(t *testing.T, answer func(w http.ResponseWriter, r *http.Request, id string, input map[string]any)) *httptest.Server {
	t.Helper()
	var s *httptest.Server
	s = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			fmt.Fprintf(w, `{"name":"Test agent","description":"of a test","version":"1","supportedInterfaces":[{"url":%q,"protocolBinding":"JSONRPC","protocolVersion":"1.0"}]}`, s.URL+"/rpc")
			return
		}
		var in struct {
			ID     json.RawMessage
			Params struct {
				ID      string // of the task that is asked for
				Message struct {
					Parts []struct{ Data map[string]any }
				}
			}
		}
		b, _ := io.ReadAll(r.Body)
		_ = json.Unmarshal(b, &in)
		var input map[string]any
		for _, p := range in.Params.Message.Parts {
			input = p.Data
		}
		if in.Params.ID != "" {
			input = map[string]any{"task": in.Params.ID}
		}
		answer(w, r, string(in.ID), input)
	}))
	t.Cleanup(s.Close)
	return s
}

// says answers every question with this action.
func says(action string) func(http.ResponseWriter, *http.Request, string, map[string]any) {
	return func(w http.ResponseWriter, _ *http.Request, id string, _ map[string]any) {
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"message":{"messageId":"m","role":"ROLE_AGENT","parts":[{"data":%s}]}}}`, id, action)
	}
}

// result answers every question with this result.
func result(text string) func(http.ResponseWriter, *http.Request, string, map[string]any) {
	return func(w http.ResponseWriter, _ *http.Request, id string, _ map[string]any) {
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, id, text)
	}
}

// raw answers every question with these bytes.
func raw(status int, kind, body string) func(http.ResponseWriter, *http.Request, string, map[string]any) {
	return func(w http.ResponseWriter, _ *http.Request, _ string, _ map[string]any) {
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(status)
		io.WriteString(w, body)
	}
}

func retryAt(url string) string {
	return fmt.Sprintf(`{"type":"retry_with_params","diagnosis":"moved","modifications":{"httpRequest":{"url":%q}}}`, url)
}

const moved = `
name: moved
steps:
  - id: user
    type: http_request
    title: Fetch user profile
    intent: GET user data
    config: {url: "%s/v1/users/42", headers: {Authorization: "Bearer {{ secrets.api }}"}}
    output: {type: object, required: [id]}
`

// TestAnswersInEveryShape holds for each form in which an A2A agent may answer.
//
// spec: R-074 R-086
func TestAnswersInEveryShape(t *testing.T) {
	t.Parallel()
	const action = `{"type":"fixed_output","diagnosis":"cached","output":{"id":7}}`
	for name, res := range map[string]string{
		"result.message": `{"message":{"messageId":"m","role":"ROLE_AGENT","parts":[{"data":` + action + `}]}}`,
		"result.task":    `{"task":{"id":"t","status":{"state":"TASK_STATE_COMPLETED"},"artifacts":[{"parts":[{"data":` + action + `}]}]}}`,
		"bare task":      `{"id":"t","status":{"state":"completed"},"artifacts":[{"parts":[{"kind":"data","data":` + action + `}]}]}`,
		"type data":      `{"message":{"role":"ROLE_AGENT","parts":[{"type":"data","data":` + action + `}],"messageId":"m"}}`,
		"extra member":   `{"message":{"messageId":"m","parts":[{"data":{"confidence":0.9,"type":"fixed_output","diagnosis":"cached","output":{"id":7}}}]}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			st := begin(t)
			st.must("PUT", "/v1/secrets/api", map[string]any{"value": secretValue}, nil)
			st.set("recovery.a2a_agent_url", agent(t, result(res)).URL)
			r := st.ended(st.run(fmt.Sprintf(moved, api(t).URL), map[string]any{}))
			if r.Status != "succeeded" || r.source(0) != "byoa" || string(r.Output) != `{"id":7}` {
				t.Fatalf("got %s by %s with %s (%s)", r.Status, r.source(0), r.Output, r.Steps[0].Message)
			}
		})
	}
}

// TestWhatTheAgentIsShown holds for the members and the masking of the input.
//
// spec: R-016 R-017 R-018 R-021 R-022 R-025 R-032 R-083
func TestWhatTheAgentIsShown(t *testing.T) {
	t.Parallel()
	seen := make(chan map[string]any, 1)
	ids := make(chan string, 1)
	st := begin(t)
	up := api(t)
	st.must("PUT", "/v1/secrets/api", map[string]any{"value": secretValue}, nil)
	st.set("recovery.a2a_agent_url", agent(t, func(w http.ResponseWriter, r *http.Request, id string, input map[string]any) {
		seen <- input
		ids <- id
		says(retryAt(up.URL+"/v2/users/42"))(w, r, id, input)
	}).URL)
	id := st.run(fmt.Sprintf(moved, up.URL), map[string]any{"userId": 42, "access_token": "oauth-token-value"})
	r := st.ended(id)
	if r.Status != "succeeded" || r.source(0) != "byoa" {
		t.Fatalf("got %s by %s (%s)", r.Status, r.source(0), r.Steps[0].Message)
	}
	if got, want := <-ids, fmt.Sprintf("%q", "recovery-"+id+"-0"); got != want {
		t.Errorf("id: got %s, want %s", got, want)
	}
	b, _ := json.Marshal(<-seen)
	for _, want := range []string{`"schema_version":1`, `"title":"Fetch user profile"`, `"intent":"GET user data"`, `"index":0`, `"error":"HTTP 404: Not Found\n`,
		`"userId":42`, `"resolved_request":{"body":null,"url":"` + up.URL + `/v1/users/42"}`, `Bearer [secret:api]`, `"prior_outputs":{}`} {
		if !bytes.Contains(b, []byte(want)) {
			t.Errorf("the agent was not shown %s in %s", want, b)
		}
	}
	for _, never := range []string{secretValue, "oauth-token-value"} {
		if bytes.Contains(b, []byte(never)) {
			t.Errorf("the agent was shown %s", never)
		}
	}
	if !bytes.Contains(r.Output, []byte(`"auth":"Bearer [secret:api]"`)) {
		t.Errorf("at the same origin the secret goes along, masked at rest: got %s", r.Output)
	}
}

// TestANewOriginLosesWhatTemplatesFilled sends a request to another host and
// looks at what arrives there.
func TestANewOriginLosesWhatTemplatesFilled(t *testing.T) {
	t.Parallel()
	st := begin(t)
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"id":1,"auth":%q,"literal":%q}`, r.Header.Get("Authorization"), r.Header.Get("X-Literal"))
	}))
	t.Cleanup(other.Close)
	st.must("PUT", "/v1/secrets/api", map[string]any{"value": secretValue}, nil)
	st.set("recovery.a2a_agent_url", agent(t, says(retryAt(other.URL+"/elsewhere"))).URL)
	yaml := strings.Replace(fmt.Sprintf(moved, api(t).URL), "headers: {", `headers: {X-Literal: "kept", `, 1)
	r := st.ended(st.run(yaml, map[string]any{}))
	if r.Status != "succeeded" || string(r.Output) != `{"id":1,"auth":"","literal":"kept"}` {
		t.Fatalf("got %s with %s (%s)", r.Status, r.Output, r.Steps[0].Message)
	}
	if !strings.Contains(r.Steps[0].Message, "Authorization") {
		t.Errorf("the log does not say what was dropped: %q", r.Steps[0].Message)
	}
}

// TestATLSErrorIsTheAgentsFault uses an agent whose certificate nobody knows.
func TestATLSErrorIsTheAgentsFault(t *testing.T) {
	t.Parallel()
	st := begin(t)
	st.must("PUT", "/v1/secrets/api", map[string]any{"value": secretValue}, nil)
	st.set("recovery.timeout_ms", 2000)
	// The card is good when it is saved; afterwards its endpoint speaks a TLS that nobody trusts.
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	bad := httptest.NewUnstartedServer(http.NotFoundHandler())
	bad.Listener.Close()
	bad.Listener = ln
	bad.TLS = &tls.Config{}
	bad.StartTLS()
	t.Cleanup(bad.Close)
	card := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"name":"n","description":"d","supportedInterfaces":[{"url":%q,"protocolBinding":"JSONRPC","protocolVersion":"1.0"}]}`, bad.URL)
	}))
	t.Cleanup(card.Close)
	st.set("recovery.a2a_agent_url", card.URL)
	st.mended(t, st.run(fmt.Sprintf(moved, api(t).URL), map[string]any{}), "certificate")
	st.leaks(secretValue)
}

// TestALateAnswerChangesNothing has the agent answer after its time.
//
// spec: R-005 R-063
func TestALateAnswerChangesNothing(t *testing.T) {
	t.Parallel()
	st := begin(t)
	st.must("PUT", "/v1/secrets/api", map[string]any{"value": secretValue}, nil)
	st.set("recovery.timeout_ms", 1000)
	answered := make(chan struct{})
	st.set("recovery.a2a_agent_url", agent(t, func(w http.ResponseWriter, r *http.Request, id string, in map[string]any) {
		defer close(answered)
		<-r.Context().Done() // the caller has given up
		says(`{"type":"fixed_output","diagnosis":"late","output":{"id":666}}`)(w, r, id, in)
	}).URL)
	r := st.ended(st.run(fmt.Sprintf(moved, api(t).URL), map[string]any{}))
	<-answered
	if r = st.get(r.ID); r.Status != "succeeded" || r.source(0) != "builtin" || strings.Contains(string(r.Output), "666") {
		t.Fatalf("got %s by %s with %s", r.Status, r.source(0), r.Output)
	}
}
