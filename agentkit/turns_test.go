package agentkit_test

import (
	"context"
	"crypto/ed25519"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/longstop-dev/longstop/agentkit"
	"github.com/longstop-dev/longstop/internal/nettest"
)

// issuer is a Longstop server as far as its keys go.
type issuer struct {
	*httptest.Server
	key   ed25519.PrivateKey
	id    string
	reads int
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	i := &issuer{key: private, id: hex.EncodeToString(public)}
	i.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		i.reads++
		if r.URL.Path != "/.well-known/jwks.json" {
			http.NotFound(w, r)
			return
		}
		_ = json.NewEncoder(w).Encode(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: public, KeyID: i.id, Algorithm: "EdDSA", Use: "sig"}}})
	}))
	t.Cleanup(i.Close)
	return i
}

// token signs claims, changed.
func (i *issuer) token(t *testing.T, change func(map[string]any)) string {
	t.Helper()
	now := time.Now()
	claims := map[string]any{"iss": i.URL, "aud": "https://agent.example", "iat": now.Unix(), "nbf": now.Unix(), "exp": now.Add(5 * time.Minute).Unix(),
		"agent": i.id + ":desk", "vault": "v", "scope": "s", "job": "j", "task": "t", "on_behalf_of": "p"}
	if change != nil {
		change(claims)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.EdDSA, Key: jose.JSONWebKey{Key: i.key, KeyID: i.id}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	text, err := jwt.Signed(signer).Claims(claims).Serialize()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestVerifier(t *testing.T) {
	t.Parallel()
	i, stranger := newIssuer(t), newIssuer(t)
	v := &agentkit.Verifier{Client: nettest.Client(), Issuer: i.URL, Audience: "https://agent.example"}
	check := func(token string) (*agentkit.Claims, error) {
		r := httptest.NewRequest("POST", "/", nil)
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		return v.Verify(r)
	}
	good := i.token(t, nil)
	for range 3 {
		c, err := check(good)
		if err != nil || c.Vault != "v" || c.Scope != "s" || c.Job != "j" || c.Task != "t" || c.OnBehalfOf != "p" || c.Agent != i.id+":desk" {
			t.Fatalf("a good token: %+v, %v", c, err)
		}
	}
	if i.reads != 1 {
		t.Errorf("the keys were read %d times", i.reads)
	}
	parts := strings.Split(good, ".")
	for name, token := range map[string]string{
		"none":                  "",
		"not a token":           "x",
		"another's":             stranger.token(t, func(c map[string]any) { c["iss"] = i.URL }),
		"another issuer":        i.token(t, func(c map[string]any) { c["iss"] = "https://elsewhere.example" }),
		"another audience":      i.token(t, func(c map[string]any) { c["aud"] = "https://other.example" }),
		"over":                  i.token(t, func(c map[string]any) { c["exp"] = time.Now().Add(-2 * time.Minute).Unix() }),
		"not yet":               i.token(t, func(c map[string]any) { c["nbf"] = time.Now().Add(time.Hour).Unix() }),
		"another's agent":       i.token(t, func(c map[string]any) { c["agent"] = stranger.id + ":desk" }),
		"changed":               parts[0] + "." + parts[1][:len(parts[1])-2] + "AA." + parts[2],
		"without an end":        i.token(t, func(c map[string]any) { delete(c, "exp") }),
		"without a signature":   parts[0] + "." + parts[1] + ".",
		"by the algorithm none": "eyJhbGciOiJub25lIn0." + parts[1] + ".",
	} {
		if c, err := check(token); err == nil || token != "" && strings.Contains(err.Error(), token) {
			t.Errorf("%s: %+v, %v", name, c, err)
		}
	}
}

// TestVerifierOfOneAgent: anybody on a server can register any URL, and gets
// tokens for its origin; who says which agent it is takes those of no other.
func TestVerifierOfOneAgent(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	for agent, good := range map[string]bool{"": true, i.id + ":desk": true, i.id + ":other": false} {
		v := &agentkit.Verifier{Client: nettest.Client(), Issuer: i.URL + "/", Audience: "https://agent.example", Agent: agent}
		r := httptest.NewRequest("POST", "/", nil)
		r.Header.Set("Authorization", "Bearer "+i.token(t, nil))
		if _, err := v.Verify(r); (err == nil) != good {
			t.Errorf("agent %q: %v", agent, err)
		}
	}
}

// TestVerifierWhileKeysAreRead: nobody whose key is known waits for the keys
// that somebody's made-up one has read.
func TestVerifierWhileKeysAreRead(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	began, goOn := make(chan struct{}), make(chan struct{})
	keys, slow := i.Config.Handler, false
	i.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if slow {
			close(began)
			<-goOn
		}
		keys.ServeHTTP(w, r)
	})
	now := time.Now()
	v := &agentkit.Verifier{Client: nettest.Client(), Issuer: i.URL, Audience: "https://agent.example", Now: func() time.Time { return now }}
	verify := func(token string) error {
		r := httptest.NewRequest("POST", "/", nil)
		r.Header.Set("Authorization", "Bearer "+token)
		_, err := v.Verify(r)
		return err
	}
	good := i.token(t, nil)
	if err := verify(good); err != nil {
		t.Fatal(err)
	}
	slow, now = true, now.Add(10*time.Second)
	stranger, refused := newIssuer(t), make(chan error)
	go func() { refused <- verify(stranger.token(t, nil)) }()
	<-began
	if err := verify(good); err != nil { // hangs if it waits
		t.Error(err)
	}
	close(goOn)
	if err := <-refused; err == nil {
		t.Error("a key that is not published is good")
	}
}

func TestDesk(t *testing.T) {
	t.Parallel()
	var asked []agentkit.Ask
	desk := &agentkit.Desk{Name: "Desk", Description: "d", Answer: func(_ context.Context, a agentkit.Ask) (agentkit.Reply, error) {
		asked = append(asked, a)
		switch a.Text {
		case "fail":
			return agentkit.Reply{}, errors.New("no way")
		case "ask":
			return agentkit.Reply{Text: "what?", Asks: true}, nil
		}
		return agentkit.Reply{Text: "said", Data: map[string]any{"a": 1}, Used: agentkit.Usage{InputTokens: 2, OutputTokens: 3}}, nil
	}}
	h := desk.Handler("https://agent.example/")
	call := func(body string) string {
		r := httptest.NewRequest("POST", "/", strings.NewReader(body))
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		b, _ := io.ReadAll(w.Body)
		return string(b)
	}
	got := call(`{"jsonrpc":"2.0","id":"1","method":"SendMessage","params":{"message":{"contextId":"c","parts":[{"text":"hi"},{"data":{"n":1}}],"metadata":{"vaultId":"v","jobId":"j","taskId":"t","scope":"s","eventType":"e","onBehalfOf":"p"}}}}`)
	for _, want := range []string{`"contextId":"c"`, `TASK_STATE_COMPLETED`, `{"text":"said"}`, `{"data":{"a":1}}`, `"inputTokens":2`} {
		if !strings.Contains(got, want) {
			t.Errorf("got %s, want %s in it", got, want)
		}
	}
	if a := asked[0]; a.Text != "hi" || string(a.Data) != `{"n":1}` || a.VaultID != "v" || a.JobID != "j" || a.TaskID != "t" || a.Scope != "s" || a.EventType != "e" || a.OnBehalfOf != "p" || a.ContextID != "c" {
		t.Errorf("asked: %+v", a)
	}
	for body, want := range map[string]string{
		`{"id":1,"method":"SendMessage","params":{"message":{"parts":[{"text":"ask"}]}}}`:  `TASK_STATE_INPUT_REQUIRED`,
		`{"id":1,"method":"SendMessage","params":{"message":{"parts":[{"text":"fail"}]}}}`: `"message":"no way"`,
		`{"id":1,"method":"SendMessage","params":{"message":{"parts":[]}}}`:                `-32602`,
		`{"id":1,"method":"GetTask","params":{"id":"x"}}`:                                  `-32001`,
		`{"id":1,"method":"message/send","params":{}}`:                                     `-32601`,
		`not JSON`: `-32700`,
	} {
		if got := call(body); !strings.Contains(got, want) {
			t.Errorf("%s: got %s, want %s", body, got, want)
		}
	}
	desk.Verify = &agentkit.Verifier{Client: nettest.Client(), Issuer: newIssuer(t).URL, Audience: "https://agent.example"}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("POST", "/", strings.NewReader(`{}`)))
	if w.Code != http.StatusUnauthorized {
		t.Errorf("without a token: %d", w.Code)
	}
	w = httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", "/.well-known/agent-card.json", nil))
	if card := w.Body.String(); !strings.Contains(card, `"bearerFormat":"JWT"`) || !strings.Contains(card, `https://agent.example/`) {
		t.Errorf("card: %s", card)
	}
}
