package mcpclient

import (
	"io"
	"net/http"
	"net/url"
	"sync/atomic"
)

// watch notes what the SDK's errors hide.
type watch struct {
	status   atomic.Int64
	tooLarge atomic.Bool
	refusal  atomic.Pointer[error]
}

// guarded is the round tripper of one server: it adds the server's headers
// towards its own origin only, caps every answer, and watches.
type guarded struct {
	base    http.RoundTripper
	origin  string
	headers map[string]string
	max     int64
	watch   *watch
}

func originOf(u *url.URL) string { return u.Scheme + "://" + u.Host }

// RoundTrip sends one request.
func (g *guarded) RoundTrip(req *http.Request) (*http.Response, error) {
	if originOf(req.URL) == g.origin && len(g.headers) > 0 {
		req = req.Clone(req.Context())
		for name, v := range g.headers {
			req.Header.Set(name, v)
		}
	}
	resp, err := g.base.RoundTrip(req)
	if err != nil {
		g.watch.refusal.Store(&err)
		return nil, err
	}
	if resp.StatusCode >= 300 {
		g.watch.status.Store(int64(resp.StatusCode))
	}
	resp.Body = &capped{ReadCloser: resp.Body, left: g.max, watch: g.watch}
	return resp, nil
}

// capped fails a body that goes on beyond its cap.
type capped struct {
	io.ReadCloser
	left  int64
	watch *watch
}

// Read reads within the cap.
func (c *capped) Read(p []byte) (int, error) {
	if c.left <= 0 {
		c.watch.tooLarge.Store(true)
		return 0, ErrTooLarge
	}
	if int64(len(p)) > c.left {
		p = p[:c.left]
	}
	n, err := c.ReadCloser.Read(p)
	c.left -= int64(n)
	return n, err
}
