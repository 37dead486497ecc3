package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/longstop-dev/longstop/internal/nettest"
)

// golden compares JSON that the product wrote with testdata/contract/NAME.json,
// after what differs from run to run is replaced; UPDATE=1 writes the file. A
// difference is a change of what outsiders rely on.
func golden(t *testing.T, name, got string) {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(got), &v); err != nil {
		t.Fatalf("%s: %v in %s", name, err, got)
	}
	b, err := json.MarshalIndent(settled("", v), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("testdata", "contract", name+".json")
	if os.Getenv("UPDATE") != "" {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, append(b, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (UPDATE=1 writes it)", err)
	}
	if string(want) != string(b)+"\n" {
		t.Errorf("%s has changed: got\n%s\nwant\n%s\n(UPDATE=1 writes it, if that is meant)", name, b, want)
	}
}

// settled replaces ids, instants, durations and addresses by words.
func settled(key string, v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, member := range v {
			v[k] = settled(k, member)
		}
	case []any:
		for i := range v {
			v[i] = settled(key, v[i])
		}
	case float64:
		switch key {
		case "durationMs", "byoa_timing_ms", "tookMs":
			return "A DURATION"
		}
	case string:
		return settledText(v)
	}
	return v
}

func settledText(s string) string {
	for _, r := range []struct{ pattern, with string }{
		{`\b(run|gate|case|key|person|ws|ver|wf)_[0-9a-zA-Z]{12,}`, `${1}_ID`},
		{`\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b`, `A UUID`},
		{`\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z\b`, `AN INSTANT`},
		{`http://127\.0\.0\.1:\d+`, `http://HOST`},
		{`\blongstop_[0-9A-Za-z]{30,}_[0-9A-Za-z]+`, `A KEY`},
		{`\blongstop_[0-9A-Za-z]{6}\b`, `A PREFIX`},
		{`\b[0-9a-f]{64}\b`, `A DIGEST`},
	} {
		s = regexp.MustCompile(r.pattern).ReplaceAllString(s, r.with)
	}
	return s
}

// answered gives the body of an answer with this status.
func (st *stop) answered(status int, method, path string, body any) string {
	st.t.Helper()
	code, b := st.call(method, path, body, nil)
	if code != status {
		st.t.Fatalf("%s %s: got %d %s, want %d", method, path, code, b, status)
	}
	return b
}

// first gives the first of a list's items.
func first(t *testing.T, list string) string {
	t.Helper()
	var l struct{ Items []json.RawMessage }
	if err := json.Unmarshal([]byte(list), &l); err != nil || len(l.Items) == 0 {
		t.Fatalf("no items in %s (%v)", list, err)
	}
	return string(l.Items[0])
}

// overMCP connects to this Longstop's own MCP server.
func (st *stop) overMCP() *mcp.ClientSession {
	st.t.Helper()
	c := mcp.NewClient(&mcp.Implementation{Name: "contract", Version: "1"}, nil)
	s, err := c.Connect(context.Background(), &mcp.StreamableClientTransport{Endpoint: st.s.URL() + "/mcp", DisableStandaloneSSE: true,
		HTTPClient: &http.Client{Transport: bearer{st.s.Key()}}}, nil)
	if err != nil {
		st.t.Fatal(err)
	}
	st.t.Cleanup(func() { _ = s.Close() })
	return s
}

type bearer struct{ key string }

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.key)
	return nettest.Transport().RoundTrip(r)
}

// actionFiles are the five actions as outsiders write them: they are read, not
// written.
func actionFiles(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, kind := range []string{"fixed_output", "retry_with_params", "code_fix", "retry_with_tool", "needs_human"} {
		b, err := os.ReadFile(filepath.Join("testdata", "contract", "action."+kind+".json"))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(b), fmt.Sprintf("%q", kind)) {
			t.Fatalf("action.%s.json is of another type: %s", kind, b)
		}
		out[kind] = string(b)
	}
	return out
}
