package client_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/longstop-dev/longstop/internal/client"
	"github.com/longstop-dev/longstop/internal/flow"
)

func asError(err error, e **client.Error) bool { return errors.As(err, e) }

// answering is a server that gives one answer to everything.
func answering(t *testing.T, status int, kind, body string, header ...string) *client.Client {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		io.WriteString(w, body)
	}))
	t.Cleanup(s.Close)
	return client.New(s.URL, "k", client.Options{ResponseBytes: 1000})
}

func TestAProblemIsRead(t *testing.T) {
	t.Parallel()
	c := answering(t, 429, "application/problem+json; charset=utf-8", `{"status":429,"code":"rate_limited","detail":"too often","field":"a","fix":"wait",
		"errors":[{"field":"a","message":"m"},{"field":"b","message":"n","fix":"f","line":3}],"later":1}`, "Retry-After", "7")
	_, err := c.Me(t.Context())
	var e *client.Error
	if !asError(err, &e) || e.Status != 429 || e.RetryAfter != 7*time.Second || e.Field != "a" || len(e.Problems) != 2 {
		t.Fatalf("got %#v, want all of it", err)
	}
	if got, want := err.Error(), "a: too often (wait)\n  a: m\n  line 3: b: n (f)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	var shared *flow.Error
	if !errors.As(err, &shared) || flow.CodeOf(err) != flow.CodeRateLimited {
		t.Errorf("got %v as a flow.Error, want rate_limited", shared)
	}
}

func TestAnswersThatAreNotOurs(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]*client.Client{
		"HTML":            answering(t, 200, "text/html", "<html>hello</html>"),
		"a proxy's error": answering(t, 502, "text/html", "<html>bad gateway</html>"),
		"broken problem":  answering(t, 500, "application/problem+json", "{"),
		"other problem":   answering(t, 500, "application/problem+json", `{"detail":"no code"}`),
		"a wrong type":    answering(t, 200, "application/json", `{"workspace":1}`),
	} {
		_, err := c.Me(t.Context())
		if flow.CodeOf(err) != flow.CodeUnavailable || !strings.Contains(err.Error(), "not Longstop's") {
			t.Errorf("%s: got %v, want unavailable", name, err)
		}
	}
	if _, err := answering(t, 200, "application/json", `{"workspace":"`+strings.Repeat("x", 1000)+`"}`).Me(t.Context()); flow.CodeOf(err) != flow.CodeTooLarge {
		t.Errorf("too large: got %v, want too_large", err)
	}
}

func TestAKeyGoesToItsServerOnly(t *testing.T) {
	t.Parallel()
	asked := make(chan string, 1)
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked <- r.Header.Get("Authorization") }))
	t.Cleanup(other.Close)
	_, err := answering(t, 307, "text/plain", "", "Location", other.URL).Me(t.Context())
	if flow.CodeOf(err) != flow.CodeUnavailable || len(asked) > 0 {
		t.Errorf("a redirect: got %v and %d requests elsewhere, want unavailable and none", err, len(asked))
	}
}

func TestServersThatAreNotThere(t *testing.T) {
	t.Parallel()
	for _, base := range []string{"", "127.0.0.1:80", "ftp://a", "http://", "http://[", "not a url\x00"} {
		c := client.New(base, "k", client.Options{})
		if _, err := c.Me(t.Context()); flow.CodeOf(err) != flow.CodeInvalid {
			t.Errorf("%q: got %v, want invalid", base, err)
		}
		if err := c.Follow(t.Context(), "r", 0, nil); err == nil {
			t.Errorf("%q: Follow: got nil, want an error", base)
		}
	}
	s := httptest.NewServer(nil)
	s.Close()
	c := client.New(s.URL, "secret-key", client.Options{})
	_, err := c.Me(t.Context())
	if flow.CodeOf(err) != flow.CodeUnavailable || !strings.Contains(err.Error(), s.URL) || strings.Contains(err.Error(), "secret-key") {
		t.Errorf("nobody listens: got %v, want unavailable with the URL", err)
	}
	if err := c.Follow(t.Context(), "r", 0, nil); flow.CodeOf(err) != flow.CodeUnavailable {
		t.Errorf("Follow: got %v, want unavailable at once", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Me(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: got %v, want context.Canceled", err)
	}
}
