package step

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/longstop-dev/longstop/internal/flow"
)

// seen is a request as a server got it.
type seen struct {
	*http.Request
	body string
}

// request runs a config and gives what was sent.
func request(t *testing.T, config string) seen {
	t.Helper()
	got := make(chan seen, 1)
	_, err := send(t, config, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got <- seen{r, string(body)}
		w.WriteHeader(204)
	})
	if err != nil {
		t.Fatal(err)
	}
	return <-got
}

func TestHTTPRequest(t *testing.T) {
	t.Parallel()
	const form = `"contentType": "application/x-www-form-urlencoded"`
	for _, c := range []struct{ name, config, line, contentType, body string }{
		{"plain", `{"url": "@"}`, "GET /", "", ""},
		{"method in lower case", `{"url": "@/a", "method": "delete"}`, "DELETE /a", "", ""},
		{"fragment", `{"url": "@/a#b"}`, "GET /a", "", ""},
		{"query", `{"url": "@/a?z=%20&page=1&page=2&flag", "query": {"page": 3, "tag": ["a b", 1.50, true], "none": null}}`, "GET /a?z=%20&flag&page=3&tag=a+b&tag=1.50&tag=true", "", ""},
		{"query takes away", `{"url": "@/a?x=1", "query": {"x": null}}`, "GET /a", "", ""},
		{"JSON body", `{"url": "@", "method": "POST", "body": {"a": 1.0, "b": "<"}}`, "POST /", "application/json", `{"a": 1.0, "b": "<"}`},
		{"null body", `{"url": "@", "method": "POST", "body": null}`, "POST /", "", ""},
		{"a body with GET", `{"url": "@", "body": {"q": 1}}`, "GET /", "application/json", `{"q": 1}`},
		{"text without a type is JSON", `{"url": "@", "method": "POST", "body": "a"}`, "POST /", "application/json", `"a"`},
		{"text with a type", `{"url": "@", "method": "POST", "body": "a,\"b\"\n", "contentType": "text/csv; charset=utf-8"}`, "POST /", "text/csv; charset=utf-8", "a,\"b\"\n"},
		{"text with a header", `{"url": "@", "method": "POST", "body": "<a/>", "headers": {"content-type": "text/xml"}}`, "POST /", "text/xml", "<a/>"},
		{"the header wins", `{"url": "@", "method": "POST", "body": "<a/>", "headers": {"content-type": "text/xml"}, "contentType": "text/csv"}`, "POST /", "text/xml", "<a/>"},
		{"form", `{"url": "@", "method": "POST", "body": {"a": "x y", "b": [1, 2]}, ` + form + `}`, "POST /", "application/x-www-form-urlencoded", "a=x+y&b=1&b=2"},
		{"form as text", `{"url": "@", "method": "POST", "body": "a=1", ` + form + `}`, "POST /", "application/x-www-form-urlencoded", "a=1"},
		{"JSON of another type", `{"url": "@", "method": "PATCH", "body": [1], "contentType": "application/json-patch+json"}`, "PATCH /", "application/json-patch+json", "[1]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := request(t, c.config)
			if line := got.Method + " " + got.RequestURI; line != c.line {
				t.Errorf("got %s, want %s", line, c.line)
			}
			if contentType := got.Header.Get("Content-Type"); contentType != c.contentType || got.body != c.body {
				t.Errorf("got body %q of type %q, want %q of %q", got.body, contentType, c.body, c.contentType)
			}
		})
	}
}

func TestHTTPHeaders(t *testing.T) {
	t.Parallel()
	got := request(t, `{"url": "@", "headers": {"x-one": "1", "X-Many": ["a", 2], "X-None": null}}`).Header
	want := map[string]string{"X-One": "1", "X-Many": "a,2", "X-None": "", "User-Agent": "longstop", "Accept": "application/json, */*;q=0.8", "Idempotency-Key": "", "Cookie": ""}
	for name, value := range want {
		if have := strings.Join(got[name], ","); have != value {
			t.Errorf("%s: got %q, want %q", name, have, value)
		}
	}
	own := request(t, `{"url": "@", "headers": {"user-agent": "me", "accept": "text/csv"}}`).Header
	if own.Get("User-Agent") != "me" || own.Get("Accept") != "text/csv" {
		t.Errorf("got %v, want the step's own", own)
	}
}

func TestHTTPIdempotencyKey(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ config, want string }{
		{`{"url": "@", "method": "GET"}`, ""}, {`{"url": "@", "method": "HEAD"}`, ""}, {`{"url": "@", "method": "OPTIONS"}`, ""},
		{`{"url": "@", "method": "POST"}`, "run_1-2"}, {`{"url": "@", "method": "PUT"}`, "run_1-2"},
		{`{"url": "@", "method": "PATCH"}`, "run_1-2"}, {`{"url": "@", "method": "DELETE"}`, "run_1-2"},
		{`{"url": "@", "method": "POST", "headers": {"IDEMPOTENCY-key": "mine"}}`, "mine"},
	} {
		if got := strings.Join(request(t, c.config).Header["Idempotency-Key"], ","); got != c.want {
			t.Errorf("%s: got key %q, want %q", c.config, got, c.want)
		}
	}
}

func TestHTTPRefusesBeforeSending(t *testing.T) {
	t.Parallel()
	for _, config := range []string{
		`{"url": "@", "headers": {"X-A": "s3cr3t\r\nX-B: c"}}`, `{"url": "@", "headers": {"X-A": "s3cr3t\u0000"}}`, `{"url": "@", "headers": {"X A": "s3cr3t"}}`,
		`{"url": "@", "headers": {"": "s3cr3t"}}`, `{"url": "@", "headers": {"host": "s3cr3t"}}`, `{"url": "@", "headers": {"Connection": "s3cr3t"}}`,
		`{"url": "@", "headers": {"proxy-authorization": "s3cr3t"}}`, `{"url": "@", "headers": {"Transfer-Encoding": "s3cr3t"}}`, `{"url": "@", "headers": {"content-length": 3}}`,
		`{"url": "@", "headers": {"X-A": {"s3cr3t": 1}}}`, `{"url": "@", "headers": {"X-A": [["s3cr3t"]]}}`, `{"url": "@", "query": {"a": {"s3cr3t": 1}}}`,
		`{"url": "@", "method": "TRACE"}`, `{"url": "@\u0000s3cr3t"}`, `{"url": "javascript:s3cr3t"}`, `{"url": "//s3cr3t/x"}`,
		`{"url": "@", "method": "POST", "body": "s3cr3t", "contentType": "a\r\nb: c"}`, `{"url": "@", "method": "POST", "body": {"a": "s3cr3t"}, "contentType": "text/csv"}`,
		`{"url": "@", "method": "POST", "body": [1], "contentType": "application/x-www-form-urlencoded"}`,
	} {
		_, err := send(t, config, func(http.ResponseWriter, *http.Request) { t.Errorf("%s was sent", config) })
		if e := failedAs(t, err, flow.KindConfig); strings.Contains(e.Message, "s3cr3t") || !strings.HasPrefix(e.Message, "config.") {
			t.Errorf("%s: got %q, want the place and no value", config, e.Message)
		}
	}
}
