package a2a

import (
	"errors"
	"net/http"
	"slices"
	"strings"
)

// maxAttempts bounds how many forms of one message are ever tried.
const maxAttempts = 8

const sendSuffix = "/message:send"

// plan is the queue of the forms still to be tried for one message.
type plan struct {
	queue   []Route
	tried   []Route
	purpose Purpose
}

// next takes the first form that was not tried yet.
func (p *plan) next() (Route, bool) {
	for len(p.queue) > 0 && len(p.tried) < maxAttempts {
		r := p.queue[0]
		p.queue = p.queue[1:]
		if !slices.Contains(p.tried, r) {
			p.tried = append(p.tried, r)
			return r, true
		}
	}
	return Route{}, false
}

// refused takes in why a form failed, and says whether another may be tried:
// only if the message certainly was not run.
func (p *plan) refused(r Route, err error) bool {
	if !notRun(err) {
		return false
	}
	p.queue = append(p.instead(r, err), p.queue...)
	return true
}

// instead lists the forms that the agent's words suggest for the same place.
func (p *plan) instead(r Route, err error) []Route {
	var spoken *RPCError
	if r.REST || !errors.As(err, &spoken) {
		return nil
	}
	same := func(d Dialect) Route { return Route{URL: r.URL, Dialect: d, Tenant: r.Tenant} }
	switch spoken.Code {
	case codeMethodNotFound, codeVersion:
		if r.Dialect != V03 {
			return []Route{{URL: r.URL, Dialect: V03}}
		}
		if p.purpose == ForRecovery {
			return []Route{same(Recovery)}
		}
		return []Route{same(V1)}
	case codeInvalidParams, codeInvalidRequest:
		if r.Dialect != Recovery {
			return nil
		}
		if base, found := cutSend(r.URL); found {
			return []Route{{URL: base, Dialect: V1, REST: true}, same(V1)}
		}
		return []Route{same(V1)}
	}
	return nil
}

// The JSON-RPC codes that decide what is tried next.
const (
	codeParse          = -32700
	codeInvalidRequest = -32600
	codeMethodNotFound = -32601
	codeInvalidParams  = -32602
	codeTaskNotFound   = -32001
	codeVersion        = -32009
)

// notRun says whether the agent certainly did not run the message. A timeout,
// a broken connection and any other 5xx leave that open.
func notRun(err error) bool {
	var spoken *RPCError
	if errors.As(err, &spoken) {
		switch spoken.Code {
		case codeMethodNotFound, codeVersion, codeInvalidParams, codeInvalidRequest, codeParse:
			return true
		}
		return false
	}
	var status *StatusError
	if errors.As(err, &status) {
		switch status.Status {
		case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusUnsupportedMediaType, http.StatusNotImplemented:
			return true
		}
	}
	return false
}

// sendURL is where the recovery specification posts: {base}/message:send.
func sendURL(base string) string {
	if _, found := cutSend(base); found {
		return base
	}
	return under(base, sendSuffix[1:])
}

// cutSend takes /message:send off the path of a URL and keeps its query.
func cutSend(rawURL string) (string, bool) {
	path, query, found := strings.Cut(rawURL, "?")
	base, cut := strings.CutSuffix(path, sendSuffix)
	if found {
		base += "?" + query
	}
	return base, cut
}

// baseURL is the agent's URL behind what the user configured, which may be
// the full URL of a card; empty if it cannot be called.
func baseURL(configured string) string {
	if _, err := parseEndpoint(configured); err != nil {
		return ""
	}
	path, query, found := strings.Cut(configured, "?")
	if cut, _, isCard := strings.Cut(path, "/.well-known/"); isCard {
		return cut
	}
	if strings.HasSuffix(path, ".json") {
		return path[:strings.LastIndexByte(path, '/')]
	}
	if found {
		return path + "?" + query
	}
	return path
}
