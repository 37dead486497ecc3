package step

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/longstop-dev/longstop/internal/flow"
)

// rawServer answers every connection with the same bytes and closes it.
func rawServer(t *testing.T, answer string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	t.Cleanup(func() { _ = l.Close(); <-ended })
	go func() {
		defer close(ended)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			if _, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
				_, _ = io.WriteString(conn, answer)
			}
			_ = conn.Close()
		}
	}()
	return "http://" + l.Addr().String()
}

// What no decent server sends still ends in an output or in a failure that
// says something.
func TestHTTPOddities(t *testing.T) {
	t.Parallel()
	const ok = "HTTP/1.1 200 OK\r\n"
	for name, c := range map[string]struct {
		answer string
		kind   flow.ErrorKind // "" for an output
		want   string
	}{
		"no HTTP at all":          {"SSH-2.0-OpenSSH_9.6\r\n", flow.KindTransient, "malformed"},
		"no status":               {"HTTP/1.1 abc\r\n\r\n", flow.KindTransient, "malformed"},
		"status 0":                {"HTTP/1.1 000 Nothing\r\nContent-Length: 0\r\n\r\n", flow.KindRefused, "HTTP 0: Unknown Status"},
		"status 999":              {"HTTP/1.1 999 Request denied\r\nContent-Length: 0\r\n\r\n", flow.KindRefused, "HTTP 999: Unknown Status"},
		"negative length":         {ok + "Content-Length: -1\r\n\r\n", flow.KindTransient, "Content-Length"},
		"two lengths":             {ok + "Content-Length: 1\r\nContent-Length: 2\r\n\r\nab", flow.KindTransient, "Content-Length"},
		"broken chunks":           {ok + "Transfer-Encoding: chunked\r\n\r\nzz\r\nabc", flow.KindTransient, "could not be read to its end"},
		"chunks without an end":   {ok + "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", flow.KindTransient, "could not be read to its end"},
		"no length, no chunks":    {ok + "Content-Type: application/json\r\n\r\n[1]", "", `[1]`},
		"HTTP/1.0":                {"HTTP/1.0 200 OK\r\n\r\nhello", "", `"hello"`},
		"a header without colon":  {ok + "Oops\r\n\r\n", flow.KindTransient, "malformed"},
		"a reason with bytes":     {"HTTP/1.1 500 \xff\xfe\r\nContent-Length: 0\r\n\r\n", flow.KindTransient, "HTTP 500: Internal Server Error"},
		"1xx without end":         {strings.Repeat("HTTP/1.1 102 Processing\r\n\r\n", 60_000), flow.KindTransient, ""},
		"nothing":                 {"", flow.KindTransient, "closed before an answer"},
		"half a status line":      {"HTTP/1.1 2", flow.KindTransient, ""},
		"204 with a body":         {"HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\n{}", "", `null`},
		"redirect without target": {"HTTP/1.1 302 Found\r\nContent-Length: 0\r\n\r\n", flow.KindRefused, "HTTP 302: Found"},
		"redirect to a script":    {"HTTP/1.1 302 Found\r\nLocation: javascript:alert(1)\r\nContent-Length: 0\r\n\r\n", flow.KindRefused, "HTTP 302: Found"},
		"redirect to a file":      {"HTTP/1.1 302 Found\r\nLocation: file:///etc/passwd\r\nContent-Length: 0\r\n\r\n", flow.KindRefused, "HTTP 302: Found"},
		"a megabyte of header":    {ok + "X-A: " + strings.Repeat("a", 2<<20) + "\r\n\r\n", flow.KindTransient, "header"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, MaxResponseHeaderBytes: 1 << 20}}
			out, err := NewTable(Deps{HTTP: client}).Run(t.Context(), "http_request", callOf(`{"url": "`+rawServer(t, c.answer)+`"}`))
			if c.kind == "" {
				if err != nil || string(out.Value) != c.want {
					t.Fatalf("got %s, %v; want %s", out.Value, err, c.want)
				}
				return
			}
			if e := failedAs(t, err, c.kind); !strings.Contains(e.Message, c.want) || len(e.Message) > 500 {
				t.Errorf("got %.600q, want %q in it", e.Message, c.want)
			}
		})
	}
}

// A body that is not what it says is still shown to recovery.
func TestHTTPContractFailureKeepsTheBody(t *testing.T) {
	t.Parallel()
	_, err := send(t, `{"url": "@"}`, reply("application/json", 200, "<p>maintenance</p>"))
	e := failedAs(t, err, flow.KindContract)
	if e.Response == nil || e.Response.Status != 200 || e.Response.Body != "<p>maintenance</p>" {
		t.Errorf("got response %+v, want status and body", e.Response)
	}
	if e.Retryable() || errors.Unwrap(e) == nil {
		t.Errorf("got retryable %v and cause %v, want neither retried nor without cause", e.Retryable(), e.Err)
	}
}
