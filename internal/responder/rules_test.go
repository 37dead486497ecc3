package responder

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/longstop-dev/longstop/internal/flow"
)

func TestRulesSuite(t *testing.T) {
	t.Parallel()
	suite(t, func(*testing.T) subject { return subject{responder: NewRules(testClock()), question: question()} })
}

// got makes a question about an HTTP answer: status, body, then header names
// and values in turn.
func got(status int, body string, header ...string) flow.Question {
	q := question()
	q.Failed = flow.Failed{Error: "HTTP error", Kind: flow.KindRefused}
	q.Response = &flow.Response{Status: status, Body: body, Header: map[string]string{}}
	for i := 0; i+1 < len(header); i += 2 {
		q.Response.Header[header[i]] = header[i+1]
	}
	return q
}

func with(q flow.Question, f func(*flow.Question)) flow.Question { f(&q); return q }

func config(raw string) func(*flow.Question) {
	return func(q *flow.Question) { q.Input.Step.Config = json.RawMessage(raw) }
}

func TestRules(t *testing.T) {
	t.Parallel()
	kind := func(k flow.ErrorKind, text string) flow.Question {
		q := question()
		q.Failed = flow.Failed{Error: text, Kind: k}
		return q
	}
	post := config(`{"method":"POST","url":"https://api.example.com/x","headers":{"content-type":"text/plain"}}`)
	for _, c := range []struct {
		name string
		q    flow.Question
		rule string
		want string // the modifications, or the type
		wait time.Duration
	}{
		{"429", got(429, ""), "rate limit", `{}`, 2 * time.Second},
		{"429 again", with(got(429, ""), func(q *flow.Question) { q.Attempt = 2 }), "rate limit", `{}`, 8 * time.Second},
		{"429 with seconds", got(429, "", "Retry-After", "7"), "rate limit", `{}`, 7 * time.Second},
		{"429 with zero", got(429, "", "Retry-After", "0"), "rate limit", `{}`, 0},
		{"429 with a date", got(429, "", "Retry-After", "Sun, 01 Mar 2026 12:00:09 GMT"), "rate limit", `{}`, 9 * time.Second},
		{"429 with a date gone by", got(429, "", "Retry-After", "Sun, 01 Mar 2026 11:00:00 GMT"), "rate limit", `{}`, 0},
		{"429 with rubbish", got(429, "", "Retry-After", "soon"), "rate limit", `{}`, 2 * time.Second},
		{"429 for a day", got(429, "", "Retry-After", "86400"), "rate limit", "needs_human", 0},
		{"503", got(503, "", "Retry-After", "1"), "rate limit", `{}`, time.Second},
		{"502 of a GET", with(got(502, ""), func(q *flow.Question) { q.Failed.Kind = flow.KindTransient }), "passing", `{}`, 2 * time.Second},
		{"502 of a POST", with(with(got(502, ""), func(q *flow.Question) { q.Failed.Kind = flow.KindTransient }), post), "", "needs_human", 0},
		{"connection refused", kind(flow.KindTransient, "connection refused"), "passing", `{}`, 2 * time.Second},

		{"timeout", kind(flow.KindTimeout, "ran out of time"), "time-out", `{"timeout":60000}`, 0},
		{"timeout near the cap", with(kind(flow.KindTimeout, "x"), func(q *flow.Question) { q.Timeout = 9 * time.Minute }), "time-out", `{"timeout":600000}`, 0},
		{"timeout at the cap", with(kind(flow.KindTimeout, "x"), func(q *flow.Question) { q.Timeout = 10 * time.Minute }), "time-out", "needs_human", 0},

		{"301", got(301, "", "Location", "https://new.example.com/users/42"), "moved", `{"httpRequest":{"url":"https://new.example.com/users/42"}}`, 0},
		{"308 relative", got(308, "", "Location", "/v2/users/42"), "moved", `{"httpRequest":{"url":"https://api.example.com/v2/users/42"}}`, 0},
		{"302 to itself", got(302, "", "Location", "https://api.example.com/users/42?full=1"), "", "needs_human", 0},
		{"302 to a login page", got(302, "", "Location", "https://sso.example.com/login?next=x"), "moved", "needs_human", 0},
		{"302 to a place called loginhistory", got(302, "", "Location", "/loginhistory"), "moved", `{"httpRequest":{"url":"https://api.example.com/loginhistory"}}`, 0},
		{"302 without Location", got(302, ""), "", "needs_human", 0},
		{"404", got(404, "no such page"), "", "needs_human", 0},
		{"404 with Location", got(404, "", "Location", "https://api.example.com/v2"), "moved", `{"httpRequest":{"url":"https://api.example.com/v2"}}`, 0},
		{"410 with a successor", got(410, "", "Link", `<https://api.example.com/v1>; rel="prev", </v3/users/42>; rel="alternate", </v2/users/42>; title="a, b"; rel="successor-version"`),
			"moved", `{"httpRequest":{"url":"https://api.example.com/v2/users/42"}}`, 0},
		{"404 with a bare relation", got(404, "", "Link", `</v2>; rel=canonical`), "moved", `{"httpRequest":{"url":"https://api.example.com/v2"}}`, 0},
		{"404 with another relation", got(404, "", "Link", `</help>; rel="help"`), "", "needs_human", 0},

		{"415", with(got(415, ""), post), "content type", `{"headers":{"Content-Type":"application/json"}}`, 0},
		{"415 that names one", with(got(415, "use application/x-www-form-urlencoded."), config(`{"method":"POST","url":"https://a.example/","body":{}}`)),
			"content type", `{"headers":{"Content-Type":"application/x-www-form-urlencoded"}}`, 0},
		{"415 with Accept-Post", with(got(415, "", "Accept-Post", "application/json, text/csv"), config(`{"url":"https://a.example/"}`)),
			"content type", `{"headers":{"Content-Type":"text/csv"}}`, 0},
		{"415 that says nothing else", with(got(415, ""), config(`{"url":"https://a.example/"}`)), "", "needs_human", 0},
		{"400 that says so", with(got(400, `{"error":"Content-Type must be application/json"}`), post), "content type", `{"headers":{"Content-Type":"application/json"}}`, 0},
		{"400", with(got(400, "name is missing"), post), "", "needs_human", 0},
		{"406", got(406, "available: text/csv"), "content type", `{"headers":{"Accept":"text/csv"}}`, 0},
		{"406 that says nothing", got(406, ""), "content type", `{"headers":{"Accept":"*/*"}}`, 0},

		{"401", got(401, "", "Location", "https://elsewhere.example.com/"), "credentials", "needs_human", 0},
		{"403", got(403, ""), "credentials", "needs_human", 0},
		{"template", kind(flow.KindTemplate, "steps.0.output.id is missing"), "template", "needs_human", 0},
		{"anything else", kind(flow.KindInternal, "boom"), "", "needs_human", 0},
		{"no response at all", question(), "", "needs_human", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			answer, err := NewRules(testClock()).Ask(t.Context(), c.q)
			if err != nil {
				t.Fatal(err)
			}
			var a flow.Action
			if err := json.Unmarshal(answer.Action, &a); err != nil || a.Diagnosis == "" {
				t.Fatalf("answer = %s, %v", answer.Action, err)
			}
			note := "rule: " + c.rule
			if c.rule == "" {
				note = "no rule applies"
			}
			if len(answer.Notes) != 1 || answer.Notes[0] != note {
				t.Errorf("notes = %q, want %q", answer.Notes, note)
			}
			if answer.After != c.wait {
				t.Errorf("pause = %s, want %s", answer.After, c.wait)
			}
			if c.want == "needs_human" {
				if a.Type != flow.ActionNeedsHuman || a.Suggestion == "" {
					t.Errorf("answer = %s, want needs_human with a suggestion", answer.Action)
				}
				return
			}
			if a.Type != flow.ActionRetryWithParams || string(a.Modifications) != c.want {
				t.Errorf("answer = %s, want the modifications %s", answer.Action, c.want)
			}
		})
	}
}

func TestRenamed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, output, contract, want string }{
		{"other case", `{"userName":"Ada","n":1}`, `{"required":["user_name"],"properties":{"user_name":{"type":"string"}}}`, `{"n":1,"user_name":"Ada"}`},
		{"longer name", `{"user_id":42}`, `{"required":["id"],"properties":{"id":{"type":"integer"}}}`, `{"id":42}`},
		{"shorter name", `{"name":"Ada"}`, `{"required":["full_name"]}`, `{"full_name":"Ada"}`},
		{"two at once", `{"userId":42,"userName":"Ada"}`, `{"required":["id","name"],"properties":{"id":{"type":"integer"},"name":{"type":"string"}}}`, `{"id":42,"name":"Ada"}`},
		{"nested", `{"user":{"ID":12345678901234567890}}`, `{"properties":{"user":{"required":["id"]}}}`, `{"user":{"id":12345678901234567890}}`},
		{"exact beats similar", `{"ID":1,"user_id":2}`, `{"required":["id"]}`, `{"id":1,"user_id":2}`},
		{"the type decides", `{"user_id":"x","account_id":7}`, `{"required":["id"],"properties":{"id":{"type":"integer"}}}`, `{"id":7,"user_id":"x"}`},
		{"two candidates", `{"user_id":1,"account_id":7}`, `{"required":["id"]}`, ""},
		{"wrong type", `{"user_id":"42"}`, `{"required":["id"],"properties":{"id":{"type":"integer"}}}`, ""},
		{"one missing for good", `{"user_id":42}`, `{"required":["id","email"]}`, ""},
		{"taken by another", `{"user_id":42}`, `{"required":["id","user_id"]}`, ""},
		{"known to the contract", `{"user_id":42}`, `{"required":["id"],"properties":{"id":{},"user_id":{}}}`, ""},
		{"nothing missing", `{"id":"x"}`, `{"required":["id"],"properties":{"id":{"type":"integer"}}}`, ""},
		{"no object", `[1]`, `{"required":["id"]}`, ""},
		{"cut off", `{"user_id":4`, `{"required":["id"]}`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			q := question()
			q.Failed = flow.Failed{Error: "the output does not satisfy its contract", Kind: flow.KindContract}
			q.Response, q.Contract = &flow.Response{Body: c.output}, json.RawMessage(c.contract)
			m, ok := renamed(q, time.Time{})
			if ok != (c.want != "") || ok && string(m.action.Output) != c.want {
				t.Errorf("got %s, %v, want %s", m.action.Output, ok, c.want)
			}
			if ok && !strings.Contains(m.action.Diagnosis, "is now called") {
				t.Errorf("diagnosis = %q", m.action.Diagnosis)
			}
		})
	}
}
