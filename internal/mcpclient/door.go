package mcpclient

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const (
	goodbye   = time.Second // what ending a session may take
	maxReason = 64 << 10    // bytes read of an answer that is an HTTP error
)

// door is the round tripper of one session: it keeps to the server's origin,
// adds the server's headers, and lets no answer in that breaks the bounds. It
// fails single requests where the SDK would give up the session.
type door struct {
	base   http.RoundTripper
	origin string
	link   *link
	sse    bool // the old transport, whose answers to POST mean nothing
}

// RoundTrip sends one request.
func (d *door) RoundTrip(req *http.Request) (*http.Response, error) {
	if originOf(req.URL) != d.origin {
		f := fail(ErrProtocol, nil, "it sends its clients to another origin")
		d.link.breach.Store(f)
		return nil, f
	}
	ctx := req.Context()
	if req.Method == http.MethodDelete {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, goodbye)
		defer cancel()
	}
	req = req.Clone(ctx)
	for name, v := range d.link.headers {
		if !reserved(name) {
			req.Header.Set(name, v)
		}
	}
	resp, err := d.base.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	return d.admit(req, resp)
}

// admit bounds a response, or turns it into an error.
func (d *door) admit(req *http.Request, resp *http.Response) (*http.Response, error) {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	events := kind == "text/event-stream"
	switch {
	case req.Method == http.MethodDelete:
		_ = resp.Body.Close()
		resp.Body = http.NoBody
		return resp, nil
	case resp.StatusCode >= 300:
		return d.refused(req, resp)
	case events && req.Method == http.MethodGet:
		resp.Body = d.link.lasting(resp.Body)
		return resp, nil
	case events:
		resp.Body = d.link.once(resp.Body, true)
		return resp, nil
	}
	body, err := io.ReadAll(d.link.once(resp.Body, false))
	_ = resp.Body.Close()
	if err != nil {
		return nil, err
	}
	switch {
	case req.Method == http.MethodPost && (d.sse || len(body) == 0 || notification(req)): // no answer is due
	case kind != "application/json":
		return nil, fail(ErrProtocol, nil, "it answers with %s", cmp.Or(d.link.masked(kind), "something without a content type"))
	case !json.Valid(body):
		return nil, fail(ErrProtocol, nil, "its JSON cannot be read")
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp, nil
}

// notification reports whether a request asks for no answer.
func notification(req *http.Request) bool {
	if req.GetBody == nil {
		return false
	}
	body, err := req.GetBody()
	if err != nil {
		return false
	}
	var m struct {
		ID json.RawMessage `json:"id"`
	}
	return json.NewDecoder(body).Decode(&m) == nil && len(m.ID) == 0
}

// refused handles statuses that are no success. JSON-RPC errors pass, because
// the SDK negotiates versions with them, unless the status says enough.
func (d *door) refused(req *http.Request, resp *http.Response) (*http.Response, error) {
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxReason))
	_ = resp.Body.Close()
	said := &statusError{status: resp.StatusCode, session: req.Header.Get("Mcp-Session-Id") != ""}
	var rpc struct {
		Version string `json:"jsonrpc"`
		Error   *struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	if err != nil || new(nesting).exceeded(body) || json.Unmarshal(body, &rpc) != nil || rpc.Version != "2.0" || rpc.Error == nil {
		return nil, said
	}
	said.said = d.link.masked(rpc.Error.Message)
	switch {
	case resp.StatusCode < 400, resp.StatusCode >= 500, sessionGone(said),
		resp.StatusCode == http.StatusUnauthorized, resp.StatusCode == http.StatusForbidden, resp.StatusCode == http.StatusTooManyRequests:
		return nil, said
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp, nil
}

// reserved reports whether a header is the protocol's own, and not for the
// user to set.
func reserved(name string) bool {
	switch name = strings.ToLower(name); name {
	case "accept", "content-type", "content-length", "host", "last-event-id":
		return true
	}
	return strings.HasPrefix(name, "mcp-")
}

// originOf is a URL's scheme, host and port, in one spelling.
func originOf(u *url.URL) string {
	scheme := strings.ToLower(u.Scheme)
	standard := map[string]string{"http": "80", "https": "443"}[scheme]
	return scheme + "://" + strings.ToLower(u.Hostname()) + ":" + cmp.Or(u.Port(), standard)
}
