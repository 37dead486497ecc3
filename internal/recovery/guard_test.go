package recovery

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"

	"github.com/longstop-dev/longstop/internal/flow"
)

// retried has the own agent answer with these modifications.
func (b *bed) retried(modifications string) flow.Verdict {
	b.t.Helper()
	return b.retriedFor(httpFailure(), modifications)
}

func (b *bed) retriedFor(f flow.Failure, modifications string) flow.Verdict {
	b.t.Helper()
	b.settings.A2AAgentURL = "https://agent.example.com"
	b.own.answer = `{"type":"retry_with_params","diagnosis":"d","modifications":` + modifications + `}`
	return b.decide(f)
}

// spec: R-033 R-111
func TestGuardRefuses(t *testing.T) {
	t.Parallel()
	nested := strings.Repeat(`{"a":`, 40) + "1" + strings.Repeat("}", 40)
	for _, c := range []struct{ name, modifications, want string }{
		{"type", `{"type":"transform"}`, "modifications.type: may not be changed (only httpRequest, connectorCall, timeout, headers, body)"},
		{"title", `{"title":"x"}`, "modifications.title: may not be changed"},
		{"output contract", `{"output":{}}`, "modifications.output: may not be changed"},
		{"retry policy", `{"retry":{"attempts":99}}`, "modifications.retry: may not be changed"},
		{"config", `{"config":{}}`, "modifications.config: may not be changed"},
		{"case matters", `{"Headers":{}}`, "modifications.Headers: may not be changed"},
		{"connector", `{"connectorCall":{"params":{}}}`, "modifications.connectorCall: is for connector steps, and this is http_request"},
		{"field", `{"httpRequest":{"expect":[500]}}`, "modifications.httpRequest.expect: may not be changed in a step of type http_request (only url, method, headers, query, body)"},
		{"request no object", `{"httpRequest":"x"}`, "modifications.httpRequest: must be an object, got a string"},
		{"request null", `{"httpRequest":null}`, "modifications.httpRequest: must be an object, got null"},
		{"twice", `{"headers":{},"headers":{}}`, "modifications.headers: stands there twice"},
		{"headers twice", `{"headers":{"A":"1"},"httpRequest":{"headers":{"B":"1"}}}`, "headers: is given twice: it is short for httpRequest.headers"},
		{"body twice", `{"body":1,"httpRequest":{"body":2}}`, "body: is given twice"},
		{"proto", `{"headers":{"__proto__":"x"}}`, "modifications.headers.__proto__: a member of this name is refused"},
		{"proto in the body", `{"body":{"a":[{"__proto__":{"admin":true}}]}}`, "modifications.body.a[0].__proto__"},
		{"constructor", `{"body":{"constructor":{}}}`, "modifications.body.constructor"},
		{"prototype", `{"body":{"prototype":{}}}`, "modifications.body.prototype"},
		{"escaped proto", `{"body":{"__pr\u006fto__":{}}}`, "modifications.body.__proto__"},
		{"too deep", `{"body":` + nested + `}`, "modifications: nested more than 32 levels deep"},
		{"too large", `{"body":"` + strings.Repeat("x", 1<<20) + `"}`, "at most 1048576"},
		{"headers no object", `{"headers":["A: b"]}`, "httpRequest.headers: must be an object, got an array"},
		{"header object", `{"headers":{"A":{"b":1}}}`, "headers.A: must be a text, a number, a boolean or a list of them"},
		{"header name", `{"headers":{"A B":"1"}}`, "headers.A B: is not a header name"},
		{"header break", `{"headers":{"A":"1\r\nB: 2"}}`, "headers.A: holds a line break"},
		{"header break in a list", `{"headers":{"A":["ok","1\nB: 2"]}}`, "headers.A: holds a line break"},
		{"host", `{"headers":{"host":"evil"}}`, "headers.host: may not be set by a mend"},
		{"content length", `{"headers":{"Content-Length":"0"}}`, "headers.Content-Length: may not be set"},
		{"transfer encoding", `{"headers":{"transfer-ENCODING":"chunked"}}`, "may not be set by a mend"},
		{"connection", `{"headers":{"Connection":"Authorization"}}`, "may not be set by a mend"},
		{"proxy", `{"headers":{"Proxy-Authorization":"x"}}`, "may not be set by a mend"},
		{"idempotency key", `{"headers":{"Idempotency-Key":"run_1-2"}}`, "may not be set by a mend"},
		{"header in two spellings", `{"headers":{"X-A":"1","x-a":"2"}}`, "is given twice, in other letters"},
		{"query object", `{"httpRequest":{"query":{"a":{}}}}`, "query.a: must be a text"},
		{"query null in a list", `{"httpRequest":{"query":{"a":[null]}}}`, "query.a: holds null in a list"},
		{"method", `{"httpRequest":{"method":"CONNECT"}}`, `method: must be one of GET, HEAD`},
		{"method number", `{"httpRequest":{"method":1}}`, `method: must be one of GET, HEAD`},
		{"timeout zero", `{"timeout":0}`, "modifications.timeout: 0 is out of range (milliseconds from 1 to 600000"},
		{"timeout negative", `{"timeout":-5}`, "-5 is out of range"},
		{"timeout over the cap", `{"timeout":600001}`, "600001 is out of range"},
		{"timeout text", `{"timeout":"5s"}`, `must be an integer, got "5s"`},
		{"timeout fraction", `{"timeout":1.5}`, "must be an integer, got 1.5"},
		{"timeout overflow", `{"timeout":99999999999999999999}`, "must be an integer"},
		{"url relative", `{"httpRequest":{"url":"/v2"}}`, `url: must be absolute, got "/v2"`},
		{"url scheme", `{"httpRequest":{"url":"file:///etc/passwd"}}`, "url: must be absolute"},
		{"url without host", `{"httpRequest":{"url":"https://:443/x"}}`, "url: must be absolute"},
		{"url with a password", `{"httpRequest":{"url":"https://a:b@api.example.com/"}}`, "url: holds a user name or a password"},
		{"url null", `{"httpRequest":{"url":null}}`, "url: must be a string"},
		{"url broken", `{"httpRequest":{"url":"https://api.example.com/%zz"}}`, "url: is not a URL"},
		{"url backslash", `{"httpRequest":{"url":"https://api.example.com\\@evil.example/"}}`, "url: is not a URL"},
		{"url with a space", `{"httpRequest":{"url":"https://api.example.com/a b"}}`, "url: holds a space"},
		{"guard", `{"httpRequest":{"url":"http://169.254.169.254/latest"}}`, "modifications.httpRequest.url: may not be called: metadata"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t)
			b.refused["http://169.254.169.254/latest"] = "metadata addresses are never called"
			v := b.retried(c.modifications)
			if v.Kind != flow.VerdictGate || v.Mods != nil {
				t.Fatalf("verdict = %s, mods %s, want a gate", v.Kind, v.Mods)
			}
			if b.rules.count() != 1 {
				t.Errorf("the built-in was asked %d times, want once", b.rules.count())
			}
			if got := v.Case.Asked[0].Rejection; !strings.Contains(got, c.want) {
				t.Errorf("rejection = %q, want it to hold %q", got, c.want)
			}
			if why := v.Adapting.BYOARejectionReason; why == nil || !strings.Contains(*why, c.want) {
				t.Errorf("byoa_rejection_reason does not hold %q", c.want)
			}
			if !strings.Contains(v.Message, "your agent was passed over: ") {
				t.Errorf("message = %q, want it to say that the agent was passed over", v.Message)
			}
		})
	}
}

// applied lays a verdict over the config as the engine does.
func applied(t *testing.T, config string, v flow.Verdict) map[string]any {
	t.Helper()
	out := json.RawMessage(config)
	for _, pointer := range v.Dropped {
		patch, err := jsonpatch.DecodePatch([]byte(fmt.Sprintf(`[{"op":"remove","path":%q}]`, pointer)))
		if err != nil {
			t.Fatal(err)
		}
		if out, err = patch.Apply(out); err != nil {
			t.Fatalf("dropping %s: %v", pointer, err)
		}
	}
	out, err := jsonpatch.MergePatch(out, v.Mods)
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(out, &m); err != nil {
		t.Fatal(err)
	}
	return m
}

func same(t *testing.T, what string, got any, want string) {
	t.Helper()
	raw, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	if g, w := canonical(t, raw), canonical(t, []byte(want)); g != w {
		t.Errorf("%s = %s, want %s", what, g, w)
	}
}

// spec: R-033
func TestGuardAccepts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, modifications, mods string }{
		{"nothing", `{}`, `{}`},
		{"url of the same origin", `{"httpRequest":{"url":"https://API.example.com:443/v2/users/42"}}`, `{"url":"https://API.example.com:443/v2/users/42"}`},
		{"short headers in the config's letters", `{"headers":{"authorization":"Bearer new","x-plain":null}}`, `{"headers":{"Authorization":"Bearer new","X-Plain":null}}`},
		{"short body", `{"body":{"who":null,"deep":{"er":[1,2.50]}}}`, `{"body":{"who":null,"deep":{"er":[1,2.50]}}}`},
		{"method", `{"httpRequest":{"method":"post"}}`, `{"method":"POST"}`},
		{"query", `{"httpRequest":{"query":{"page":8,"tags":["a","b"]}}}`, `{"query":{"page":8,"tags":["a","b"]}}`},
		{"timeout", `{"timeout":60000}`, `{"timeout":60000}`},
		{"timeout at the cap", `{"timeout":600000}`, `{"timeout":600000}`},
		{"template text", `{"body":"{{ secrets.api }}"}`, `{"body":"{{ secrets.api }}"}`},
		{"secret that stays", `{"headers":{"X-Key":"[secret:api]"}}`, `{"headers":{"X-Key":"[secret:api]"}}`},
		{"secret in the clear", `{"headers":{"X-Key":"sk-live-0123456789"}}`, `{"headers":{"X-Key":"[secret:api]"}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			v := newBed(t).retried(c.modifications)
			if v.Kind != flow.VerdictRetry || v.Source != flow.SourceBYOA {
				t.Fatalf("verdict = %s by %q (%s), want retry by byoa", v.Kind, v.Source, v.Message)
			}
			same(t, "mods", v.Mods, c.mods)
			if len(v.Dropped) > 0 {
				t.Errorf("dropped = %q, want nothing", v.Dropped)
			}
			if v.Case.Outcome != "retry_with_params by byoa" || v.Case.ClosedAt == nil {
				t.Errorf("case = %q, closed %v", v.Case.Outcome, v.Case.ClosedAt)
			}
		})
	}
}

func TestMendNamesOnlySecretsOfItsStep(t *testing.T) {
	t.Parallel()
	for _, c := range []string{`{"headers":{"X":"[secret:other]"}}`, `{"body":{"a":["[secret:api] [secret:other]"]}}`, `{"httpRequest":{"query":{"[secret:other]":"1"}}}`} {
		b := newBed(t)
		b.secrets["other"] = "other-value-0123"
		v := b.retried(c)
		if v.Kind != flow.VerdictGate || !strings.Contains(v.Case.Asked[0].Rejection, `names the secret "other", which this step does not use`) {
			t.Errorf("%s: %s, %q, want it refused", c, v.Kind, v.Case.Asked[0].Rejection)
		}
	}
}

func TestIgnoredMembersAreLogged(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.settings.A2AAgentURL = "https://agent.example.com"
	b.own.answer = `{"type":"fixed_output","diagnosis":"d","output":1,"confidence":0.9}`
	v := b.decide(httpFailure())
	if want := "your agent (a2a) answered fixed_output: d [ignored: confidence]"; v.Message != want || len(v.Case.Asked[0].Notes) != 1 {
		t.Errorf("message = %q, notes %q, want %q", v.Message, v.Case.Asked[0].Notes, want)
	}
}

func TestNewOriginLosesWhatTemplatesFilledIn(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	v := b.retried(`{"httpRequest":{"url":"https://other.example.com/users/42","headers":{"Authorization":"Bearer mine"},"body":{"who":"me"}}}`)
	if v.Kind != flow.VerdictRetry {
		t.Fatalf("verdict = %s (%s)", v.Kind, v.Message)
	}
	want := []string{"/body/list", "/body/who", "/headers/Authorization", "/query/page"}
	got := slices.Sorted(slices.Values(v.Dropped))
	if !slices.Equal(got, want) {
		t.Errorf("dropped = %q, want %q", got, want)
	}
	same(t, "request", applied(t, resolvedConfig, v), `{"method":"GET","url":"https://other.example.com/users/42",
		"headers":{"Authorization":"Bearer mine","X-Plain":"1"},"query":{"size":10},"body":{"who":"me","kind":"a"}}`)
	if !strings.Contains(v.Message, "dropped for the new origin https://other.example.com") || !strings.Contains(v.Message, "/query/page") ||
		strings.Contains(v.Message, "/headers/Authorization") {
		t.Errorf("message = %q, want it to tell what was dropped and not supplied again", v.Message)
	}
	same(t, "after", v.Case.After, `{"method":"GET","url":"https://other.example.com/users/42",
		"headers":{"Authorization":"Bearer mine","X-Plain":"1"},"query":{"size":10},"body":{"who":"me","kind":"a"}}`)
	if before, _ := json.Marshal(v.Case.Before); strings.Contains(string(before), "sk-live") || !strings.Contains(string(before), "[secret:api]") {
		t.Errorf("before = %s, want it masked", before)
	}
}

func TestWhatIsANewOrigin(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		url     string
		allowed []string
		moves   bool
	}{
		{"https://api.example.com/v2", nil, false},
		{"https://api.example.com:443/v2", nil, false},
		{"https://API.EXAMPLE.COM./v2", nil, false},
		{"https://api.example.com:8443/v2", nil, true},
		{"http://api.example.com/v2", nil, true},
		{"https://api.example.com.evil.net/v2", nil, true},
		{"https://xapi.example.com/v2", nil, true},
		{"https://other.example.com/v2", []string{"other.example.com"}, false},
		{"https://other.example.com:8443/v2", []string{"Other.example.com "}, false},
		{"https://other.example.com:8443/v2", []string{"other.example.com:8443"}, false},
		{"https://other.example.com:9443/v2", []string{"other.example.com:8443"}, true},
		{"http://other.example.com/v2", []string{"other.example.com"}, true}, // not in the clear
		{"https://sub.other.example.com/v2", []string{"other.example.com"}, true},
		{"https://other.example.com/v2", []string{""}, true},
	} {
		b := newBed(t)
		b.settings.AllowedHosts = c.allowed
		v := b.retried(`{"httpRequest":{"url":"` + c.url + `"}}`)
		if got := len(v.Dropped) > 0; got != c.moves {
			t.Errorf("%s with %q allowed: moves = %v, want %v (%s)", c.url, c.allowed, got, c.moves, v.Message)
		}
	}
}

func TestSecretsStayWithTheirOrigin(t *testing.T) {
	t.Parallel()
	for _, c := range []string{
		`{"httpRequest":{"url":"https://evil.example.com/","headers":{"X":"[secret:api]"}}}`,
		`{"httpRequest":{"url":"https://evil.example.com/?k=[secret:api]"}}`,
		`{"httpRequest":{"url":"https://evil.example.com/"},"body":{"a":["x [secret:api]"]}}`,
		`{"httpRequest":{"url":"https://evil.example.com/"},"body":{"[secret:api]":1}}`,
		`{"httpRequest":{"url":"https://evil.example.com/"},"body":"sk-live-0123456789"}`,
		`{"httpRequest":{"url":"http://api.example.com/","query":{"k":"[secret:api]"}}}`,
	} {
		v := newBed(t).retried(c)
		if v.Kind != flow.VerdictGate || !strings.Contains(v.Case.Asked[0].Rejection, "holds a secret") {
			t.Errorf("%s: %s, rejection %q, want it refused", c, v.Kind, v.Case.Asked[0].Rejection)
		}
		if all, _ := json.Marshal(v); strings.Contains(string(all), "sk-live") {
			t.Errorf("%s: the verdict holds the secret: %s", c, all)
		}
	}
	b := newBed(t)
	b.settings.AllowedHosts = []string{"friend.example.com"}
	v := b.retried(`{"httpRequest":{"url":"https://friend.example.com/","headers":{"X":"[secret:api]"}}}`)
	if v.Kind != flow.VerdictRetry || len(v.Dropped) > 0 {
		t.Errorf("an allowed host: %s, dropped %q (%s)", v.Kind, v.Dropped, v.Message)
	}
}

// A second mend must not get for a stranger what the first was refused, nor
// take along what the first gave to somebody else.
func TestMendAfterAMend(t *testing.T) {
	t.Parallel()
	moved := httpFailure()
	moved.Instance.Progress.Mods = json.RawMessage(`{"url":"https://other.example.com/x","headers":{"X-Mine":"1","X-Both":"1"},"body":{"a":{"b":1,"c":2}},"query":{"q":"1"}}`)
	moved.Config = json.RawMessage(`{"method":"GET","url":"https://other.example.com/x","headers":{"X-Plain":"1","X-Mine":"1","X-Both":"1"},"query":{"size":10,"q":"1"},"body":{"kind":"a","a":{"b":1,"c":2}}}`)

	v := newBed(t).retriedFor(moved, `{"headers":{"X":"[secret:api]"}}`)
	if v.Kind != flow.VerdictGate || !strings.Contains(v.Case.Asked[0].Rejection, "stays with https://api.example.com and would go to https://other.example.com") {
		t.Errorf("a secret for where an earlier mend went: %s, %q", v.Kind, v.Case.Asked[0].Rejection)
	}
	v = newBed(t).retriedFor(moved, `{"headers":{"X":"2"}}`)
	if v.Kind != flow.VerdictRetry || len(v.Dropped) > 0 {
		t.Errorf("staying there: %s, dropped %q", v.Kind, v.Dropped)
	}
	v = newBed(t).retriedFor(moved, `{"httpRequest":{"url":"https://third.example.com/","headers":{"X-Both":"2"},"body":{"a":{"b":3}}}}`)
	if v.Kind != flow.VerdictRetry {
		t.Fatalf("going on: %s (%s)", v.Kind, v.Message)
	}
	same(t, "mods", v.Mods, `{"url":"https://third.example.com/","headers":{"X-Mine":null,"X-Both":"2"},"body":{"a":{"b":3,"c":null}},"query":{"q":null}}`)
	v = newBed(t).retriedFor(moved, `{"httpRequest":{"url":"https://api.example.com/x"},"headers":{"X":"[secret:api]"}}`)
	if v.Kind != flow.VerdictRetry {
		t.Errorf("going back home: %s (%s)", v.Kind, v.Message)
	}

	// Where only a template knows the host, home is nowhere once a mend has moved.
	moved.Step.Config = json.RawMessage(`{"url":"https://{{ input.host }}/users"}`)
	v = newBed(t).retriedFor(moved, `{"headers":{"X":"[secret:api]"}}`)
	if v.Kind != flow.VerdictGate {
		t.Errorf("an unknown home: %s, want the secret refused", v.Kind)
	}
}

func TestOtherStepTypes(t *testing.T) {
	t.Parallel()
	f := httpFailure()
	f.Step.Type, f.Config = "transform", json.RawMessage(`{"value":1}`)
	for modifications, want := range map[string]string{
		`{"httpRequest":{"url":"https://api.example.com/"}}`: "httpRequest.url: may not be changed in a step of type transform (only timeout)",
		`{"headers":{}}`: "headers: may not be changed in a step of type transform",
		`{"body":1}`:     "body: may not be changed in a step of type transform",
	} {
		v := newBed(t).retriedFor(f, modifications)
		if v.Kind != flow.VerdictGate || !strings.Contains(v.Case.Asked[0].Rejection, want) {
			t.Errorf("%s: %s, %q, want %q", modifications, v.Kind, v.Case.Asked[0].Rejection, want)
		}
	}
	v := newBed(t).retriedFor(f, `{"timeout":5000}`)
	if v.Kind != flow.VerdictRetry || string(v.Mods) != `{"timeout":5000}` {
		t.Errorf("timeout: %s %s", v.Kind, v.Mods)
	}
}

func TestAuthorOrigin(t *testing.T) {
	t.Parallel()
	for config, want := range map[string]string{
		`{"url":"https://a.example/x"}`:                        "https://a.example",
		`{"url":"https://a.example/{{ input.x }}"}`:            "https://a.example",
		`{"url":"https://a.example:8443?{{ input.x }}"}`:       "https://a.example:8443",
		`{"url":"https://a.example{{ input.x }}"}`:             "",
		`{"url":"https://{{ input.x }}.a.example/"}`:           "",
		`{"url":"{{ input.x }}/a"}`:                            "",
		`{"url":"https://{{ input.x }}/https://a.example/y/"}`: "",
		`{"url":7}`: "",
		`{}`:        "",
		``:          "",
	} {
		if got := authorOrigin(json.RawMessage(config)); got != want {
			t.Errorf("authorOrigin(%s) = %q, want %q", config, got, want)
		}
	}
}

func FuzzGuard(f *testing.F) {
	for _, raw := range []string{`{}`, `{"headers":{"A":"1"}}`, `{"httpRequest":{"url":"https://other.example.com/[secret:api]","body":{"a":[1]}}}`,
		`{"body":{"__proto__":1}}`, `{"timeout":5}`, `{"httpRequest":{"headers":{"authorization":null},"query":{"page":["1"]}}}`} {
		f.Add([]byte(raw))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if bounded(raw, 1<<20) != nil || kindOf(raw) != "an object" {
			return
		}
		b := newBed(t)
		s, err := b.desk().sit(t.Context(), httpFailure(), flow.Case{})
		if err != nil {
			t.Fatal(err)
		}
		m, r := s.bench().modifications(t.Context(), s.masker.JSON(raw))
		if r != nil {
			return
		}
		v := flow.Verdict{Mods: m.mods, Dropped: m.dropped}
		got := applied(t, resolvedConfig, v)
		if u, _ := got["url"].(string); originOf(u) != "https://api.example.com" {
			out, _ := json.Marshal(got)
			for _, secret := range []string{"sk-live", "[secret:", "Bearer sk", `"Ada"`} {
				if strings.Contains(string(out), secret) && !strings.Contains(string(raw), secret) || strings.Contains(string(out), "[secret:") {
					t.Fatalf("%s takes %q to %s: %s", raw, secret, u, out)
				}
			}
		}
		for name := range got {
			if !slices.Contains([]string{"method", "url", "headers", "query", "body", "timeout"}, name) {
				t.Fatalf("%s sets config.%s", raw, name)
			}
		}
		if r := find(decoded(m.mods), polluting); r != nil {
			t.Fatalf("a polluting member came through: %v", r)
		}
	})
}

func TestTimeoutNote(t *testing.T) {
	t.Parallel()
	v := newBed(t).retried(`{"timeout":90000}`)
	if want := (90 * time.Second).String(); !strings.Contains(v.Message, want) {
		t.Errorf("message = %q, want it to name %s", v.Message, want)
	}
}
