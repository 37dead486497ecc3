package a2a_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/longstop-dev/longstop/internal/a2a"
)

// form names what was sent: the path, and how it was spelled.
func form(s seen) string {
	params, _ := s.body["params"].(map[string]any)
	m, _ := params["message"].(map[string]any)
	spelling := "1.0"
	if s.body["method"] == nil {
		m, _ = s.body["message"].(map[string]any)
		spelling = "rest"
	}
	parts, _ := m["parts"].([]any)
	part, _ := parts[0].(map[string]any)
	switch {
	case part["type"] != nil:
		spelling = "recovery"
	case part["kind"] != nil:
		spelling = "0.3"
	}
	if (s.version == "0.3") != (spelling == "0.3") || (s.body["method"] == "message/send") != (spelling == "0.3") {
		return fmt.Sprintf("mixed dialects: %+v", s)
	}
	return spelling + " " + s.path
}

// TestForms pins which form is sent to which card, and what is tried next.
//
// spec: R-075 R-085 A-031 A-032 A-033 A-039
func TestForms(t *testing.T) {
	t.Parallel()
	iface := func(path, binding, version string) string {
		return `{"url":"URL` + path + `","protocolBinding":"` + binding + `","protocolVersion":"` + version + `"}`
	}
	v1, v03, rest := iface("/rpc", "JSONRPC", "1.0"), iface("/old", "JSONRPC", "0.3"), iface("/rest", "HTTP+JSON", "1.0")
	const (
		minimal  = `"url":"URL/card"`
		notFound = "404"
		unknown  = "-32601"
		version  = "-32009"
		params   = "-32602"
	)
	for name, tc := range map[string]struct {
		agent   bool
		card    string            // members beside the name; empty: no card
		answers map[string]string // by form: a status, a code, or ok; anything else is 404
		want    []string
		fails   bool
	}{
		"1.0":                       {card: `"supportedInterfaces":[` + v03 + "," + rest + "," + v1 + `]`, answers: map[string]string{"1.0 /rpc": "ok"}, want: []string{"1.0 /rpc"}},
		"1.0 spoken as 0.3":         {card: `"supportedInterfaces":[` + v1 + `]`, answers: map[string]string{"1.0 /rpc": unknown, "0.3 /rpc": "ok"}, want: []string{"1.0 /rpc", "0.3 /rpc"}},
		"version not supported":     {agent: true, card: `"supportedInterfaces":[` + v1 + `]`, answers: map[string]string{"1.0 /rpc": version, "0.3 /rpc": "ok"}, want: []string{"1.0 /rpc", "0.3 /rpc"}},
		"0.3":                       {card: `"protocolVersion":"0.3.0","url":"URL/old"`, answers: map[string]string{"0.3 /old": "ok"}, want: []string{"0.3 /old"}},
		"0.3 that knows only 1.0":   {agent: true, card: `"protocolVersion":"0.3.0","url":"URL/old"`, answers: map[string]string{"0.3 /old": unknown, "1.0 /old": "ok"}, want: []string{"0.3 /old", "1.0 /old"}},
		"0.3 recovery, SendMessage": {card: `"protocolVersion":"0.3.0","url":"URL/old"`, answers: map[string]string{"0.3 /old": unknown, "recovery /old": "ok"}, want: []string{"0.3 /old", "recovery /old"}},
		"rest only":                 {card: `"supportedInterfaces":[` + rest + `]`, answers: map[string]string{"rest /rest/message:send": "ok"}, want: []string{"rest /rest/message:send"}},
		"rest only, an agent":       {agent: true, card: `"supportedInterfaces":[` + rest + `]`, fails: true},
		"minimal, as printed":       {card: minimal, answers: map[string]string{"recovery /base/message:send": "ok"}, want: []string{"recovery /base/message:send"}},
		"minimal, bare REST body":   {card: minimal, answers: map[string]string{"recovery /base/message:send": params, "rest /base/message:send": "ok"}, want: []string{"recovery /base/message:send", "rest /base/message:send"}},
		"minimal, without type": {card: minimal, answers: map[string]string{"recovery /base/message:send": "-32600", "1.0 /base/message:send": "ok"},
			want: []string{"recovery /base/message:send", "rest /base/message:send", "1.0 /base/message:send"}},
		"minimal, at the base":  {card: minimal, answers: map[string]string{"recovery /base": "ok"}, want: []string{"recovery /base/message:send", "recovery /base"}},
		"minimal, at its url":   {card: minimal, answers: map[string]string{"recovery /card": params, "1.0 /card": "ok"}, want: []string{"recovery /base/message:send", "recovery /base", "recovery /card", "1.0 /card"}},
		"no card":               {answers: map[string]string{"recovery /base/message:send": "405", "recovery /base": "ok"}, want: []string{"recovery /base/message:send", "recovery /base"}},
		"minimal, an agent":     {agent: true, card: minimal, answers: map[string]string{"1.0 /card": "ok"}, want: []string{"1.0 /card"}},
		"minimal, a 0.3 agent":  {agent: true, card: minimal, answers: map[string]string{"1.0 /card": unknown, "0.3 /card": "ok"}, want: []string{"1.0 /card", "0.3 /card"}},
		"no card, an agent":     {agent: true, fails: true},
		"a 500 is final":        {card: minimal, answers: map[string]string{"recovery /base/message:send": "500"}, want: []string{"recovery /base/message:send"}, fails: true},
		"a 400 is final":        {card: minimal, answers: map[string]string{"recovery /base/message:send": "400"}, want: []string{"recovery /base/message:send"}, fails: true},
		"its own code is final": {card: minimal, answers: map[string]string{"recovery /base/message:send": "-32000"}, want: []string{"recovery /base/message:send"}, fails: true},
		"501 is not":            {card: minimal, answers: map[string]string{"recovery /base/message:send": "501", "recovery /base": "ok"}, want: []string{"recovery /base/message:send", "recovery /base"}},
		"415 is not":            {card: minimal, answers: map[string]string{"recovery /base/message:send": "415", "recovery /base": "ok"}, want: []string{"recovery /base/message:send", "recovery /base"}},
		"nothing works":         {card: minimal, want: []string{"recovery /base/message:send", "recovery /base", "recovery /card"}, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := newAgent(t, func(w http.ResponseWriter, _ *http.Request, s seen, _ int) {
				answer := tc.answers[form(s)]
				var n int
				switch _, err := fmt.Sscanf(answer, "%d", &n); {
				case answer == "":
					w.WriteHeader(404)
				case err == nil && n > 0:
					w.WriteHeader(n)
				case err == nil:
					_, _ = io.WriteString(w, rpcError(answer, "no"))
				default:
					_, _ = io.WriteString(w, `{"message":{"parts":[{"data":{}}]}}`)
				}
			})
			target := a2a.Target{Purpose: a2a.ForRecovery, URL: srv.URL + "/base"}
			if tc.agent {
				target.Purpose = a2a.ForAgent
			}
			if tc.card != "" {
				target.Card = parseCard(t, `{"name":"n",`+strings.ReplaceAll(tc.card, "URL", srv.URL)+`}`)
			}
			c := newClient()
			out := a2a.Out{ID: "1", MessageID: "m", Data: []byte(`{}`)}
			_, route, err := c.Send(withDeadline(t, 10*time.Second), target, out)
			var got []string
			for _, s := range srv.requests() {
				got = append(got, form(s))
			}
			if !reflect.DeepEqual(got, tc.want) || (err != nil) != tc.fails {
				t.Fatalf("got %q, %v,\nwant %q, an error: %t", got, err, tc.want, tc.fails)
			}
			if tc.fails {
				checkErrorText(t, err, "")
				return
			}
			// The second message goes the way that worked, at once.
			_, again, err := c.Send(withDeadline(t, 10*time.Second), target, out)
			if all := srv.requests(); err != nil || again != route || len(all) != len(tc.want)+1 || form(all[len(all)-1]) != tc.want[len(tc.want)-1] {
				t.Errorf("second message: got %+v, %v after %d requests, want %+v at once", again, err, len(all), route)
			}
		})
	}
}

// TestTellingError: of several refusals the one that the agent spoke is kept.
func TestTellingError(t *testing.T) {
	t.Parallel()
	srv := newAgent(t, func(w http.ResponseWriter, _ *http.Request, s seen, _ int) {
		if s.path != "/" {
			w.WriteHeader(404)
			return
		}
		_, _ = io.WriteString(w, rpcError("-32602", "parts must not be funny"))
	})
	_, _, err := newClient().Ask(withDeadline(t, 10*time.Second), recovery(srv.URL, nil))
	var spoken *a2a.RPCError
	if !errors.As(err, &spoken) || spoken.Message != "parts must not be funny" {
		t.Errorf("got %v, want what the agent said", err)
	}
}

// TestRememberedRouteStops: an agent that changed is found again.
func TestRememberedRouteStops(t *testing.T) {
	t.Parallel()
	srv := newAgent(t, func(w http.ResponseWriter, _ *http.Request, s seen, n int) {
		if old := n < 2; old != (s.path == "/") {
			w.WriteHeader(404)
			return
		}
		_, _ = io.WriteString(w, reply(fixedOutput))
	})
	c := newClient()
	for i, want := range []int{2, 4, 5} { // base is found, lost, and the other place found and kept
		if _, _, err := c.Ask(withDeadline(t, 10*time.Second), recovery(srv.URL, nil)); err != nil || len(srv.requests()) != want {
			t.Fatalf("question %d: got %v after %d requests, want %d", i, err, len(srv.requests()), want)
		}
	}
}

// TestRouteMemoryIsBoundedAndShared runs under the race detector.
func TestRouteMemoryIsBoundedAndShared(t *testing.T) {
	t.Parallel()
	srv := newAgent(t, always(200, reply(fixedOutput)))
	c := newClient()
	ctx := withDeadline(t, 30*time.Second)
	var wg sync.WaitGroup
	for worker := range 4 {
		wg.Go(func() {
			for i := range 100 {
				q := recovery(fmt.Sprintf("%s/%d/%d", srv.URL, worker, i), nil)
				if _, _, err := c.Ask(ctx, q); err != nil {
					t.Errorf("worker %d, question %d: %v", worker, i, err)
					return
				}
			}
		})
	}
	wg.Wait()
}

func TestEndpoint(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ url, card, want string }{
		"as the card says":    {"https://a/x", `"supportedInterfaces":[{"url":"https://b/rpc","protocolBinding":"JSONRPC"}]`, "https://b/rpc"},
		"rest":                {"https://a/x", `"supportedInterfaces":[{"url":"https://b/rest/","protocolBinding":"HTTP+JSON"}]`, "https://b/rest/message:send"},
		"minimal":             {"https://a/x/", `"url":"https://b"`, "https://a/x/message:send"},
		"a query stays":       {"https://a/x?key=1", `"url":"https://b"`, "https://a/x/message:send?key=1"},
		"already complete":    {"https://a/message:send", `"url":"https://b"`, "https://a/message:send"},
		"a card's full URL":   {"https://a/x/.well-known/agent-card.json?v=2", `"url":"https://b"`, "https://a/x/message:send"},
		"a card of any name":  {"https://a/cards/one.json", `"url":"https://b"`, "https://a/cards/message:send"},
		"no URL to be called": {"a", `"url":"https://b"`, "https://b"},
	} {
		target := a2a.Target{Purpose: a2a.ForRecovery, URL: tc.url, Card: parseCard(t, `{"name":"n",`+tc.card+`}`)}
		if got := target.Endpoint(); got != tc.want {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
}
