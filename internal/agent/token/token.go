// Package token makes the execution tokens by which an agent hosted elsewhere
// knows who asks: short-lived JWTs signed with the key of the Agent Service
// that registered it, and the set of keys to verify them with. Source: the
// external-agent specification, "Authentication".
package token

import (
	"context"
	"crypto/ed25519"
	"encoding/hex"
	"encoding/json"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/ident"
)

// Life is how long a token holds.
const Life = 5 * time.Minute

// Claims is what a token says beside who signed it and when.
type Claims struct {
	Workspace  string // whose agent it is; not in the token
	Agent      string // its id, <pubkey>:<alias>: the key names the Agent Service that signs
	Audience   string // the origin of the endpoint that is called: scheme, host and port; bridge:<name> for a bridge
	Vault      string
	Scope      string
	Job        string
	Task       string // of ours: the turn's id
	OnBehalfOf string // the public key of the person behind the asking event, in hex; "" for nobody
}

// payload is a token's claims as they are written.
type payload struct {
	Issuer     string `json:"iss"`
	Subject    string `json:"sub"`
	Audience   string `json:"aud"`
	IssuedAt   int64  `json:"iat"` // seconds since 1970, as the next two
	NotBefore  int64  `json:"nbf"`
	Expiry     int64  `json:"exp"`
	ID         string `json:"jti"`
	Vault      string `json:"vault"`
	Scope      string `json:"scope"`
	Agent      string `json:"agent"`
	Job        string `json:"job"`
	Task       string `json:"task"`
	OnBehalfOf string `json:"on_behalf_of"`
}

// Services keeps Agent Services.
type Services interface {
	// Service finds by public key; not_found.
	Service(ctx context.Context, workspace, publicKey string) (flow.AgentService, error)
	// Services lists a workspace's, or with an empty one those of all.
	Services(ctx context.Context, workspace string) ([]flow.AgentService, error)
}

// Opener opens what was sealed.
type Opener interface {
	Open(workspace, name string, sealed []byte) ([]byte, error)
}

// SealedName is the name under which an Agent Service's seed is sealed.
func SealedName(publicKey string) string { return "agent-service/" + publicKey }

// Mint makes tokens. It is safe for concurrent use and keeps no key.
type Mint struct {
	services Services
	keys     Opener
	issuer   string
	clock    flow.Clock
	newID    ident.Generator
}

// New makes a Mint. The issuer is the server's URL as outsiders know it.
func New(s Services, keys Opener, issuer string, clock flow.Clock, newID ident.Generator) *Mint {
	return &Mint{services: s, keys: keys, issuer: strings.TrimSuffix(issuer, "/"), clock: clock, newID: newID}
}

// Token makes a token for one request. It answers not_found for an Agent
// Service that is not held here, and unavailable for one whose key cannot be
// opened; a caller without a token must not call.
func (m *Mint) Token(ctx context.Context, c Claims) (string, error) {
	key, _, _ := strings.Cut(c.Agent, ":")
	if c.Audience == "" {
		return "", flow.Errorf(flow.CodeInternal, "an execution token needs an audience")
	}
	service, err := m.services.Service(ctx, c.Workspace, key)
	if err != nil {
		return "", err
	}
	signer, err := m.signer(service)
	if err != nil {
		return "", err
	}
	now := m.clock.Now()
	text, err := jwt.Signed(signer).Claims(payload{
		Issuer: m.issuer, Subject: c.Agent, Audience: c.Audience, ID: m.newID("jti"),
		IssuedAt: now.Unix(), NotBefore: now.Unix(), Expiry: now.Add(Life).Unix(),
		Vault: c.Vault, Scope: c.Scope, Agent: c.Agent, Job: c.Job, Task: c.Task, OnBehalfOf: c.OnBehalfOf,
	}).Serialize()
	if err != nil {
		return "", flow.Errorf(flow.CodeInternal, "the execution token cannot be signed").Because(err)
	}
	return text, nil
}

// signer opens a service's key and wipes its seed.
func (m *Mint) signer(s flow.AgentService) (jose.Signer, error) {
	seed, err := m.keys.Open(s.Workspace, SealedName(s.PublicKey), s.Sealed)
	if err != nil {
		return nil, flow.Errorf(flow.CodeUnavailable, "the key of the Agent Service %s cannot be opened", s.PublicKey).Because(err)
	}
	defer clear(seed)
	if len(seed) != ed25519.SeedSize {
		return nil, flow.Errorf(flow.CodeUnavailable, "the key of the Agent Service %s is damaged", s.PublicKey)
	}
	private := ed25519.NewKeyFromSeed(seed)
	if hex.EncodeToString(private.Public().(ed25519.PublicKey)) != s.PublicKey {
		return nil, flow.Errorf(flow.CodeUnavailable, "the key held for the Agent Service %s is another's", s.PublicKey)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.EdDSA, Key: jose.JSONWebKey{Key: private, KeyID: s.PublicKey}},
		(&jose.SignerOptions{}).WithType("JWT"))
	if err != nil {
		return nil, flow.Errorf(flow.CodeInternal, "the execution token cannot be signed").Because(err)
	}
	return signer, nil
}

// Keys is the JSON Web Key Set of every Agent Service held here: those whose
// tokens may still be about, too. It holds public halves only.
func (m *Mint) Keys(ctx context.Context) (json.RawMessage, error) {
	all, err := m.services.Services(ctx, "")
	if err != nil {
		return nil, err
	}
	set := jose.JSONWebKeySet{Keys: []jose.JSONWebKey{}}
	for _, s := range all {
		public, err := hex.DecodeString(s.PublicKey)
		if err != nil || len(public) != ed25519.PublicKeySize {
			continue // a damaged row must not hide the others
		}
		set.Keys = append(set.Keys, jose.JSONWebKey{Key: ed25519.PublicKey(public), KeyID: s.PublicKey, Algorithm: string(jose.EdDSA), Use: "sig"})
	}
	return json.Marshal(set)
}
