package a2a

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"

	"github.com/go-jose/go-jose/v4"
)

// signedBySDK are cards that the JavaScript SDK has signed, and its keys.
type signedBySDK struct {
	Keys  jose.JSONWebKeySet
	Cards map[string]json.RawMessage
	Asks  map[string]json.RawMessage // that ask for a token
}

func bySDK(t *testing.T) (all signedBySDK) {
	t.Helper()
	cmd := exec.Command("node", "signed.mjs")
	cmd.Dir = "testdata/js/js13"
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("node 20 or newer with the packages of js13 is needed: %v", err)
	}
	if err := json.Unmarshal(out, &all); err != nil {
		t.Fatal(err)
	}
	return all
}

func signedCards(t *testing.T) (keys jose.JSONWebKeySet, cards map[string]json.RawMessage) {
	t.Helper()
	all := bySDK(t)
	return all.Keys, all.Cards
}

// TestSignedCards: what another SDK has signed is good, whatever the
// algorithm, and only what was signed is used.
func TestSignedCards(t *testing.T) {
	t.Parallel()
	keys, cards := signedCards(t)
	if len(cards) != 6 {
		t.Fatalf("%d cards", len(cards))
	}
	for name, raw := range cards {
		for _, p := range []Signatures{SignaturesRequire, SignaturesIfPresent} {
			body, err := CardPolicy{p, keys}.signed(raw)
			if err != nil {
				t.Errorf("%s, %s: %v", name, p, err)
				continue
			}
			card, err := ParseCard(body)
			if err != nil || card.TopURL != "" || len(card.Interfaces) != 1 || card.Interfaces[0].URL != "https://agent.example/rpc" || !strings.HasPrefix(card.Name, "signed ") {
				t.Errorf("%s, %s: %+v, %v", name, p, card, err)
			}
		}
		for what, change := range map[string][2]string{
			"another endpoint":  {"agent.example", "evil.example"},
			"another name":      {"signed", "sighed"},
			"another signature": {`"signature":"`, `"signature":"AA`},
			"another protected": {`"protected":"`, `"protected":"ew`},
		} {
			changed := strings.Replace(string(raw), change[0], change[1], 1)
			if _, err := (CardPolicy{SignaturesIfPresent, keys}).signed([]byte(changed)); !errors.Is(err, ErrCard) {
				t.Errorf("%s with %s: %v", name, what, err)
			}
		}
		if _, err := (CardPolicy{Signatures: SignaturesRequire}).signed(raw); !errors.Is(err, ErrCard) {
			t.Errorf("%s without a pinned key: %v", name, err)
		}
		if body, err := (CardPolicy{Signatures: SignaturesOff, Keys: keys}).signed(raw); err != nil || string(body) != string(raw) {
			t.Errorf("%s, off: %v", name, err)
		}
	}
}

func TestCardsWithoutAGoodSignature(t *testing.T) {
	t.Parallel()
	keys, cards := signedCards(t)
	signed := string(cards["EdDSA"])
	unsigned := `{"name":"a","url":"https://a.example/rpc"}`
	if body, err := (CardPolicy{SignaturesIfPresent, keys}).signed([]byte(unsigned)); err != nil || string(body) != unsigned {
		t.Errorf("not signed, if-present: %v", err)
	}
	var entry struct {
		Signatures []json.RawMessage
	}
	if err := json.Unmarshal([]byte(signed), &entry); err != nil {
		t.Fatal(err)
	}
	for name, card := range map[string]string{
		"not signed":         unsigned,
		"an empty list":      `{"name":"a","signatures":[]}`,
		"not a list":         `{"name":"a","signatures":{"a":1}}`,
		"nonsense":           `{"name":"a","signatures":[1,null,{},{"protected":7},{"protected":"!","signature":"!"}]}`,
		"the algorithm none": `{"name":"a","signatures":[{"protected":"eyJhbGciOiJub25lIiwia2lkIjoia2V5LUVkRFNBIn0","signature":""}]}`,
		"another's":          `{"name":"a","url":"https://a.example","signatures":[` + string(entry.Signatures[0]) + `]}`,
		"behind many":        strings.Replace(signed, `"signatures":[`, `"signatures":[`+strings.Repeat(`{"protected":"e30","signature":"AA"},`, maxSignatures), 1),
		"a list":             `[]`,
	} {
		if _, err := (CardPolicy{SignaturesRequire, keys}).signed([]byte(card)); !errors.Is(err, ErrCard) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, bad := range []string{"", "x", "{}", `{"keys":[]}`, `{"keys":[{"kty":"oct","k":"AA","kid":"a"}]}`, `{"keys":[{"kty":"OKP","crv":"Ed25519","x":"P3-DanYQhhv0ihzS8JopK-4WAkAn5dbgSnP61OZxfgE"}]}`} {
		if _, err := ParseCardKeys(bad); err == nil {
			t.Errorf("keys %s are taken", bad)
		}
	}
}

// TestSignedCardsThatAskForAToken: a signature that lacks what the card asks
// for does not make its calls unauthenticated, nor does whoever changes what
// is not signed.
func TestSignedCardsThatAskForAToken(t *testing.T) {
	t.Parallel()
	all, good := bySDK(t), map[string]int{}
	scheme := `{"httpAuthSecurityScheme":{"scheme":"bearer","bearerFormat":"JWT"}}`
	for name, raw := range all.Asks {
		for what, c := range map[string]struct{ was, is string }{
			"as it is":            {"", ""},
			"anonymous added":     {`"securityRequirements":[`, `"securityRequirements":[{"schemes":{}},`},
			"another requirement": {`"securityRequirements":[`, `"securityRequirements":[{"schemes":{"none":{}}},`},
			"another scheme":      {scheme, `{"apiKeySecurityScheme":{"name":"a","location":"header"}}`},
			"no scheme":           {scheme, `{}`},
		} {
			card, err := CardPolicy{SignaturesRequire, all.Keys}.read([]byte(strings.Replace(string(raw), c.was, c.is, 1)))
			if errors.Is(err, ErrSignature) {
				continue
			}
			if err != nil {
				t.Errorf("%s, %s: %v", name, what, err)
				continue
			}
			good[what]++
			unsigned := name == "typed, no scopes" && what == "another scheme" // neither the scheme nor that it is required was signed
			if token, err := card.NeedsToken(); !token && (err == nil || what == "as it is") && !unsigned {
				t.Errorf("%s, %s: it is called without a token, %v", name, what, err)
			}
			if len(card.Interfaces) != 1 || card.Interfaces[0].URL != "https://agent.example/rpc" {
				t.Errorf("%s, %s: %+v", name, what, card)
			}
		}
	}
	if good["as it is"] != 4 || good["anonymous added"] != 4 || good["another requirement"] != 4 || good["another scheme"] != 2 {
		t.Errorf("cards whose signature counts: %v", good)
	}
}

// TestAPolicyHoldsAtEveryFetch: a card that was refused is refused again.
func TestAPolicyHoldsAtEveryFetch(t *testing.T) {
	t.Parallel()
	keys, cards := signedCards(t)
	card := string(cards["ES256"])
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(card)) }))
	t.Cleanup(srv.Close)
	c := &Client{HTTP: srv.Client()}
	if _, err := c.FetchSigned(context.Background(), srv.URL, CardPolicy{SignaturesRequire, keys}); err != nil {
		t.Errorf("a good card: %v", err)
	}
	card = strings.Replace(card, "agent.example", "evil.example", 1)
	for range 2 {
		if _, err := c.FetchSigned(context.Background(), srv.URL, CardPolicy{SignaturesRequire, keys}); !errors.Is(err, ErrCard) {
			t.Errorf("a changed card: %v", err)
		}
	}
}
