package a2a_test

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/longstop-dev/longstop/internal/a2a"
)

// checkErrorText holds every error to what may be logged.
func checkErrorText(t *testing.T, err error, token string) {
	t.Helper()
	if err == nil {
		t.Fatal("got no error")
	}
	s := err.Error()
	if n := len([]rune(s)); n > 300 || !utf8.ValidString(s) || strings.ContainsAny(s, "\n\r\x00\x1b") {
		t.Errorf("got %d characters %q, want at most 300 of valid UTF-8 on one line", n, s)
	}
	if token != "" && strings.Contains(s, token) {
		t.Errorf("the error shows the token: %q", s)
	}
}

// TestFaults are the ways in which agents break. Each must end in its typed
// error, within the deadline, with a text that is fit to log.
func TestFaults(t *testing.T) {
	t.Parallel()
	const token = "secret-token-4711"
	body := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		}
	}
	for name, tc := range map[string]struct {
		handler http.HandlerFunc
		is      error
		status  int // of a StatusError
		code    int // of an RPCError
		retry   time.Duration
	}{
		"not JSON":              {handler: body(200, "hello \x00\x1b[31m\xff"+token), is: a2a.ErrShape},
		"empty":                 {handler: body(200, ""), is: a2a.ErrShape},
		"an array":              {handler: body(200, "[1]"), is: a2a.ErrShape},
		"cut JSON":              {handler: body(200, `{"result":{"mess`), is: a2a.ErrShape},
		"HTML":                  {handler: body(200, "<!doctype html><p>"+token), is: a2a.ErrHTML},
		"HTML behind a 502":     {handler: body(502, "<html>"), is: a2a.ErrHTML, status: 502},
		"20 MB":                 {handler: body(200, `{"result":"`+strings.Repeat("x", 20<<20)+`"}`), is: a2a.ErrTooLarge},
		"20 MB behind a 500":    {handler: body(500, strings.Repeat(token, 1<<20)), status: 500},
		"10,000 levels":         {handler: body(200, `{"result":`+strings.Repeat(`{"a":`, 10_000)+"1"+strings.Repeat("}", 10_001)), is: a2a.ErrTooDeep},
		"1,000,000 levels":      {handler: body(200, strings.Repeat("[", 1_000_000)), is: a2a.ErrTooDeep},
		"levels behind a 500":   {handler: body(500, strings.Repeat("[", 1_000_000)), status: 500},
		"hangs before headers":  {handler: func(_ http.ResponseWriter, r *http.Request) { hang(r) }, is: a2a.ErrTimeout},
		"hangs after headers":   {handler: func(w http.ResponseWriter, r *http.Request) { flush(w, ""); hang(r) }, is: a2a.ErrTimeout},
		"one byte at a time":    {handler: drip, is: a2a.ErrTimeout},
		"closes early":          {handler: closeEarly, is: a2a.ErrUnreachable},
		"closes before headers": {handler: func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, is: a2a.ErrUnreachable},
		"401":                   {handler: body(401, `{"detail":"bad token `+token+`"}`), status: 401},
		"429 in seconds":        {handler: retryAfter(429, "7"), status: 429, retry: 7 * time.Second},
		"503 nonsense":          {handler: retryAfter(503, "soon"), status: 503},
		"500":                   {handler: body(500, "boom "+strings.Repeat("é", 9000)), status: 500},
		"error in a 400":        {handler: body(400, rpcError("-32000", "no: "+token)), code: -32000},
		"error code as string":  {handler: body(200, rpcError(`"-32005"`, "x")), code: -32005},
		"error is a word":       {handler: body(200, `{"error":"out of tea"}`), code: 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := httptest.NewServer(tc.handler)
			t.Cleanup(srv.Close)
			wait := 20 * time.Second
			if errors.Is(tc.is, a2a.ErrTimeout) {
				wait = 50 * time.Millisecond
			}
			q := recovery(srv.URL, v1Card(t, srv.URL))
			q.Token, q.TokenOrigin = token, srv.URL
			_, _, err := newClient().Ask(withDeadline(t, wait), q)
			checkErrorText(t, err, token)
			if tc.is != nil && !errors.Is(err, tc.is) {
				t.Errorf("got %v, want %v", err, tc.is)
			}
			var status *a2a.StatusError
			if errors.As(err, &status) != (tc.status != 0) || tc.status != 0 && (status.Status != tc.status || status.RetryAfter != tc.retry) {
				t.Errorf("got %#v, want a StatusError of %d, retry after %v", err, tc.status, tc.retry)
			}
			var spoken *a2a.RPCError
			wantSpoken := tc.is == nil && tc.status == 0
			if errors.As(err, &spoken) != wantSpoken || wantSpoken && spoken.Code != tc.code {
				t.Errorf("got %#v, want an RPCError of %d: %t", err, tc.code, wantSpoken)
			}
		})
	}
}

func hang(r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body) // or the server does not notice that the client left
	<-r.Context().Done()
}

func flush(w http.ResponseWriter, s string) {
	_, _ = io.WriteString(w, s)
	w.(http.Flusher).Flush()
}

func drip(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-r.Context().Done():
			return
		case <-tick.C:
			flush(w, " ")
		}
	}
}

func closeEarly(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Length", "1000")
	flush(w, `{"result":`)
	panic(http.ErrAbortHandler)
}

func retryAfter(status int, value string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", value)
		w.WriteHeader(status)
	}
}

// TestTLSFault: an untrusted certificate, and plain HTTP behind https.
func TestTLSFault(t *testing.T) {
	t.Parallel()
	srv := httptest.NewUnstartedServer(http.NotFoundHandler())
	srv.Config.ErrorLog = quiet()
	srv.StartTLS()
	t.Cleanup(srv.Close)
	plainSrv := newAgent(t, always(200, "{}"))
	for _, url := range []string{srv.URL, strings.Replace(plainSrv.URL, "http:", "https:", 1)} {
		_, _, err := newClient().Ask(withDeadline(t, 10*time.Second), recovery(url, nil))
		checkErrorText(t, err, "")
		if !errors.Is(err, a2a.ErrTLS) {
			t.Errorf("%s: got %v, want %v", url, err, a2a.ErrTLS)
		}
	}
}

// TestUnreachable: nobody listens; the text repeats no query string.
func TestUnreachable(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	_, _, err = newClient().Ask(withDeadline(t, 10*time.Second), recovery("http://"+l.Addr().String()+"/?key=hidden", nil))
	checkErrorText(t, err, "hidden")
	if !errors.Is(err, a2a.ErrUnreachable) {
		t.Errorf("got %v, want %v", err, a2a.ErrUnreachable)
	}
}

// TestStreamThatStaysOpen: the first event is the answer, the stream may go on.
func TestStreamThatStaysOpen(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		flush(w, ": hello\nevent: message\ndata: "+reply(fixedOutput)+"\n\n")
		hang(r)
	}))
	t.Cleanup(srv.Close)
	action, _, err := newClient().Ask(withDeadline(t, 10*time.Second), recovery(srv.URL, nil))
	if err != nil || string(action) != fixedOutput {
		t.Errorf("got %s, %v, want %s", action, err, fixedOutput)
	}
}
