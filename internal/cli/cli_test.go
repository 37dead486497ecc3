package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/longstop-dev/longstop/internal/server"
)

// line runs a command line and gives its exit code and what it printed.
func line(t *testing.T, stdin string, args ...string) (code int, out, errOut string) {
	t.Helper()
	var o, e bytes.Buffer
	code = Main(t.Context(), args, strings.NewReader(stdin), &o, &e)
	return code, o.String(), e.String()
}

// must runs a command line that has to succeed.
func must(t *testing.T, args ...string) string {
	t.Helper()
	code, out, errOut := line(t, "", args...)
	if code != exitOK {
		t.Fatalf("longstop %s: exit %d\n%s%s", strings.Join(args, " "), code, out, errOut)
	}
	return out
}

// holds checks that text has each part.
func holds(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("no %q in:\n%s", p, text)
		}
	}
}

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// held starts a server on a folder, as `longstop dev` in another terminal.
func held(t *testing.T) (dir string, s *server.Server) {
	t.Helper()
	dir = t.TempDir()
	s, err := server.Start(t.Context(), server.Config{DataDir: dir, Listen: "127.0.0.1:0", AllowPrivate: true, AllowStdio: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := s.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	return dir, s
}

func TestInitValidateRun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "workflow.yaml")
	holds(t, must(t, "init", file), "wrote", "longstop run")
	holds(t, must(t, "validate", file), "nightly-sync, 2 steps")
	if code, _, errOut := line(t, "", "init", file); code != exitUsage || !strings.Contains(errOut, "--force") {
		t.Errorf("init over a file: got %d %s, want 2 and --force", code, errOut)
	}
	must(t, "init", "--force", file)
}

func TestRunIsFollowedAndAnswered(t *testing.T) {
	t.Parallel()
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/new" {
			io.WriteString(w, `{"id":1}`)
			return
		}
		w.Header().Set("Location", "/new")
		w.WriteHeader(http.StatusUnauthorized)
		io.WriteString(w, `{"error":"token expired"}`)
	}))
	t.Cleanup(up.Close)
	file := write(t, "w.yaml", fmt.Sprintf("name: w\nsteps:\n  - {id: get, type: http_request, title: Get it, config: {url: %q}, output: {type: object, required: [id]}}\n", up.URL+"/old"))
	data := "--data=" + t.TempDir()

	code, out, errOut := line(t, "", "run", file, "--no-wait", data)
	if code != exitWaits {
		t.Fatalf("run --no-wait: exit %d\n%s%s", code, out, errOut)
	}
	holds(t, out, "HTTP 401: Unauthorized", "waits for a person", "longstop gates answer gate_")

	var gates struct {
		Items []struct{ ID, RunID, CaseID string }
	}
	if err := json.Unmarshal([]byte(must(t, "gates", "list", "--json", data)), &gates); err != nil || len(gates.Items) != 1 {
		t.Fatalf("gates: got %+v, %v, want one", gates, err)
	}
	g := gates.Items[0]
	holds(t, must(t, "gates", "show", g.ID, data), "needs_human", "the built-in")
	holds(t, must(t, "cases", "list", data), "HTTP 401")
	holds(t, must(t, "cases", "show", g.CaseID, data), "rules", "sent to "+up.URL)
	holds(t, must(t, "cases", "export", g.CaseID, data), `"schema_version": 1`)
	if code, _, errOut := line(t, "", "gates", "answer", g.ID, "shrug", data); code != exitUsage || !strings.Contains(errOut, "one of") {
		t.Errorf("a wrong answer: got %d %s, want 2 and what is right", code, errOut)
	}
	must(t, "gates", "answer", g.ID, "edit", "--modifications", `{"httpRequest":{"url":"`+up.URL+`/new"}}`, "--reason", "moved", data)
	out = must(t, "runs", "follow", g.RunID, data)
	holds(t, out, "mended by a person", "+ url: "+up.URL+"/new", "succeeded")
	holds(t, must(t, "logs", g.RunID, data), "human", "moved")
	holds(t, must(t, "runs", "show", g.RunID, data), "mended by a person")
	holds(t, must(t, "runs", "list", data), g.RunID, "succeeded")
	if code, _, _ := line(t, "", "gates", "answer", g.ID, "skip", data); code != exitFailed {
		t.Errorf("a second answer: got exit %d, want 1", code)
	}
}

func TestExitCodes(t *testing.T) {
	t.Parallel()
	fails := write(t, "f.yaml", "name: f\nrecovery: {builtin: \"off\", human_timeout: 60}\nsteps: [{type: transform, config: {value: \"{{ input.nope }}\"}}]\n")
	good := write(t, "g.yaml", "name: g\nsteps: [{type: transform, config: {value: {ok: true}}}]\n")
	bad := write(t, "b.yaml", "name: b\nsteps:\n  - type: http_reqest\n    config: {url: x}\n")
	data := "--data=" + t.TempDir()
	for _, tc := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"run", good, data}, exitOK, `"ok": true`},
		{[]string{"run", good, "--json", data}, exitOK, `"type":"run:succeeded"`},
		{[]string{"run", fails, "--no-wait", data}, exitWaits, "waits for a person"},
		{[]string{"run", bad, data}, exitUsage, "http_request"},
		{[]string{"run", "nowhere.yaml", data}, exitUsage, "nowhere.yaml"},
		{[]string{"run", good, "--input", "{", data}, exitUsage, "--input"},
		{[]string{"validate", bad}, exitUsage, "b.yaml:3: steps[0].type"},
		{[]string{"validate", "--json", bad}, exitUsage, `"line": 3`},
		{[]string{"nonsense"}, exitUsage, "nonsense"},
		{[]string{"runs", "show", "run_nope", data}, exitFailed, "run_nope"},
		{[]string{"runs", "list", "--endpoint", "http://127.0.0.1:9", "--key", "k"}, exitUnreachable, "cannot be reached"},
		{[]string{"runs", "list", "--endpoint", "http://127.0.0.1:9"}, exitUsage, "--key"},
		{[]string{"step-types", "nope"}, exitUsage, "http_request"},
		{[]string{"step-types", "http_request"}, exitOK, "required"},
		{[]string{"serve", "--listen", "nonsense", data}, exitUnreachable, "--listen"},
		{[]string{"serve", "--egress-allow", "a b", "--listen", "127.0.0.1:0", data}, exitUsage, "--egress-allow"},
	} {
		code, out, errOut := line(t, "", tc.args...)
		if code != tc.code || !strings.Contains(out+errOut, tc.says) {
			t.Errorf("longstop %s: got exit %d, want %d with %q\n%s%s", strings.Join(tc.args, " "), code, tc.code, tc.says, out, errOut)
		}
	}
	stdin, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	if code, out, errOut := line(t, string(stdin), "run", "-", data); code != exitOK {
		t.Errorf("run -: exit %d\n%s%s", code, out, errOut)
	}
}

func TestASecondServerOnAFolderIsToldWho(t *testing.T) {
	t.Parallel()
	dir, _ := held(t)
	code, _, errOut := line(t, "", "serve", "--listen", "127.0.0.1:0", "--data", dir)
	if code != exitUnreachable || !strings.Contains(errOut, fmt.Sprintf("process %d", os.Getpid())) {
		t.Errorf("got %d %s, want the holder's process", code, errOut)
	}
}

func TestServeSaysWhenItIsReady(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, w := io.Pipe()
	ended := make(chan int, 1)
	var errOut bytes.Buffer
	go func() {
		ended <- Main(ctx, []string{"serve", "--ready-json", "--listen", "127.0.0.1:0", "--data", t.TempDir()}, strings.NewReader(""), w, &errOut)
		w.Close()
	}()
	var ready struct{ URL, Key string }
	if err := json.NewDecoder(r).Decode(&ready); err != nil || ready.URL == "" || !strings.HasPrefix(ready.Key, "longstop_") {
		t.Fatalf("ready line: got %+v, %v", ready, err)
	}
	holds(t, must(t, "settings", "list", "--endpoint", ready.URL, "--key", ready.Key), "recovery.timeout_ms", "15000", "default")
	cancel()
	if code := <-ended; code != exitOK {
		t.Errorf("after a signal: exit %d, want 0: %s", code, errOut.String())
	}
}

func TestResources(t *testing.T) {
	t.Parallel()
	dir, _ := held(t)
	data := "--data=" + dir
	holds(t, must(t, "settings", "set", "recovery.timeout_ms", "20000", data), "20000", "workspace")
	if code, _, errOut := line(t, "", "settings", "set", "recovery.timeout_ms", "99", data); code != exitUsage || !strings.Contains(errOut, "60000") {
		t.Errorf("out of range: got %d %s, want 2 and the range", code, errOut)
	}
	holds(t, must(t, "settings", "unset", "recovery.timeout_ms", data), "15000", "default")
	if code, out, errOut := line(t, "sk-secret-0123456789\n", "secrets", "set", "api", data); code != exitOK {
		t.Fatalf("secrets set: %d %s%s", code, out, errOut)
	}
	if out := must(t, "secrets", "list", "--json", data); strings.Contains(out, "sk-secret") || !strings.Contains(out, `"api"`) {
		t.Errorf("secrets: got %s", out)
	}
	must(t, "secrets", "unset", "api", data)
	out := must(t, "keys", "create", "ci", "--role", "viewer", "--json", data)
	var key struct{ ID, Key string }
	if err := json.Unmarshal([]byte(out), &key); err != nil || key.Key == "" {
		t.Fatalf("key: %v in %s", err, out)
	}
	if strings.Contains(must(t, "keys", "list", data), key.Key) {
		t.Error("a key is listed whole")
	}
	must(t, "keys", "revoke", key.ID, data)
	holds(t, must(t, "keys", "list", data), "revoked")
	good := write(t, "g.yaml", "name: g\nsteps: [{type: transform, config: {value: 1}}]\n")
	holds(t, must(t, "workflows", "push", good, data), "g version 1")
	holds(t, must(t, "workflows", "list", data), "g")
	holds(t, must(t, "workflows", "show", "g", data), "type: transform")
}

func TestAgentsAreTried(t *testing.T) {
	t.Parallel()
	dir, _ := held(t)
	data := "--data=" + dir
	var base string
	a := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			fmt.Fprintf(w, `{"name":"Mine","description":"d","url":%q}`, base)
			return
		}
		io.WriteString(w, `{"jsonrpc":"2.0","id":"1","result":{"message":{"role":"ROLE_AGENT","messageId":"m","parts":[{"type":"data","data":{"type":"needs_human","diagnosis":"hm","suggestion":"look"}}]}}}`)
	}))
	t.Cleanup(a.Close)
	base = a.URL
	holds(t, must(t, "agents", "test", a.URL, data), "agent card found", "Mine", "needs_human", "it would be taken")
	code, out, _ := line(t, "", "agents", "test", "http://127.0.0.1:9", data)
	if code != exitFailed || !strings.Contains(out, "✗") {
		t.Errorf("an agent that is not there: got %d %s, want 1", code, out)
	}
	if code, out, errOut := line(t, "", "agents", "test", data, "--", "/nonexistent/agent"); code != exitFailed {
		t.Errorf("a command that is not there: got %d %s%s, want 1", code, out, errOut)
	}
}

func TestEveryCommandHasHelp(t *testing.T) {
	t.Parallel()
	for _, c := range []string{"demo", "dev", "serve", "init", "run", "validate", "step-types", "workflows", "runs", "logs", "gates", "cases", "settings",
		"secrets", "keys", "mcp-servers", "agents", "agents test", "gates answer", "cases replay", "mcp-servers add"} {
		code, out, errOut := line(t, "", append(strings.Fields(c), "--help")...)
		if code != exitOK || !strings.Contains(out, "Usage: longstop "+c) {
			t.Errorf("%s --help: got %d\n%s%s", c, code, out, errOut)
		}
	}
}

func TestExamplesAreValid(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../examples/workflows/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("examples: got %v, %v", files, err)
	}
	must(t, append([]string{"validate"}, files...)...)
}

func TestTheApprovalExampleRuns(t *testing.T) {
	t.Parallel()
	data := "--data=" + t.TempDir()
	small := must(t, "run", "../../examples/workflows/approval.yaml", "--input", `{"order":"A-17","amount":50}`, data)
	holds(t, small, "succeeded", `"refund": 49`)
	code, out, errOut := line(t, "", "run", "../../examples/workflows/approval.yaml", "--input", `{"order":"A-17","amount":200}`, "--no-wait", data)
	if code != exitWaits {
		t.Fatalf("exit %d\n%s%s", code, out, errOut)
	}
	var gates struct{ Items []struct{ ID, RunID string } }
	if err := json.Unmarshal([]byte(must(t, "gates", "list", "--json", data)), &gates); err != nil || len(gates.Items) != 1 {
		t.Fatalf("gates: got %+v, %v", gates, err)
	}
	holds(t, must(t, "gates", "show", gates.Items[0].ID, data), "Refund 196", "approve")
	must(t, "gates", "answer", gates.Items[0].ID, "approve", data)
	holds(t, must(t, "runs", "follow", gates.Items[0].RunID, data), "succeeded", `"refund": 196`)
	holds(t, must(t, "logs", gates.Items[0].RunID, data), "console", "fee for A-17")
}

func TestTheParallelExampleRuns(t *testing.T) {
	t.Parallel()
	data := "--data=" + t.TempDir()
	small := must(t, "run", "../../examples/workflows/order.yaml", "--input", `{"order":"A-17","amount":50,"items":[1,2]}`, data)
	holds(t, small, "succeeded", `"reserved": 2`, `"risk": "low"`)
	code, out, errOut := line(t, "", "run", "../../examples/workflows/order.yaml", "--input", `{"order":"A-18","amount":2500,"items":[1]}`, "--no-wait", data)
	if code != exitWaits {
		t.Fatalf("exit %d\n%s%s", code, out, errOut)
	}
	holds(t, out, "stock", "rating", "Ship A-18 for 2500?") // the other branches went on first
	var gates struct{ Items []struct{ ID, RunID string } }
	if err := json.Unmarshal([]byte(must(t, "gates", "list", "--json", data)), &gates); err != nil || len(gates.Items) != 1 {
		t.Fatalf("gates: got %+v, %v", gates, err)
	}
	must(t, "gates", "answer", gates.Items[0].ID, "approve", data)
	holds(t, must(t, "runs", "follow", gates.Items[0].RunID, data), "succeeded", `"risk": "high"`, `"approved": true`)
}
