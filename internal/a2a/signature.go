package a2a

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/go-jose/go-jose/v4"
	"github.com/gowebpki/jcs"
)

// Signatures says what holds of the signatures of cards.
type Signatures string

// The policies. Keys are pinned: a key that a card only points at (jku) proves
// nothing, and is never fetched.
const (
	SignaturesOff       Signatures = "off"        // they are not looked at
	SignaturesIfPresent Signatures = "if-present" // a card that is signed must be signed with a pinned key
	SignaturesRequire   Signatures = "require"    // every card must be
)

// CardPolicy is what a card has to satisfy. The zero value asks for nothing.
type CardPolicy struct {
	Signatures Signatures
	Keys       jose.JSONWebKeySet // public keys, pinned
}

// maxSignatures bounds the signatures of a card that are looked at.
const maxSignatures = 16

// algorithms are those with which a card may be signed.
func algorithms() []jose.SignatureAlgorithm {
	return []jose.SignatureAlgorithm{jose.ES256, jose.RS256, jose.EdDSA}
}

// read reads a card that satisfies the policy. Of a signed one only what was
// signed counts, but for the credential that it asks for: see demand.
func (p CardPolicy) read(body []byte) (*Card, error) {
	form, err := p.signed(body)
	if err != nil {
		return nil, err
	}
	card, err := ParseCard(form)
	if err != nil || bytes.Equal(form, body) {
		return card, err
	}
	served, err := ParseCard(body)
	if err != nil {
		return nil, err
	}
	card.demand(served)
	return card, nil
}

// demand takes over what a card asks for in the form in which it was served,
// where that is more. What SDKs sign has no empty members, and so lacks a
// scheme that is required without scopes; one of them leaves out what the
// schemes are. What was not signed can add a demand that way, never lift one.
func (c *Card) demand(served *Card) {
	asks := *served
	asks.Alternatives = slices.DeleteFunc(slices.Clone(served.Alternatives), func(a []string) bool { return len(a) == 0 })
	needed, signedErr := c.NeedsToken()
	token, err := asks.NeedsToken()
	if !needed && (token || err != nil && signedErr == nil) {
		c.Alternatives, c.Schemes = asks.Alternatives, asks.Schemes
	}
}

// signed holds a card against a policy, and gives what of it is to be used: of
// a card whose signature counts the signed members only. The error is an
// [ErrCard].
func (p CardPolicy) signed(body []byte) ([]byte, error) {
	if p.Signatures == "" || p.Signatures == SignaturesOff {
		return body, nil
	}
	if err := oversized(body, maxCardDepth); err != nil {
		return nil, err
	}
	card := asObject(trimBOM(body))
	list := asList(card["signatures"])
	if card == nil || len(list) == 0 {
		if p.Signatures == SignaturesRequire {
			return nil, unsigned("it is not signed, and this workspace demands that (agents.card_signatures)")
		}
		return body, nil
	}
	forms := signedForms(card)
	for _, raw := range list[:min(len(list), maxSignatures)] {
		s := asObject(raw)
		for _, form := range forms {
			if p.verifies(s.text("protected"), s.text("signature"), form) {
				return form, nil
			}
		}
	}
	return nil, unsigned("none of its signatures is that of a pinned key (agents.card_keys)")
}

func unsigned(why string) *Fault { return &Fault{Kind: ErrCard, Detail: why, Cause: ErrSignature} }

// verifies checks one flattened JWS with a detached payload against the pinned
// keys. Headers that are marked as critical and not understood are refused.
func (p CardPolicy) verifies(protected, signature string, payload []byte) bool {
	jws, err := jose.ParseDetached(protected+".."+signature, payload, algorithms())
	if err != nil || len(jws.Signatures) != 1 {
		return false
	}
	for _, key := range p.Keys.Key(jws.Signatures[0].Protected.KeyID) {
		if key.IsPublic() && jws.DetachedVerify(payload, key) == nil {
			return true
		}
	}
	return false
}

// members1 are the members of a card of 1.0 that can be signed: those that the
// protocol buffer has. A top-level url is not among them.
func members1() []string {
	return []string{"name", "description", "supportedInterfaces", "provider", "version", "documentationUrl", "capabilities", "securitySchemes",
		"securityRequirements", "defaultInputModes", "defaultOutputModes", "skills", "iconUrl"}
}

// signedForms lists the bytes that a signer may have signed, each in canonical
// form (RFC 8785): what SDKs sign, the members of 1.0 without empty ones and
// with or without the defaults of the protocol buffer, also without the
// security schemes (a2a-js 1.3.0 loses them of a typed card); and the whole
// card without its signatures, as the specification can be read too.
func signedForms(card object) [][]byte {
	known, whole := object{}, object{}
	for _, name := range members1() {
		if raw, ok := card[name]; ok {
			known[name] = raw
		}
	}
	for name, raw := range card {
		if name != "signatures" {
			whole[name] = raw
		}
	}
	var forms [][]byte
	add := func(v any) {
		raw, err := json.Marshal(v)
		if err != nil {
			return
		}
		form, err := jcs.Transform(raw)
		if err == nil && !containsForm(forms, form) {
			forms = append(forms, form)
		}
	}
	schemeless := maps.Clone(known)
	delete(schemeless, "securitySchemes")
	for _, o := range []object{known, whole, schemeless} {
		v := plainValue(o)
		add(cleaned(v, false))
		add(cleaned(v, true))
		add(v)
	}
	return forms
}

func containsForm(forms [][]byte, form []byte) bool {
	for _, f := range forms {
		if bytes.Equal(f, form) {
			return true
		}
	}
	return false
}

// plainValue is an object as decoded JSON, numbers as they were written.
func plainValue(o object) any {
	raw, err := json.Marshal(o)
	if err != nil {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return nil
	}
	return v
}

// cleaned leaves out what is empty, and with defaults also false and 0; nil if
// nothing is left.
func cleaned(v any, defaults bool) any {
	switch v := v.(type) {
	case string:
		if v == "" {
			return nil
		}
	case bool:
		if defaults && !v {
			return nil
		}
	case json.Number:
		if defaults && strings.Trim(v.String(), "0.-") == "" {
			return nil
		}
	case []any:
		var out []any
		for _, e := range v {
			if e = cleaned(e, defaults); e != nil {
				out = append(out, e)
			}
		}
		if len(out) == 0 {
			return nil
		}
		return out
	case map[string]any:
		out := map[string]any{}
		for name, e := range v {
			if e = cleaned(e, defaults); e != nil {
				out[name] = e
			}
		}
		if len(out) == 0 {
			return nil
		}
		return out
	}
	return v
}

// ParseCardKeys reads pinned keys: a JSON Web Key Set of public keys, each
// with a kid. The error says what is wrong.
func ParseCardKeys(text string) (jose.JSONWebKeySet, error) {
	var set jose.JSONWebKeySet
	if err := json.Unmarshal([]byte(text), &set); err != nil {
		return set, fault(ErrCard, "they are no JSON Web Key Set")
	}
	for _, k := range set.Keys {
		if !k.Valid() || !k.IsPublic() || k.KeyID == "" {
			return set, fault(ErrCard, "each must be a public key with a kid")
		}
	}
	if len(set.Keys) == 0 {
		return set, fault(ErrCard, "there is none")
	}
	return set, nil
}
