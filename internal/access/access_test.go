package access_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/longstop-dev/longstop/internal/access"
	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/flow/flowtest"
	"github.com/longstop-dev/longstop/internal/ident"
	"github.com/longstop-dev/longstop/internal/secret"
	"github.com/longstop-dev/longstop/internal/store"
)

// outside stands for the agents and networks out there.
type outside struct {
	mu    sync.Mutex
	cards map[string]access.CardInfo
}

func (o *outside) Read(_ context.Context, rawURL string) (access.CardInfo, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	info, ok := o.cards[rawURL]
	if !ok {
		return info, errors.New("HTTP 404: Not Found")
	}
	return info, nil
}

func (o *outside) CheckURL(_ context.Context, rawURL string) error {
	u, err := url.Parse(rawURL)
	if err != nil || u.Scheme != "https" || u.Hostname() == "10.0.0.1" {
		return flow.Errorf(flow.CodeInvalid, "only https to public addresses").Right("an https URL")
	}
	return nil
}

// world is a service on a store of its own.
type world struct {
	*access.Service
	store   *store.Store
	path    string
	out     *outside
	by      flow.Caller
	key     string
	clock   *flowtest.Clock
	service func(master byte, stdio bool) *access.Service
}

// newWorld is one whose first start has happened.
func newWorld(t *testing.T) *world {
	t.Helper()
	w := newEmptyWorld(t)
	key, created, err := w.Bootstrap(t.Context(), access.Founding{})
	if err != nil || !created {
		t.Fatalf("Bootstrap: created %t, %v; want true", created, err)
	}
	w.key = key
	if w.by, err = w.Authenticate(t.Context(), key); err != nil {
		t.Fatalf("the printed key: %v", err)
	}
	return w
}

func newEmptyWorld(t *testing.T) *world {
	t.Helper()
	w := &world{path: filepath.Join(t.TempDir(), "t.db"), clock: flowtest.NewClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))}
	w.out = &outside{cards: map[string]access.CardInfo{
		"https://agent.example.com": {Name: "Mender", Description: "Mends", URLOrigin: "https://agent.example.com", EndpointOrigin: "https://agent.example.com",
			Card: json.RawMessage(`{"name":"Mender"}`)},
		"https://elsewhere.example.com": {Name: "Mover", URLOrigin: "https://elsewhere.example.com", EndpointOrigin: "https://api.other.example"},
		"https://inside.example.com":    {Name: "In", URLOrigin: "https://inside.example.com", EndpointOrigin: "https://10.0.0.1"},
		"https://nameless.example.com":  {URLOrigin: "https://nameless.example.com", EndpointOrigin: "https://nameless.example.com"},
	}}
	var err error
	if w.store, err = store.Open(t.Context(), store.Options{Path: w.path}); err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() { w.store.Close() })
	w.service = func(master byte, stdio bool) *access.Service {
		ring, err := secret.NewKeyring(bytes.Repeat([]byte{master}, secret.KeySize))
		if err != nil {
			t.Fatal(err)
		}
		return access.New(access.Config{Tenants: w.store, Keys: w.store, People: w.store, Audit: w.store, Settings: w.store, Secrets: w.store, Servers: w.store, Versions: w.store,
			Keyring: ring, Cards: w.out, Egress: w.out, Clock: w.clock, NewID: ident.New, AllowStdio: stdio})
	}
	w.Service = w.service(1, false)
	return w
}

// put sets a setting to a JSON value.
func (w *world) put(t *testing.T, key, value string) (*access.SettingView, error) {
	t.Helper()
	in := &access.PutSettingIn{Key: key}
	in.Body.Value = json.RawMessage(value)
	return w.SettingsPut(t.Context(), w.by, in)
}

func (w *world) mustPut(t *testing.T, key, value string) *access.SettingView {
	t.Helper()
	v, err := w.put(t, key, value)
	if err != nil {
		t.Fatalf("put %s %s: %v", key, value, err)
	}
	return v
}

func (w *world) get(t *testing.T, key string) *access.SettingView {
	t.Helper()
	v, err := w.SettingsGet(t.Context(), w.by, &access.GetSettingIn{Key: key})
	if err != nil {
		t.Fatalf("get %s: %v", key, err)
	}
	return v
}

func (w *world) putSecret(t *testing.T, name, value string) {
	t.Helper()
	in := &access.PutSecretIn{Name: name}
	in.Body.Value = value
	if _, err := w.SecretsPut(t.Context(), w.by, in); err != nil {
		t.Fatalf("put secret %s: %v", name, err)
	}
}

func (w *world) putServer(t *testing.T, id string, spec access.ServerSpec) (*access.ServerView, error) {
	t.Helper()
	return w.ServersPut(t.Context(), w.by, &access.PutServerIn{ID: id, Body: spec})
}

// mask masks a text as the workspace's masker does.
func (w *world) mask(t *testing.T, text string) string {
	t.Helper()
	m, err := w.Masker(t.Context(), w.by.Workspace)
	if err != nil {
		t.Fatalf("Masker: %v", err)
	}
	return m.Text(text)
}

func wantError(t *testing.T, what string, err error, code flow.Code, says ...string) {
	t.Helper()
	if got := flow.CodeOf(err); got != code {
		t.Errorf("%s: got %q (%v), want %q", what, got, err, code)
		return
	}
	if err == nil {
		return
	}
	for _, text := range says {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("%s: got %q, want it to say %q", what, err, text)
		}
	}
}

// notStored fails if a text stands in the database's files in the clear.
func (w *world) notStored(t *testing.T, texts ...string) {
	t.Helper()
	for _, name := range []string{w.path, w.path + "-wal"} {
		file, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range texts {
			if bytes.Contains(file, []byte(text)) {
				t.Errorf("%s holds %q in the clear", filepath.Base(name), text)
			}
		}
	}
}

func text(v *access.SettingView) string {
	if v.Value == nil {
		return "<none>"
	}
	return *v.Value
}
