package responder

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/longstop-dev/longstop/internal/a2a"
	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/nettest"
)

// agent is an A2A agent over HTTP that the test scripts.
type agent struct {
	*httptest.Server
	mu     sync.Mutex
	cards  int                                           // times its card was read
	asked  []map[string]any                              // envelopes
	tokens []string                                      // Authorization headers, the card's too
	handle func(http.ResponseWriter, *http.Request, any) // id of the envelope
	noCard bool
}

func newAgent(t *testing.T) *agent {
	t.Helper()
	a := &agent{}
	a.Server = httptest.NewServer(http.HandlerFunc(a.serve))
	t.Cleanup(a.Close)
	return a
}

func (a *agent) serve(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	handle, noCard := a.handle, a.noCard
	a.tokens = append(a.tokens, r.Header.Get("Authorization"))
	if r.Method == http.MethodGet {
		a.cards++
	}
	a.mu.Unlock()
	if r.Method == http.MethodGet {
		if noCard || r.URL.Path != "/.well-known/agent-card.json" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"name":"Fixer","description":"Mends","supportedInterfaces":[{"url":"`+a.URL+`/rpc","protocolBinding":"JSONRPC","protocolVersion":"1.0"}]}`)
		return
	}
	var envelope map[string]any
	_ = json.NewDecoder(r.Body).Decode(&envelope)
	a.mu.Lock()
	a.asked = append(a.asked, envelope)
	a.mu.Unlock()
	if handle != nil {
		handle(w, r, envelope["id"])
		return
	}
	answer(w, envelope["id"], fixed)
}

func answer(w http.ResponseWriter, id any, data string) {
	raw, _ := json.Marshal(id)
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":`+string(raw)+`,"result":{"message":{"messageId":"m","role":"ROLE_AGENT","parts":[{"data":`+data+`}]}}}`)
}

func (a *agent) script(f func(http.ResponseWriter, *http.Request, any)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.handle = f
}

func (a *agent) count() (cards, asked int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.cards, len(a.asked)
}

func newA2A(t *testing.T, clock flow.Clock) *A2A {
	t.Helper()
	r := NewA2A(&a2a.Client{HTTP: nettest.Client()}, clock, slog.New(slog.DiscardHandler))
	t.Cleanup(r.Close)
	return r
}

// configured asks an agent whose card was read when its URL was saved.
func configured(t *testing.T, r *A2A, a *agent) flow.Question {
	t.Helper()
	info, err := r.Read(t.Context(), a.URL)
	if err != nil {
		t.Fatalf("read the card: %v", err)
	}
	q := question()
	q.Settings = flow.RecoverySettings{A2AAgentURL: a.URL, A2ACard: info.Card, A2AOrigin: info.EndpointOrigin, A2AAuthToken: "s3cr3t-token"}
	return q
}

func TestA2ASuite(t *testing.T) {
	t.Parallel()
	suite(t, func(t *testing.T) subject {
		a, r := newAgent(t), newA2A(t, testClock())
		q := configured(t, r, a)
		return subject{responder: r, question: q, behave: func(how string) {
			a.script(func(w http.ResponseWriter, req *http.Request, _ any) {
				if how == "hang" {
					<-req.Context().Done()
					return
				}
				http.Error(w, "no: s3cr3t-token "+strings.Repeat("x", 5000), http.StatusInternalServerError)
			})
		}}
	})
}

// spec: R-081 R-082 R-088
func TestA2AReadsTheCard(t *testing.T) {
	t.Parallel()
	a, r := newAgent(t), newA2A(t, testClock())
	info, err := r.Read(t.Context(), a.URL)
	if err != nil || info.Name != "Fixer" || info.Description != "Mends" || info.URLOrigin != a.URL || info.EndpointOrigin != a.URL {
		t.Errorf("info = %+v, %v", info, err)
	}
	if card := storedCard(info.Card); card == nil || card.Name != "Fixer" || len(card.Interfaces) != 1 || card.Hash == "" {
		t.Errorf("the card comes back as %+v", card)
	}
	a.noCard = true
	if _, err := r.Read(t.Context(), a.URL); err == nil {
		t.Error("no card, and no error")
	}
}

func TestA2AAsksWithoutReadingTheCard(t *testing.T) {
	t.Parallel()
	clock := testClock()
	a, r := newAgent(t), newA2A(t, clock)
	q := configured(t, r, a)
	for range 3 {
		if _, err := r.Ask(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
	if cards, asked := a.count(); cards != 1 || asked != 3 {
		t.Errorf("card read %d times, asked %d times, want 1 (at save) and 3", cards, asked)
	}
	a.mu.Lock()
	first := a.asked[0]
	a.mu.Unlock()
	if first["id"] != "recovery-run_1-2" || first["method"] != "SendMessage" {
		t.Errorf("envelope = %v", first)
	}

	clock.Advance(cardAge + time.Second) // old: it is read again, but nobody waits for that
	if _, err := r.Ask(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	r.Close()
	if cards, _ := a.count(); cards != 2 {
		t.Errorf("card read %d times, want 2", cards)
	}

	a.script(func(w http.ResponseWriter, _ *http.Request, _ any) { w.WriteHeader(http.StatusInternalServerError) })
	if _, err := r.Ask(t.Context(), q); err == nil {
		t.Fatal("an error was expected")
	}
	a.script(nil)
	if _, err := r.Ask(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	r.Close()
	if cards, _ := a.count(); cards != 3 {
		t.Errorf("card read %d times, want 3: again after a failed call", cards)
	}
}

// A card that moves its endpoint elsewhere later does not take the token along.
//
// spec: R-079
func TestA2ATokenGoesToTheSavedOriginOnly(t *testing.T) {
	t.Parallel()
	a, elsewhere, r := newAgent(t), newAgent(t), newA2A(t, testClock())
	q := configured(t, r, a)
	if _, err := r.Ask(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	moved := *storedCard(q.Settings.A2ACard)
	moved.Interfaces[0].URL, moved.Hash = elsewhere.URL+"/rpc", "another card"
	q.Settings.A2ACard, _ = json.Marshal(moved)
	if _, err := r.Ask(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	got := func(a *agent) string {
		a.mu.Lock()
		defer a.mu.Unlock()
		return a.tokens[len(a.tokens)-1]
	}
	if got(a) != "Bearer s3cr3t-token" {
		t.Errorf("the agent got %q, want the token", got(a))
	}
	if got(elsewhere) != "" {
		t.Errorf("another origin got %q, want nothing", got(elsewhere))
	}
}

func TestA2AKinds(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]flow.AskKind{
		&a2a.Fault{Kind: a2a.ErrTimeout}:     flow.AskTimeout,
		&a2a.Fault{Kind: a2a.ErrUnreachable}: flow.AskUnreachable,
		&a2a.Fault{Kind: a2a.ErrTLS}:         flow.AskUnreachable,
		&a2a.StatusError{Status: 401}:        flow.AskUnreachable,
		&a2a.Fault{Kind: a2a.ErrHTML}:        flow.AskInvalid,
		&a2a.Fault{Kind: a2a.ErrNoData}:      flow.AskInvalid,
		&a2a.TaskError{State: "FAILED"}:      flow.AskInvalid,
	} {
		if got := agentKind(err); got != want {
			t.Errorf("%v is %s, want %s", err, got, want)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	if got := asAskError(ctx, flow.AskInvalid, errors.New("x")); got.Kind != flow.AskTimeout {
		t.Errorf("after the deadline: %s, want timeout", got.Kind)
	}
}
