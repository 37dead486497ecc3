package a2a

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// The bounds on an answer that hold unless a Client says otherwise.
const (
	DefaultMaxBytes = 4 << 20
	DefaultMaxDepth = 200
)

// Doer sends one request. It is expected to guard where connections go and
// never to follow the redirect of a POST; an *http.Client is taken, too, and
// is kept from following any.
type Doer interface {
	Do(*http.Request) (*http.Response, error)
}

// Client calls agents. Its zero value but for HTTP is ready; it is safe for
// concurrent use and must not be copied.
type Client struct {
	HTTP     Doer
	MaxBytes int64 // of an answer, unpacked; 0 means DefaultMaxBytes
	MaxDepth int   // of an answer's JSON; 0 means DefaultMaxDepth
	Log      *slog.Logger

	// Wait is how polling waits; nil means a timer. Tests replace it.
	Wait func(ctx context.Context, d time.Duration) error

	routes memory
}

// request is one HTTP exchange to make. A credential is attached by
// [Client.exchange] alone.
type request struct {
	method, url, version string
	contentType          string
	body                 []byte
	target               *Target // whose token may go along; nil for a card
}

// response is what came back, its body read within the bound.
type response struct {
	status   int
	header   http.Header
	body     []byte
	tooLarge bool
	scrub    func(string, int) string
}

// exchange makes one request and reads the answer. Errors are faults of
// transport only; what the answer means is for [response.payload].
func (c *Client) exchange(ctx context.Context, r request) (*response, error) {
	scrub := plain
	req, err := http.NewRequestWithContext(ctx, r.method, r.url, bytes.NewReader(r.body))
	if err != nil {
		return nil, fault(ErrUnreachable, "%s is not a URL", shown(r.url))
	}
	if r.body == nil {
		req.Body, req.GetBody = nil, nil
	} else {
		req.Header.Set("Content-Type", r.contentType)
	}
	req.Header.Set("Accept", "application/json, application/a2a+json;q=0.9")
	req.Header.Set("A2A-Version", r.version)
	do := c.HTTP
	if r.target != nil {
		t, err := r.target.minted(ctx, req)
		if err != nil {
			return nil, err
		}
		scrub = scrubber(t.Token)
		do = withoutRedirects(do)
		if err := authorize(req, t); err != nil {
			return nil, err
		}
	}
	clean := func(s string) string { return scrub(s, maxErrorText) }
	resp, err := do.Do(req)
	if err != nil {
		return nil, transportFault(ctx, err, clean)
	}
	defer resp.Body.Close()
	out := &response{status: resp.StatusCode, header: resp.Header, scrub: scrub}
	limit := c.MaxBytes
	if limit <= 0 {
		limit = DefaultMaxBytes
	}
	bounded := io.LimitReader(resp.Body, limit+1)
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		out.body, err = readEvent(bounded)
	} else {
		out.body, err = io.ReadAll(bounded)
	}
	if err != nil {
		return nil, transportFault(ctx, err, clean)
	}
	out.tooLarge = int64(len(out.body)) > limit
	return out, nil
}

// minted is the target with a token made for this one request, if it mints.
func (t Target) minted(ctx context.Context, req *http.Request) (Target, error) {
	if t.Mint == nil {
		return t, nil
	}
	origin, err := Origin(req.URL.String())
	if err != nil {
		return t, fault(ErrToken, "%v", err)
	}
	t.NeedToken, t.TokenOrigin = true, origin
	if t.Token, err = t.Mint(ctx, origin); err != nil {
		return t, &Fault{Kind: ErrToken, Detail: "it could not be made", Cause: err}
	}
	return t, nil
}

// authorize attaches the token if the request goes to the origin that the
// token was made for, and to no other.
func authorize(req *http.Request, t Target) error {
	if t.Token == "" && !t.NeedToken {
		return nil
	}
	origin, err := Origin(req.URL.String())
	allowed, err2 := Origin(t.TokenOrigin)
	switch {
	case err == nil && err2 == nil && origin == allowed && t.Token != "":
		req.Header.Set("Authorization", "Bearer "+t.Token)
	case t.NeedToken && t.Token == "":
		return fault(ErrToken, "there is none, and the agent requires one")
	case t.NeedToken:
		return fault(ErrToken, "it was made for %s and the endpoint is at %s", plain(t.TokenOrigin, 80), plain(origin, 80))
	}
	return nil
}

// withoutRedirects is the second lock on the door: a redirect would carry the
// message, and to a subdomain the token, where nobody sent it.
func withoutRedirects(d Doer) Doer {
	c, plainClient := d.(*http.Client)
	if !plainClient {
		return d
	}
	still := *c
	still.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &still
}

// call performs one operation over one route and returns the result, still
// to be read as an answer. params are those of the envelope.
func (c *Client) call(ctx context.Context, t Target, r Route, op operation, id string, params json.RawMessage) (json.RawMessage, error) {
	req := request{method: http.MethodPost, url: r.URL, version: r.Dialect.version(), contentType: "application/json", body: params, target: &t}
	var err error
	if r.REST {
		req.contentType = "application/a2a+json"
		restPath(&req, r, op, id)
	} else if req.body, err = encode(envelope{JSONRPC: "2.0", ID: id, Method: r.Dialect.method(op), Params: params}); err != nil {
		return nil, err
	}
	resp, err := c.exchange(ctx, req)
	if err != nil {
		return nil, err
	}
	result, answeredID, err := resp.payload(c.maxDepth())
	if want, _ := encode(id); !r.REST && len(answeredID) > 0 && string(answeredID) != string(want) {
		got := resp.scrub(string(answeredID), maxSnippet)
		if c.Log != nil {
			c.Log.Warn("a2a: the agent answered another id", "sent", id, "got", got)
		}
		if err == nil && mixedUp(id, answeredID) {
			return nil, fault(ErrShape, "the answer is to another question, %s", got)
		}
	}
	return result, err
}

// mixedUp reports whether an answer is meant for another of our own questions.
// Ids of any other form are let through: some agents answer with ids of their
// own, and over HTTP an answer belongs to its request anyway.
func mixedUp(asked string, answered json.RawMessage) bool {
	var id string
	return strings.HasPrefix(asked, recoveryID) && json.Unmarshal(answered, &id) == nil && strings.HasPrefix(id, recoveryID) && id != asked
}

// restPath turns an operation into its HTTP+JSON form; id is the task's.
func restPath(req *request, r Route, op operation, id string) {
	switch op {
	case opSend:
		req.url = under(r.URL, "message:send")
	case opCancel:
		req.url = under(r.URL, "tasks/"+url.PathEscape(id)+":cancel")
	case opGet:
		req.method, req.body = http.MethodGet, nil
		req.url = under(r.URL, "tasks/"+url.PathEscape(id))
		if r.Tenant != "" {
			sep := "?"
			if strings.Contains(req.url, "?") {
				sep = "&"
			}
			req.url += sep + "tenant=" + url.QueryEscape(r.Tenant)
		}
	}
}

func (c *Client) maxDepth() int {
	if c.MaxDepth > 0 {
		return c.MaxDepth
	}
	return DefaultMaxDepth
}
