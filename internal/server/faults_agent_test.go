package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/longstop-dev/longstop/internal/server"
)

// wrong is an action that no face takes, and what must be said of it.
type wrong struct{ action, why string }

// wrongActions are actions that an agent may come with and that are refused,
// whichever way they came.
func wrongActions() map[string]wrong {
	mods := func(m string) string {
		return `{"type":"retry_with_params","diagnosis":"x","modifications":` + m + `}`
	}
	header := func(name, value string) string { return mods(fmt.Sprintf(`{"headers":{%q:%q}}`, name, value)) }
	return map[string]wrong{
		"an empty object":         {`{}`, "type"},
		"a list":                  {`[{"type":"fixed_output","diagnosis":"x","output":{"id":1}}]`, "array"},
		"a number":                {`7`, "number"},
		"a text":                  {`"retry"`, "text"},
		"10,000 levels":           {strings.Repeat(`{"a":`, 9990) + "1" + strings.Repeat("}", 9990), "deep"},
		"unknown action":          {`{"type":"rm_rf","diagnosis":"x"}`, "type"},
		"missing member":          {`{"type":"fixed_output","diagnosis":"x"}`, "output"},
		"no diagnosis":            {`{"type":"fixed_output","output":{"id":1}}`, "diagnosis"},
		"wrong types":             {mods(`[1]`), "modifications"},
		"a number as type":        {`{"type":7,"diagnosis":"x"}`, "type"},
		"type twice":              {`{"type":"needs_human","type":"fixed_output","diagnosis":"x","output":{"id":1}}`, "type"},
		"a huge timeout":          {mods(`{"timeout":1e999}`), "timeout"},
		"a negative timeout":      {mods(`{"timeout":-1}`), "timeout"},
		"a number beyond float64": {`{"type":"fixed_output","diagnosis":"x","output":{"id":1e999}}`, "out of range"},
		"100,000 digits":          {`{"type":"fixed_output","diagnosis":"x","output":{"id":` + strings.Repeat("9", 100_000) + `}}`, "characters"},
		"forbidden key":           {mods(`{"title":"pwned"}`), "title"},
		"forbidden field":         {mods(`{"httpRequest":{"expect":[404]}}`), "expect"},
		"hop-by-hop":              {header("Host", "evil.example"), "Host"},
		"a header in two lines":   {header("X", "a\r\nY: b"), "X"},
		"__proto__":               {mods(`{"body":{"__proto__":{"a":1}}}`), "__proto__"},
		"constructor":             {mods(`{"body":{"constructor":{"prototype":{"a":1}}}}`), "constructor"},
		"contract":                {`{"type":"fixed_output","diagnosis":"x","output":{"name":"no id"}}`, "id"},
		"metadata":                {retryAt("http://169.254.169.254/latest"), "metadata"},
		"metadata mapped":         {retryAt("http://[::ffff:169.254.169.254]/"), "url"},
		"metadata over NAT64":     {retryAt("https://[64:ff9b::a9fe:a9fe]/"), "url"},
		"localhost":               {retryAt("https://localhost/"), "localhost"},
		"a private address":       {retryAt("https://10.0.0.1/"), "10.0.0.1"},
		"a private one in IPv6":   {retryAt("https://[::ffff:10.0.0.1]/"), "url"},
		"decimal host":            {retryAt("http://2852039166/"), "url"},
		"octal host":              {retryAt("http://0251.0376.0251.0376/"), "url"},
		"hex host":                {retryAt("http://0xA9FEA9FE/"), "url"},
		"a file URL":              {retryAt("file:///etc/passwd"), "absolute"},
		"a relative URL":          {retryAt("/v2/users/42"), "url"},
		"a user in the URL":       {retryAt("https://user:pass@example.com/"), "url"},
		"unknown tool":            {`{"type":"retry_with_tool","diagnosis":"x","toolCall":{"server":"nope","tool":"t","params":{}}}`, "nope"},
		"code that throws":        {`{"type":"code_fix","diagnosis":"x","code":"throw new Error('no idea')"}`, "no idea"},
		"code against contract":   {`{"type":"code_fix","diagnosis":"x","code":"return 1"}`, "contract"},
		"another's secret":        {header("X", "[secret:other]"), "other"},
		"NUL and no UTF-8 at it":  {"{\"type\":\"rm\x00\xff\",\"diagnosis\":\"x\"}", ""},
		"NaN":                     {`{"type":"fixed_output","diagnosis":"x","output":{"id":NaN}}`, ""},
		"no JSON":                 {`certainly!`, ""},
	}
}

// behind lets outbound calls reach these test servers and nothing else that is
// private.
func behind(urls ...string) func(*server.Config) {
	return func(c *server.Config) {
		c.AllowPrivate = false
		for _, u := range urls {
			c.EgressAllow = append(c.EgressAllow, strings.TrimPrefix(u, "http://"))
		}
	}
}

// table starts a run for each fault, all at once on this Longstop, looks at
// what became of each, and then for secrets in all that is left behind.
func table[T any](st *stop, faults map[string]T, start func(name string, fault T) (runID string), test func(t *testing.T, id string, fault T)) {
	t := st.t
	t.Helper()
	st.must("PUT", "/v1/secrets/api", map[string]any{"value": secretValue}, nil)
	st.must("PUT", "/v1/secrets/other", map[string]any{"value": otherSecret}, nil)
	ids := map[string]string{}
	for name, fault := range faults {
		ids[name] = start(name, fault)
	}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			st.t = t
			test(t, ids[name], fault)
		})
	}
	st.t = t
	st.leaks(secretValue, otherSecret)
}

const otherSecret = "sk-other-fedcba9876543210"

// TestWrongActionsOverA2A holds that the run goes on to the built-in, which
// mends it, and says why the agent was passed over.
//
// spec: R-007 R-030 R-033 R-055 R-059 R-063 R-064 R-076 R-111
func TestWrongActionsOverA2A(t *testing.T) {
	onEach(t, func(t *testing.T, on func(*server.Config)) {
		up := api(t)
		a := agent(t, func(w http.ResponseWriter, r *http.Request, id string, input map[string]any) {
			says(wrongActions()[faultOf(input)].action)(w, r, id, input)
		})
		st := begin(t, on, behind(a.URL, up.URL))
		st.set("recovery.a2a_agent_url", a.URL)
		table(st, wrongActions(), func(name string, _ wrong) string {
			return st.run(fmt.Sprintf(moved, up.URL), faulty(name))
		}, func(t *testing.T, id string, w wrong) { st.mended(t, id, w.why) })
	})
}

// TestWrongActionsOverMCP holds the same for an MCP server.
//
// spec: R-007 R-030 R-033 R-055 R-059 R-063 R-064 R-111
func TestWrongActionsOverMCP(t *testing.T) {
	onEach(t, func(t *testing.T, on func(*server.Config)) {
		up := api(t)
		s := mcp.NewServer(&mcp.Implementation{Name: "byoa", Version: "1"}, nil)
		s.AddTool(&mcp.Tool{Name: "diagnose_step_failure", InputSchema: json.RawMessage(`{"type":"object"}`)},
			func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				var input map[string]any
				if err := json.Unmarshal(r.Params.Arguments, &input); err != nil {
					return nil, err
				}
				return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: wrongActions()[faultOf(input)].action}}}, nil
			})
		h := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil))
		t.Cleanup(h.Close)
		st := begin(t, on, behind(h.URL, up.URL))
		st.register("mine", h.URL)
		st.set("recovery.mcp_server_id", "mine")
		table(st, wrongActions(), func(name string, _ wrong) string {
			return st.run(fmt.Sprintf(moved, up.URL), faulty(name))
		}, func(t *testing.T, id string, w wrong) { st.mended(t, id, w.why) })
	})
}

// TestWrongActionsInTheInbox holds that whoever brings one is told what is
// wrong, and that the case goes on waiting for a right one. A second answer,
// and one to another's case, are told so.
//
// spec: R-108 R-111
func TestWrongActionsInTheInbox(t *testing.T) {
	onEach(t, func(t *testing.T, on func(*server.Config)) {
		up := api(t)
		st := begin(t, on, behind(up.URL))
		st.set("recovery.mode", "agent")
		key, _ := st.key("agent")
		table(st, wrongActions(), func(name string, _ wrong) string {
			return st.run(fmt.Sprintf(moved, up.URL), faulty(name))
		}, func(t *testing.T, id string, w wrong) {
			r := st.gated(id)
			place := "/v1/recovery/" + r.ID + "/0/action"
			code, _, b := st.as(key, "POST", place, []byte(w.action))
			if code != 400 && code != 422 || !strings.Contains(strings.ToLower(b), strings.ToLower(w.why)) || strings.Contains(b, secretValue) {
				t.Errorf("got %d %.600s, want 400 or 422 that says something with %q", code, b, w.why)
			}
			right := []byte(`{"type":"fixed_output","diagnosis":"known","output":{"id":7}}`)
			if code, _, b := st.as(key, "POST", "/v1/recovery/"+r.ID+"/1/action", right); code != 404 {
				t.Errorf("for another step: got %d %s, want 404", code, b)
			}
			if code, _, b := st.as(key, "POST", place, right); code != 200 {
				t.Fatalf("a right one after it: got %d %s", code, b)
			}
			if code, _, b := st.as(key, "POST", place, right); code != 409 || !strings.Contains(b, "answered already") {
				t.Errorf("a second: got %d %s, want 409", code, b)
			}
			if r = st.ended(r.ID); r.Status != "succeeded" || r.source(0) != "byoa" || string(r.Output) != `{"id":7}` {
				t.Errorf("run: got %s by %s with %s", r.Status, r.source(0), r.Output)
			}
		})
	})
}

// TestEndlessCodeIsTheAgentsFault is apart, since the sandbox lets code run
// for some seconds.
func TestEndlessCodeIsTheAgentsFault(t *testing.T) {
	t.Parallel()
	st := begin(t)
	st.set("recovery.a2a_agent_url", agent(t, says(`{"type":"code_fix","diagnosis":"x","code":"for(;;){}"}`)).URL)
	st.must("PUT", "/v1/secrets/api", map[string]any{"value": secretValue}, nil)
	st.mended(t, st.run(fmt.Sprintf(moved, api(t).URL), map[string]any{}), "code")
	st.leaks(secretValue)
}

// TestOddActions are actions that are odd and not wrong, and mends that turn
// out to be of no use.
func TestOddActions(t *testing.T) {
	onEach(t, func(t *testing.T, on func(*server.Config)) {
		up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/hop" {
				http.Redirect(w, r, "http://169.254.169.254/latest", http.StatusFound)
				return
			}
			http.Error(w, "gone", http.StatusGone)
		}))
		t.Cleanup(up.Close)
		type odd struct{ action, status, output string }
		fixed := func(output string) string {
			return `{"type":"fixed_output","diagnosis":"x","output":` + output + `}`
		}
		odds := map[string]odd{
			"an escaped NUL":               {fixed(`{"id":"\u0000"}`), "succeeded", `{"id":"\u0000"}`},
			"half a surrogate":             {fixed(`{"id":"\ud800"}`), "succeeded", ""},
			"a redirect to metadata":       {retryAt(up.URL + "/hop"), "waiting", ""},
			"a mend that changes no thing": {`{"type":"retry_with_params","diagnosis":"x","modifications":{}}`, "waiting", ""},
		}
		a := agent(t, func(w http.ResponseWriter, r *http.Request, id string, input map[string]any) {
			says(odds[faultOf(input)].action)(w, r, id, input)
		})
		st := begin(t, on, behind(a.URL, up.URL))
		st.set("recovery.a2a_agent_url", a.URL)
		table(st, odds, func(name string, _ odd) string {
			return st.run(fmt.Sprintf(moved, up.URL), faulty(name))
		}, func(t *testing.T, id string, o odd) {
			r, _ := st.outcome(id)
			if r.Status != o.status || o.output != "" && string(r.Output) != o.output {
				t.Fatalf("got %s with %.200s (%s / %s), want %s with %.200s", r.Status, r.Output, r.Error, r.Steps[0].Message, o.status, o.output)
			}
			if o.status == "waiting" && (len(r.Gates) != 1 || r.Gates[0].Kind != "needs_human") {
				t.Errorf("gates: got %+v, want one for a person", r.Gates)
			}
		})
	})
}
