package a2a_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/longstop-dev/longstop/internal/a2a"
)

func TestOrigin(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		"https://Agent.Example:443/x?y#z": "https://agent.example",
		"HTTP://agent.example:80":         "http://agent.example",
		"https://agent.example:080/":      "https://agent.example:80",
		"http://127.0.0.1:8080/a":         "http://127.0.0.1:8080",
		"https://[2001:DB8::1]:8443":      "https://[2001:db8::1]:8443",
		"https://a:":                      "https://a",
		"https://agent.example.":          "https://agent.example.",
		"agent.example":                   "",
		"//agent.example":                 "",
		"ftp://agent.example":             "",
		"https://":                        "",
		"https://:443":                    "",
		"https://a:99999":                 "",
		"https://user@a":                  "",
		"https://a b":                     "",
		"":                                "",
	} {
		if got, err := a2a.Origin(raw); got != want || (err == nil) != (want != "") {
			t.Errorf("Origin(%q): got %q, %v, want %q", raw, got, err, want)
		}
	}
}

// TestTokenStaysAtItsOrigin: it goes to the origin it was made for, over every
// operation, and nowhere else.
func TestTokenStaysAtItsOrigin(t *testing.T) {
	t.Parallel()
	answer := always(200, `{"id":"t","status":{"state":"completed"}}`)
	home, elsewhere := newAgent(t, answer), newAgent(t, answer)
	c := newClient()
	ctx := withDeadline(t, 10*time.Second)
	for _, srv := range []*agent{home, elsewhere} {
		target := a2a.Target{Card: v1Card(t, srv.URL), Token: "tok-1", TokenOrigin: strings.ToUpper(home.URL) + "/"}
		_, route, err := c.Send(ctx, target, a2a.Out{ID: "1", MessageID: "m", Text: "t"})
		if err != nil {
			t.Fatal(err)
		}
		rest := route
		rest.REST = true
		for _, r := range []a2a.Route{route, rest} {
			if _, err := c.GetTask(ctx, target, r, "t"); err != nil {
				t.Fatal(err)
			}
			if _, err := c.CancelTask(ctx, target, r, "t"); err != nil {
				t.Fatal(err)
			}
		}
		want := ""
		if srv == home {
			want = "Bearer tok-1"
		}
		seen := srv.requests()
		if len(seen) != 5 {
			t.Fatalf("got %d requests, want 5", len(seen))
		}
		for _, s := range seen {
			if s.auth != want {
				t.Errorf("%s %s: got Authorization %q, want %q", s.method, s.path, s.auth, want)
			}
		}
	}
}

// TestNeedToken: nothing is sent instead without the token.
//
// spec: A-078
func TestNeedToken(t *testing.T) {
	t.Parallel()
	srv := newAgent(t, always(200, reply(fixedOutput)))
	for _, target := range []a2a.Target{
		{NeedToken: true},
		{NeedToken: true, TokenOrigin: srv.URL},
		{NeedToken: true, Token: "tok-1"},
		{NeedToken: true, Token: "tok-1", TokenOrigin: "https://elsewhere.example"},
	} {
		target.Card = v1Card(t, srv.URL)
		_, _, err := newClient().Send(withDeadline(t, 10*time.Second), target, a2a.Out{ID: "1", MessageID: "m", Text: "t"})
		if !errors.Is(err, a2a.ErrToken) {
			t.Errorf("%+v: got %v, want %v", target, err, a2a.ErrToken)
		}
		checkErrorText(t, err, target.Token)
	}
	if n := len(srv.requests()); n != 0 {
		t.Errorf("got %d requests, want none", n)
	}
}

// TestRedirectOfAPost is not followed, whatever client is given, and the token
// does not travel.
func TestRedirectOfAPost(t *testing.T) {
	t.Parallel()
	for _, status := range []int{301, 302, 303, 307, 308} {
		elsewhere := newAgent(t, always(200, reply(fixedOutput)))
		var home *agent
		home = newAgent(t, func(w http.ResponseWriter, r *http.Request, s seen, _ int) {
			to := elsewhere.URL
			if s.path == "/same/message:send" {
				to = home.URL + "/elsewhere"
			}
			http.Redirect(w, r, to, status)
		})
		for _, path := range []string{"/", "/same"} {
			q := recovery(home.URL+path, nil)
			q.Token, q.TokenOrigin = "tok-1", home.URL
			_, _, err := newClient().Ask(withDeadline(t, 10*time.Second), q)
			checkErrorText(t, err, "tok-1")
			var answered *a2a.StatusError
			if !errors.As(err, &answered) || answered.Status != status || !strings.Contains(err.Error(), "redirects are not followed") {
				t.Errorf("%d: got %v, want a StatusError that says so", status, err)
			}
		}
		if a, b := len(home.requests()), len(elsewhere.requests()); a != 2 || b != 0 {
			t.Errorf("%d: got %d requests at home and %d elsewhere, want 2 and 0", status, a, b)
		}
	}
}

// TestFetchCard: where a card is looked for, with what, and what is said if
// it is not there.
//
// spec: R-081
func TestFetchCard(t *testing.T) {
	t.Parallel()
	const card = `{"name":"n","url":"https://a"}`
	const a, b = "/.well-known/agent-card.json", "/.well-known/agent.json"
	for name, tc := range map[string]struct {
		url   string
		files map[string]string
		want  []string // paths with queries
		err   error
		text  string
	}{
		"first place":          {url: "", files: map[string]string{a: card}, want: []string{a}},
		"second place":         {url: "/", files: map[string]string{b: card}, want: []string{a, b}},
		"below a path":         {url: "/x/?k=1", files: map[string]string{"/x" + b: card}, want: []string{"/x" + a + "?k=1", "/x" + b + "?k=1"}},
		"a URL that is a card": {url: "/v1card", files: map[string]string{"/v1card": card}, want: []string{"/v1card" + a, "/v1card" + b, "/v1card"}},
		"full URL untouched":   {url: "/cards/x.json?sig=%2F&b", files: map[string]string{"/cards/x.json": card}, want: []string{"/cards/x.json?sig=%2F&b"}},
		"well-known untouched": {url: b, files: map[string]string{a: card}, want: []string{b}, text: "HTTP 404"},
		"nowhere":              {url: "", want: []string{a, b}, text: "HTTP 404"},
		"page, then card":      {url: "", files: map[string]string{a: "<html>", b: card}, want: []string{a, b}},
		"page only":            {url: a, files: map[string]string{a: "<html>"}, want: []string{a}, err: a2a.ErrHTML},
		"no name, then 404":    {url: "", files: map[string]string{a: `{"url":"https://a"}`}, want: []string{a, b}, err: a2a.ErrCard, text: "no name"},
		"empty":                {url: a, files: map[string]string{a: " "}, want: []string{a}, err: a2a.ErrCard, text: "it is empty, at http://127.0.0.1:"},
		"broken JSON":          {url: a, files: map[string]string{a: "{\n \"name\":}"}, want: []string{a}, err: a2a.ErrCard, text: "not valid JSON at byte 11: invalid character '}'"},
		"5 MB":                 {url: "", files: map[string]string{a: strings.Repeat(" ", 5<<20) + card}, want: []string{a}, err: a2a.ErrTooLarge},
		"too deep":             {url: "", files: map[string]string{a: strings.Repeat("[", 10_000)}, want: []string{a}, err: a2a.ErrTooDeep},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := newAgent(t, func(w http.ResponseWriter, r *http.Request, s seen, _ int) {
				if tc.files[s.path] == "" {
					w.WriteHeader(404)
				}
				_, _ = io.WriteString(w, tc.files[s.path])
			})
			c := newClient()
			for range 2 { // a rejected card fails the second time, too
				got, err := c.FetchCard(withDeadline(t, 10*time.Second), srv.URL+tc.url)
				ok := tc.err == nil && tc.text == ""
				if ok && (err != nil || got.Name != "n" || !strings.HasSuffix(got.Source, tc.want[len(tc.want)-1])) {
					t.Errorf("got %+v, %v, want the card", got, err)
				}
				if !ok && (err == nil || tc.err != nil && !errors.Is(err, tc.err) || !strings.Contains(err.Error(), tc.text)) {
					t.Errorf("got %v, want %v with %q", err, tc.err, tc.text)
				}
			}
			seen := srv.requests()
			if len(seen) != 2*len(tc.want) {
				t.Fatalf("got %+v, want twice %q", seen, tc.want)
			}
			for i, s := range seen {
				where := s.path
				if s.query != "" {
					where += "?" + s.query
				}
				if want := tc.want[i%len(tc.want)]; where != want || s.method != "GET" || s.auth != "" || s.version != "1.0" {
					t.Errorf("got %+v, want a GET of %s, version 1.0 and no credential", s, want)
				}
			}
		})
	}
}

// TestTheCardOfAnAgentHostedElsewhere: it is named by the URL of its card,
// which counts as it is unless it is a bare origin, and the error is that of
// the place that says most.
func TestTheCardOfAnAgentHostedElsewhere(t *testing.T) {
	t.Parallel()
	const card = `{"name":"n","url":"https://a"}`
	const a = "/.well-known/agent-card.json"
	srv := newAgent(t, func(w http.ResponseWriter, r *http.Request, s seen, _ int) {
		switch s.path {
		case "/cards/desk", "/team" + a:
			_, _ = io.WriteString(w, card)
		case "/page":
			_, _ = io.WriteString(w, "<html>")
		case "/shut", "/broken":
			w.WriteHeader(map[string]int{"/shut": 401, "/broken": 500}[s.path])
		default:
			w.WriteHeader(404)
		}
	})
	for path, want := range map[string]string{"/cards/desk": "/cards/desk", "/team": "/team" + a} {
		got, err := newClient().FetchSigned(withDeadline(t, 10*time.Second), srv.URL+path, a2a.CardPolicy{})
		if err != nil || got.Source != srv.URL+want {
			t.Errorf("%s: got %+v, %v, want the card at %s", path, got, err, want)
		}
	}
	for path, want := range map[string]string{"/page": "HTML page", "/shut": "HTTP 401", "/broken": "HTTP 500", "/none": "HTTP 404"} {
		_, err := newClient().FetchSigned(withDeadline(t, 10*time.Second), srv.URL+path+"?key=4711", a2a.CardPolicy{})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), ", at "+srv.URL+path) || strings.Contains(err.Error(), "4711") {
			t.Errorf("%s: got %v, want %s at that place and nothing of its query", path, err, want)
		}
	}
}
