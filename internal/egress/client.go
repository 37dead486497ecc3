package egress

import (
	"compress/gzip"
	"io"
	"net/http"
	"strings"
)

// ClientOptions shape a client of a guard's.
type ClientOptions struct {
	SameOriginRedirects int // how many redirects within the origin are followed; 0 follows none
}

// Client makes an HTTP client that goes through the guard. It uses no proxy,
// keeps no cookies, and follows no redirect unless asked; what a redirect
// leads to is judged like any other call. Deadlines come from the request's
// context.
func (g *Guard) Client(o ClientOptions) *http.Client {
	return &http.Client{Transport: schemes{g}, CheckRedirect: func(req *http.Request, via []*http.Request) error {
		first := via[0].URL
		if len(via) > o.SameOriginRedirects || req.URL.Scheme != first.Scheme || req.URL.Host != first.Host {
			return http.ErrUseLastResponse
		}
		return nil
	}}
}

// schemes refuses http where only https may go, before anything is sent.
type schemes struct{ g *Guard }

// RoundTrip sends one request through the guard.
func (s schemes) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := wellFormed(req.URL); err != nil {
		return nil, err
	}
	if req.URL.Scheme == "http" {
		if err := s.g.CheckURL(req.Context(), req.URL.String()); err != nil {
			return nil, err
		}
	}
	return s.g.transport.RoundTrip(req)
}

// CloseIdleConnections closes what the pool keeps.
func (s schemes) CloseIdleConnections() { s.g.transport.CloseIdleConnections() }

// ReadBody reads a response's body up to max bytes, counted after it is
// decompressed, and fails with [ErrTooLarge] beyond.
func ReadBody(resp *http.Response, max int64) ([]byte, error) {
	var r io.Reader = resp.Body
	if strings.EqualFold(resp.Header.Get("Content-Encoding"), "gzip") {
		z, err := gzip.NewReader(io.LimitReader(resp.Body, max+1))
		if err != nil {
			return nil, err
		}
		r = z
	}
	b, err := io.ReadAll(io.LimitReader(r, max+1))
	if int64(len(b)) > max {
		return nil, ErrTooLarge
	}
	return b, err
}
