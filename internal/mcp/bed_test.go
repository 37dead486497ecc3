package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/longstop-dev/longstop/internal/nettest"
	"github.com/longstop-dev/longstop/internal/server"
)

// bed is a whole server, so that what is tested is what is served.
type bed struct {
	t   *testing.T
	s   *server.Server
	log *lines
}

type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

func newBed(t *testing.T) *bed {
	t.Helper()
	b := &bed{t: t, log: &lines{}}
	var err error
	b.s, err = server.Start(t.Context(), server.Config{DataDir: t.TempDir(), Listen: "127.0.0.1:0", AllowPrivate: true,
		Log: slog.New(slog.NewJSONHandler(b.log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	if err != nil {
		t.Fatalf("start: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := b.s.Stop(ctx); err != nil {
			t.Errorf("stop: %v", err)
		}
	})
	return b
}

// rest calls the REST face as the owner.
func (b *bed) rest(method, path string, in, out any) {
	b.t.Helper()
	raw, err := json.Marshal(in)
	if err != nil {
		b.t.Fatal(err)
	}
	if text, ok := in.(string); ok {
		raw = []byte(text)
	}
	req, err := http.NewRequestWithContext(b.t.Context(), method, b.s.URL()+path, bytes.NewReader(raw))
	if err != nil {
		b.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+b.s.Key())
	req.Header.Set("Content-Type", "application/json")
	if _, ok := in.(string); ok {
		req.Header.Set("Content-Type", "application/yaml")
	}
	resp, err := nettest.Client().Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode >= 300 {
		b.t.Fatalf("%s %s: got %d %s, %v", method, path, resp.StatusCode, body, err)
	}
	if out != nil {
		if err := json.Unmarshal(body, out); err != nil {
			b.t.Fatalf("%s %s: %v in %s", method, path, err, body)
		}
	}
}

// key makes a key of a role.
func (b *bed) key(role string) (key, id string) {
	b.t.Helper()
	var k struct{ ID, Key string }
	b.rest("POST", "/v1/keys", map[string]any{"name": "test", "role": role}, &k)
	return k.Key, k.ID
}

// bearer sends a key, and remembers the version that the requests name.
type bearer struct {
	key string

	mu       sync.Mutex
	versions map[string]int
	sessions map[string]int
}

func (t *bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+t.key)
	t.mu.Lock()
	if t.versions == nil {
		t.versions, t.sessions = map[string]int{}, map[string]int{}
	}
	t.versions[r.Header.Get("Mcp-Protocol-Version")]++
	t.sessions[r.Header.Get("Mcp-Session-Id")]++
	t.mu.Unlock()
	return nettest.Transport().RoundTrip(r)
}

// generations are the protocol versions that a client may be pinned to; "" is
// the newest.
func generations() []string { return []string{"", "2025-11-25", "2025-06-18", "2025-03-26"} }

// connect opens a session of the SDK's client. It reads no stream: there is none.
func connect(t *testing.T, url, key, version string) (*sdk.ClientSession, *bearer) {
	t.Helper()
	s, b, err := dial(t, url, key, version)
	if err != nil {
		t.Fatalf("connect with %q: %v", version, err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s, b
}

func dial(t *testing.T, url, key, version string) (*sdk.ClientSession, *bearer, error) {
	t.Helper()
	b := &bearer{key: key}
	client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	s, err := client.Connect(t.Context(), &sdk.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{Transport: b}, MaxRetries: -1},
		&sdk.ClientSessionOptions{ProtocolVersion: version})
	return s, b, err
}

func (b *bed) connect(key, version string) *sdk.ClientSession {
	b.t.Helper()
	s, _ := connect(b.t, b.s.URL()+"/mcp", key, version)
	return s
}

// call calls a tool that succeeds, and decodes its answer.
func call(t *testing.T, s *sdk.ClientSession, tool string, in map[string]any, out any) {
	t.Helper()
	r, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: in})
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	text := textOf(t, r)
	if r.IsError {
		t.Fatalf("%s: got an error: %s", tool, text)
	}
	structured, err := json.Marshal(r.StructuredContent)
	if err != nil {
		t.Fatal(err)
	}
	var one, other any
	if json.Unmarshal([]byte(text), &one) != nil || json.Unmarshal(structured, &other) != nil || toText(one) != toText(other) {
		t.Errorf("%s: text %s and structured content %s differ", tool, text, structured)
	}
	if out != nil {
		if err := json.Unmarshal([]byte(text), out); err != nil {
			t.Fatalf("%s: %v in %s", tool, err, text)
		}
	}
}

// refused calls a tool that fails, and gives its text.
func refused(t *testing.T, s *sdk.ClientSession, tool string, in any) string {
	t.Helper()
	r, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: in})
	if err != nil {
		t.Fatalf("%s with %v: got the protocol error %v, want a result that says so", tool, in, err)
	}
	if !r.IsError {
		t.Fatalf("%s with %v: got %s, want an error", tool, in, textOf(t, r))
	}
	return textOf(t, r)
}

func textOf(t *testing.T, r *sdk.CallToolResult) string {
	t.Helper()
	if len(r.Content) != 1 {
		t.Fatalf("got %d parts, want 1", len(r.Content))
	}
	text, ok := r.Content[0].(*sdk.TextContent)
	if !ok {
		t.Fatalf("got a %T, want text", r.Content[0])
	}
	return text.Text
}

func toText(v any) string {
	b, _ := json.Marshal(v)
	return string(b)
}

// read reads a resource.
func read(t *testing.T, s *sdk.ClientSession, uri string) string {
	t.Helper()
	r, err := s.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: uri})
	if err != nil {
		t.Fatalf("read %s: %v", uri, err)
	}
	if len(r.Contents) != 1 || r.Contents[0].URI != uri || r.Contents[0].MIMEType == "" || !json.Valid([]byte(r.Contents[0].Text)) {
		t.Fatalf("read %s: got %+v, want one JSON document", uri, r.Contents)
	}
	return r.Contents[0].Text
}

// waits starts a run whose step fails, and gives it when its case waits in the
// inbox.
func (b *bed) waits(s *sdk.ClientSession) (run string) {
	b.t.Helper()
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v2/users/42" {
			_, _ = io.WriteString(w, `{"id":42}`)
			return
		}
		w.WriteHeader(http.StatusTeapot)
		_, _ = io.WriteString(w, "short and stout")
	}))
	b.t.Cleanup(up.Close)
	b.rest("POST", "/v1/workflows", "name: broken\nrecovery: {mode: agent}\nsteps:\n  - {id: user, type: http_request, title: Fetch user profile, config: {url: \""+
		up.URL+"/v1/users/42\"}, output: {type: object, required: [id]}}\n", nil)
	var r struct{ ID string }
	b.rest("POST", "/v1/workflows/broken/runs", map[string]any{}, &r)
	ctx, cancel := context.WithTimeout(b.t.Context(), 20*time.Second)
	defer cancel()
	for { // the inbox's own wait: no sleep
		var p struct{ Items []struct{ RunID string } }
		b.rest("GET", "/v1/recovery/pending?wait=5", nil, &p)
		for _, i := range p.Items {
			if i.RunID == r.ID {
				return r.ID
			}
		}
		if ctx.Err() != nil {
			b.t.Fatalf("the case of %s does not come into the inbox", r.ID)
		}
	}
}

// status waits until a run has ended and gives its status.
func (b *bed) status(run string) string {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), 20*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, "GET", b.s.URL()+"/v1/runs/"+run+"/events", nil)
	if err != nil {
		b.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+b.s.Key())
	req.Header.Set("Accept", "text/event-stream")
	resp, err := nettest.Client().Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.ReadAll(resp.Body); err != nil && !errors.Is(err, io.ErrUnexpectedEOF) { // it ends with the run
		b.t.Fatalf("events: %v", err)
	}
	var r struct{ Status string }
	b.rest("GET", "/v1/runs/"+run, nil, &r)
	return r.Status
}

func has(t *testing.T, what, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("%s: got %.600s, want %q in it", what, text, p)
		}
	}
}
