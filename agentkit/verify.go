package agentkit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// Claims is what an execution token says: who asks, of what, on whose behalf.
type Claims struct {
	Issuer     string `json:"iss"` // the server's URL
	Agent      string `json:"agent"`
	Vault      string `json:"vault"`
	Scope      string `json:"scope"`
	Job        string `json:"job"`
	Task       string `json:"task"`
	OnBehalfOf string `json:"on_behalf_of"` // the Ed25519 public key, in hex, of the person behind the event; "" for nobody
}

// Verifier checks execution tokens against the keys that a Longstop server
// publishes. Its members are set before its first use; it is safe for
// concurrent use then.
type Verifier struct {
	Issuer   string       // the server's URL: its keys are at /.well-known/jwks.json below it
	Audience string       // the origin of this agent's endpoint: scheme, host and port
	Agent    string       // its id, <pubkey>:<alias>. Without it every Agent Service of the server may call: anybody can register any URL
	Client   *http.Client // default one with a time-out of 10 s
	Now      func() time.Time

	reading sync.Mutex // one at a time
	mu      sync.Mutex
	keys    jose.JSONWebKeySet
	read    time.Time
}

// The bounds of a verifier.
const (
	maxKeys     = 1 << 20          // bytes of a key set
	keysLast    = 10 * time.Minute // for which a key set is used
	keysAgain   = 5 * time.Second  // before a key that is not in it is looked for again
	clockLeeway = time.Minute
)

// Verify checks the token of a request. The error says why it is not good; it
// holds nothing of the token.
func (v *Verifier) Verify(r *http.Request) (*Claims, error) {
	text, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		return nil, errors.New("there is no bearer token")
	}
	token, err := jwt.ParseSigned(text, []jose.SignatureAlgorithm{jose.EdDSA})
	if err != nil || len(token.Headers) != 1 {
		return nil, errors.New("the token is no JWT signed with EdDSA")
	}
	key, err := v.key(r.Context(), token.Headers[0].KeyID)
	if err != nil {
		return nil, err
	}
	var standard jwt.Claims
	var claims Claims
	if err := token.Claims(key, &standard, &claims); err != nil {
		return nil, errors.New("the token's signature is not good")
	}
	want := jwt.Expected{Issuer: strings.TrimRight(v.Issuer, "/"), AnyAudience: jwt.Audience{v.Audience}, Time: v.now()}
	if err := standard.ValidateWithLeeway(want, clockLeeway); err != nil {
		return nil, fmt.Errorf("the token is not for this agent, or not for now: %w", err)
	}
	if standard.Expiry == nil {
		return nil, errors.New("the token never ends")
	}
	if v.Agent != "" && claims.Agent != v.Agent {
		return nil, errors.New("the token is for another agent")
	}
	if service, _, _ := strings.Cut(claims.Agent, ":"); service != token.Headers[0].KeyID {
		return nil, errors.New("the token is signed by another Agent Service than the agent's")
	}
	return &claims, nil
}

func (v *Verifier) now() time.Time {
	if v.Now != nil {
		return v.Now()
	}
	return time.Now()
}

// key finds a key by its id, in what was read before or in what is published
// now. Nobody who has a key that is known waits for the reading of others.
func (v *Verifier) key(ctx context.Context, id string) (jose.JSONWebKey, error) {
	if k, ok, _ := v.known(id); ok {
		return k, nil
	}
	v.reading.Lock()
	defer v.reading.Unlock()
	k, ok, fresh := v.known(id) // somebody else may have read them meanwhile
	if !ok && !fresh {
		if err := v.fetch(ctx); err != nil {
			return jose.JSONWebKey{}, err
		}
		k, ok, _ = v.known(id)
	}
	if !ok {
		return jose.JSONWebKey{}, errors.New("the token's key is not published by " + v.Issuer)
	}
	return k, nil
}

// known looks among the keys that were read; fresh says that it was just now.
func (v *Verifier) known(id string) (k jose.JSONWebKey, ok, fresh bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	age := v.now().Sub(v.read)
	fresh = !v.read.IsZero() && age < keysAgain
	if found := v.keys.Key(id); len(found) == 1 && age < keysLast {
		return found[0], true, fresh
	}
	return k, false, fresh
}

func (v *Verifier) fetch(ctx context.Context) error {
	client := v.Client
	if client == nil {
		client = &http.Client{Timeout: 10 * time.Second}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimRight(v.Issuer, "/")+"/.well-known/jwks.json", nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("the keys of %s cannot be read: %w", v.Issuer, err)
	}
	defer resp.Body.Close()
	var set jose.JSONWebKeySet
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxKeys)).Decode(&set); err != nil || resp.StatusCode != http.StatusOK {
		return fmt.Errorf("the keys of %s cannot be read: HTTP %d", v.Issuer, resp.StatusCode)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.keys, v.read = set, v.now()
	return nil
}
