package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/longstop-dev/longstop/internal/api"
	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/secret"
)

// open lets everybody in as an owner.
type open struct{ api.Access }

func (open) Authenticate(context.Context, string) (flow.Caller, error) {
	return flow.Caller{Workspace: "ws", Person: "p", KeyID: "key_1", Role: flow.RoleOwner}, nil
}

func (open) Masker(context.Context, string) (*secret.Masker, error) { return nil, nil }

// serve answers a request in this process.
func serve(h http.Handler, method, path, kind, body string) answer {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	if kind != "" {
		r.Header.Set("Content-Type", kind)
	}
	r.Header.Set("Authorization", "Bearer x")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return answer{w.Code, w.Header(), w.Body.String()}
}

func TestEveryCodeHasAStatus(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	for code, want := range map[flow.Code]int{flow.CodeInvalid: 422, flow.CodeUnauthenticated: 401, flow.CodeForbidden: 403, flow.CodeNotFound: 404,
		flow.CodeConflict: 409, flow.CodeStale: 409, flow.CodeTooLarge: 413, flow.CodeRateLimited: 429, flow.CodeUnavailable: 503, flow.CodeInternal: 500} {
		b.eng.refuse(&flow.Error{Code: code, Message: "it is wrong", Field: "a.b", Fix: "do it right", Problems: []flow.Problem{{Field: "a.b", Message: "m", Fix: "f", Line: 3}},
			Err: errors.New("the cause of " + string(code))})
		a := b.do("GET", "/v1/runs", "", "")
		p := a.problem(t)
		if a.status != want || p.Code != code {
			t.Errorf("%s: got %d %s, want %d", code, a.status, p.Code, want)
		}
		if strings.Contains(a.body, "cause of") {
			t.Errorf("%s: the cause is told: %s", code, a.body)
		}
		if !strings.Contains(b.log.String(), "the cause of "+string(code)) {
			t.Errorf("%s: the cause is not in the log", code)
		}
		if code == flow.CodeInternal {
			if strings.Contains(a.body, "it is wrong") {
				t.Errorf("our own failure is told: %s", a.body)
			}
			continue
		}
		if p.Detail != "it is wrong" || p.Field != "a.b" || p.Fix != "do it right" || len(p.Errors) != 1 || p.Errors[0].Line != 3 {
			t.Errorf("%s: got %+v, want message, field, fix and line", code, p)
		}
	}
}

func TestAnErrorOfNoKindIsOurs(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.eng.refuse(errors.New("sql: " + planted))
	if a := b.do("GET", "/v1/runs", "", ""); a.status != 500 || a.problem(t).Code != flow.CodeInternal || strings.Contains(a.body, planted) {
		t.Errorf("got %d %s, want 500 without its text", a.status, a.body)
	}
}

func TestAPanicIsOurs(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.eng.panics = "a panic with " + planted
	a := b.do("GET", "/v1/runs", "", "")
	if p := a.problem(t); a.status != 500 || p.Code != flow.CodeInternal || strings.Contains(a.body, planted) {
		t.Errorf("got %d %s, want 500 without its text", a.status, a.body)
	}
	if log := b.log.String(); !strings.Contains(log, "refusal") || strings.Contains(log, planted) {
		t.Errorf("log: want where it was, without its text: %s", log)
	}
	b.eng.panics = nil
	if a := b.do("GET", "/v1/runs", "", ""); a.status != 200 {
		t.Errorf("afterwards: got %d, want 200", a.status)
	}
}

func TestNothingIsThere(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	for _, path := range []string{"/", "/v1", "/v2/runs", "/docs", "/openapi.yaml", "/schemas/Run.json", "/v1/runs/a/b/c", "/v1/../etc/passwd"} {
		a := b.do("GET", path, "", "")
		if p := a.problem(t); a.status != 404 || p.Code != flow.CodeNotFound || p.Fix == "" {
			t.Errorf("%s: got %d %s, want 404", path, a.status, a.body)
		}
	}
	for _, tc := range [][3]string{{"DELETE", "/v1/runs", "GET"}, {"POST", "/v1/settings/a", "GET, PUT, DELETE"}, {"PATCH", "/v1/runs/run_1", "GET"}, {"POST", "/healthz", "GET"}} {
		a := b.do(tc[0], tc[1], "", "")
		if p := a.problem(t); a.status != 405 || a.header.Get("Allow") != tc[2] || !strings.Contains(p.Fix, tc[2]) {
			t.Errorf("%s %s: got %d, Allow %q %s; want 405 and %q", tc[0], tc[1], a.status, a.header.Get("Allow"), a.body, tc[2])
		}
	}
	if a := b.do("BREW", "/v1/runs", "", ""); a.status != 405 {
		t.Errorf("a made-up method: got %d, want 405", a.status)
	}
}

func TestJWKS(t *testing.T) {
	t.Parallel()
	fail := error(nil)
	b := newBed(t, func(c *api.Config) {
		c.JWKS = func(context.Context) (json.RawMessage, error) { return json.RawMessage(`{"keys":[{"kid":"k"}]}`), fail }
	})
	a := b.do("GET", "/.well-known/jwks.json", "", "", "Authorization", "")
	if a.status != 200 || a.body != `{"keys":[{"kid":"k"}]}` || a.header.Get("Content-Type") != "application/jwk-set+json" {
		t.Errorf("keys: got %d %q %v", a.status, a.body, a.header)
	}
	fail = errors.New("no database " + planted)
	if a := b.do("GET", "/.well-known/jwks.json", "", "", "Authorization", ""); a.status != 503 || strings.Contains(a.body, planted) {
		t.Errorf("no database: got %d %q, want 503 without why", a.status, a.body)
	}
}

func TestHealth(t *testing.T) {
	t.Parallel()
	ready := error(nil)
	b := newBed(t, func(c *api.Config) { c.Ready = func(context.Context) error { return ready } })
	for _, path := range []string{"/healthz", "/readyz"} {
		if a := b.do("GET", path, "", "", "Authorization", ""); a.status != 200 || a.body != "{\"status\":\"ok\"}\n" {
			t.Errorf("%s: got %d %q, want 200 ok", path, a.status, a.body)
		}
		if a := b.do("HEAD", path, "", "", "Authorization", ""); a.status != 200 || a.body != "" {
			t.Errorf("HEAD %s: got %d %q, want 200 and nothing", path, a.status, a.body)
		}
	}
	ready = errors.New("disk on fire " + planted)
	if a := b.do("GET", "/readyz", "", ""); a.status != 503 || a.problem(t).Code != flow.CodeUnavailable || strings.Contains(a.body, planted) {
		t.Errorf("not ready: got %d %s, want 503 without why", a.status, a.body)
	}
	if a := b.do("GET", "/healthz", "", ""); a.status != 200 {
		t.Errorf("alive: got %d, want 200", a.status)
	}
}

func TestWhatEveryAnswerCarriesAndWhatIsLogged(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	for _, path := range []string{"/v1/runs?workflow=" + planted, "/v1/nope?x=" + planted, "/openapi.json"} {
		a := b.do("GET", path, "", "", "X-Extra", planted)
		for name, want := range map[string]string{"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store", "X-Frame-Options": "DENY"} {
			if got := a.header.Get(name); got != want {
				t.Errorf("%s: %s: got %q, want %q", path, name, got, want)
			}
		}
	}
	log := b.log.String()
	for _, want := range []string{`"path":"/v1/runs","status":200`, `"status":404`, `"key":"key_`, `"method":"GET"`} {
		if !strings.Contains(log, want) {
			t.Errorf("log: no %s in %s", want, log)
		}
	}
	if strings.Contains(log, planted) || strings.Contains(log, b.owner) {
		t.Errorf("log: a query, a header or a key is in it: %s", log)
	}
}

// sealed has secrets that cannot be opened.
type sealed struct{ api.Access }

func (sealed) Masker(context.Context, string) (*secret.Masker, error) {
	return nil, flow.Errorf(flow.CodeUnavailable, "secret/api cannot be read")
}

// Without the secrets nothing is done of which nothing could be shown; they can
// still be set again.
func TestSecretsThatCannotBeOpened(t *testing.T) {
	t.Parallel()
	b := newBed(t, func(c *api.Config) { c.Access = sealed{c.Access} })
	for path, method := range map[string]string{"/v1/runs/run_1": "GET", "/v1/runs/run_1/events": "GET", "/v1/workflows/w/runs": "POST"} {
		if a := b.do(method, path, "application/json", "{}"); a.status != http.StatusServiceUnavailable || !strings.Contains(a.problem(t).Detail, "secret/api") {
			t.Errorf("%s: got %d %s, want 503 and which secret", path, a.status, a.body)
		}
	}
	if a := b.do("GET", "/v1/runs/run_1/events", "", "", "Accept", "text/event-stream"); strings.Contains(a.body, "data:") {
		t.Errorf("a stream: got %s, want no event", a.body)
	}
	if len(b.eng.started) > 0 {
		t.Errorf("a run was started: %+v", b.eng.started)
	}
	if a := b.do("PUT", "/v1/secrets/api", "application/json", `{"value":"value-0123456789"}`); a.status != http.StatusOK {
		t.Errorf("setting a secret: got %d %s, want 200", a.status, a.body)
	}
}

func TestAServiceThatIsNotThere(t *testing.T) {
	t.Parallel()
	h := api.New(api.Config{Access: open{}})
	for _, path := range []string{"/v1/runs", "/v1/cases", "/v1/runs/a/events"} {
		if a := serve(h, "GET", path, "", ""); a.status != 503 || a.problem(t).Code != flow.CodeUnavailable {
			t.Errorf("%s: got %d %s, want 503", path, a.status, a.body)
		}
	}
	if a := serve(api.New(api.Config{}), "GET", "/v1/runs", "", ""); a.status != 503 {
		t.Errorf("no keys: got %d, want 503", a.status)
	}
}
