package api_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/longstop-dev/longstop/internal/api"
	"github.com/longstop-dev/longstop/internal/flow"
)

const form = "application/x-www-form-urlencoded" // what curl -d sends

// TestTheSpecificationsCurlLines sends what curl sends for them.
func TestTheSpecificationsCurlLines(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	for _, tc := range []struct{ key, body, want string }{
		{"recovery.timeout_ms", `{"value":"15000"}`, `"value":"15000"`},
		{"recovery.timeout_ms", `{"value":20000}`, `"value":"20000"`},
		{"recovery.a2a_agent_url", `{"value":"https://agent.example.com"}`, `"value":"https://agent.example.com"`},
		{"recovery.a2a_auth_token", `{"value":"tok-0123456789"}`, `"set":true`},
		{"recovery.timeout_ms", `{"value":""}`, `"source":"default"`},
	} {
		a := b.do("PUT", "/v1/settings/"+tc.key, form, tc.body)
		if a.status != http.StatusOK || !strings.Contains(a.body, tc.want) || strings.Contains(a.body, "tok-") || strings.Contains(a.body, "$schema") {
			t.Errorf("%s %s: got %d %s, want 200 with %s", tc.key, tc.body, a.status, a.body, tc.want)
		}
	}
	if a := b.do("GET", "/v1/settings", "", ""); a.status != http.StatusOK || strings.Contains(a.body, "tok-0123456789") {
		t.Errorf("settings: got %d %s, want 200 without the token", a.status, a.body)
	}
	if a := b.do("DELETE", "/v1/settings/recovery.a2a_auth_token", "", ""); a.status != http.StatusOK || !strings.Contains(a.body, `"set":false`) {
		t.Errorf("delete: got %d %s, want 200 and not set", a.status, a.body)
	}
}

func TestContentTypes(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	json := `{"value":1500}`
	for kind, want := range map[string]int{"application/json": 200, "application/json; charset=utf-8": 200, form: 200, form + "; charset=utf-8": 200, "": 200,
		"text/xml": 415, "multipart/form-data; boundary=x": 415, "application/yaml": 415, "nonsense;;": 415} {
		a := b.do("PUT", "/v1/settings/recovery.timeout_ms", kind, json)
		if a.status != want {
			t.Errorf("%q: got %d %s, want %d", kind, a.status, a.body, want)
		}
		if want == 415 {
			if p := a.problem(t); !strings.Contains(p.Fix, "application/json") {
				t.Errorf("%q: got %+v, want the types that are read", kind, p)
			}
		}
	}
	if a := b.do("PUT", "/v1/settings/recovery.timeout_ms", "application/json", json, "Content-Encoding", "gzip"); a.status != 415 {
		t.Errorf("gzip: got %d, want 415", a.status)
	}
	yaml := "name: moved\nsteps: []\n"
	kinds := []string{"application/yaml", "application/x-yaml", "text/yaml", "application/json", "text/plain; charset=utf-8", "application/octet-stream", form, ""}
	for _, kind := range kinds {
		a := b.do("POST", "/v1/workflows?filename=a.yaml&publish=false", kind, yaml)
		if a.status != http.StatusCreated || a.header.Get("Location") != "/v1/workflows/moved" {
			t.Errorf("definition as %q: got %d, Location %q: %s; want 201", kind, a.status, a.header.Get("Location"), a.body)
		}
	}
	if got := len(b.eng.created); got != len(kinds) || string(b.eng.created[0]) != yaml {
		t.Errorf("definitions: got %d, the first %q; want %d as they were sent", got, b.eng.created[0], len(kinds))
	}
	if a := b.do("POST", "/v1/workflows", "text/html", yaml); a.status != 415 {
		t.Errorf("definition as HTML: got %d, want 415", a.status)
	}
}

func TestAbsentBodies(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	for path, want := range map[string]int{"/v1/workflows/w/runs": 201, "/v1/runs/run_1/cancel": 200, "/v1/agents/test": 200, "/v1/keys": 400, "/v1/workflows": 400} {
		for _, body := range []string{"", " \n"} {
			if path == "/v1/workflows" && body != "" {
				continue // it is for the definition's parser to refuse
			}
			a := b.do("POST", path, "", body)
			if a.status != want {
				t.Errorf("%s with %q: got %d %s, want %d", path, body, a.status, a.body, want)
			}
			if want == 400 {
				if p := a.problem(t); p.Field != "body" || p.Fix == "" {
					t.Errorf("%s: got %+v, want the body named", path, p)
				}
			}
		}
	}
}

const planted = "sk-planted-0123456789" // in everything that is sent wrong

func TestWrongBodies(t *testing.T) {
	t.Parallel()
	b := newBed(t, func(c *api.Config) { c.Limits.BodyBytes = 1 << 20 })
	for name, tc := range map[string]struct {
		method, path, body string
		status             int
		field, says        string
	}{
		"not JSON":         {"PUT", "/v1/settings/recovery.mode", planted, 400, "body", "line 1, column 1"},
		"a form":           {"PUT", "/v1/settings/recovery.mode", "value=" + planted, 400, "body", "not valid JSON"},
		"broken off":       {"PUT", "/v1/settings/recovery.mode", "{\n \"value\": \"" + planted, 400, "body", "line 2"},
		"two values":       {"PUT", "/v1/settings/recovery.mode", `{"value":"` + planted + `"} {}`, 400, "body", "not valid JSON"},
		"invalid UTF-8":    {"PUT", "/v1/secrets/a", "{\"value\":\"" + planted + "\xff\"}", 400, "body", "UTF-8"},
		"invalid in YAML":  {"POST", "/v1/workflows", "name: \xc3\x28", 400, "body", "UTF-8"},
		"10,001 deep":      {"POST", "/v1/workflows/w/runs", `{"input":` + strings.Repeat("[", 10001), 400, "body", "deep"},
		"an array":         {"PUT", "/v1/settings/recovery.mode", `["` + planted + `"]`, 422, "body", "object"},
		"a string":         {"PUT", "/v1/secrets/a", `"` + planted + `"`, 422, "body", "object"},
		"null":             {"PUT", "/v1/secrets/a", `null`, 422, "body", "object"},
		"a wrong type":     {"PUT", "/v1/secrets/a", `{"value":{"a":"` + planted + `"}}`, 422, "value", "string"},
		"a number":         {"PUT", "/v1/secrets/a", `{"value":1e999}`, 422, "value", "string"},
		"missing":          {"PUT", "/v1/secrets/a", `{}`, 422, "value", "missing"},
		"unknown, near":    {"PUT", "/v1/secrets/a", `{"valeu":"` + planted + `"}`, 422, "", `did you mean "value"?`},
		"unknown, far":     {"POST", "/v1/gates/g/answer", `{"answer":"skip","wherefore":"` + planted + `"}`, 422, "wherefore", "known are action"},
		"unknown, inside":  {"POST", "/v1/mcp-servers", `{"id":"a","headrs":{"Authorization":"` + planted + `"}}`, 422, "headrs", `did you mean "headers"?`},
		"none of the enum": {"POST", "/v1/gates/g/answer", `{"answer":"` + planted + `"}`, 422, "answer", "approve"},
		"header values":    {"PUT", "/v1/mcp-servers/a", `{"url":"https://a.example","headers":{"A":["` + planted + `"]}}`, 422, "headers.A", "string"},
		"an empty choice":  {"POST", "/v1/runs/r/rerun", `{"from":""}`, 422, "from", "length >= 1"},
		"an empty target":  {"POST", "/v1/vaults/v/events", `{"type":"a","target":"","payload":{}}`, 422, "target", "length >= 1"},
		"a query member":   {"GET", "/v1/runs?limt=5", "", 422, "limt", `did you mean "limit"?`},
		"a query type":     {"GET", "/v1/runs?limit=" + planted, "", 422, "limit", "integer"},
		"a huge integer":   {"GET", "/v1/runs?limit=99999999999999999999", "", 422, "limit", "integer"},
		"out of range":     {"GET", "/v1/runs?limit=501", "", 422, "limit", "number <= 500"},
		"a query enum":     {"GET", "/v1/runs?status=" + planted, "", 422, "status", "queued, running"},
		"a service's no":   {"PUT", "/v1/settings/recovery.timeout_ms", `{"value":999}`, 422, "", "1000"},
		"no such setting":  {"PUT", "/v1/settings/recovery.nope", `{"value":"x"}`, 404, "", "recovery.mode"},
		"too large":        {"PUT", "/v1/secrets/a", `{"value":"` + strings.Repeat("x", 1<<20) + `"}`, 413, "body", "1048576"},
		"definition":       {"POST", "/v1/workflows", strings.Repeat("#", 1<<20+1), 413, "body", "1048576"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kind := "application/json"
			if tc.path == "/v1/workflows" {
				kind = "application/yaml"
			}
			a := b.do(tc.method, tc.path, kind, tc.body)
			p := a.problem(t)
			if a.status != tc.status || tc.field != "" && p.Field != tc.field || !strings.Contains(fmt.Sprint(p), tc.says) {
				t.Errorf("got %d %s, want %d at %q with %q", a.status, a.body, tc.status, tc.field, tc.says)
			}
			if p.Fix == "" {
				t.Errorf("got %s, want what would be right", a.body)
			}
			if strings.Contains(a.body, planted) || strings.Contains(b.log.String(), planted) {
				t.Errorf("what was sent is repeated in %s or in the log", a.body)
			}
		})
	}
}

// TestChunkedBodiesAreBounded sends a body whose length is not announced.
func TestChunkedBodiesAreBounded(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	req, err := http.NewRequestWithContext(t.Context(), "PUT", b.srv.URL+"/v1/secrets/a", &endless{})
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+b.owner)
	resp, err := b.srv.Client().Do(req)
	if err != nil {
		t.Fatalf("got %v, want an answer", err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("got %d, want 413", resp.StatusCode)
	}
}

type endless struct{}

func (*endless) Read(p []byte) (int, error) { return copy(p, strings.Repeat(" ", len(p))), nil }

// TestABodyHasATimeToArriveAndNotTheOperation holds an operation for longer
// than its body may take, and sends a body that stops halfway.
func TestABodyHasATimeToArriveAndNotTheOperation(t *testing.T) {
	t.Parallel()
	b := newBed(t, func(c *api.Config) { c.Limits.BodyTime = 50 * time.Millisecond })
	b.desk.hold = make(chan struct{})
	time.AfterFunc(200*time.Millisecond, func() { close(b.desk.hold) })
	if a := b.do("POST", "/v1/agents/test", "application/json", `{"agent":"mcp:a"}`); a.status != 200 {
		t.Errorf("a long operation: got %d %s, want 200", a.status, a.body)
	}
	conn, err := net.Dial("tcp", b.srv.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "PUT /v1/secrets/a HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer %s\r\nContent-Length: 100\r\n\r\n{", b.owner)
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil || !strings.Contains(line, " 408 ") {
		t.Errorf("half a body: got %q, %v; want 408", line, err)
	}
}

func TestNumbersKeepTheirDigits(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	const input = `{"id":12345678901234567890,"f":1.10,"g":1e999}`
	a := b.do("POST", "/v1/workflows/w/runs", form, `{"input":`+input+`}`)
	if a.status != http.StatusCreated || a.header.Get("Location") != "/v1/runs/run_9" || !strings.Contains(a.body, input) {
		t.Errorf("got %d, Location %q: %s; want 201 with the input as it was", a.status, a.header.Get("Location"), a.body)
	}
	if got := string(b.eng.started[0].Body.Input); got != input || b.eng.started[0].Name != "w" {
		t.Errorf("input: got %s of %s, want %s of w", got, b.eng.started[0].Name, input)
	}
}

func TestNamesInPaths(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	for path, want := range map[string]string{"a%2Fb": "a/b", "a%20b": "a b", "%C3%A4": "ä", "a.b": "a.b"} {
		if a := b.do("GET", "/v1/workflows/"+path, "", ""); a.status != 200 || !strings.Contains(a.body, `"name":"`+want+`"`) {
			t.Errorf("%s: got %d %s, want %q", path, a.status, a.body, want)
		}
	}
}

// FuzzBodies sends anything at all: it is refused in form, or taken, and
// never our fault.
func FuzzBodies(f *testing.F) {
	for _, seed := range []string{`{"answer":"skip"}`, `{"answer":1}`, "{", "\xff", `{"answer":"edit","modifications":{"a":[1e400]}}`, "null", `{"":{"":[]}}`, strings.Repeat("[", 20000)} {
		f.Add("application/json", seed)
	}
	f.Add("text/html", "x")
	h := api.New(api.Config{Engine: newScripted(), Access: open{}})
	f.Fuzz(func(t *testing.T, kind, body string) {
		a := serve(h, "POST", "/v1/gates/g/answer", kind, body)
		switch {
		case a.status >= 500:
			t.Fatalf("got %d %s for %q %q", a.status, a.body, kind, body)
		case a.status >= 400:
			if p := a.problem(t); p.Code == flow.CodeInternal {
				t.Fatalf("got %+v", p)
			}
		}
	})
}
