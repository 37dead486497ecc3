package egress

import (
	"compress/gzip"
	"errors"
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
	return &http.Client{Transport: door{g}, CheckRedirect: func(req *http.Request, via []*http.Request) error {
		first := via[0].URL
		if len(via) > o.SameOriginRedirects || req.URL.Scheme != first.Scheme || req.URL.Host != first.Host {
			return http.ErrUseLastResponse
		}
		return nil
	}}
}

// door sends each scheme through its own pool, so that what http may reach is
// judged where it is dialled.
type door struct{ g *Guard }

// RoundTrip sends one request through the guard. A refusal says which URL.
func (d door) RoundTrip(req *http.Request) (*http.Response, error) {
	if _, err := wellFormed(req.URL); err != nil {
		if req.Body != nil {
			req.Body.Close()
		}
		return nil, err
	}
	pool := d.g.secure
	if req.URL.Scheme == "http" {
		pool = d.g.plain
	}
	resp, err := pool.RoundTrip(req)
	if err != nil {
		return nil, placed(err, req.URL)
	}
	return resp, nil
}

// CloseIdleConnections closes what the pools keep.
func (d door) CloseIdleConnections() {
	d.g.secure.CloseIdleConnections()
	d.g.plain.CloseIdleConnections()
}

// ReadBody reads a response's body up to max bytes, counted after it is
// decompressed, and fails with [ErrTooLarge] beyond. It does not close it.
func ReadBody(resp *http.Response, max int64) ([]byte, error) {
	if resp.ContentLength > max && resp.Header.Get("Content-Encoding") == "" {
		return nil, ErrTooLarge
	}
	if strings.EqualFold(resp.Header.Get("Content-Encoding"), "gzip") {
		// What cannot be compressed grows a little, and a stream of empty
		// members never ends: so what is read is bounded too.
		in := &io.LimitedReader{R: resp.Body, N: max + max/64 + 4096}
		z, err := gzip.NewReader(in)
		if err != nil {
			return nil, err
		}
		b, err := io.ReadAll(io.LimitReader(z, max+1))
		if int64(len(b)) > max || (in.N <= 0 && errors.Is(err, io.ErrUnexpectedEOF)) {
			return nil, ErrTooLarge
		}
		return b, err
	}
	b, err := io.ReadAll(io.LimitReader(resp.Body, max+1))
	if int64(len(b)) > max {
		return nil, ErrTooLarge
	}
	return b, err
}
