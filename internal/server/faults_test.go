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
	"time"
)

const secretValue = "sk-live-0123456789abcdef"

// agent is an A2A agent of the test's own making: answer gets the data part
// that it was sent.
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

// TestFaultsOfAnAgent holds, for every way in which an agent can fail: the
// run goes on to the built-in, which mends it; the log says why the agent was
// passed over; and nothing has leaked.
func TestFaultsOfAnAgent(t *testing.T) {
	t.Parallel()
	hang := func(w http.ResponseWriter, r *http.Request, _ string, _ map[string]any) { <-r.Context().Done() }
	for name, tc := range map[string]struct {
		answer func(http.ResponseWriter, *http.Request, string, map[string]any)
		why    string // what the rejection must say
	}{
		"not JSON":         {raw(200, "application/json", "certainly!"), ""},
		"HTML":             {raw(200, "text/html", "<html><body>hello</body></html>"), "HTML"},
		"20 MB":            {raw(200, "application/json", `{"jsonrpc":"2.0","result":{"x":"`+strings.Repeat("x", 20<<20)+`"}}`), ""},
		"10,000 levels":    {says(strings.Repeat(`{"a":`, 10000) + "1" + strings.Repeat("}", 10000)), "deep"},
		"unknown action":   {says(`{"type":"rm_rf","diagnosis":"x"}`), "type"},
		"missing member":   {says(`{"type":"fixed_output","diagnosis":"x"}`), "output"},
		"no diagnosis":     {says(`{"type":"fixed_output","output":{"id":1}}`), "diagnosis"},
		"wrong types":      {says(`{"type":"retry_with_params","diagnosis":"x","modifications":[1]}`), "modifications"},
		"a number as type": {says(`{"type":7,"diagnosis":"x"}`), "type"},
		"forbidden key":    {says(`{"type":"retry_with_params","diagnosis":"x","modifications":{"title":"pwned"}}`), "title"},
		"forbidden field":  {says(`{"type":"retry_with_params","diagnosis":"x","modifications":{"httpRequest":{"expect":[404]}}}`), "expect"},
		"hop-by-hop":       {says(`{"type":"retry_with_params","diagnosis":"x","modifications":{"headers":{"Host":"evil.example"}}}`), "Host"},
		"__proto__":        {says(`{"type":"retry_with_params","diagnosis":"x","modifications":{"body":{"__proto__":{"a":1}}}}`), "__proto__"},
		"contract":         {says(`{"type":"fixed_output","diagnosis":"x","output":{"name":"no id"}}`), "id"},
		"metadata":         {says(retryAt("http://169.254.169.254/latest")), "metadata"},
		"metadata mapped":  {says(retryAt("http://[::ffff:169.254.169.254]/")), ""},
		"decimal host":     {says(retryAt("http://2852039166/")), ""},
		"octal host":       {says(retryAt("http://0251.0376.0251.0376/")), ""},
		"hex host":         {says(retryAt("http://0xA9FEA9FE/")), ""},
		"a file URL":       {says(retryAt("file:///etc/passwd")), "absolute"},
		"a relative URL":   {says(retryAt("/v2/users/42")), ""},
		"unknown tool":     {says(`{"type":"retry_with_tool","diagnosis":"x","toolCall":{"server":"nope","tool":"t","params":{}}}`), "nope"},
		"code that throws": {says(`{"type":"code_fix","diagnosis":"x","code":"throw new Error('no idea')"}`), "no idea"},
		"endless code":     {says(`{"type":"code_fix","diagnosis":"x","code":"for(;;){}"}`), "code"},
		"code_fix":         {says(`{"type":"code_fix","diagnosis":"x","code":"return 1"}`), "contract"},
		"another's secret": {says(`{"type":"retry_with_params","diagnosis":"x","modifications":{"headers":{"X":"[secret:other]"}}}`), "other"},
		"JSON-RPC error": {func(w http.ResponseWriter, _ *http.Request, id string, _ map[string]any) {
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":"no idea"}}`, id)
		}, "no idea"},
		"401": {raw(401, "text/plain", "who are you"), "401"},
		"500": {raw(500, "text/plain", "boom"), "500"},
		"429": {raw(429, "text/plain", "slow down"), "429"},
		"a redirect": {func(w http.ResponseWriter, r *http.Request, _ string, _ map[string]any) {
			http.Redirect(w, r, "http://169.254.169.254/", http.StatusTemporaryRedirect)
		}, ""},
		"no data part":   {result(`{"message":{"messageId":"m","role":"ROLE_AGENT","parts":[{"text":"I would retry"}]}}`), ""},
		"a FAILED task":  {result(`{"task":{"id":"t","status":{"state":"TASK_STATE_FAILED","message":{"messageId":"m","role":"ROLE_AGENT","parts":[{"text":"upstream exploded"}]}},"artifacts":[{"parts":[{"data":{"type":"fixed_output","diagnosis":"x","output":{"id":1}}}]}]}}`), "upstream exploded"},
		"a working task": {result(`{"task":{"id":"t","status":{"state":"TASK_STATE_WORKING"}}}`), ""},
		"hangs":          {hang, ""},
		"hangs after headers": {func(w http.ResponseWriter, r *http.Request, _ string, _ map[string]any) {
			w.WriteHeader(200)
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}, ""},
		"a byte at a time": {func(w http.ResponseWriter, r *http.Request, _ string, _ map[string]any) {
			for r.Context().Err() == nil {
				io.WriteString(w, " ")
				w.(http.Flusher).Flush()
				select {
				case <-r.Context().Done():
				case <-time.After(100 * time.Millisecond):
				}
			}
		}, ""},
		"closes early": {func(w http.ResponseWriter, _ *http.Request, _ string, _ map[string]any) {
			c, buf, err := w.(http.Hijacker).Hijack()
			if err == nil {
				buf.WriteString("HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{\"jsonrpc\"")
				buf.Flush()
				c.Close()
			}
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			st := begin(t)
			up := api(t)
			st.must("PUT", "/v1/secrets/api", map[string]any{"value": secretValue}, nil)
			st.set("recovery.timeout_ms", 1000)
			st.set("recovery.a2a_agent_url", agent(t, tc.answer).URL)
			id := st.run(fmt.Sprintf(moved, up.URL), map[string]any{})
			events := st.follow(id, nil)
			r := st.get(id)
			if r.Status != "succeeded" || r.source(0) != "builtin" {
				t.Fatalf("run: got %s by %s (%s / %s), want succeeded by builtin", r.Status, r.source(0), r.Error, r.Steps[0].Message)
			}
			checkAdapting(t, events, tc.why)
			where := st.holds(secretValue, "/v1/runs/"+id, "/v1/runs/"+id+"/events", "/v1/runs/"+id+"/logs", "/v1/cases", "/v1/settings", "/v1/secrets")
			if len(where) > 0 {
				t.Errorf("the secret stands in %v", where)
			}
		})
	}
}

// checkAdapting looks at the step:adapting event of a run whose agent was
// asked and passed over.
func checkAdapting(t *testing.T, events []event, why string) {
	t.Helper()
	for _, e := range events {
		if e.Type != "step:adapting" {
			continue
		}
		if len(e.Data) > 1024 {
			t.Errorf("step:adapting has %d bytes, over 1024", len(e.Data))
		}
		var d struct {
			Attempted bool    `json:"byoa_attempted"`
			Summary   *string `json:"byoa_result_summary"`
			Timing    *int64  `json:"byoa_timing_ms"`
			Rejection *string `json:"byoa_rejection_reason"`
		}
		if err := json.Unmarshal(e.Data, &d); err != nil {
			t.Fatal(err)
		}
		if !d.Attempted || d.Timing == nil || d.Rejection == nil || *d.Rejection == "" {
			t.Fatalf("step:adapting: got %s, want an attempt with its time and why it was refused", e.Data)
		}
		if !strings.Contains(strings.ToLower(*d.Rejection), strings.ToLower(why)) {
			t.Errorf("rejection: got %q, want something with %q", *d.Rejection, why)
		}
		return
	}
	t.Errorf("no step:adapting in %+v", events)
}

// TestAnswersInEveryShape holds for each form in which an A2A agent may answer.
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
	id := st.run(fmt.Sprintf(moved, api(t).URL), map[string]any{})
	events := st.follow(id, nil)
	if r := st.get(id); r.Status != "succeeded" || r.source(0) != "builtin" {
		t.Fatalf("got %s by %s (%s)", r.Status, r.source(0), r.Error)
	}
	checkAdapting(t, events, "")
}

// TestALateAnswerChangesNothing has the agent answer after its time.
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
