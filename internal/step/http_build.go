package step

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"net/url"
	"sort"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/longstop-dev/longstop/internal/flow"
)

// buildRequest makes the request of a resolved config. Nothing in its errors
// is a value of a header, of the query or of the body: they may hold secrets.
func buildRequest(ctx context.Context, config httpConfig, key string) (*http.Request, *flow.StepError) {
	method, bad := methodOf(config.Method)
	if bad != nil {
		return nil, bad
	}
	to, bad := targetOf(config.URL, config.Query)
	if bad != nil {
		return nil, bad
	}
	header, bad := headerOf(config.Headers)
	if bad != nil {
		return nil, bad
	}
	body, bad := bodyOf(config, header)
	if bad != nil {
		return nil, bad
	}
	if method != http.MethodGet && method != http.MethodHead && method != http.MethodOptions &&
		key != "" && len(header["Idempotency-Key"]) == 0 {
		header.Set("Idempotency-Key", key)
	}
	setDefault(header, "User-Agent", "longstop")
	setDefault(header, "Accept", "application/json, */*;q=0.8")
	var reader io.Reader = http.NoBody
	if body != nil {
		reader = bytes.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, method, to.String(), reader)
	if err != nil {
		return nil, because(failf(flow.KindConfig, "config.url: not a valid URL"), err)
	}
	req.Header = header
	return req, nil
}

func setDefault(h http.Header, name, value string) {
	if _, set := h[name]; !set {
		h.Set(name, value)
	}
}

func methodOf(name string) (string, *flow.StepError) {
	switch method := strings.ToUpper(strings.TrimSpace(name)); method {
	case "":
		return http.MethodGet, nil
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return method, nil
	}
	return "", failf(flow.KindConfig, "config.method: %q is none of GET HEAD POST PUT PATCH DELETE OPTIONS", firstRunes(name, 20))
}

// targetOf is the URL with its query.
func targetOf(text string, query map[string]scalars) (*url.URL, *flow.StepError) {
	u, err := url.Parse(strings.TrimSpace(text))
	switch {
	case text == "":
		return nil, failf(flow.KindConfig, "config.url: an absolute http or https URL is needed")
	case err != nil:
		return nil, because(failf(flow.KindConfig, "config.url: not a valid URL"), err)
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.Hostname() == "":
		return nil, failf(flow.KindConfig, "config.url: must be absolute, such as https://api.example.com/users")
	}
	u.Fragment, u.RawFragment = "", ""
	if len(query) > 0 {
		u.RawQuery = mergeQuery(u.RawQuery, query)
	}
	return u, nil
}

// mergeQuery adds parameters, sorted by name, to a raw query. Those that the
// query has already are replaced; the rest of it stays byte for byte.
func mergeQuery(raw string, query map[string]scalars) string {
	var parts []string
	for _, pair := range strings.Split(raw, "&") {
		name, _, _ := strings.Cut(pair, "=")
		plain, err := url.QueryUnescape(name)
		if _, replaced := query[plain]; pair != "" && (err != nil || !replaced) {
			parts = append(parts, pair)
		}
	}
	if more := values(query).Encode(); more != "" {
		parts = append(parts, more)
	}
	return strings.Join(parts, "&")
}

func values(members map[string]scalars) url.Values {
	out := url.Values{}
	for name, list := range members {
		out[name] = list
	}
	return out
}

// headerOf checks the headers and writes their names canonically.
func headerOf(members map[string]scalars) (http.Header, *flow.StepError) {
	names := make([]string, 0, len(members))
	for name := range members {
		names = append(names, name)
	}
	sort.Strings(names)
	header := http.Header{}
	for _, name := range names {
		canonical := http.CanonicalHeaderKey(name)
		switch {
		case !httpguts.ValidHeaderFieldName(name):
			return nil, failf(flow.KindConfig, "config.headers: %q is not a header name", firstRunes(name, 60))
		case ownHeader(canonical):
			return nil, failf(flow.KindConfig, "config.headers.%s: cannot be set by a step", firstRunes(name, 60))
		}
		for _, value := range members[name] {
			if !httpguts.ValidHeaderFieldValue(value) {
				return nil, failf(flow.KindConfig, "config.headers.%s: the value holds a line break or another control character", firstRunes(name, 60))
			}
			header.Add(canonical, value)
		}
	}
	return header, nil
}

// ownHeader lists the headers that belong to the connection or decide where
// the request goes.
func ownHeader(canonical string) bool {
	switch canonical {
	case "Host", "Content-Length", "Transfer-Encoding", "Connection", "Keep-Alive", "Te", "Trailer", "Upgrade", "Expect":
		return true
	}
	return strings.HasPrefix(canonical, "Proxy-")
}

// bodyOf writes the body and sets its content type; nil is no body.
func bodyOf(config httpConfig, header http.Header) ([]byte, *flow.StepError) {
	if config.ContentType != "" {
		if _, _, err := mime.ParseMediaType(config.ContentType); err != nil || !httpguts.ValidHeaderFieldValue(config.ContentType) {
			return nil, failf(flow.KindConfig, "config.contentType: not a content type such as text/csv")
		}
		setDefault(header, "Content-Type", config.ContentType)
	}
	if absent(config.Body) {
		return nil, nil
	}
	media := mediaType(header.Get("Content-Type"))
	switch {
	case media == "":
		header.Set("Content-Type", "application/json")
	case config.Body[0] == '"':
		var s string
		if err := json.Unmarshal(config.Body, &s); err != nil {
			return nil, because(failf(flow.KindConfig, "config.body: not a valid text"), err)
		}
		return []byte(s), nil
	case media == "application/x-www-form-urlencoded":
		var form map[string]scalars
		if err := json.Unmarshal(config.Body, &form); err != nil {
			return nil, because(failf(flow.KindConfig, "config.body: a form is an object of texts, numbers, booleans, or lists of them"), err)
		}
		return []byte(values(form).Encode()), nil
	case !isJSON(media):
		return nil, failf(flow.KindConfig, "config.body: must be a string to be sent as %s", firstRunes(media, 60))
	}
	return config.Body, nil
}
