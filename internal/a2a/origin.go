package a2a

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

// Origin is the scheme, host and port of an absolute http or https URL in one
// spelling: lower case, no default port, no user. Two URLs share a credential
// only if their origins are equal strings.
func Origin(rawURL string) (string, error) {
	u, err := parseEndpoint(rawURL)
	if err != nil {
		return "", err
	}
	host := strings.ToLower(u.Hostname())
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if p := u.Port(); p != "" {
		n, err := strconv.ParseUint(p, 10, 16)
		if err != nil {
			return "", fmt.Errorf("port %q is not a number up to 65535", plain(p, 20))
		}
		if !(u.Scheme == "http" && n == 80 || u.Scheme == "https" && n == 443) {
			host += ":" + strconv.FormatUint(n, 10)
		}
	}
	return u.Scheme + "://" + host, nil
}

// maxURL is how long a URL of an agent's may be, in bytes.
const maxURL = 2048

// parseEndpoint accepts what may be called. A user in the URL is refused
// because net/http would turn it into a credential that nobody configured.
func parseEndpoint(rawURL string) (*url.URL, error) {
	if len(rawURL) > maxURL {
		return nil, fmt.Errorf("longer than %d bytes", maxURL)
	}
	u, err := url.Parse(rawURL)
	switch {
	case err != nil:
		return nil, errors.New("not a URL") // the parser's own text repeats the URL
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, errors.New("not an absolute http or https URL")
	case u.Hostname() == "":
		return nil, errors.New("the URL names no host")
	case u.User != nil:
		return nil, errors.New("the URL holds a user name")
	}
	return u, nil
}

// under puts path below rawURL's own path and keeps its query.
func under(rawURL, path string) string {
	head, query, found := strings.Cut(rawURL, "?")
	head, _, _ = strings.Cut(head, "#")
	head = strings.TrimRight(head, "/") + "/" + path
	if found {
		return head + "?" + query
	}
	return head
}

// shown is a URL as an error may tell it: without the user, the query and the
// fragment, in which there may be secrets.
func shown(rawURL string) string {
	u, err := url.Parse(rawURL)
	if err != nil {
		return "(no URL)"
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return plain(u.String(), maxSnippet)
}
