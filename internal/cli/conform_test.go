package cli

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/longstop-dev/longstop/internal/conform"
	"github.com/longstop-dev/longstop/internal/flow"
)

func TestConformExample(t *testing.T) {
	t.Parallel()
	out := must(t, "conform", "--example")
	holds(t, out, "a2a-1.0: 40 of 40 passed", "a2a-0.3: 40 of 40 passed", "a2a-http: 40 of 40 passed", "mcp: 40 of 40 passed")
	var reports []conform.Report
	if err := json.Unmarshal([]byte(must(t, "conform", "--example", "--token", "token-0123456789", "--only", "gone", "--json")), &reports); err != nil {
		t.Fatal(err)
	}
	if len(reports) != 2 || !reports[0].Passed || len(reports[0].Transports) != 3 || reports[1].Transports[0].Passed != 1 {
		t.Errorf("got %+v", reports)
	}
	holds(t, must(t, "conform", "--example", "--only", "gone", "-v"), "1/1 gone", "needs_human")
}

// TestConformFails: an agent that does not conform makes the command fail, and
// it says why.
func TestConformFails(t *testing.T) {
	t.Parallel()
	var base string
	agent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			_, _ = w.Write([]byte(`{"name":"minimal","description":"d","url":"` + base + `"}`))
			return
		}
		_, _ = w.Write([]byte(`{"jsonrpc":"2.0","id":"x","result":{"message":{"role":"ROLE_AGENT","messageId":"m","parts":[{"data":{"type":"undo","diagnosis":"d"}}]}}}`))
	}))
	t.Cleanup(agent.Close)
	base = agent.URL
	code, out, _ := line(t, "", "conform", agent.URL, "--only", "rate-limited,gone")
	if code != exitFailed {
		t.Errorf("exit %d, want %d", code, exitFailed)
	}
	holds(t, out, "rate-limited", "contract", "type: must be one of", "a2a-1.0: 0 of 2 passed", "a2a-0.3: the card declares no such interface")
}

func TestConformRefuses(t *testing.T) {
	t.Parallel()
	nothing := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(nothing.Close)
	for name, tc := range map[string]struct {
		args []string
		code int
		want string
	}{
		"no agent":     {nil, exitUsage, "no agent is named"},
		"two":          {[]string{"https://a.example.com", "--example"}, exitUsage, "both an agent and --example"},
		"nonsense":     {[]string{"agent"}, exitUsage, `"agent" names no agent`},
		"a registered": {[]string{"mcp:mine"}, exitUsage, `"mcp:mine" names no agent`},
		"too long":     {[]string{"--example", "--timeout", "2m"}, exitUsage, "1s to 60s"},
		"unknown case": {[]string{"--example", "--only", "nope"}, exitUsage, "rate-limited, "},
		"nobody there": {[]string{nothing.URL}, exitUnreachable, "card cannot be read"},
		"a taken port": {[]string{"inbox", "--listen", nothing.Listener.Addr().String()}, exitUnreachable, "cannot be served"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, _, errOut := line(t, "", append([]string{"conform"}, tc.args...)...)
			if code != tc.code {
				t.Errorf("exit %d, want %d", code, tc.code)
			}
			holds(t, errOut, tc.want)
		})
	}
}

// TestConformInbox: nobody polls, and the command says what was not answered.
func TestConformInbox(t *testing.T) {
	t.Parallel()
	code, out, errOut := line(t, "", "conform", "inbox", "--for", "100ms", "--only", "gone")
	if code != exitFailed {
		t.Errorf("exit %d, want %d", code, exitFailed)
	}
	holds(t, errOut, "LONGSTOP_ENDPOINT=http://127.0.0.1:", "LONGSTOP_KEY=longstop_conform_")
	holds(t, out, "gone: it was not answered within 100ms", "inbox: 0 of 1 passed")
}

// TestARefusedInboxAnswerIsShown: one that was never put right is shown with
// what is wrong, not only counted.
func TestARefusedInboxAnswerIsShown(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	reportConformity(&app{out: &out}, &conform.Report{Transports: []conform.Transport{{Name: conform.TransportInbox, Failed: 1, Results: []conform.Result{
		{Case: "gone", Type: flow.ActionRetryWithParams, Problems: []conform.Problem{{Kind: conform.KindContract, Message: "modifications.title may not be changed"}}}}}}})
	if !strings.Contains(out.String(), "may not be changed") {
		t.Errorf("got %q, want what is wrong with it", out.String())
	}
}
