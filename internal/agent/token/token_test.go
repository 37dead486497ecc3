package token_test

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/longstop-dev/longstop/internal/agent/token"
	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/flow/flowtest"
	"github.com/longstop-dev/longstop/internal/ident"
	"github.com/longstop-dev/longstop/internal/secret"
)

// held keeps Agent Services in memory.
type held []flow.AgentService

func (h held) Service(_ context.Context, workspace, key string) (flow.AgentService, error) {
	for _, s := range h {
		if s.PublicKey == key && s.Workspace == workspace {
			return s, nil
		}
	}
	return flow.AgentService{}, flow.Errorf(flow.CodeNotFound, "there is no Agent Service %q here", key)
}

func (h held) Services(context.Context, string) ([]flow.AgentService, error) { return h, nil }

// service makes one whose seed is sealed under a name.
func service(t *testing.T, k *secret.Keyring, workspace string) flow.AgentService {
	t.Helper()
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	key := hex.EncodeToString(public)
	sealed, err := k.Seal(workspace, token.SealedName(key), private.Seed())
	if err != nil {
		t.Fatal(err)
	}
	return flow.AgentService{PublicKey: key, Workspace: workspace, Sealed: sealed}
}

func keyring(t *testing.T) *secret.Keyring {
	t.Helper()
	k, err := secret.NewKeyring([]byte(strings.Repeat("k", secret.KeySize)))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// The token names the vault, the scope, the agent, the Job, the task and the
// person, and whoever has the published keys can verify it.
//
// spec: A-076
// spec: A-077
func TestTokenIsVerifiedWithThePublishedKeys(t *testing.T) {
	t.Parallel()
	k := keyring(t)
	mine, other := service(t, k, "ws"), service(t, k, "elsewhere")
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	m := token.New(held{other, mine}, k, "https://longstop.example/", flowtest.NewClock(now), ident.New)
	c := token.Claims{Workspace: "ws", Agent: mine.PublicKey + ":helper", Audience: "https://agent.example:8443",
		Vault: "vlt_1", Scope: "default", Job: "job_1", Task: "turn_1", OnBehalfOf: strings.Repeat("ab", 32)}
	text, err := m.Token(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := m.Keys(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var set jose.JSONWebKeySet
	if err := json.Unmarshal(raw, &set); err != nil {
		t.Fatal(err)
	}
	parsed, err := jwt.ParseSigned(text, []jose.SignatureAlgorithm{jose.EdDSA})
	if err != nil {
		t.Fatal(err)
	}
	if h := parsed.Headers[0]; h.KeyID != mine.PublicKey || h.Algorithm != "EdDSA" || h.ExtraHeaders[jose.HeaderType] != "JWT" {
		t.Errorf("header: %+v", h)
	}
	keys := set.Key(mine.PublicKey)
	if len(keys) != 1 || !keys[0].IsPublic() {
		t.Fatalf("published keys: %s", raw)
	}
	var standard jwt.Claims
	var got map[string]any
	if err := parsed.Claims(keys[0], &standard, &got); err != nil {
		t.Fatalf("does not verify: %v", err)
	}
	want := jwt.Expected{Issuer: "https://longstop.example", Subject: c.Agent, AnyAudience: jwt.Audience{c.Audience}, Time: now}
	if err := standard.ValidateWithLeeway(want, 0); err != nil {
		t.Error(err)
	}
	if life := standard.Expiry.Time().Sub(standard.IssuedAt.Time()); life != 5*time.Minute {
		t.Errorf("it lives %v", life)
	}
	for name, value := range map[string]string{"aud": c.Audience, "vault": c.Vault, "scope": c.Scope, "agent": c.Agent, "job": c.Job, "task": c.Task, "on_behalf_of": c.OnBehalfOf} {
		if got[name] != value {
			t.Errorf("%s: got %v, want %v", name, got[name], value)
		}
	}
	if err := parsed.Claims(ed25519.PublicKey(must(hex.DecodeString(other.PublicKey))), &standard); err == nil {
		t.Error("another service's key verifies it")
	}
	again, err := m.Token(t.Context(), c)
	if err != nil || again == text {
		t.Errorf("a second request got the same token, %v", err)
	}
	claims, _ := base64.RawURLEncoding.DecodeString(strings.Split(text, ".")[1])
	if strings.Contains(string(claims), "ws\"") {
		t.Errorf("the workspace is in it: %s", claims)
	}
}

func must(b []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return b
}

// spec: A-078
func TestNoTokenWithoutTheKey(t *testing.T) {
	t.Parallel()
	k := keyring(t)
	good := service(t, k, "ws")
	swapped, damaged, short := service(t, k, "ws"), service(t, k, "ws"), service(t, k, "ws")
	swapped.Sealed = must(k.Seal("ws", token.SealedName(swapped.PublicKey), make([]byte, 32)))
	damaged.Sealed = damaged.Sealed[:len(damaged.Sealed)-1]
	short.Sealed = must(k.Seal("ws", token.SealedName(short.PublicKey), []byte("short")))
	stranger, err := secret.NewKeyring([]byte(strings.Repeat("o", secret.KeySize)))
	if err != nil {
		t.Fatal(err)
	}
	all := held{good, swapped, damaged, short}
	for name, c := range map[string]struct {
		opener    token.Opener
		workspace string
		agent     string
		audience  string
		code      flow.Code
	}{
		"another workspace's": {k, "elsewhere", good.PublicKey + ":a", "https://a.example", flow.CodeNotFound},
		"not held":            {k, "ws", strings.Repeat("0", 64) + ":a", "https://a.example", flow.CodeNotFound},
		"another's seed":      {k, "ws", swapped.PublicKey + ":a", "https://a.example", flow.CodeUnavailable},
		"damaged":             {k, "ws", damaged.PublicKey + ":a", "https://a.example", flow.CodeUnavailable},
		"too short":           {k, "ws", short.PublicKey + ":a", "https://a.example", flow.CodeUnavailable},
		"another master key":  {stranger, "ws", good.PublicKey + ":a", "https://a.example", flow.CodeUnavailable},
		"no audience":         {k, "ws", good.PublicKey + ":a", "", flow.CodeInternal},
	} {
		m := token.New(all, c.opener, "https://longstop.example", flow.SystemClock{}, ident.New)
		text, err := m.Token(t.Context(), token.Claims{Workspace: c.workspace, Agent: c.agent, Audience: c.audience})
		if text != "" || flow.CodeOf(err) != c.code {
			t.Errorf("%s: got %q, %v, want %s", name, text, err, c.code)
		}
	}
}

// watched keeps what it opens, so that a test sees what became of it.
type watched struct {
	token.Opener
	opened []byte
}

func (w *watched) Open(workspace, name string, sealed []byte) ([]byte, error) {
	seed, err := w.Opener.Open(workspace, name, sealed)
	w.opened = seed
	return seed, err
}

// TestTheSeedIsWiped once the token is signed.
func TestTheSeedIsWiped(t *testing.T) {
	t.Parallel()
	k := keyring(t)
	s, w := service(t, k, "ws"), &watched{Opener: k}
	m := token.New(held{s}, w, "https://longstop.example", flow.SystemClock{}, ident.New)
	if _, err := m.Token(t.Context(), token.Claims{Workspace: "ws", Agent: s.PublicKey + ":a", Audience: "https://a.example"}); err != nil {
		t.Fatal(err)
	}
	if string(w.opened) != string(make([]byte, ed25519.SeedSize)) {
		t.Errorf("%d bytes of the seed are still there", len(w.opened))
	}
}

func TestADamagedRowDoesNotHideTheOtherKeys(t *testing.T) {
	t.Parallel()
	k := keyring(t)
	good := service(t, k, "ws")
	raw, err := token.New(held{{PublicKey: "zz"}, good}, k, "", flow.SystemClock{}, ident.New).Keys(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(raw), `"kid"`); n != 1 || !strings.Contains(string(raw), good.PublicKey) || strings.Contains(string(raw), `"d"`) {
		t.Errorf("keys: %s", raw)
	}
	empty, err := token.New(held{}, k, "", flow.SystemClock{}, ident.New).Keys(t.Context())
	if err != nil || string(empty) != `{"keys":[]}` {
		t.Errorf("no services: %s, %v", empty, err)
	}
}
