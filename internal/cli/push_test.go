package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/longstop-dev/longstop/internal/client"
)

// cardServer serves one agent card.
func cardServer(t *testing.T) string {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `{"name":"Order Desk","description":"d","url":"http://%s/rpc"}`, r.Host)
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

func unjson[T any](t *testing.T, text string) T {
	t.Helper()
	var v T
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return v
}

// TestPushRefuses: each refusal names its flag, and nothing is asked of a
// server.
//
// spec: A-007
// spec: A-013
// spec: A-015
// spec: A-019
// spec: A-024
// spec: A-027
// spec: A-028
func TestPushRefuses(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "none")
	good := []string{"--kind", "external", "--card", "https://a.example", "--bucket", "b"}
	words := strings.Repeat("abandon ", 11) + "about"
	for _, c := range []struct {
		flag string
		args []string
	}{
		{"--kind", nil},
		{"--kind", []string{"--kind", "code"}},
		{"--card", []string{"--card", "https://a.example"}},
		{"--card", []string{"--kind", "code", "--card", "https://a.example"}},
		{"--card", []string{"--kind", "external", "--bucket", "b"}},
		{"--bucket", []string{"--kind", "external", "--card", "https://a.example"}},
		{"--alias", append(good, "--alias", "a:b")},
		{"--idle-timeout", append(good, "--idle-timeout", "0")},
		{"--idle-timeout", append(good, "--idle-timeout", "0s")},
		{"--idle-timeout", append(good, "--idle-timeout", "soon")},
		{"--idle-timeout", append(good, "--idle-timeout=-1m")},
		{"--agent", append(good, "--agent", "x")},
		{"--out", append(good, "--out", "")},
		{"--vault", append(good, "--vault", "x")},
		{"--vault-scope", append(good, "--vault-scope", "x")},
		{"--vault-api", append(good, "--vault-api", "x")},
		{"--vault-token", append(good, "--vault-token", "x")},
		{"--secret-phrase", append(good, "--secret-phrase", words)},
		{"--secret-phrase", append(good, "--secret-phrase", words, "--as-pubkey", strings.Repeat("0", 64))},
		{"--secret-phrase", append(good, "--secret-phrase", "no words")},
		{"--subject-phrase", append(good, "--subject-phrase", "no words")},
		{"--access-token", append(good, "--access-token", "a", "--key", "b")},
		{"--env", append(good, "--env", "nowhere")},
		{"--env", append(good, "--preset", "nowhere")},
	} {
		args := append(append([]string{"push"}, c.args...), "--data", dir)
		code, _, errOut := line(t, "", args...)
		if code != exitUsage || !strings.HasPrefix(errOut, "longstop: "+c.flag+": ") || strings.Contains(errOut, "abandon") {
			t.Errorf("%v: exit %d, %s; want 2 and an error at %s", c.args, code, errOut, c.flag)
		}
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("a data folder was made")
	}
}

// TestPushOnTheCommandLine walks from nothing to a registered agent.
//
// spec: A-009
// spec: A-021
// spec: A-023
// spec: A-025
// spec: A-026
// spec: A-003
func TestPushOnTheCommandLine(t *testing.T) {
	t.Parallel()
	data, card := "--data="+t.TempDir(), cardServer(t)
	do := func(args ...string) string {
		t.Helper()
		code, out, errOut := line(t, "", append(args, data)...)
		if code != exitOK {
			t.Fatalf("longstop %v: exit %d\n%s%s", args, code, out, errOut)
		}
		return out
	}
	words := strings.Repeat("abandon ", 11) + "about"
	s := unjson[client.AgentService](t, do("services", "create", "--secret-phrase", words, "--json"))
	good := []string{"push", "--kind", "external", "--card", card, "--bucket", s.Bucket, "--as-pubkey", s.PublicKey, "--json"}
	for i, spelling := range [][]string{{"--scope", "a", "b"}, {"--scope", "a,b"}, {"--scope", "a", "--scope", "b"}, {"--scope=a", "--scope=b"}, nil} {
		p := unjson[client.Pushed](t, do(append(append([]string{}, good...), spelling...)...))
		want := "a b"
		if spelling == nil {
			want = "default"
		}
		if strings.Join(p.Scopes, " ") != want || p.IdleTimeout != 1800 || p.Version != "1.0.0" || p.Alias != "order-desk" {
			t.Errorf("spelling %d: %+v, want the scopes %s and the defaults", i, p, want)
		}
	}
	p := unjson[client.Pushed](t, do(append(append([]string{}, good...), "--alias", "desk", "--agent-version", "2.1.0", "--idle-timeout", "1d", "--secret-phrase", words, "--cdn", "https://cdn.example")...))
	if p.AgentID != s.PublicKey+":desk" || p.Version != "2.1.0" || p.IdleTimeout != 86400 || !strings.Contains(strings.Join(p.Notices, " "), "public base") {
		t.Errorf("every flag: %+v", p)
	}
	if out := do("agents", "list"); !strings.Contains(out, "runs elsewhere") || !strings.Contains(out, s.PublicKey+":desk") {
		t.Errorf("agents list: %s", out)
	}
	code, _, errOut := line(t, "", append(append([]string{}, good...), "--subject-phrase", words, data)...)
	if code != exitUnreachable || !strings.Contains(errOut, "--subject-phrase") {
		t.Errorf("another person's phrase: exit %d, %s", code, errOut)
	}
}
