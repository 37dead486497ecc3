package access_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/longstop-dev/longstop/internal/access"
	"github.com/longstop-dev/longstop/internal/flow"
)

func TestSecretsAreSealedMaskedAndNeverShown(t *testing.T) {
	t.Parallel()
	const value, next = "s3cr3t-value-1", "another-value-2"
	w := newWorld(t)
	if got := w.mask(t, value); got != value {
		t.Fatalf("masked %q before there was a secret", got)
	}
	w.putSecret(t, "api", value)
	if got, want := w.mask(t, "x "+value), "x [secret:api]"; got != want {
		t.Errorf("masked %q, want %q", got, want)
	}
	w.putSecret(t, "api", next)
	if got, want := w.mask(t, value+" "+next), value+" [secret:api]"; got != want {
		t.Errorf("masked %q, want %q", got, want)
	}
	values, err := w.Values(t.Context(), w.by.Workspace)
	if err != nil || len(values) != 1 || values["api"] != next {
		t.Errorf("Values = %v, %v; want api alone", values, err)
	}
	list, err := w.SecretsList(t.Context(), w.by, nil)
	raw, _ := json.Marshal(list)
	if err != nil || len(list.Items) != 1 || strings.Contains(string(raw), next) {
		t.Errorf("listed %s, %v; want the name alone", raw, err)
	}
	w.notStored(t, value, next)
	if _, err := w.SecretsDelete(t.Context(), w.by, &access.SecretIn{Name: "api"}); err != nil {
		t.Fatal(err)
	}
	if values, _ := w.Values(t.Context(), w.by.Workspace); len(values) != 0 {
		t.Errorf("Values = %v after the delete, want none", values)
	}
	_, err = w.SecretsDelete(t.Context(), w.by, &access.SecretIn{Name: "api"})
	wantError(t, "deleted again", err, flow.CodeNotFound)
}

func TestSecretsPutRefuses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, tt := range []struct {
		name, value string
		code        flow.Code
		says        string
	}{
		{"api", "1234567", flow.CodeInvalid, "shorter than 8 bytes"},
		{"api", "", flow.CodeInvalid, "shorter than 8 bytes"},
		{"api", strings.Repeat("x", 64<<10+1), flow.CodeTooLarge, "65536"},
		{"api", "12345678\xff", flow.CodeInvalid, "UTF-8"},
		{"1api", "12345678", flow.CodeInvalid, "no digit first"},
		{"a-b", "12345678", flow.CodeInvalid, "letters, digits and underscores"},
		{"recovery.a2a_auth_token", "12345678", flow.CodeInvalid, "name"},
		{strings.Repeat("a", 65), "12345678", flow.CodeInvalid, "64 at most"},
	} {
		in := &access.PutSecretIn{Name: tt.name}
		in.Body.Value = tt.value
		_, err := w.SecretsPut(t.Context(), w.by, in)
		wantError(t, clipped(tt.name)+" "+clipped(tt.value), err, tt.code, tt.says)
		if len(tt.value) > 4 && err != nil && strings.Contains(err.Error(), tt.value) {
			t.Errorf("%s: the error shows the value", tt.name)
		}
	}
}

func clipped(s string) string { return s[:min(len(s), 30)] }

func TestAnotherMasterKeyIsNoticedAtTheStart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	other := w.service(2, false)
	if _, _, err := other.Bootstrap(t.Context(), access.Founding{}); err != nil {
		t.Errorf("nothing is sealed yet: %v", err)
	}
	w.putSecret(t, "api", "12345678")
	other = w.service(2, false)
	_, _, err := other.Bootstrap(t.Context(), access.Founding{})
	wantError(t, "another key", err, flow.CodeUnavailable, "secret/api cannot be read", "another master key", "start the server with the master key")
	_, err = other.Masker(t.Context(), w.by.Workspace)
	wantError(t, "a masker that would miss it", err, flow.CodeUnavailable)
	if _, _, err := w.service(1, false).Bootstrap(t.Context(), access.Founding{}); err != nil {
		t.Errorf("the right key: %v", err)
	}
}

// spec: R-041 R-112
func TestServers(t *testing.T) {
	t.Parallel()
	const token = "mcp-token-0815"
	w := newWorld(t)
	v, err := w.putServer(t, "mine", access.ServerSpec{URL: "https://mcp.example.com/mcp", Transport: "sse",
		Headers: map[string]string{"Authorization": "Bearer " + token, "X-Key": "key-of-the-server", "Accept-Language": "de-DE,de;q=0.9"}})
	if err != nil {
		t.Fatal(err)
	}
	raw, _ := json.Marshal(v)
	if want := []string{"Accept-Language", "Authorization", "X-Key"}; !slices.Equal(v.Headers, want) || strings.Contains(string(raw), token) {
		t.Errorf("put answers %s, want the headers' names alone", raw)
	}
	got, headers, err := w.Server(t.Context(), w.by.Workspace, "mine")
	if err != nil || got.Transport != "sse" || headers["Authorization"] != "Bearer "+token {
		t.Errorf("Server = %+v, %d headers, %v; want it with its headers", got, len(headers), err)
	}
	if got, want := w.mask(t, "Bearer "+token+" key-of-the-server de-DE,de;q=0.9"),
		"Bearer [secret:mcp-servers.mine.Authorization] [secret:mcp-servers.mine.X-Key] de-DE,de;q=0.9"; got != want {
		t.Errorf("masked %q, want %q", got, want)
	}
	w.notStored(t, token, "key-of-the-server")

	v, err = w.putServer(t, "mine", access.ServerSpec{URL: "https://mcp.example.com/v2"})
	if err != nil || len(v.Headers) != 3 || len(v.Warnings) != 0 {
		t.Errorf("another path: %+v, %v; want the headers kept", v, err)
	}
	v, err = w.putServer(t, "mine", access.ServerSpec{URL: "https://evil.example.com/mcp"})
	if err != nil || len(v.Headers) != 0 || len(v.Warnings) != 1 {
		t.Errorf("another origin: %+v, %v; want the headers gone, and a warning", v, err)
	}
	if _, headers, _ := w.Server(t.Context(), w.by.Workspace, "mine"); len(headers) != 0 {
		t.Errorf("%d headers go to the other origin, want none", len(headers))
	}
	_, _, err = w.Server(t.Context(), "ws_other", "mine")
	wantError(t, "from another workspace", err, flow.CodeNotFound)

	in := &access.CreateServerIn{}
	in.Body.ID, in.Body.URL = "mine", "https://mcp.example.com"
	_, err = w.ServersCreate(t.Context(), w.by, in)
	wantError(t, "created twice", err, flow.CodeConflict, "PUT /v1/mcp-servers/mine")
}

func TestServersPutRefuses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	header := func(name, value string) access.ServerSpec {
		return access.ServerSpec{URL: "https://mcp.example.com", Headers: map[string]string{name: value}}
	}
	for _, tt := range []struct {
		id   string
		spec access.ServerSpec
		code flow.Code
		says string
	}{
		{"a b", access.ServerSpec{URL: "https://mcp.example.com"}, flow.CodeInvalid, "id"},
		{"a", access.ServerSpec{}, flow.CodeInvalid, "url: there is no URL"},
		{"a", access.ServerSpec{URL: "mcp.example.com"}, flow.CodeInvalid, "no absolute URL"},
		{"a", access.ServerSpec{URL: "https://10.0.0.1"}, flow.CodeInvalid, "may not be called"},
		{"a", access.ServerSpec{URL: "https://mcp.example.com", Transport: "carrier-pigeon"}, flow.CodeInvalid, "transport"},
		{"a", access.ServerSpec{URL: "https://mcp.example.com", Transport: "sse", Command: []string{"x"}}, flow.CodeInvalid, "command"},
		{"a", access.ServerSpec{Command: []string{"./agent"}}, flow.CodeForbidden, "starts no commands"},
		{"a", header("Host", "x"), flow.CodeInvalid, "the client sets this header itself"},
		{"a", header("X Key", "x"), flow.CodeInvalid, "no header name"},
		{"a", header("X-Key", "private\r\nX-More: 1"), flow.CodeInvalid, "headers.X-Key"},
	} {
		_, err := w.putServer(t, tt.id, tt.spec)
		wantError(t, fmt.Sprintf("%s %+v", tt.id, tt.spec), err, tt.code, tt.says)
		if err != nil && strings.Contains(err.Error(), "private") {
			t.Errorf("the error shows a header's value: %v", err)
		}
	}
}

func TestStdioOnlyWhereAllowed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	serve := w.Service
	w.Service = w.service(1, true)
	v, err := w.putServer(t, "mine", access.ServerSpec{Command: []string{"./agent", "--fast"}})
	if err != nil || v.Transport != "stdio" {
		t.Fatalf("got %+v, %v; want a server over stdio", v, err)
	}
	if got, _, err := w.Server(t.Context(), w.by.Workspace, "mine"); err != nil || len(got.Command) != 2 {
		t.Errorf("got %+v, %v; want the command", got, err)
	}
	_, _, err = serve.Server(t.Context(), w.by.Workspace, "mine")
	wantError(t, "a server that starts no commands", err, flow.CodeForbidden, "starts no commands")
}

func TestServerThatRecoveryAsksStays(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if _, err := w.putServer(t, "mine", access.ServerSpec{URL: "https://mcp.example.com"}); err != nil {
		t.Fatal(err)
	}
	w.mustPut(t, "recovery.mcp_server_id", `"mine"`)
	_, err := w.ServersDelete(t.Context(), w.by, &access.ServerIn{ID: "mine"})
	wantError(t, "while it is named", err, flow.CodeConflict, "recovery.mcp_server_id")
	w.mustPut(t, "recovery.mcp_server_id", `""`)
	if _, err := w.ServersDelete(t.Context(), w.by, &access.ServerIn{ID: "mine"}); err != nil {
		t.Errorf("after the setting is gone: %v", err)
	}
	_, err = w.ServersGet(t.Context(), w.by, &access.ServerIn{ID: "mine"})
	wantError(t, "gone", err, flow.CodeNotFound)
}

// TestWritesAreSeenAtOnce has readers fill the memory while a writer writes:
// after a write, no reader may get what was before it.
func TestWritesAreSeenAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	stop := make(chan struct{})
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if _, err := w.Values(t.Context(), w.by.Workspace); err != nil {
					t.Errorf("Values: %v", err)
					return
				}
			}
		})
	}
	for i := range 50 {
		value := fmt.Sprintf("value-number-%03d", i)
		w.putSecret(t, "api", value)
		if got, err := w.Values(t.Context(), w.by.Workspace); err != nil || got["api"] != value {
			t.Errorf("after writing %s: %s, %v", value, got["api"], err)
		}
	}
	close(stop)
	readers.Wait()
}
