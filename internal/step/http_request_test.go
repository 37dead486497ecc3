package step

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/longstop-dev/longstop/internal/flow"
)

// send runs one http_request against a handler. @ in the config is the
// server's URL.
func send(t *testing.T, config string, h http.HandlerFunc) (flow.Outcome, error) {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	c := callOf(strings.ReplaceAll(config, "@", srv.URL))
	return NewTable(Deps{HTTP: srv.Client()}).Run(t.Context(), "http_request", c)
}

// reply answers with a content type ("-" for none), a status and a body.
func reply(contentType string, status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Content-Type"] = []string{contentType}
		if contentType == "-" {
			w.Header()["Content-Type"] = nil
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func TestHTTPOutput(t *testing.T) {
	t.Parallel()
	const get = `{"url": "@/x"}`
	for _, c := range []struct {
		name, config string
		answer       http.HandlerFunc
		want         string
	}{
		{"JSON", get, reply("application/json", 200, " {\"a\": 1,\n \"b\": 1e999}\n"), `{"a":1,"b":1e999}`},
		{"JSON of a suffix", get, reply("application/vnd.api+json; charset=utf-8", 201, `[1]`), `[1]`},
		{"JSON with broken parameters", get, reply("application/json; charset", 200, `[1]`), `[1]`},
		{"JSON in capitals", get, reply("Application/JSON", 200, `true`), `true`},
		{"an object that says text", get, reply("text/plain", 200, `{"a":1}`), `{"a":1}`},
		{"a number that says text", get, reply("text/plain", 200, `17`), `"17"`},
		{"braces that say text", get, reply("text/plain", 200, `{not JSON`), `"{not JSON"`},
		{"an object that says HTML", get, reply("text/html", 200, `{"a":1}`), `"{\"a\":1}"`},
		{"JSON that says nothing", get, reply("-", 200, `{"a":1}`), `{"a":1}`},
		{"text that says nothing", get, reply("-", 200, `hello`), `"hello"`},
		{"HTML", get, reply("text/html", 200, "<p>a & b</p>"), `"<p>a & b</p>"`},
		{"byte order mark", get, reply("application/json", 200, "\xef\xbb\xbf{}"), `{}`},
		{"latin1", get, reply("text/plain; charset=ISO-8859-1", 200, "caf\xe9"), `"café"`},
		{"latin1 JSON", get, reply("application/json; charset=latin1", 200, "\"caf\xe9\""), `"café"`},
		{"utf-16, little end first", get, reply("text/plain; charset=utf-16", 200, "\xff\xfeh\x00i\x00"), `"hi"`},
		{"utf-16, big end first", get, reply("application/json; charset=UTF-16", 200, "\xfe\xff\x00[\x001\x00]"), `[1]`},
		{"a charset that nobody knows", get, reply("text/plain; charset=klingon", 200, "abc"), `"abc"`},
		{"not UTF-8", get, reply("application/json", 200, "\"a\xffb\""), `"a` + "\uFFFD" + `b"`},
		{"empty", get, reply("application/json", 200, ""), `null`},
		{"empty text", get, reply("text/plain", 200, ""), `null`},
		{"blank JSON", get, reply("application/json", 200, "\r\n"), `null`},
		{"no content", get, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) }, `null`},
		{"HEAD", `{"url": "@/x", "method": "HEAD"}`, reply("application/json", 200, ""), `null`},
		{"an expected failure", `{"url": "@/x", "expect": [404]}`, reply("application/json", 404, `{"gone":true}`), `{"gone":true}`},
		{"an expected 304", `{"url": "@/x", "expect": [200, 304]}`, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(304) }, `null`},
		{"an expected redirect", `{"url": "@/x", "expect": [302]}`, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "/other")
			w.WriteHeader(302)
		}, `null`},
		{"1xx first", get, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Link", "</a.css>")
			w.WriteHeader(http.StatusEarlyHints)
			reply("application/json", 200, `[1]`)(w, r)
		}, `[1]`},
		{"the same header twice", get, func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Content-Type"] = []string{"application/json", "text/html"}
			_, _ = io.WriteString(w, `[1]`)
		}, `[1]`},
		{"gzip that was asked for", get, zipped("gzip"), `{"a":1}`},
		{"gzip that was not", `{"url": "@/x", "headers": {"Accept-Encoding": "identity"}}`, zipped("gzip"), `{"a":1}`},
		{"deflate", get, zipped("deflate"), `{"a":1}`},
		{"chunked", get, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			for _, piece := range []string{`{"a":`, ` 1`, `}`} {
				_, _ = io.WriteString(w, piece)
				w.(http.Flusher).Flush()
			}
		}, `{"a":1}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			out, err := send(t, c.config, c.answer)
			if err != nil {
				t.Fatal(err)
			}
			if string(out.Value) != c.want {
				t.Errorf("got %s, want %s", out.Value, c.want)
			}
		})
	}
}

func zipped(encoding string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Encoding", encoding)
		var z io.WriteCloser = gzip.NewWriter(w)
		if encoding == "deflate" {
			z = zlib.NewWriter(w)
		}
		_, _ = io.WriteString(z, `{"a": 1}`)
		_ = z.Close()
	}
}

// spec: R-018
func TestHTTPFailure(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 70_000)
	for _, c := range []struct {
		name    string
		answer  http.HandlerFunc
		kind    flow.ErrorKind
		message string
	}{
		{"429", reply("application/json", 429, ""), flow.KindTransient, "HTTP 429: Too Many Requests"},
		{"with a body", reply("application/json", 422, "{\"a\":\n 1}"), flow.KindRefused, "HTTP 422: Unprocessable Entity\n{\"a\":\n 1}"},
		{"with a long body", reply("text/plain; charset=utf-8", 500, long), flow.KindTransient, "HTTP 500: Internal Server Error\n" + long[:2000]},
		{"latin1 body", reply("text/plain; charset=latin1", 400, "caf\xe9"), flow.KindRefused, "HTTP 400: Bad Request\ncafé"},
		{"408", reply("-", 408, ""), flow.KindTransient, "HTTP 408: Request Timeout"},
		{"425", reply("-", 425, ""), flow.KindTransient, "HTTP 425: Too Early"},
		{"401", reply("-", 401, "who?"), flow.KindRefused, "HTTP 401: Unauthorized\nwho?"},
		{"599", reply("-", 599, ""), flow.KindTransient, "HTTP 599: Unknown Status"},
		{"304", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(304) }, flow.KindRefused, "HTTP 304: Not Modified"},
		{"JSON that is HTML", reply("application/json", 200, "<html>\n<b>down</b>"), flow.KindContract,
			"the answer says that it is application/json and is not valid JSON: <html> <b>down</b>"},
		{"JSON that is too deep", reply("application/json", 200, strings.Repeat("[", 20_000)), flow.KindContract,
			"the answer says that it is application/json and is not valid JSON: " + strings.Repeat("[", 200) + "…"},
		{"too large", reply("text/plain", 200, strings.Repeat("a", 1<<20+1)), flow.KindTooLarge,
			"the answer's body is larger than 1 MiB, the limit of limits.output_bytes"},
		{"closes early", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, "half")
		}, flow.KindTransient, "the answer could not be read to its end: unexpected EOF"},
		{"gzip that is none", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = io.WriteString(w, "this is not gzip")
		}, flow.KindRefused, "the answer could not be read to its end: gzip: invalid header"},
		{"an encoding that nobody asked for", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "br")
			_, _ = io.WriteString(w, "?")
		}, flow.KindRefused, "the answer could not be read to its end: its content encoding is neither gzip nor deflate"},
		{"a redirect to nowhere", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "http://[::1")
			w.WriteHeader(302)
		}, flow.KindRefused, "@: it redirects to something that is not a URL"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			srv := httptest.NewServer(c.answer)
			t.Cleanup(srv.Close)
			_, err := NewTable(Deps{HTTP: srv.Client()}).Run(t.Context(), "http_request", callOf(`{"url": "`+srv.URL+`/x?key=s3cr3t"}`))
			e := failedAs(t, err, c.kind)
			if want := strings.ReplaceAll(c.message, "@", srv.URL); e.Message != want {
				t.Errorf("got %q, want %q", e.Message, want)
			}
			if e.Response != nil && len(e.Response.Body) > maxResponseBody {
				t.Errorf("got a response body of %d bytes, want at most %d", len(e.Response.Body), maxResponseBody)
			}
		})
	}
}

func TestHTTPResponseForRecovery(t *testing.T) {
	t.Parallel()
	_, err := send(t, `{"url": "@/x"}`, func(w http.ResponseWriter, _ *http.Request) {
		h := w.Header()
		h.Set("Content-Type", "application/problem+json")
		h.Set("Retry-After", "7")
		h.Set("WWW-Authenticate", `Bearer error="invalid_token"`)
		h.Set("Location", "/new")
		h.Add("Link", "</a>; rel=successor-version")
		h.Add("Link", "</b>")
		h.Set("Set-Cookie", "session=1")
		h.Set("X-Internal", "no")
		w.WriteHeader(503)
		_, _ = io.WriteString(w, `{"title":"down"}`)
	})
	e := failedAs(t, err, flow.KindTransient)
	if e.RetryAfter != 7*time.Second {
		t.Errorf("got Retry-After %s, want 7s", e.RetryAfter)
	}
	if e.Response == nil || e.Response.Status != 503 || e.Response.Body != `{"title":"down"}` {
		t.Fatalf("got response %+v", e.Response)
	}
	location := e.Response.Header["Location"]
	if !strings.HasPrefix(location, "http://127.0.0.1:") || !strings.HasSuffix(location, "/new") {
		t.Errorf("got Location %q, want it absolute", location)
	}
	delete(e.Response.Header, "Location")
	got, want := fmt.Sprint(e.Response.Header), fmt.Sprint(map[string]string{"Content-Type": "application/problem+json", "Retry-After": "7",
		"Www-Authenticate": `Bearer error="invalid_token"`, "Link": "</a>; rel=successor-version"})
	if got != want {
		t.Errorf("got headers %s, want %s", got, want)
	}
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]time.Duration{
		"": 0, "0": 0, "3": 3 * time.Second, " 2.5 ": 2500 * time.Millisecond, "-3": 0, "NaN": 0, "Inf": 0, "soon": 0,
		"99999999999999999999":          maxRetryAfter,
		"Sun, 01 Mar 2026 09:00:10 GMT": 10 * time.Second,
		"Sun, 01 Mar 2026 08:00:00 GMT": 0,
		"Sun, 01 Mar 2026 09:00:10":     0,
		"Mon, 01 Mar 2126 09:00:00 GMT": maxRetryAfter,
	} {
		if got := retryAfter(value, now()); got != want {
			t.Errorf("Retry-After %q: got %s, want %s", value, got, want)
		}
	}
}

func TestHTTPTimeouts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, want string
		before     func(w http.ResponseWriter)
	}{
		{"before headers", "ms: no answer from @", func(http.ResponseWriter) {}},
		{"after headers", "ms: the answer had not ended after 0 bytes", func(w http.ResponseWriter) { w.WriteHeader(200) }},
		{"in an answer without end", "ms: the answer had not ended after 5 bytes", func(w http.ResponseWriter) { _, _ = io.WriteString(w, "12345") }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				c.before(w)
				if c.name != "before headers" {
					w.(http.Flusher).Flush()
				}
				<-r.Context().Done()
			}))
			t.Cleanup(srv.Close)
			ctx, cancel := context.WithTimeout(t.Context(), 150*time.Millisecond)
			defer cancel()
			_, err := NewTable(Deps{HTTP: srv.Client()}).Run(ctx, "http_request", callOf(`{"url": "`+srv.URL+`/?a=s3cr3t"}`))
			if e := failedAs(t, err, flow.KindTimeout); !strings.HasPrefix(e.Message, "the attempt ran out of its 1") || !strings.HasSuffix(e.Message, strings.ReplaceAll(c.want, "@", srv.URL)) {
				t.Errorf("got %q, want the time-out and %q", e.Message, c.want)
			}
		})
	}
}

func TestRounded(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]time.Duration{
		29_950 * time.Millisecond: 30 * time.Second, 30 * time.Second: 30 * time.Second, 149*time.Millisecond + 1: 150 * time.Millisecond, 999_999 * time.Microsecond: time.Second,
	} {
		if got := rounded(d); got != want {
			t.Errorf("%s: got %s, want %s", d, got, want)
		}
	}
}

// A body that has no end stops at the cap, gzip bombs by what they unpack to.
func TestHTTPStopsAtTheCap(t *testing.T) {
	t.Parallel()
	piece := []byte(strings.Repeat("a", 32<<10))
	endless := func(w io.Writer) {
		for {
			if _, err := w.Write(piece); err != nil {
				return
			}
		}
	}
	for name, answer := range map[string]http.HandlerFunc{
		"endless": func(w http.ResponseWriter, _ *http.Request) { endless(w) },
		"bomb": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			_, _ = z.Write(bytes.Repeat(piece, 64))
			_ = z.Close()
		},
	} {
		_, err := send(t, `{"url": "@"}`, answer)
		if e := failedAs(t, err, flow.KindTooLarge); e.Response == nil || e.Response.Status != 200 {
			t.Errorf("%s: got response %+v, want its status", name, e.Response)
		}
	}
}

// A failure whose body has no end is still told by its status.
func TestHTTPFailureWithEndlessBody(t *testing.T) {
	t.Parallel()
	_, err := send(t, `{"url": "@"}`, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(502)
		for {
			if _, err := io.WriteString(w, strings.Repeat("b", 8<<10)); err != nil {
				return
			}
		}
	})
	e := failedAs(t, err, flow.KindTransient)
	if want := "HTTP 502: Bad Gateway\n" + strings.Repeat("b", 1000); e.Message != want {
		t.Errorf("got %d characters, want %d", len(e.Message), len(want))
	}
	if len(e.Response.Body) != maxResponseBody {
		t.Errorf("got a body of %d bytes, want %d", len(e.Response.Body), maxResponseBody)
	}
}

func TestHTTPNetworkFailures(t *testing.T) {
	t.Parallel()
	_, err := send(t, `{"url": "@"}`, func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			_ = conn.Close()
		}
	})
	failedAs(t, err, flow.KindTransient)

	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := l.Addr().String()
	_ = l.Close()
	client := &http.Client{Transport: &http.Transport{}}
	_, err = NewTable(Deps{HTTP: client}).Run(t.Context(), "http_request", callOf(`{"url": "http://user:s3cr3t@`+closed+`/s3cr3t?s3cr3t"}`))
	if e := failedAs(t, err, flow.KindTransient); strings.Contains(e.Message, "s3cr3t") || !strings.Contains(e.Message, "refused") {
		t.Errorf("got %q, want the reason without what the URL holds", e.Message)
	}

	tls := httptest.NewUnstartedServer(reply("-", 200, ""))
	tls.Config.ErrorLog = log.New(io.Discard, "", 0)
	tls.StartTLS()
	t.Cleanup(tls.Close)
	_, err = NewTable(Deps{HTTP: client}).Run(t.Context(), "http_request", callOf(`{"url": "`+tls.URL+`"}`))
	if e := failedAs(t, err, flow.KindRefused); !strings.Contains(e.Message, "certificate") {
		t.Errorf("got %q, want the certificate named", e.Message)
	}
	plain := httptest.NewServer(reply("-", 200, ""))
	t.Cleanup(plain.Close)
	_, err = NewTable(Deps{HTTP: client}).Run(t.Context(), "http_request", callOf(`{"url": "`+strings.Replace(plain.URL, "http:", "https:", 1)+`"}`))
	failedAs(t, err, flow.KindRefused)
}

func TestHTTPSwitchingProtocolsDoesNotHang(t *testing.T) {
	t.Parallel()
	_, err := send(t, `{"url": "@", "headers": {"X-A": "b"}}`, func(w http.ResponseWriter, r *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n")
		_, _ = conn.Read(make([]byte, 1)) // until the other side hangs up
	})
	if e := failedAs(t, err, flow.KindRefused); e.Message != "HTTP 101: Switching Protocols" {
		t.Errorf("got %q", e.Message)
	}
}

func TestHTTPRedirects(t *testing.T) {
	t.Parallel()
	other := httptest.NewServer(reply("application/json", 200, `"elsewhere"`))
	t.Cleanup(other.Close)
	handler := func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		to := map[string]string{"/a": "/b", "/rel": "b", "/loop": "/loop", "/away": other.URL + "/b"}[r.URL.Path]
		if to == "" {
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(r.Method + " " + r.URL.Path + " " + string(body) + r.Header.Get("Authorization"))
			return
		}
		w.Header().Set("Location", to)
		w.Header().Set("Set-Cookie", "a=b")
		status := http.StatusFound
		if r.URL.RawQuery != "" {
			status, _ = strconv.Atoi(r.URL.RawQuery)
		}
		w.WriteHeader(status)
	}
	for _, c := range []struct{ name, config, want, fails string }{
		{"followed", `{"url": "@/a", "headers": {"Authorization": "t"}}`, `"GET /b t"`, ""},
		{"relative", `{"url": "@/rel?301"}`, `"GET /b "`, ""},
		{"307 with its body", `{"url": "@/a?307", "method": "POST", "body": [1]}`, `"POST /b [1]"`, ""},
		{"308 with its body", `{"url": "@/a?308", "method": "PUT", "body": [1]}`, `"PUT /b [1]"`, ""},
		{"POST is not repeated", `{"url": "@/a", "method": "POST", "body": [1]}`, "", "HTTP 302: Found"},
		{"POST does not become GET", `{"url": "@/a?303", "method": "POST", "body": [1]}`, "", "HTTP 303: See Other"},
		{"another origin", `{"url": "@/away?308"}`, "", "HTTP 308: Permanent Redirect"},
		{"a loop", `{"url": "@/loop"}`, "", "HTTP 302: Found\nstopped after 10 redirects"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			out, err := send(t, c.config, handler)
			if c.fails == "" {
				if err != nil || string(out.Value) != c.want {
					t.Fatalf("got %s, %v; want %s", out.Value, err, c.want)
				}
				return
			}
			e := failedAs(t, err, flow.KindRefused)
			if e.Message != c.fails || e.Response == nil || !strings.HasPrefix(e.Response.Header["Location"], "http://") {
				t.Errorf("got %q with %+v, want %q with a Location", e.Message, e.Response, c.fails)
			}
		})
	}
}
