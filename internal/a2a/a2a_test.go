package a2a_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/longstop-dev/longstop/internal/a2a"
)

// agent is a fake agent: it records what it was sent and answers by script.
type agent struct {
	*httptest.Server
	mu   sync.Mutex
	seen []seen
}

type seen struct {
	method, path, query, auth, version, contentType string
	body                                            map[string]any
}

// newAgent serves answer, which gets each request recorded and its number
// from 0.
func newAgent(t *testing.T, answer func(w http.ResponseWriter, r *http.Request, s seen, n int)) *agent {
	t.Helper()
	a := &agent{}
	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s := seen{method: r.Method, path: r.URL.Path, query: r.URL.RawQuery, auth: r.Header.Get("Authorization"),
			version: r.Header.Get("A2A-Version"), contentType: r.Header.Get("Content-Type")}
		b, _ := io.ReadAll(r.Body)
		_ = json.Unmarshal(b, &s.body) // a GET has none
		a.mu.Lock()
		n := len(a.seen)
		a.seen = append(a.seen, s)
		a.mu.Unlock()
		answer(w, r, s, n)
	}))
	t.Cleanup(a.Close)
	return a
}

func (a *agent) requests() []seen {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]seen(nil), a.seen...)
}

// always answers every request alike.
func always(status int, body string) func(http.ResponseWriter, *http.Request, seen, int) {
	return func(w http.ResponseWriter, _ *http.Request, _ seen, _ int) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// newClient polls without waiting.
func newClient() *a2a.Client {
	return &a2a.Client{HTTP: &http.Client{Transport: &http.Transport{}}, Wait: func(ctx context.Context, _ time.Duration) error { return ctx.Err() }}
}

func withDeadline(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// parseCard reads a card that the test needs to be valid.
func parseCard(t *testing.T, s string) *a2a.Card {
	t.Helper()
	c, err := a2a.ParseCard([]byte(s))
	if err == nil {
		err = c.Validate()
	}
	if err != nil {
		t.Fatalf("ParseCard(%s): %v", s, err)
	}
	return c
}

// v1Card is a card with one JSONRPC interface of 1.0.
func v1Card(t *testing.T, url string) *a2a.Card {
	t.Helper()
	return parseCard(t, `{"name":"n","supportedInterfaces":[{"url":"`+url+`","protocolBinding":"JSONRPC","protocolVersion":"1.0"}]}`)
}

func recovery(url string, card *a2a.Card) a2a.RecoveryAsk {
	return a2a.RecoveryAsk{URL: url, Card: card, RunID: "r1", StepIndex: 2, Input: json.RawMessage(`{"schema_version":"1"}`)}
}

const fixedOutput = `{"type":"fixed_output","diagnosis":"d","output":{"id":12345678901234567}}`

// reply is a JSON-RPC answer with a message that holds one data part.
func reply(data string) string {
	return `{"jsonrpc":"2.0","id":"recovery-r1-2","result":{"message":{"role":"ROLE_AGENT","messageId":"m","parts":[{"type":"data","data":` + data + `}]}}}`
}

func rpcError(code, message string) string {
	return `{"jsonrpc":"2.0","id":null,"error":{"code":` + code + `,"message":"` + message + `"}}`
}
