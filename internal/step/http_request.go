package step

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/longstop-dev/longstop/internal/flow"
)

// maxRedirects is how many redirects of one origin are followed.
const maxRedirects = 10

// httpRequest sends an HTTP request and gives the body of the answer.
type httpRequest struct{ client *http.Client }

type httpConfig struct {
	Method      string             `json:"method,omitempty" enum:"GET,HEAD,POST,PUT,PATCH,DELETE,OPTIONS" default:"\"GET\"" doc:"The method."`
	URL         string             `json:"url" required:"yes" doc:"An absolute http or https URL."`
	Query       map[string]scalars `json:"query,omitempty" doc:"Query parameters: texts, numbers, booleans, or lists of them. One that the URL has too is replaced."`
	Headers     map[string]scalars `json:"headers,omitempty" doc:"Request headers. Host, Content-Length and headers of the connection cannot be set."`
	Body        json.RawMessage    `json:"body,omitempty" doc:"Any JSON, sent as application/json. With contentType a string is sent as it is, and an object as a form if that is application/x-www-form-urlencoded."`
	ContentType string             `json:"contentType,omitempty" doc:"The content type of body."`
	Expect      []int              `json:"expect,omitempty" doc:"The statuses that are no failure. Default: 200 to 299."`
}

// newHTTPRequest takes a copy of the client that follows no redirect and
// keeps no cookie: both would carry one request's data into another.
func newHTTPRequest(client *http.Client) httpRequest {
	if client == nil {
		return httpRequest{}
	}
	own := *client
	own.Jar = nil
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return httpRequest{client: &own}
}

// Describe describes http_request.
func (httpRequest) Describe() flow.StepType {
	return flow.StepType{
		Name:     "http_request",
		Summary:  "Sends an HTTP request. Its output is the body of the answer: JSON as JSON, anything else as text, nothing as null.",
		Config:   schemaOf[httpConfig](),
		Mendable: []string{"url", "method", "headers", "query", "body"},
		Clocked:  true,
	}
}

// Run sends the request, follows redirects within its origin and reads the
// answer.
func (h httpRequest) Run(ctx context.Context, c flow.Call) (flow.Outcome, error) {
	config, bad := decode[httpConfig](c)
	if bad != nil {
		return flow.Outcome{}, bad
	}
	req, bad := buildRequest(ctx, config, c.IdempotencyKey)
	if bad != nil {
		return flow.Outcome{}, bad
	}
	if h.client == nil {
		return flow.Outcome{}, failf(flow.KindInternal, "HTTP requests cannot be sent here")
	}
	x := exchange{client: h.client, config: config, now: c.Now, limit: c.MaxOutput, budget: budget(ctx)}
	value, bad := x.run(ctx, req)
	if bad != nil {
		return flow.Outcome{}, bad
	}
	return flow.Outcome{Value: value}, nil
}

// exchange is one request on its way: everything that its answer is judged
// by.
type exchange struct {
	client *http.Client
	config httpConfig
	now    time.Time
	limit  int64         // of the body, 0 for none
	budget time.Duration // the attempt's, for messages
}

func (x exchange) run(ctx context.Context, req *http.Request) (json.RawMessage, *flow.StepError) {
	for hops := 0; ; hops++ {
		resp, err := x.client.Do(req)
		if err != nil {
			return nil, x.unreachable(ctx, req.URL, err)
		}
		next := x.redirect(req, resp)
		if next == nil {
			defer resp.Body.Close()
			return x.judge(ctx, req, resp)
		}
		discard(resp)
		if hops == maxRedirects {
			bad := failf(flow.KindRefused, "%s\nstopped after %d redirects", statusLine(resp.StatusCode), maxRedirects)
			bad.Response = answered(req, resp, "")
			return nil, bad
		}
		req = next
	}
}

// discard reads what little a redirect's body holds, so that its connection
// can serve the next request.
func discard(resp *http.Response) {
	if resp.ContentLength >= 0 && resp.ContentLength <= 4<<10 {
		_, _ = io.CopyN(io.Discard, resp.Body, resp.ContentLength)
	}
	_ = resp.Body.Close()
}

// redirect gives the request that an answer asks for, or nil if the answer
// is to be taken as it is: another origin is for recovery to judge, and a
// request that changes something is only repeated where the status says that
// method and body stay.
func (x exchange) redirect(req *http.Request, resp *http.Response) *http.Request {
	if x.expected(resp.StatusCode) {
		return nil
	}
	switch resp.StatusCode {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther:
		if req.Method != http.MethodGet && req.Method != http.MethodHead {
			return nil
		}
	case http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
	default:
		return nil
	}
	to := location(req, resp)
	if to == nil || origin(to) != origin(req.URL) {
		return nil
	}
	if to.User == nil {
		to.User = req.URL.User
	}
	next := req.Clone(req.Context())
	next.URL = to
	if req.GetBody != nil {
		body, err := req.GetBody()
		if err != nil {
			return nil
		}
		next.Body = body
	}
	return next
}

// location is where an answer points to, absolute; nil if nowhere.
func location(req *http.Request, resp *http.Response) *url.URL {
	text := resp.Header.Get("Location")
	if text == "" {
		return nil
	}
	to, err := req.URL.Parse(text)
	if err != nil || to.Host == "" {
		return nil
	}
	return to
}

// origin is scheme, host and port of a URL, the default port spelt out.
func origin(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return u.Scheme + "://" + strings.ToLower(u.Hostname()) + ":" + port
}

// expected reports whether a status is no failure.
func (x exchange) expected(status int) bool {
	if len(x.config.Expect) == 0 {
		return status >= 200 && status <= 299
	}
	return slices.Contains(x.config.Expect, status)
}

// judge reads an answer and makes an output or a failure of it.
func (x exchange) judge(ctx context.Context, req *http.Request, resp *http.Response) (json.RawMessage, *flow.StepError) {
	if !x.expected(resp.StatusCode) {
		return nil, x.failed(req, resp)
	}
	body, bad := x.read(ctx, req, resp)
	if bad == nil {
		var value json.RawMessage
		if value, bad = toValue(body, resp.Header.Get("Content-Type")); bad == nil {
			return value, nil
		}
	}
	if bad.Response == nil {
		bad.Response = answered(req, resp, body)
	}
	return nil, bad
}

// failed makes the failure of an answer with a status that was not expected.
// Its body is read as far as recovery is shown it; what cannot be read is
// left out, since the status says enough.
func (x exchange) failed(req *http.Request, resp *http.Response) *flow.StepError {
	body := ""
	if hasBody(req, resp) {
		if r, err := decoded(resp); err == nil {
			raw, _ := io.ReadAll(io.LimitReader(r, maxResponseBody))
			body = toText(raw, resp.Header.Get("Content-Type"))
		}
	}
	message := statusLine(resp.StatusCode)
	if body != "" {
		message += "\n" + firstRunes(body, 1000)
	}
	bad := failf(statusKind(resp.StatusCode), "%s", message)
	bad.RetryAfter = retryAfter(resp.Header.Get("Retry-After"), x.now)
	bad.Response = answered(req, resp, body)
	return bad
}

// unreachable makes the failure of a request that got no answer. A URL's path
// and query stay out of it: they may hold secrets.
func (x exchange) unreachable(ctx context.Context, to *url.URL, err error) *flow.StepError {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	where := to.Scheme + "://" + to.Host
	if ctx.Err() != nil {
		return stopped(ctx, x.budget, "no answer from "+where)
	}
	kind, why := transportKind(err)
	if kind == flow.KindEgress {
		return because(failf(kind, "%s", why), err) // the guard names the place itself
	}
	return because(failf(kind, "%s: %s", where, why), err)
}
