package a2a

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Bounds on what is kept of a card; more is ignored.
const (
	maxInterfaces  = 32
	maxName        = 200  // characters
	maxDescription = 2000 // characters
	maxCardDepth   = 200
)

// The bindings that are understood, in one spelling.
const (
	BindingJSONRPC  = "JSONRPC"
	BindingHTTPJSON = "HTTP+JSON"
	BindingGRPC     = "GRPC"
)

// Interface is one way to reach an agent.
type Interface struct {
	URL     string // verbatim
	Binding string // one of the Binding constants, or as written
	Version string // of the protocol, such as "1.0" or "0.3.0"
	Tenant  string // to be named in every request, if not empty
}

// check says why an interface cannot be called.
func (i Interface) check() error {
	if len(i.Tenant) > maxID {
		return fmt.Errorf("its tenant is longer than %d bytes", maxID)
	}
	_, err := parseEndpoint(i.URL)
	return err
}

// Card is what an agent says about itself, read out of every shape met: 1.0,
// 0.3, both blended into one, and the minimal name, description and url.
type Card struct {
	Name        string
	Description string
	Interfaces  []Interface // in preference order: supportedInterfaces, the top-level url, then the older lists
	TopURL      string      // the top-level url as written; without Interfaces it is a minimal card's endpoint

	Alternatives [][]string            // names of the schemes required: any one of the inner lists, all of it
	Schemes      map[string]SchemeKind // by name
	Extensions   []string              // URIs of the extensions that the agent requires

	Hash   string // SHA-256 of the bytes read, in hex
	Source string // the URL it was read from; empty if it was not fetched
}

// noObject says what is there instead of a JSON object.
func noObject(b []byte) *Fault {
	var v any
	var bad *json.SyntaxError
	switch err := json.Unmarshal(b, &v); {
	case len(b) == 0:
		return fault(ErrCard, "it is empty")
	case errors.As(err, &bad):
		return fault(ErrCard, "it is not valid JSON at byte %d: %v", bad.Offset, bad)
	}
	return fault(ErrCard, "it is not a JSON object but %q", plain(string(b), maxSnippet))
}

// ParseCard reads a card of any shape. The error is an [ErrCard] or an
// [ErrTooDeep]; whether the card is of use is for [Card.Validate] to say.
func ParseCard(b []byte) (*Card, error) {
	sum := sha256.Sum256(b)
	b = trimBOM(b)
	if err := oversized(b, maxCardDepth); err != nil {
		return nil, err
	}
	o := asObject(b)
	if o == nil {
		return nil, noObject(b)
	}
	c := &Card{
		Name:        plain(o.text("name"), maxName),
		Description: plain(o.text("description"), maxDescription),
		TopURL:      o.text("url"),
		Hash:        hex.EncodeToString(sum[:]),
	}
	c.readInterfaces(o)
	c.readSecurity(o)
	for _, raw := range asList(asObject(o["capabilities"])["extensions"]) {
		ext := asObject(raw)
		if string(ext["required"]) == "true" && ext.text("uri") != "" {
			c.Extensions = append(c.Extensions, ext.text("uri"))
		}
	}
	return c, nil
}

// readInterfaces gathers the endpoints of all generations of the card format.
// The version is the interface's own, else what its place in the card implies:
// supportedInterfaces exists since 1.0, the older lists until 0.3, and a
// protocolVersion beside them speaks for the older part of a blended card.
func (c *Card) readInterfaces(o object) {
	older := o.text("protocolVersion")
	for _, raw := range asList(o["supportedInterfaces"]) {
		version := "1.0"
		if major(older) >= 1 {
			version = older
		}
		c.add(asObject(raw), version)
	}
	blended := len(c.Interfaces) > 0
	if older == "" {
		older = "0.3"
	}
	lists := append(asList(o["additionalInterfaces"]), asList(o["interfaces"])...)
	if blended || len(lists) > 0 || o.text("preferredTransport", "protocolVersion") != "" {
		transport := o.text("preferredTransport")
		if transport == "" {
			transport = BindingJSONRPC
		}
		top, _ := json.Marshal(transport) // a string always marshals
		c.add(object{"url": o["url"], "transport": top}, older)
	}
	for _, raw := range lists {
		c.add(asObject(raw), older)
	}
}

func (c *Card) add(o object, version string) {
	i := Interface{
		URL:     o.text("url"),
		Binding: binding(o.text("protocolBinding", "transport")),
		Version: o.text("protocolVersion"),
		Tenant:  o.text("tenant"),
	}
	if i.Version == "" {
		i.Version = version
	}
	if i.URL == "" || len(c.Interfaces) >= maxInterfaces {
		return
	}
	for _, known := range c.Interfaces {
		if known.URL == i.URL && known.Binding == i.Binding && major(known.Version) == major(i.Version) {
			return
		}
	}
	c.Interfaces = append(c.Interfaces, i)
}

func binding(s string) string {
	switch strings.ToUpper(strings.NewReplacer("-", "", "_", "", " ", "", "+", "").Replace(s)) {
	case "JSONRPC", "JSONRPC2", "JSONRPC2.0":
		return BindingJSONRPC
	case "HTTPJSON", "REST", "HTTP":
		return BindingHTTPJSON
	case "GRPC":
		return BindingGRPC
	}
	return s
}

// major is the first number of a version such as "1.0" or "v0.3.0"; -1 if
// there is none.
func major(version string) int {
	version = strings.TrimPrefix(strings.TrimSpace(version), "v")
	n := -1
	for _, r := range version {
		if r < '0' || r > '9' || n > 1000 {
			break
		}
		n = max(n, 0)*10 + int(r-'0')
	}
	return n
}

// Validate says whether the card can be saved and called: it has a name and
// an endpoint, which is a JSONRPC or HTTP+JSON interface or the top-level url.
// The error is an [ErrCard] that says what is missing.
func (c *Card) Validate() error {
	if c.Name == "" {
		return fault(ErrCard, "it has no name, or one that is no text")
	}
	why := "it declares no endpoint (supportedInterfaces, or a top-level url)"
	for _, i := range c.Interfaces {
		err := i.check()
		switch {
		case i.Binding != BindingJSONRPC && i.Binding != BindingHTTPJSON:
			why = "none of its interfaces is JSONRPC or HTTP+JSON"
		case err != nil:
			why = "its endpoint " + shown(i.URL) + " cannot be called: " + err.Error()
		default:
			return nil
		}
	}
	if len(c.Interfaces) == 0 && c.TopURL != "" {
		_, err := parseEndpoint(c.TopURL)
		if err == nil {
			return nil
		}
		why = "its url " + shown(c.TopURL) + " cannot be called: " + err.Error()
	}
	return fault(ErrCard, "%s", why)
}

// HasJSONRPC says whether an agent turn can call this card: it has a JSONRPC
// interface or is a minimal card. HTTP+JSON alone serves recovery only.
func (c *Card) HasJSONRPC() bool {
	for _, i := range c.Interfaces {
		if i.Binding == BindingJSONRPC {
			return true
		}
	}
	return len(c.Interfaces) == 0 && c.TopURL != ""
}
