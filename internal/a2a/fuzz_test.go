package a2a

import (
	"crypto/ed25519"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-jose/go-jose/v4"
)

// FuzzReadAnswer: whatever comes back is read or refused, and an error is fit
// to log.
func FuzzReadAnswer(f *testing.F) {
	for _, s := range []string{
		`{"jsonrpc":"2.0","id":"1","result":{"message":{"parts":[{"type":"data","data":{"a":1}}]}}}`,
		`{"result":{"task":{"id":"t","status":{"state":3,"message":{"parts":[{"text":"x"}]}},"artifacts":[{"parts":[{"data":{}}],"metadata":{"usage":{"totalTokens":1}}}]}}}`,
		`{"error":{"code":"-32601","message":"m","details":[{"reason":"TASK_NOT_FOUND"}]}}`,
		"data: {\"parts\":[]}\n\n", "<html>", "", "\xef\xbb\xbf{}", strings.Repeat("[", 300), `{"content":[{"data":{"data":1}}]}`,
	} {
		f.Add(200, []byte(s))
		f.Add(500, []byte(s))
	}
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		r := &response{status: status, body: body, scrub: scrubber("token-4711")}
		result, _, err := r.payload(DefaultMaxDepth)
		var a *Answer
		if err == nil {
			a, err = ReadAnswer(result)
		}
		if err != nil {
			if s := err.Error(); len([]rune(s)) > maxErrorText || !utf8.ValidString(s) || strings.Contains(s, "token-4711") {
				t.Errorf("got %q, want a short valid text without the token", s)
			}
			return
		}
		if data := a.Data(); data != nil && !json.Valid(data) {
			t.Errorf("got data %q, want JSON", data)
		}
		if a.Usage.Count() < 0 || a.State == "" || !utf8.ValidString(a.Text()) {
			t.Errorf("got %+v, want a state, a usage of at least 0, and a valid text", a)
		}
	})
}

// FuzzParseCard: a card that is taken can be asked everything.
func FuzzParseCard(f *testing.F) {
	for _, s := range []string{
		`{"name":"n","url":"https://a"}`,
		`{"name":"n","supportedInterfaces":[{"url":"https://a","protocolBinding":"JSONRPC","protocolVersion":"1.0"}],"securityRequirements":[{"schemes":{"g":{"list":[]}}}],"securitySchemes":{"g":{"oauth2SecurityScheme":{}}}}`,
		`{"name":"n","protocolVersion":"0.3.0","url":"https://a","additionalInterfaces":[{"transport":"GRPC","url":"a:1"}],"security":[{"g":[]},{}],"securitySchemes":{"g":{"type":"http","scheme":"bearer"}}}`,
		`{"capabilities":{"extensions":[{"uri":"u","required":true}]}}`, "", "[]",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := ParseCard(b)
		if err != nil {
			return
		}
		if needs, err := c.NeedsToken(); needs && (err != nil || len(c.Alternatives) == 0) {
			t.Errorf("got a token needed with %v and %v", err, c.Alternatives)
		}
		if c.Validate() != nil {
			return
		}
		if c.Name == "" || !utf8.ValidString(c.Name+c.Description) {
			t.Errorf("got the name %q and the description %q, want valid ones", c.Name, c.Description)
		}
		target := Target{Purpose: ForRecovery, URL: "https://a.example", Card: c}
		for _, r := range routes(target) {
			if _, err := writeMessage(Out{Text: "t"}, r.Dialect, r.Tenant); err != nil || r.URL == "" {
				t.Errorf("%+v: %v, want a route that can be written for", r, err)
			}
		}
	})
}

// FuzzSignedCard: of whatever is made of a signed card, only what the key has
// signed is used, and the call is as authenticated as that demands.
func FuzzSignedCard(f *testing.F) {
	key := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	keys := jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: "k", Algorithm: "EdDSA"}}}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.EdDSA, Key: jose.JSONWebKey{Key: key, KeyID: "k"}}, nil)
	if err != nil {
		f.Fatal(err)
	}
	const card = `{"name":"signed","securityRequirements":[{"schemes":{"jwt":{"list":["run"]}}}],"securitySchemes":{"jwt":{"httpAuthSecurityScheme":{"bearerFormat":"JWT","scheme":"bearer"}}},"supportedInterfaces":[{"protocolBinding":"JSONRPC","protocolVersion":"1.0","url":"https://a.example/rpc"}]}`
	jws, err := signer.Sign([]byte(card))
	if err != nil {
		f.Fatal(err)
	}
	var flat struct{ Protected, Signature string }
	if err := json.Unmarshal([]byte(jws.FullSerialize()), &flat); err != nil {
		f.Fatal(err)
	}
	signatures := `,"signatures":[{"protected":"` + flat.Protected + `","signature":"` + flat.Signature + `"}]}`
	good := strings.TrimSuffix(card, "}") + signatures
	if c, err := (CardPolicy{SignaturesRequire, keys}).read([]byte(good)); err != nil || c.Name != "signed" {
		f.Fatalf("the seed: %+v, %v", c, err)
	}
	f.Add([]byte(good))
	f.Add([]byte(strings.Replace(good, `"name"`, `"url":"https://b.example","security":[{}],"name"`, 1)))
	f.Add([]byte(card))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := CardPolicy{SignaturesRequire, keys}.read(b)
		if err != nil {
			return
		}
		if c.Name != "signed" || len(c.Interfaces) != 1 || c.Interfaces[0].URL != "https://a.example/rpc" || c.TopURL != "" {
			t.Errorf("got %+v, want what was signed", c)
		}
		if needs, err := c.NeedsToken(); !needs || err != nil {
			t.Errorf("got no token needed, %v", err)
		}
	})
}
