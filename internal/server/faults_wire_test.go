package server_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/longstop-dev/longstop/internal/server"
)

// answerer answers a JSON-RPC request of this id.
type answerer func(w http.ResponseWriter, r *http.Request, id string, input map[string]any)

// wire is how an agent fails below the action, and what must be said of it.
type wire struct {
	answer answerer
	why    string
}

const goodAction = `{"type":"fixed_output","diagnosis":"x","output":{"id":666}}`

func hang(_ http.ResponseWriter, r *http.Request, _ string, _ map[string]any) { <-r.Context().Done() }

func hangAfterHeaders(w http.ResponseWriter, r *http.Request, _ string, _ map[string]any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(200)
	w.(http.Flusher).Flush()
	<-r.Context().Done()
}

// drip sends a byte now and then, until the caller goes.
func drip(w http.ResponseWriter, r *http.Request, _ string, _ map[string]any) {
	w.Header().Set("Content-Type", "application/json")
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		io.WriteString(w, " ")
		w.(http.Flusher).Flush()
		select {
		case <-r.Context().Done():
			return
		case <-tick.C:
		}
	}
}

func closeEarly(w http.ResponseWriter, _ *http.Request, _ string, _ map[string]any) {
	c, buf, err := w.(http.Hijacker).Hijack()
	if err == nil {
		buf.WriteString("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n{\"jsonrpc\"")
		buf.Flush()
		c.Close()
	}
}

func redirect(to string) answerer {
	return func(w http.ResponseWriter, r *http.Request, _ string, _ map[string]any) {
		http.Redirect(w, r, to, http.StatusTemporaryRedirect)
	}
}

// echo answers with what it was sent, headers too, as some servers do.
func echo(status int) answerer {
	return func(w http.ResponseWriter, r *http.Request, id string, input map[string]any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":%q}}`, id, fmt.Sprint(r.Header, input))
	}
}

// rawWires are faults of HTTP that A2A and MCP share.
func rawWires() map[string]wire {
	return map[string]wire{
		"not JSON":            {raw(200, "application/json", "certainly!"), ""},
		"nothing":             {raw(200, "application/json", ""), ""},
		"HTML":                {raw(200, "text/html", "<html><body>hello</body></html>"), "HTML"},
		"20 MB":               {raw(200, "application/json", `{"jsonrpc":"2.0","result":{"x":"`+strings.Repeat("x", 20<<20)+`"}}`), "bytes"},
		"10,000 levels":       {raw(200, "application/json", strings.Repeat(`{"a":`, 10000)+"1"+strings.Repeat("}", 10000)), "levels"},
		"NaN":                 {raw(200, "application/json", `{"jsonrpc":"2.0","id":NaN,"result":NaN}`), ""},
		"invalid UTF-8":       {raw(200, "application/json", "\xff\xfe{\"\x00"), ""},
		"401":                 {raw(401, "text/plain", "who are you"), "401"},
		"403":                 {raw(403, "text/plain", "not you"), "403"},
		"429":                 {raw(429, "text/plain", "slow down"), "429"},
		"500":                 {raw(500, "text/plain", "boom"), "500"},
		"echoes":              {echo(200), ""},
		"echoes in a 401":     {echo(401), "401"},
		"a redirect":          {redirect("http://169.254.169.254/"), "307"},
		"a redirect home":     {redirect("https://localhost/"), "307"},
		"hangs":               {hang, "within"},
		"hangs after headers": {hangAfterHeaders, "within"},
		"a byte at a time":    {drip, "within"},
		"closes early":        {closeEarly, ""},
	}
}

// taskWires are what A2A agents do with tasks.
func taskWires() map[string]wire {
	const artifacts = `"artifacts":[{"parts":[{"data":` + goodAction + `}]}]`
	said := func(state, text string) answerer {
		return result(`{"task":{"id":"t","status":{"state":"` + state + `","message":{"messageId":"m","role":"ROLE_AGENT","parts":[{"text":"` + text + `"}]}},` + artifacts + `}}`)
	}
	return map[string]wire{
		"JSON-RPC error": {func(w http.ResponseWriter, _ *http.Request, id string, _ map[string]any) {
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":"no idea"}}`, id)
		}, "no idea"},
		"no data part":       {result(`{"message":{"messageId":"m","role":"ROLE_AGENT","parts":[{"text":"I would retry"}]}}`), "I would retry"},
		"a FAILED task":      {said("TASK_STATE_FAILED", "upstream exploded"), "upstream exploded"},
		"a REJECTED task":    {said("TASK_STATE_REJECTED", "not my job"), "not my job"},
		"a CANCELED task":    {said("TASK_STATE_CANCELED", "stopped"), "stopped"},
		"a question":         {said("TASK_STATE_INPUT_REQUIRED", "which one?"), "which one?"},
		"a working task":     {result(`{"task":{"id":"stays","status":{"state":"TASK_STATE_WORKING"}}}`), "within"},
		"another's task":     {result(`{"task":{"id":"mixed-up","status":{"state":"TASK_STATE_WORKING"}}}`), "task"},
		"working without id": {result(`{"task":{"status":{"state":"TASK_STATE_WORKING"}}}`), ""},
		"another's answer": {func(w http.ResponseWriter, _ *http.Request, _ string, _ map[string]any) {
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":"recovery-run_of_another-0","result":{"message":{"messageId":"m","role":"ROLE_AGENT","parts":[{"data":%s}]}}}`, goodAction)
		}, "another question"},
	}
}

// TestFaultsOfAnA2AAgent holds, for every way in which an agent can fail: the
// run goes on to the built-in, which mends it; the log says why the agent was
// passed over; and nothing has leaked, the agent's own token included.
//
// spec: R-005 R-006 R-055 R-056 R-058 R-059 R-063 R-076 R-087 R-090 R-091
func TestFaultsOfAnA2AAgent(t *testing.T) {
	onEach(t, func(t *testing.T, on func(*server.Config)) {
		wires := taskWires()
		for name, w := range rawWires() {
			wires[name] = w
		}
		up := api(t)
		a := agent(t, func(w http.ResponseWriter, r *http.Request, id string, input map[string]any) {
			switch input["task"] {
			case "stays":
				result(`{"id":"stays","status":{"state":"TASK_STATE_WORKING"}}`)(w, r, id, input)
				return
			case "mixed-up":
				result(`{"id":"of-another","status":{"state":"TASK_STATE_COMPLETED"},"artifacts":[{"parts":[{"data":`+goodAction+`}]}]}`)(w, r, id, input)
				return
			}
			wires[faultOf(input)].answer(w, r, id, input)
		})
		st := begin(t, on, behind(a.URL, up.URL))
		st.set("recovery.timeout_ms", 1000)
		st.set("recovery.a2a_agent_url", a.URL)
		st.set("recovery.a2a_auth_token", agentToken)
		table(st, wires, func(name string, _ wire) string {
			return st.run(fmt.Sprintf(moved, up.URL), faulty(name))
		}, func(t *testing.T, id string, w wire) { st.mended(t, id, w.why) })
		st.leaks(agentToken)
	})
}

const agentToken = "token-of-the-agent-0011223344"

// TestFaultsOfAnMCPServer holds the same for an agent behind MCP, whose
// sessions are good until the tool is called.
//
// spec: R-005 R-006 R-055 R-056 R-058 R-059 R-063 R-091
func TestFaultsOfAnMCPServer(t *testing.T) {
	onEach(t, func(t *testing.T, on func(*server.Config)) {
		up := api(t)
		good := toolServer(t, goodAction, &atomic.Int64{})
		wires := rawWires()
		urls := map[string]string{}
		var all []string
		for name, w := range wires {
			s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				b, _ := io.ReadAll(r.Body)
				if bytes.Contains(b, []byte(`"tools/call"`)) {
					w.answer(rw, r, "1", nil)
					return
				}
				r.Body = io.NopCloser(bytes.NewReader(b))
				good.Config.Handler.ServeHTTP(rw, r)
			}))
			t.Cleanup(s.Close)
			urls[name] = s.URL
			all = append(all, s.URL)
		}
		st := begin(t, on, behind(append(all, up.URL)...))
		st.set("recovery.timeout_ms", 1000)
		table(st, wires, func(name string, _ wire) string {
			id := "srv-" + fmt.Sprintf("%x", name)[:min(2*len(name), 40)]
			st.must("PUT", "/v1/mcp-servers/"+id, map[string]any{"url": urls[name], "headers": map[string]string{"Authorization": "Bearer " + agentToken}}, nil)
			yaml := strings.Replace(fmt.Sprintf(moved, up.URL), "steps:", "recovery: {mcp_server_id: "+id+"}\nsteps:", 1)
			return st.run(yaml, faulty(name))
		}, func(t *testing.T, id string, w wire) { st.mended(t, id, w.why) })
		st.leaks(agentToken)
	})
}
