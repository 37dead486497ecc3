package a2a

import (
	"encoding/json"
	"slices"
	"sort"
	"strings"
)

// SchemeKind classifies a security scheme of a card.
type SchemeKind string

// The kinds. The first three ask for a token that can be minted.
const (
	KindOAuth2  SchemeKind = "oauth2"
	KindOpenID  SchemeKind = "openIdConnect"
	KindJWT     SchemeKind = "jwt"    // http bearer whose bearerFormat is JWT
	KindBearer  SchemeKind = "bearer" // http bearer of another format
	KindHTTP    SchemeKind = "http"   // basic, digest and so on
	KindAPIKey  SchemeKind = "apiKey"
	KindMTLS    SchemeKind = "mutualTLS"
	KindUnknown SchemeKind = "" // also the kind of a scheme that is named but not declared
)

func (k SchemeKind) takesToken() bool {
	return k == KindOAuth2 || k == KindOpenID || k == KindJWT
}

// unreadable is the scheme name that stands for a requirement we could not
// read. No card can declare it, so it is never classified.
const unreadable = "\x00unreadable"

const maxAlternatives = 64

// NeedsToken says whether the card requires a credential of the kind that is
// minted here. A scheme that is only declared is not required, and an empty
// alternative means that anonymous calls are allowed. The error, an
// [ErrCard], means that something is required which cannot be classified:
// the call must fail rather than go out without it.
func (c *Card) NeedsToken() (bool, error) {
	token, unknown := false, ""
	for _, alternative := range c.Alternatives {
		if len(alternative) == 0 {
			return false, nil
		}
		takes, clear := false, true
		for _, name := range alternative {
			kind := c.Schemes[name]
			takes = takes || kind.takesToken()
			if kind == KindUnknown {
				clear, unknown = false, name
			}
		}
		token = token || takes && clear
	}
	switch {
	case token:
		return true, nil
	case unknown == unreadable:
		return false, fault(ErrCard, "it requires a credential in a form that cannot be read")
	case unknown != "":
		return false, fault(ErrCard, "it requires the security scheme %q, which it does not declare in a readable form", plain(unknown, 60))
	}
	return false, nil
}

func (c *Card) readSecurity(o object) {
	c.Schemes = map[string]SchemeKind{}
	for name, raw := range asObject(o["securitySchemes"]) {
		if name != unreadable {
			c.Schemes[name] = schemeKind(asObject(raw))
		}
	}
	for _, member := range []string{"securityRequirements", "security"} {
		if !o.has(member) {
			continue
		}
		list := asList(o[member])
		if list == nil { // a single requirement without its list
			list = []json.RawMessage{o[member]}
		}
		if len(list) > maxAlternatives { // an anonymous one may hide behind the bound: do not guess
			list = []json.RawMessage{json.RawMessage(`"too many"`)}
		}
		for _, raw := range list {
			alternative := requirement(raw)
			if !slices.ContainsFunc(c.Alternatives, func(known []string) bool { return slices.Equal(known, alternative) }) {
				c.Alternatives = append(c.Alternatives, alternative)
			}
		}
	}
}

// requirement reads one alternative: {"schemes": {name: …}} of 1.0, or the
// bare {name: [scopes]} of 0.3.
func requirement(raw json.RawMessage) []string {
	o := asObject(raw)
	if o == nil {
		return []string{unreadable}
	}
	if inner, found := o["schemes"]; found && len(o) == 1 {
		if isNull(inner) { // the JSON form of an empty map
			return []string{}
		}
		if m := asObject(inner); m != nil {
			o = m
		}
	}
	names := make([]string, 0, len(o))
	for name := range o {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

// schemeKind classifies one declared scheme: 1.0 names the kind by a member,
// 0.3 by "type", and some SDKs leak a {"scheme": {"$case", "value"}} wrapper
// or leave the wrapper out.
func schemeKind(o object) SchemeKind {
	if wrapper := asObject(o["scheme"]); wrapper != nil {
		o = wrapper
		if name := wrapper.text("$case"); name != "" {
			o = object{name: wrapper["value"]}
		}
	}
	for member, raw := range o {
		switch strings.ToLower(strings.ReplaceAll(member, "_", "")) {
		case "oauth2securityscheme":
			return KindOAuth2
		case "openidconnectsecurityscheme":
			return KindOpenID
		case "httpauthsecurityscheme":
			return httpKind(asObject(raw))
		case "apikeysecurityscheme":
			return KindAPIKey
		case "mtlssecurityscheme", "mutualtlssecurityscheme":
			return KindMTLS
		}
	}
	switch strings.ToLower(o.text("type")) {
	case "oauth2":
		return KindOAuth2
	case "openidconnect":
		return KindOpenID
	case "http":
		return httpKind(o)
	case "apikey":
		return KindAPIKey
	case "mutualtls":
		return KindMTLS
	}
	return bareKind(o)
}

// bareKind knows a scheme that carries no name of its kind by its members.
func bareKind(o object) SchemeKind {
	switch {
	case o.has("openIdConnectUrl"):
		return KindOpenID
	case o.has("flows"):
		return KindOAuth2
	case o.text("scheme") != "":
		return httpKind(o)
	}
	return KindUnknown
}

func httpKind(o object) SchemeKind {
	switch scheme := o.text("scheme"); {
	case strings.EqualFold(scheme, "bearer") && strings.EqualFold(o.text("bearerFormat", "bearer_format"), "jwt"):
		return KindJWT
	case strings.EqualFold(scheme, "bearer"):
		return KindBearer
	case scheme != "":
		return KindHTTP
	}
	return KindUnknown
}
