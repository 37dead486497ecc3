package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/longstop-dev/longstop/internal/flow"
)

// Options change how a Client talks. The zero value of a member means its
// default.
type Options struct {
	HTTP          *http.Client  // default one of its own, which follows no redirect
	UserAgent     string        // default "longstop"
	ResponseBytes int64         // the most that one answer may hold; default 64 MiB
	Quiet         time.Duration // silence after which a followed connection counts as broken; default 60 s
	Patience      time.Duration // how long Follow tries to come back after a break; default 1 min
	Clock         flow.Clock    // default the machine's
}

// Client calls one server with one key. It is safe for concurrent use.
type Client struct {
	base string
	key  string
	o    Options
}

// New makes a client of the server at baseURL, such as http://127.0.0.1:8080.
// A wrong URL is an error of every call.
func New(baseURL, key string, o Options) *Client {
	if o.HTTP == nil {
		o.HTTP = &http.Client{
			Transport: &http.Transport{
				Proxy:               http.ProxyFromEnvironment,
				DialContext:         (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
				TLSHandshakeTimeout: 10 * time.Second,
				MaxIdleConnsPerHost: 16,
				IdleConnTimeout:     90 * time.Second,
			},
			// A key goes to the server it was made for and nowhere else.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}
	}
	if o.UserAgent == "" {
		o.UserAgent = "longstop"
	}
	if o.ResponseBytes <= 0 {
		o.ResponseBytes = 64 << 20
	}
	if o.Quiet <= 0 {
		o.Quiet = time.Minute
	}
	if o.Patience <= 0 {
		o.Patience = time.Minute
	}
	if o.Clock == nil {
		o.Clock = flow.SystemClock{}
	}
	return &Client{base: strings.TrimRight(baseURL, "/"), key: key, o: o}
}

// BaseURL is the server's URL, without a slash at its end.
func (c *Client) BaseURL() string { return c.base }

// Key is the API key that is sent.
func (c *Client) Key() string { return c.key }

// body is what a request carries.
type body struct {
	kind string
	data []byte
}

func jsonBody(v any) (*body, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, &Error{Code: flow.CodeInvalid, Message: "the request cannot be written as JSON", cause: err}
	}
	return &body{"application/json", buf.Bytes()}, nil
}

// send sends v as JSON, if it is not nil, and decodes the answer.
func send[T any](ctx context.Context, c *Client, method, path string, query url.Values, v any) (*T, error) {
	var b *body
	if v != nil {
		var err error
		if b, err = jsonBody(v); err != nil {
			return nil, err
		}
	}
	return exchange[T](ctx, c, method, path, query, b)
}

// exchange sends a request and decodes the answer.
func exchange[T any](ctx context.Context, c *Client, method, path string, query url.Values, b *body) (*T, error) {
	return exchangeWith[T](ctx, c, method, path, query, b, nil)
}

// create sends a creation, which may be sent again under the same key; "" is
// none.
func create[T any](ctx context.Context, c *Client, path string, query url.Values, b *body, key string) (*T, error) {
	var extra http.Header
	if key != "" {
		extra = http.Header{"Idempotency-Key": {key}}
	}
	return exchangeWith[T](ctx, c, http.MethodPost, path, query, b, extra)
}

func exchangeWith[T any](ctx context.Context, c *Client, method, path string, query url.Values, b *body, extra http.Header) (*T, error) {
	resp, err := c.do(ctx, method, path, query, b, extra)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	return answerOf[T](ctx, c, resp)
}

// answerOf decodes an answer.
func answerOf[T any](ctx context.Context, c *Client, resp *http.Response) (*T, error) {
	data, err := io.ReadAll(io.LimitReader(resp.Body, c.o.ResponseBytes+1))
	switch {
	case err != nil:
		return nil, c.unreachable(ctx, err)
	case int64(len(data)) > c.o.ResponseBytes:
		return nil, &Error{Status: resp.StatusCode, Code: flow.CodeTooLarge, Message: "the server's answer is too large"}
	case resp.StatusCode >= 300:
		return nil, errorOf(resp, data)
	}
	out := new(T)
	if resp.StatusCode == http.StatusNoContent {
		return out, nil
	}
	if err := json.Unmarshal(data, out); err != nil {
		return nil, foreign(resp.StatusCode, err)
	}
	return out, nil
}

// do sends a request, with extra headers if there are any.
func (c *Client) do(ctx context.Context, method, path string, query url.Values, b *body, extra http.Header) (*http.Response, error) {
	var rd io.Reader
	if b != nil {
		rd = bytes.NewReader(b.data)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.url(path, query), rd)
	if err != nil || req.URL.Host == "" || req.URL.Scheme != "http" && req.URL.Scheme != "https" {
		return nil, &Error{Code: flow.CodeInvalid, Field: "endpoint", Message: "the server's URL is not one", Fix: "such as http://127.0.0.1:8080", cause: err}
	}
	req.Header = c.header()
	for name, values := range extra {
		req.Header[name] = values
	}
	if b != nil {
		req.Header.Set("Content-Type", b.kind)
	}
	resp, err := c.o.HTTP.Do(req)
	if err != nil {
		return nil, c.unreachable(ctx, err)
	}
	return resp, nil
}

func (c *Client) url(path string, query url.Values) string {
	if len(query) == 0 {
		return c.base + path
	}
	return c.base + path + "?" + query.Encode()
}

func (c *Client) header() http.Header {
	h := http.Header{"Accept": {"application/json"}, "User-Agent": {c.o.UserAgent}}
	if c.key != "" {
		h.Set("Authorization", "Bearer "+c.key)
	}
	return h
}

// unreachable is the error of a server that did not answer; ctx's own error
// if that is why.
func (c *Client) unreachable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	why := "does not answer"
	var refused *net.OpError
	if errors.As(err, &refused) && refused.Op == "dial" {
		why = "cannot be reached"
	}
	return &Error{Code: flow.CodeUnavailable, Field: "endpoint", Message: "the server at " + c.base + " " + why, Fix: "is it running, and is this its URL?", cause: err}
}
