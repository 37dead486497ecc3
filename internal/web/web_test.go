package web_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/longstop-dev/longstop/internal/client"
	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/nettest"
	"github.com/longstop-dev/longstop/internal/server"
)

const (
	secretValue = "sk-live-0123456789abcdef"
	hostile     = `<script>alert(1)</script><img src=x onerror=alert(2)> "'>`
)

// bed is a whole server, an API that fails in a hostile way, and an agent
// over A2A that knows a way out.
type bed struct {
	t   *testing.T
	srv *server.Server
	c   *client.Client
	api string
}

func newBed(t *testing.T, config server.Config) *bed {
	t.Helper()
	b := &bed{t: t}
	outside := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.URL.Path == "/v2/users/42":
			_ = json.NewEncoder(w).Encode(map[string]any{"id": 42, "name": hostile})
		case strings.HasPrefix(r.URL.Path, "/v1/"):
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, hostile+" "+r.Header.Get("Authorization"))
		case r.URL.Path == "/.well-known/agent-card.json":
			_ = json.NewEncoder(w).Encode(map[string]any{"name": "agent", "description": "d", "url": b.api + "/agent"})
		case r.URL.Path == "/agent", r.URL.Path == "/message:send":
			_ = json.NewEncoder(w).Encode(map[string]any{"jsonrpc": "2.0", "id": "x", "result": map[string]any{"message": map[string]any{"role": "ROLE_AGENT", "messageId": "m",
				"parts": []any{map[string]any{"data": map[string]any{"type": "retry_with_params", "diagnosis": "v1 is gone " + hostile,
					"modifications": map[string]any{"httpRequest": map[string]any{"url": b.api + "/v2/users/42"}}}}}}}})
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	t.Cleanup(outside.Close)
	b.api = outside.URL
	config.DataDir, config.Listen, config.AllowPrivate = t.TempDir(), "127.0.0.1:0", true
	var err error
	if b.srv, err = server.Start(t.Context(), config); err != nil {
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
	if _, err := b.c.PutSecret(t.Context(), "api", secretValue); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *bed) set(key, value string) {
	b.t.Helper()
	if _, err := b.c.PutSetting(b.t.Context(), key, value); err != nil {
		b.t.Fatalf("%s: %v", key, err)
	}
}

// start starts a run whose step calls v1, and with it an approval if asked.
func (b *bed) start(more string) string {
	b.t.Helper()
	source := "name: moved\nsteps:\n  - {id: user, type: http_request, title: Fetch user, config: {method: GET, url: \"" + b.api +
		"/v1/users/42\", headers: {Authorization: \"Bearer {{ secrets.api }}\"}}}\n" + more
	if _, err := b.c.CreateWorkflow(b.t.Context(), client.Definition{Source: []byte(source)}); err != nil {
		b.t.Fatal(err)
	}
	run, err := b.c.StartRun(b.t.Context(), "moved", client.StartRun{})
	if err != nil {
		b.t.Fatal(err)
	}
	return run.ID
}

// until follows a run until an event of a type.
func (b *bed) until(run, event string) flow.Event {
	b.t.Helper()
	ctx, stop := context.WithTimeout(b.t.Context(), time.Minute)
	defer stop()
	var seen *flow.Event
	err := b.c.Follow(ctx, run, 0, func(e flow.Event) error {
		if e.Type == event && seen == nil {
			seen = &e
			return io.EOF
		}
		return nil
	})
	if seen == nil {
		b.t.Fatalf("the run has no %s: %v", event, err)
	}
	return *seen
}

func (b *bed) key(role flow.Role) *client.Key {
	b.t.Helper()
	k, err := b.c.CreateKey(b.t.Context(), string(role), role)
	if err != nil {
		b.t.Fatal(err)
	}
	return k
}

// browser keeps cookies and follows no redirect.
func browser(t *testing.T) *http.Client {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &http.Client{Transport: nettest.Transport(), Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

func (b *bed) send(c *http.Client, method, path string, form url.Values, header http.Header) (*http.Response, string) {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), method, b.srv.URL()+path, strings.NewReader(form.Encode()))
	if err != nil {
		b.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for name := range header {
		r.Header.Set(name, header.Get(name))
	}
	resp, err := c.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return resp, string(body)
}

// signedIn is a browser that has shown a key.
func (b *bed) signedIn(key string) *http.Client {
	b.t.Helper()
	c := browser(b.t)
	resp, body := b.send(c, http.MethodPost, "/login", url.Values{"key": {key}, "to": {"/runs/x"}}, nil)
	if resp.StatusCode != http.StatusSeeOther || resp.Header.Get("Location") != "/runs/x" {
		b.t.Fatalf("login: %s %s", resp.Status, body)
	}
	return c
}

func holds(t *testing.T, page string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(page, p) {
			t.Errorf("no %q in:\n%s", p, page)
		}
	}
}

func TestRunPage(t *testing.T) {
	t.Parallel()
	b := newBed(t, server.Config{})
	b.set("recovery.a2a_agent_url", b.api)
	run := b.start("")
	b.until(run, flow.EventRunSucceeded)
	c := b.signedIn(b.key(flow.RoleViewer).Key)
	resp, page := b.send(c, http.MethodGet, "/runs/"+run, nil, nil)
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "text/html; charset=utf-8" {
		t.Fatalf("got %s %s", resp.Status, resp.Header)
	}
	holds(t, page, run, "Fetch user", "your agent mended a step.", "mended by your agent", "retry_with_params", "v1 is gone", "What it changed",
		"/v1/users/42", "/v2/users/42", "HTTP 404: Not Found", "What was asked", "attempt 1", "[secret:api]")
	if strings.Contains(page, "hx-get") {
		t.Error("the page of a finished run asks for news")
	}
	for _, bad := range []string{"<script>alert", "onerror=alert(2)>", secretValue, "style="} {
		if strings.Contains(page, bad) {
			t.Errorf("the page holds %q", bad)
		}
	}
	if n := strings.Count(page, "<script"); n != 1 {
		t.Errorf("%d scripts, want htmx alone", n)
	}
	csp := resp.Header.Get("Content-Security-Policy")
	holds(t, csp, "default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'", "base-uri 'none'")
	if strings.Contains(csp, "unsafe") || resp.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("headers: %v", resp.Header)
	}
	for _, asset := range regexp.MustCompile(`/assets/[^"]+`).FindAllString(page, -1) {
		if resp, body := b.send(browser(t), http.MethodGet, asset, nil, nil); resp.StatusCode != http.StatusOK || body == "" {
			t.Errorf("%s: %s", asset, resp.Status)
		}
	}
}

// TestPageThatWaits: a page that is open asks for news, and is sent nothing
// while there is none.
func TestPageThatWaits(t *testing.T) {
	t.Parallel()
	b := newBed(t, server.Config{})
	b.set("recovery.builtin", "off")
	run := b.start("")
	b.until(run, flow.EventGateOpened)
	c := b.signedIn(b.srv.Key())
	_, page := b.send(c, http.MethodGet, "/runs/"+run, nil, nil)
	holds(t, page, "Waits for a person", "longstop gates answer gate_", `hx-trigger="every 2s"`)
	news := regexp.MustCompile(`hx-get="([^"]+)"`).FindStringSubmatch(page)
	if news == nil {
		t.Fatal("the page asks for no news")
	}
	from := http.Header{"Hx-Request": {"true"}}
	if resp, body := b.send(c, http.MethodGet, news[1], nil, from); resp.StatusCode != http.StatusNoContent || body != "" {
		t.Errorf("nothing new: got %s %q", resp.Status, body)
	}
	if _, err := b.c.CancelRun(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	resp, body := b.send(c, http.MethodGet, news[1], nil, from)
	if resp.StatusCode != http.StatusOK {
		t.Errorf("something new: got %s", resp.Status)
	}
	holds(t, body, "cancelled", `id="run"`)
}

func TestSignIn(t *testing.T) {
	t.Parallel()
	b := newBed(t, server.Config{PublicURL: "https://longstop.example.com"})
	c := browser(t)
	resp, _ := b.send(c, http.MethodGet, "/runs/run_1", nil, nil)
	if to := resp.Header.Get("Location"); resp.StatusCode != http.StatusSeeOther || to != "/login?to=%2Fruns%2Frun_1" {
		t.Errorf("without a session: got %s to %q", resp.Status, to)
	}
	resp, _ = b.send(c, http.MethodGet, "/runs/run_1", nil, http.Header{"Hx-Request": {"true"}})
	if resp.StatusCode != http.StatusUnauthorized || resp.Header.Get("Hx-Redirect") == "" {
		t.Errorf("an open page without a session: got %s %v", resp.Status, resp.Header)
	}
	for _, to := range []string{"https://evil.example", "//evil.example", "/runs/\\evil", "/v1/runs", "javascript:alert(1)", "/runs/a\r\nSet-Cookie: a=b"} {
		resp, _ := b.send(browser(t), http.MethodPost, "/login", url.Values{"key": {b.srv.Key()}, "to": {to}}, nil)
		if got := resp.Header.Get("Location"); got != "/login" {
			t.Errorf("back to %q: got %q", to, got)
		}
	}
	resp, _ = b.send(c, http.MethodPost, "/login", url.Values{"key": {b.srv.Key()}, "to": {"/runs/run_1"}}, nil)
	cookies := resp.Cookies()
	if len(cookies) != 1 || !cookies[0].HttpOnly || !cookies[0].Secure || cookies[0].SameSite != http.SameSiteLaxMode || strings.Contains(cookies[0].Value, b.srv.Key()) {
		t.Errorf("cookies: %+v", cookies)
	}
	for _, h := range []http.Header{{"Sec-Fetch-Site": {"cross-site"}}, {"Origin": {"https://evil.example"}}} {
		for _, path := range []string{"/login", "/logout"} {
			if resp, _ := b.send(browser(t), http.MethodPost, path, url.Values{"key": {b.srv.Key()}}, h); resp.StatusCode != http.StatusForbidden || len(resp.Cookies()) > 0 {
				t.Errorf("%s from another site: got %s", path, resp.Status)
			}
		}
	}
	for range 2 {
		resp, body := b.send(browser(t), http.MethodPost, "/login", url.Values{"key": {"nonsense" + hostile}}, nil)
		if resp.StatusCode != http.StatusUnauthorized || strings.Contains(body, "<script>alert") {
			t.Errorf("a wrong key: got %s", resp.Status)
		}
	}
	limited := false
	for range 20 {
		resp, _ := b.send(browser(t), http.MethodPost, "/login", url.Values{"key": {"nonsense"}}, nil)
		limited = limited || resp.StatusCode == http.StatusTooManyRequests && resp.Header.Get("Retry-After") != ""
	}
	if !limited {
		t.Error("wrong keys are never limited")
	}
	if resp, _ := b.send(browser(t), http.MethodPost, "/login", url.Values{"key": {b.srv.Key()}}, nil); resp.StatusCode != http.StatusSeeOther {
		t.Errorf("a right key from a limited address: got %s", resp.Status)
	}
}

func TestWhoMayLook(t *testing.T) {
	t.Parallel()
	b := newBed(t, server.Config{})
	b.set("recovery.builtin", "off")
	run := b.start("")
	b.until(run, flow.EventGateOpened)
	if resp, body := b.send(b.signedIn(b.key(flow.RoleAgent).Key), http.MethodGet, "/runs/"+run, nil, nil); resp.StatusCode != http.StatusForbidden || strings.Contains(body, "Fetch user") {
		t.Errorf("an agent's key: got %s", resp.Status)
	}
	viewer := b.key(flow.RoleViewer)
	c := b.signedIn(viewer.Key)
	if resp, body := b.send(c, http.MethodGet, "/runs/run_unknown", nil, nil); resp.StatusCode != http.StatusNotFound {
		t.Errorf("no such run: got %s %s", resp.Status, body)
	}
	if resp, _ := b.send(c, http.MethodGet, "/runs/"+run, nil, nil); resp.StatusCode != http.StatusOK {
		t.Errorf("a viewer: got %s", resp.Status)
	}
	if err := b.c.RevokeKey(t.Context(), viewer.ID); err != nil {
		t.Fatal(err)
	}
	if resp, _ := b.send(c, http.MethodGet, "/runs/"+run, nil, nil); resp.StatusCode != http.StatusSeeOther {
		t.Errorf("a key that was revoked: got %s", resp.Status)
	}
	c = b.signedIn(b.srv.Key())
	if resp, _ := b.send(c, http.MethodPost, "/logout", nil, nil); resp.Header.Get("Location") != "/login" {
		t.Errorf("sign out: got %s", resp.Status)
	}
	if resp, _ := b.send(c, http.MethodGet, "/runs/"+run, nil, nil); resp.StatusCode != http.StatusSeeOther {
		t.Errorf("after signing out: got %s", resp.Status)
	}
}
