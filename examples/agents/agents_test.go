// Package agents_test runs each example agent as its own text tells people to,
// against a whole server.
package agents_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/longstop-dev/longstop/internal/client"
	"github.com/longstop-dev/longstop/internal/conform"
	"github.com/longstop-dev/longstop/internal/egress"
	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/nettest"
	"github.com/longstop-dev/longstop/internal/server"
)

// bed is a whole server, and an API whose v1 is gone.
type bed struct {
	t   *testing.T
	srv *server.Server
	api *httptest.Server
	c   *client.Client
}

func newBed(t *testing.T) *bed {
	t.Helper()
	b := &bed{t: t}
	b.api = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/v1/users/42" {
			w.WriteHeader(http.StatusNotFound)
			_, _ = w.Write([]byte(`{"error":"v1 was retired, use /v2/users/42"}`))
			return
		}
		_, _ = w.Write([]byte(`{"id":42}`))
	}))
	t.Cleanup(b.api.Close)
	var err error
	if b.srv, err = server.Start(t.Context(), server.Config{DataDir: t.TempDir(), Listen: "127.0.0.1:0", AllowPrivate: true, AllowStdio: true}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, stop := context.WithTimeout(context.Background(), 10*time.Second)
		defer stop()
		if err := b.srv.Stop(ctx); err != nil {
			t.Errorf("the server did not stop: %v", err)
		}
	})
	b.c = client.New(b.srv.URL(), b.srv.Key(), client.Options{})
	return b
}

func (b *bed) set(key, value string) {
	b.t.Helper()
	if _, err := b.c.PutSetting(b.t.Context(), key, value); err != nil {
		b.t.Fatalf("%s: %v", key, err)
	}
}

// key makes one of the role agent.
func (b *bed) key() string {
	b.t.Helper()
	k, err := b.c.CreateKey(b.t.Context(), "example", flow.RoleAgent)
	if err != nil {
		b.t.Fatal(err)
	}
	return k.Key
}

// start starts a run whose one step calls v1.
func (b *bed) start() string {
	b.t.Helper()
	source := "name: moved\nsteps:\n  - {type: http_request, title: Fetch user, config: {method: GET, url: \"" + b.api.URL + "/v1/users/42\"}}\noutput: \"{{ steps.0.output }}\"\n"
	if _, err := b.c.CreateWorkflow(b.t.Context(), client.Definition{Source: []byte(source)}); err != nil {
		b.t.Fatal(err)
	}
	run, err := b.c.StartRun(b.t.Context(), "moved", client.StartRun{})
	if err != nil {
		b.t.Fatal(err)
	}
	return run.ID
}

// mended waits for a run's end and checks that the own agent mended it.
func (b *bed) mended(id string) {
	b.t.Helper()
	ctx, stop := context.WithTimeout(b.t.Context(), time.Minute)
	defer stop()
	if err := b.c.Follow(ctx, id, 0, func(flow.Event) error { return nil }); err != nil {
		b.t.Fatal(err)
	}
	run, err := b.c.Run(ctx, id)
	if err != nil {
		b.t.Fatal(err)
	}
	if string(run.Status) != string(flow.RunSucceeded) || !strings.Contains(string(run.Output), "42") {
		b.t.Errorf("the run is %s with %s: %s", run.Status, run.Output, run.Error)
	}
	logs, err := b.c.Logs(ctx, id, client.Records{})
	if err != nil {
		b.t.Fatal(err)
	}
	if last := logs.Items[len(logs.Items)-1]; last.RecoverySource != flow.SourceBYOA {
		b.t.Errorf("the step was mended by %q (%s), want byoa", last.RecoverySource, last.Message)
	}
}

// command runs a program until the test ends. Its first line of output tells
// that it is up, if ready is given; the line's first match is returned.
func command(t *testing.T, ready *regexp.Regexp, env []string, name string, args ...string) string {
	t.Helper()
	c := exec.Command(name, args...)
	c.Env = append(os.Environ(), env...)
	said, err := c.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.Stdout = c.Stderr // one pipe for both
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	lines := make(chan string, 1000)
	go func() {
		defer close(lines)
		for s := bufio.NewScanner(said); s.Scan(); {
			select {
			case lines <- s.Text():
			default: // a test that fails shows the beginning
			}
		}
	}()
	t.Cleanup(func() {
		_ = c.Process.Kill()
		for line := range lines {
			if t.Failed() {
				t.Log(line)
			}
		}
		_ = c.Wait() // "signal: killed" is what was asked for
	})
	if ready == nil {
		return ""
	}
	for line := range lines {
		if m := ready.FindString(line); m != "" {
			return m
		}
	}
	t.Fatalf("%s ended before it was up", name)
	return ""
}

// conforms puts the conformance kit's cases to an agent.
func conforms(t *testing.T, agent conform.Agent, transports ...string) {
	t.Helper()
	guard, err := egress.New(egress.Policy{AllowPrivate: true})
	if err != nil {
		t.Fatal(err)
	}
	r, err := conform.Run(t.Context(), agent, conform.Options{HTTP: guard.Client(egress.ClientOptions{}), Types: server.StepTypes()})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, tr := range r.Transports {
		if tr.Skipped == "" {
			got = append(got, tr.Name)
		}
		for _, c := range tr.Results {
			if !c.Passed {
				t.Errorf("%s over %s: %+v", c.Case, tr.Name, c.Problems)
			}
		}
	}
	if strings.Join(got, " ") != strings.Join(transports, " ") {
		t.Errorf("tried over %q, want %q", got, transports)
	}
}

var address = regexp.MustCompile(`http://127\.0\.0\.1:\d+`)

// build gives the path of an example in Go.
func build(t *testing.T, name string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), name)
	c := exec.Command("go", "build", "-o", out, "./"+name)
	if said, err := c.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, said)
	}
	return out
}

func TestGoOverA2A(t *testing.T) {
	t.Parallel()
	at := command(t, address, []string{"AGENT_TOKEN=token-0123456789"}, build(t, "go-a2a"), "-listen", "127.0.0.1:0")
	conforms(t, conform.Agent{URL: at, Token: "token-0123456789"}, conform.TransportA2A, conform.TransportA2A03, conform.TransportREST)
	b := newBed(t)
	b.set("recovery.a2a_agent_url", at)
	b.set("recovery.a2a_auth_token", "token-0123456789")
	b.mended(b.start())
}

func TestGoOverMCP(t *testing.T) {
	t.Parallel()
	agent := build(t, "go-mcp")
	conforms(t, conform.Agent{Command: []string{agent}}, conform.TransportMCP)
	b := newBed(t)
	if _, err := b.c.CreateServer(t.Context(), "first-aid", client.ServerSpec{Transport: "stdio", Command: []string{agent}}); err != nil {
		t.Fatal(err)
	}
	b.set("recovery.mcp_server_id", "first-aid")
	b.mended(b.start())
}

func TestGoOverTheInbox(t *testing.T) {
	t.Parallel()
	agent := build(t, "go-inbox")
	b := newBed(t)
	b.set("recovery.mode", "agent")
	run := b.start()
	command(t, nil, []string{"LONGSTOP_KEY=" + b.key()}, agent, "-endpoint", b.srv.URL())
	b.mended(run)
}

func TestTypeScript(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("typescript/node_modules"); err != nil {
		t.Fatal("the packages are not installed: run ./test, or npm ci in examples/agents/typescript")
	}
	compile := exec.Command("node_modules/.bin/tsc")
	compile.Dir = "typescript"
	if said, err := compile.CombinedOutput(); err != nil {
		t.Fatalf("tsc: %v\n%s", err, said)
	}
	at := command(t, address, []string{"PORT=0"}, "node", "typescript/dist/agent.js")
	conforms(t, conform.Agent{URL: at}, conform.TransportA2A, conform.TransportA2A03)
	b := newBed(t)
	b.set("recovery.a2a_agent_url", at)
	b.mended(b.start())
}

func TestPython(t *testing.T) {
	t.Parallel()
	inbox, err := conform.OpenInbox("127.0.0.1:0", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	command(t, nil, []string{"LONGSTOP_ENDPOINT=" + inbox.URL, "LONGSTOP_KEY=" + inbox.Key}, "python3", "python/agent.py")
	conforms(t, conform.Agent{Inbox: inbox}, conform.TransportInbox)
	b := newBed(t)
	b.set("recovery.mode", "agent")
	run := b.start()
	command(t, nil, []string{"LONGSTOP_ENDPOINT=" + b.srv.URL(), "LONGSTOP_KEY=" + b.key()}, "python3", "python/agent.py")
	b.mended(run)
}

// bearer adds a header, as the configuration has it.
type bearer struct{ headers map[string]string }

func (h bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for name, value := range h.headers {
		r.Header.Set(name, value)
	}
	return nettest.Transport().RoundTrip(r)
}

// TestCodingAgent takes the steps of coding-agent/AGENTS.md with the
// configuration beside it.
func TestCodingAgent(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.set("recovery.mode", "agent")
	b.set("recovery.agent_timeout", "3600")
	run := b.start()
	s := connect(t, map[string]string{"LONGSTOP_ENDPOINT": b.srv.URL(), "LONGSTOP_KEY": b.key()})
	if _, err := b.c.Pending(t.Context(), client.PendingFilter{Wait: 30 * time.Second}); err != nil { // until the step has failed
		t.Fatal(err)
	}
	var pending struct {
		Items []struct {
			RunID     string `json:"runId"`
			StepIndex int    `json:"stepIndex"`
		} `json:"items"`
	}
	read(t, s, "cffbrw://recovery/pending", &pending)
	if len(pending.Items) != 1 || pending.Items[0].RunID != run {
		t.Fatalf("pending: %+v, want the run %s", pending, run)
	}
	var c struct {
		Request struct {
			URL string `json:"url"`
		} `json:"resolved_request"`
	}
	read(t, s, "cffbrw://recovery/"+run+"/0", &c)
	r, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "submit_recovery_action", Arguments: map[string]any{"runId": run, "stepIndex": 0,
		"action": map[string]any{"type": "retry_with_params", "diagnosis": "v1 was retired",
			"modifications": map[string]any{"httpRequest": map[string]any{"url": strings.Replace(c.Request.URL, "/v1/", "/v2/", 1)}}}}})
	if err != nil || r.IsError {
		t.Fatalf("submit: %+v, %v", r, err)
	}
	b.mended(run)
}

// connect reads .mcp.json as a coding agent does.
func connect(t *testing.T, env map[string]string) *mcp.ClientSession {
	t.Helper()
	raw, err := os.ReadFile("coding-agent/.mcp.json")
	if err != nil {
		t.Fatal(err)
	}
	filled := os.Expand(strings.ReplaceAll(string(raw), ":-http://127.0.0.1:8080}", "}"), func(name string) string { return env[name] })
	var config struct {
		MCPServers map[string]struct {
			Type    string            `json:"type"`
			URL     string            `json:"url"`
			Headers map[string]string `json:"headers"`
		} `json:"mcpServers"`
	}
	if err := json.Unmarshal([]byte(filled), &config); err != nil {
		t.Fatal(err)
	}
	entry := config.MCPServers["longstop"]
	if entry.Type != "http" {
		t.Errorf("type: got %q, want http", entry.Type)
	}
	s, err := mcp.NewClient(&mcp.Implementation{Name: "coding-agent", Version: "1"}, nil).Connect(t.Context(),
		&mcp.StreamableClientTransport{Endpoint: entry.URL, HTTPClient: &http.Client{Transport: bearer{entry.Headers}}, DisableStandaloneSSE: true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func read(t *testing.T, s *mcp.ClientSession, uri string, into any) {
	t.Helper()
	r, err := s.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
	if err != nil {
		t.Fatalf("%s: %v", uri, err)
	}
	if err := json.Unmarshal([]byte(r.Contents[0].Text), into); err != nil {
		t.Fatalf("%s: %v in %s", uri, err, r.Contents[0].Text)
	}
}
