package a2a

import "context"

// Purpose says which of the two specifications governs a call: they differ in
// what is tried when a card does not say enough.
type Purpose int

// The purposes.
const (
	ForAgent    Purpose = iota // an agent turn
	ForRecovery                // asking a recovery agent about a failed step
)

// Target is whom to ask.
type Target struct {
	Purpose Purpose
	URL     string // what the user configured: an agent's base URL or its card's URL
	Card    *Card  // nil: not readable now

	Token       string // sent as a bearer token, only to TokenOrigin
	TokenOrigin string // scheme, host and port, as [Origin] writes them
	NeedToken   bool   // fail with ErrToken rather than call an endpoint without the token

	// Mint makes a token for one request to an origin, instead of Token; nil
	// where the target needs none. When it fails, nothing is sent.
	Mint func(ctx context.Context, origin string) (string, error)
}

// Route is one form of asking at one place. The one that worked is returned
// with the answer, and the task that was started is polled over it.
type Route struct {
	URL     string  `json:"url"` // the JSON-RPC endpoint, or the base of HTTP+JSON
	Dialect Dialect `json:"dialect"`
	REST    bool    `json:"rest,omitempty"` // HTTP+JSON instead of JSON-RPC
	Tenant  string  `json:"tenant,omitempty"`
}

// Endpoint is the URL that a message to the target goes to first, to be shown
// when a token is entered for it; empty if there is none.
func (t Target) Endpoint() string {
	list := routes(t)
	switch {
	case len(list) == 0:
		return ""
	case list[0].REST:
		return sendURL(list[0].URL)
	}
	return list[0].URL
}

// routes lists the forms to try for a target, the likeliest first.
func routes(t Target) []Route {
	var list []Route
	if t.Card != nil {
		list = cardRoutes(t.Card, t.Purpose)
	}
	if t.Purpose == ForRecovery {
		return append(list, recoveryRoutes(t)...)
	}
	if len(list) == 0 && t.Card != nil && t.Card.TopURL != "" && len(t.Card.Interfaces) == 0 {
		list = append(list, Route{URL: t.Card.TopURL, Dialect: V1}, Route{URL: t.Card.TopURL, Dialect: V03})
	}
	return list
}

// cardRoutes are the interfaces a card declares: JSON-RPC of 1.x, then of
// 0.x, then for recovery HTTP+JSON of 1.x.
func cardRoutes(c *Card, p Purpose) []Route {
	var v1, v03, rest []Route
	for _, i := range c.Interfaces {
		if i.check() != nil {
			continue
		}
		switch modern := major(i.Version) != 0; {
		case i.Binding == BindingJSONRPC && modern:
			v1 = append(v1, Route{URL: i.URL, Dialect: V1, Tenant: i.Tenant})
		case i.Binding == BindingJSONRPC:
			v03 = append(v03, Route{URL: i.URL, Dialect: V03})
		case i.Binding == BindingHTTPJSON && modern && p == ForRecovery:
			rest = append(rest, Route{URL: i.URL, Dialect: V1, REST: true, Tenant: i.Tenant})
		}
	}
	return append(append(v1, v03...), rest...)
}

// recoveryRoutes is what the recovery specification asks for when the card
// says nothing better: its own dialect at {url}/message:send, at the URL
// itself, and at the url of the card.
func recoveryRoutes(t Target) []Route {
	var list []Route
	if base := baseURL(t.URL); base != "" {
		list = append(list, Route{URL: sendURL(base), Dialect: Recovery}, Route{URL: base, Dialect: Recovery})
	}
	if t.Card != nil && t.Card.TopURL != "" {
		list = append(list, Route{URL: t.Card.TopURL, Dialect: Recovery})
	}
	return list
}
