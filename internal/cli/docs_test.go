package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/longstop-dev/longstop/internal/definition"
	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/nettest"
	"github.com/longstop-dev/longstop/internal/recovery"
	"github.com/longstop-dev/longstop/internal/server"
)

// block is a fenced block of a page.
type block struct{ kind, text string }

func blocks(t *testing.T, path string) (page string, all []block) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile("(?ms)^```(\\w+)\n(.*?)^```$").FindAllStringSubmatch(string(b), -1) {
		all = append(all, block{m[1], m[2]})
	}
	if len(all) == 0 {
		t.Fatalf("%s has no blocks", path)
	}
	return string(b), all
}

// words takes a line of a shell apart: words, and quoted texts with spaces.
func words(line string) []string {
	var out []string
	for _, m := range regexp.MustCompile(`'([^']*)'|"([^"]*)"|(\S+)`).FindAllStringSubmatch(line, -1) {
		if strings.HasPrefix(m[3], "#") { // a comment to the end
			break
		}
		out = append(out, m[1]+m[2]+m[3])
	}
	return out
}

// curl does what `curl -X METHOD URL -H HEADER -d BODY` does.
func curl(t *testing.T, args []string) {
	t.Helper()
	method, url, body, header := "GET", "", "", http.Header{}
	for i := 0; i < len(args); i++ {
		switch args[i] {
		case "-X":
			i++
			method = args[i]
		case "-H":
			i++
			name, value, _ := strings.Cut(args[i], ": ")
			header.Set(name, value)
		case "-d":
			i++
			body = args[i]
			header.Set("Content-Type", "application/x-www-form-urlencoded")
		default:
			url = args[i]
		}
	}
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = header
	resp, err := nettest.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if answer, _ := io.ReadAll(resp.Body); resp.StatusCode >= 300 {
		t.Errorf("curl %q: %d %s", args, resp.StatusCode, answer)
	}
}

// menders are an A2A agent and an MCP server.
func menders(t *testing.T) (a2a, mcpURL string) {
	t.Helper()
	var agent *httptest.Server
	agent = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			fmt.Fprintf(w, `{"name":"Mender","description":"Mends","url":%q}`, agent.URL)
			return
		}
		io.WriteString(w, `{"jsonrpc":"2.0","id":"1","result":{"message":{"messageId":"m","role":"ROLE_AGENT","parts":[{"data":{"type":"needs_human","diagnosis":"d","suggestion":"s"}}]}}}`)
	}))
	t.Cleanup(agent.Close)
	s := mcp.NewServer(&mcp.Implementation{Name: "mine", Version: "1"}, nil)
	s.AddTool(&mcp.Tool{Name: "diagnose_step_failure", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{StructuredContent: json.RawMessage(`{"type":"needs_human","diagnosis":"d","suggestion":"s"}`)}, nil
	})
	h := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil))
	t.Cleanup(h.Close)
	return agent.URL, h.URL
}

// TestTheRecoveryPageRuns runs the commands of docs/recovery.md in their
// order, on a server with a run that waits in the inbox and one that waits for
// a person.
func TestTheRecoveryPageRuns(t *testing.T) {
	t.Parallel()
	dir, s := held(t)
	data := "--data=" + dir
	file := write(t, "inbox.yaml", "name: inbox\nrecovery: {mode: agent}\nsteps:\n  - {id: one, type: transform, title: Make it, config: {value: \"{{ input.a }}\"}}\n")
	ended := make(chan int, 1)
	go func() {
		code, _, _ := line(t, "", "run", file, data)
		ended <- code
	}()
	must(t, "cases", "pending", "--wait", "30s", data)
	var l struct {
		Items []struct{ ID, RunID, CaseID string }
	}
	file = write(t, "person.yaml", "name: person\nrecovery: {builtin: \"off\"}\nsteps:\n  - {id: one, type: transform, config: {value: \"{{ input.a }}\"}}\n")
	if code, out, errOut := line(t, "", "run", file, "--no-wait", data); code != exitWaits {
		t.Fatalf("run: exit %d %s%s", code, out, errOut)
	}
	if err := json.Unmarshal([]byte(must(t, "gates", "list", "--json", data)), &l); err != nil || len(l.Items) != 2 {
		t.Fatalf("gates: got %+v, %v, want two", l, err)
	}
	a2a, mcpURL := menders(t)
	fill := strings.NewReplacer("\\\n", " ", "http://127.0.0.1:8080", s.URL(), "$LONGSTOP_KEY", s.Key(), "https://my-agent.example.com", a2a,
		"https://my-server.example.com/mcp", mcpURL, "RUN", l.Items[0].RunID, "GATE", l.Items[1].ID, "CASE", l.Items[1].CaseID)
	_, all := blocks(t, "../../docs/recovery.md")
	ran := 0
	for _, b := range all {
		if b.kind != "sh" {
			continue
		}
		for _, text := range strings.Split(strings.TrimSpace(fill.Replace(b.text)), "\n") {
			args := words(text)
			if len(args) == 0 { // a line between commands
				continue
			}
			ran++
			switch args[0] {
			case "curl":
				curl(t, args[1:])
			case "printf": // a secret is given on standard input
				if i := slices.Index(args, "|"); i < 0 || args[i+1] != "longstop" {
					t.Errorf("the page has a command that nobody runs: %s", text)
				} else if code, out, errOut := line(t, "a-key-of-somebody-0123456789", append(args[i+2:], data)...); code != exitOK {
					t.Errorf("%s: exit %d %s%s", text, code, out, errOut)
				}
			case "longstop":
				must(t, append(args[1:], data)...)
			default:
				t.Errorf("the page has a command that nobody runs: %s", text)
			}
		}
	}
	if code := <-ended; code != exitOK {
		t.Errorf("the run that the page answers: exit %d, want 0", code)
	}
	if ran < 20 {
		t.Errorf("%d commands ran, want those of the page", ran)
	}
}

// TestTheRecoveryPageIsTrue checks its documents, definitions and settings.
func TestTheRecoveryPageIsTrue(t *testing.T) {
	t.Parallel()
	page, all := blocks(t, "../../docs/recovery.md")
	input, err := definition.CompileSchema(recovery.Schema().Input)
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]bool{}
	for _, b := range all {
		switch {
		case b.kind == "yaml":
			if _, err := server.Validate("page", []byte(b.text)); err != nil {
				t.Errorf("%v in %s", err, b.text)
			}
		case b.kind == "json" && strings.Contains(b.text, "schema_version"):
			if wrong := input.Check(json.RawMessage(b.text)); len(wrong) > 0 {
				t.Errorf("RecoveryToolInput: %+v", wrong)
			}
		case b.kind == "json" && strings.Contains(b.text, "byoa_attempted"):
			d := json.NewDecoder(strings.NewReader(b.text))
			d.DisallowUnknownFields()
			if err := d.Decode(&flow.Adapting{}); err != nil {
				t.Errorf("step:adapting: %v", err)
			}
		case b.kind == "json":
			a, notes, why := recovery.ParseAction([]byte(b.text), flow.DefaultLimits())
			if why != nil || len(notes) > 0 {
				t.Errorf("%v, %v in %s", why, notes, b.text)
			}
			kinds[string(a.Type)] = true
		}
	}
	if len(kinds) != len(flow.ActionTypes()) {
		t.Errorf("actions: got %v, want all five", kinds)
	}
	var list struct {
		Items []struct{ Key, Value string }
	}
	if err := json.Unmarshal([]byte(must(t, "settings", "list", "--json", "--data="+t.TempDir())), &list); err != nil {
		t.Fatal(err)
	}
	for _, s := range list.Items {
		row := regexp.MustCompile(`(?m)^\| ` + regexp.QuoteMeta(s.Key) + ` \| ` + regexp.QuoteMeta(s.Value) + ` ?\| \S`)
		if strings.HasPrefix(s.Key, "recovery.") && !row.MatchString(page) {
			t.Errorf("the table of settings has no row for %s with the default %q", s.Key, s.Value)
		}
	}
}

// TestTheAgentsPageIsTrue runs the commands of docs/agents.md as they stand
// there, with an agent that has the name they use.
func TestTheAgentsPageIsTrue(t *testing.T) {
	t.Parallel()
	data := "--data=" + t.TempDir()
	card := cardServer(t)
	s := unjson[struct{ PublicKey, Bucket string }](t, must(t, "services", "create", "--json", data))
	values := strings.NewReplacer("https://agent.example.com", card, "BUCKET", s.Bucket, "PUBKEY", s.PublicKey)
	_, all := blocks(t, "../../docs/agents.md")
	ran := 0
	for _, b := range all {
		if b.kind != "sh" {
			continue
		}
		for _, text := range strings.Split(strings.TrimSpace(b.text), "\n") {
			args := words(values.Replace(text))
			if args[0] != "longstop" {
				t.Fatalf("what is %q?", text)
			}
			switch strings.Join(args[1:3], " ") {
			case "agents try": // the agent of this test does not answer; examples/agents runs it with one that does
				continue
			case "vaults events":
				args = slices.DeleteFunc(args, func(a string) bool { return a == "--follow" })
			}
			must(t, append(args[1:], data)...)
			ran++
		}
	}
	if ran < 5 {
		t.Errorf("%d commands ran, want those of the page", ran)
	}
	if out := must(t, "vaults", "show", "orders", data); !strings.Contains(out, ":order-desk") || !strings.Contains(out, "100000") {
		t.Errorf("the vault: %s", out)
	}
}
