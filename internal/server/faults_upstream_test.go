package server_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/longstop-dev/longstop/internal/server"
)

// upstream is how an API answers a step, and what becomes of the step: an
// output, or a person's gate that says why.
type upstream struct {
	answer http.HandlerFunc
	output string // "" if the step fails
	why    string
}

// body answers with these bytes as this content type.
func body(kind, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		io.WriteString(w, text)
	}
}

// endless sends as much as is read, in chunks.
func endless(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain")
	piece := bytes.Repeat([]byte("x"), 64<<10)
	for {
		if _, err := w.Write(piece); err != nil {
			return
		}
	}
}

// bomb is small on the wire and 64 MB when it is unpacked.
func bomb(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Encoding", "gzip")
	z := gzip.NewWriter(w)
	piece := bytes.Repeat([]byte(" "), 1<<20)
	for range 64 {
		z.Write(piece)
	}
	z.Close()
}

// wireBytes answers with bytes that net/http would not send.
func wireBytes(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if c, buf, err := w.(http.Hijacker).Hijack(); err == nil {
			buf.WriteString(text)
			buf.Flush()
			c.Close()
		}
	}
}

func upstreams() map[string]upstream {
	status := func(code int, header ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			for i := 0; i < len(header); i += 2 {
				w.Header().Add(header[i], header[i+1])
			}
			w.WriteHeader(code)
		}
	}
	return map[string]upstream{
		"a body of 10 MB":    {body("text/plain", strings.Repeat("x", 10<<20+1)), "", "limits.output_bytes"},
		"chunks without end": {endless, "", "limits.output_bytes"},
		"a gzip bomb":        {bomb, "", "limits.output_bytes"},
		"a broken gzip": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			io.WriteString(w, "no")
		}, "", "could not be read"},
		"a wrong charset":     {body("application/json; charset=utf-8", "{\"id\":\"caf\xe9\"}"), "{\"id\":\"caf\uFFFD\"}", ""},
		"latin1":              {body("application/json; charset=latin1", "{\"id\":\"caf\xe9\"}"), `{"id":"café"}`, ""},
		"NUL and odd bytes":   {body("text/plain", "a\x00b\xff"), `"a\u0000b` + "\uFFFD\"", ""},
		"an escaped NUL":      {body("application/json", `{"id":"\u0000","\u0000":1}`), `{"id":"\u0000","\u0000":1}`, ""},
		"half a surrogate":    {body("application/json", `{"id":"\ud800"}`), `{"id":"\ud800"}`, ""},
		"JSON that says text": {body("text/plain", `{"id":1}`), `{"id":1}`, ""},
		"text that says JSON": {body("application/json", `<p>maintenance</p>`), "", "not valid JSON"},
		"too deep":            {body("application/json", strings.Repeat("[", 100_000)), "", "not valid JSON"},
		"huge numbers":        {body("application/json", `{"id":1e999,"n":`+strings.Repeat("9", 5000)+`}`), `{"id":1e999,"n":` + strings.Repeat("9", 5000) + `}`, ""},
		"members twice":       {body("application/json", `{"id":1,"id":2}`), `{"id":1,"id":2}`, ""},
		"1xx first": {func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusEarlyHints)
			body("application/json", `{"id":1}`)(w, r)
		}, `{"id":1}`, ""},
		"1xx without end":   {wireBytes(strings.Repeat("HTTP/1.1 102 Processing\r\n\r\n", 60_000)), "", "headers exceeded"},
		"101":               {wireBytes("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n"), "", "101"},
		"204":               {status(204), `null`, ""},
		"304":               {status(304), "", "304"},
		"duplicate headers": {status(200, "Content-Type", "application/json", "Content-Type", "text/html", "X", "a", "X", "b"), `null`, ""},
		"two lengths":       {wireBytes("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab"), "", "Content-Length"},
		"a cookie":          {status(200, "Set-Cookie", "session="+secretValue), `null`, ""},
		"echoes the secret": {func(w http.ResponseWriter, r *http.Request) {
			body("text/plain", "you sent "+r.Header.Get("Authorization"))(w, r)
		}, `"you sent Bearer [secret:api]"`, ""},
		"echoes it in a failure": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", "/login?token="+r.Header.Get("Authorization"))
			http.Error(w, "bad token "+r.Header.Get("Authorization"), http.StatusForbidden)
		}, "", "403"},
		"redirects to metadata": {status(302, "Location", "http://169.254.169.254/latest/meta-data/"), "", "302"},
	}
}

const plainStep = `
name: plain
steps:
  - {id: get, type: http_request, title: Fetch user profile, retry: {attempts: 1}, config: {url: "%s", headers: {Authorization: "Bearer {{ secrets.api }}"}}}
`

// TestFaultsOfUpstreams holds, for every way in which an API can answer: the
// step has an output, or a person is called who is told why; and what is kept
// of the answer shows no secret.
func TestFaultsOfUpstreams(t *testing.T) {
	onEach(t, func(t *testing.T, on func(*server.Config)) {
		urls := map[string]string{}
		for name, u := range upstreams() {
			s := httptest.NewServer(u.answer)
			t.Cleanup(s.Close)
			urls[name] = s.URL
		}
		st := begin(t, on)
		table(st, upstreams(), func(name string, _ upstream) string {
			return st.run(fmt.Sprintf(plainStep, urls[name]), map[string]any{})
		}, func(t *testing.T, id string, u upstream) {
			r, _ := st.outcome(id)
			switch {
			case u.output != "" && (r.Status != "succeeded" || string(r.Output) != u.output):
				t.Errorf("got %s with %.200s (%.300s), want succeeded with %.200s", r.Status, r.Output, r.Steps[0].Error, u.output)
			case u.output == "" && (r.Status != "waiting" || len(r.Gates) != 1 || r.Gates[0].Kind != "needs_human"):
				t.Errorf("got %s with %.200s and gates %+v, want a person called", r.Status, r.Output, r.Gates)
			case !strings.Contains(r.Steps[0].Error, u.why) || len(r.Steps[0].Error) > 8000:
				t.Errorf("error: got %.300q, want something with %q", r.Steps[0].Error, u.why)
			}
		})
	})
}
