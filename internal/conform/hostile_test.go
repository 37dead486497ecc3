package conform

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// TestNastyAgents: an agent may do whatever it likes: a trial ends in time and
// passes nothing, and no request is led elsewhere.
func TestNastyAgents(t *testing.T) {
	t.Parallel()
	endless := func(w http.ResponseWriter, r *http.Request, piece string) {
		for r.Context().Err() == nil {
			if _, err := io.WriteString(w, piece); err != nil {
				return
			}
		}
	}
	var elsewhere atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { elsewhere.Add(1) }))
	t.Cleanup(other.Close)
	card := func(base string) string {
		return fmt.Sprintf(`{"name":"x","url":%q,"supportedInterfaces":[{"url":%q,"protocolBinding":"JSONRPC","protocolVersion":"1.0"}]}`, base+"/rpc", base+"/rpc")
	}
	for name, agent := range map[string]struct {
		card func(w http.ResponseWriter, r *http.Request, base string)
		rpc  http.HandlerFunc
	}{
		"endless answer": {nil, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			endless(w, r, strings.Repeat(" ", 65536))
		}},
		"endless array": {nil, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"x":[`)
			endless(w, r, strings.Repeat("[[],", 16384))
		}},
		"hangs": {nil, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }},
		"hangs in body": {nil, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, `{"jsonrpc":"2.0",`)
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}},
		"redirects": {nil, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
		}},
		"works for ever": {nil, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":1,"result":{"task":{"id":"t","contextId":"c","status":{"state":"TASK_STATE_WORKING"}}}}`)
		}},
		"endless stream": {nil, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			endless(w, r, "data: {}\n\n")
		}},
		"endless card": {func(w http.ResponseWriter, r *http.Request, _ string) {
			endless(w, r, `{"name":"`+strings.Repeat("x", 65536))
		}, nil},
		"card redirects": {func(w http.ResponseWriter, r *http.Request, _ string) {
			http.Redirect(w, r, other.URL, http.StatusFound)
		}, nil},
		"card of many": {func(w http.ResponseWriter, r *http.Request, base string) {
			_, _ = io.WriteString(w, `{"name":"x","url":"`+base+`/rpc","supportedInterfaces":[`+strings.Repeat(`{"url":"`+base+`/rpc","protocolBinding":"JSONRPC","protocolVersion":"1.0"},`, 5000)+`{}]}`)
		}, func(w http.ResponseWriter, r *http.Request) { http.Error(w, "no", 500) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var srv *httptest.Server
			srv = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch {
				case !strings.Contains(r.URL.Path, "agent-card") && agent.rpc != nil:
					agent.rpc(w, r)
				case agent.card != nil:
					agent.card(w, r, srv.URL)
				default:
					_, _ = io.WriteString(w, card(srv.URL))
				}
			}))
			t.Cleanup(srv.CloseClientConnections)
			fails(t, Agent{URL: srv.URL, Token: "tok-1234567890"})
			if elsewhere.Load() > 0 {
				t.Error("a redirect was followed")
			}
		})
	}
}

// fails tries an agent that must not pass, and must not take long to fail.
func fails(t *testing.T, a Agent) {
	t.Helper()
	o := options(t)
	o.Timeout, o.Only = time.Second, []string{"gone"}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if r, err := Run(ctx, a, o); err == nil && r.Passed || ctx.Err() != nil {
		t.Errorf("got %+v, %v, want a failure well within %s", r, err, 30*time.Second)
	}
}

func TestNastyCommands(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"endless line":  "while :; do printf 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx'; done",
		"endless lines": "yes '{}'",
		"gone":          "exit 3",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "agent.sh")
			if err := os.WriteFile(file, []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
				t.Fatal(err)
			}
			fails(t, Agent{Command: []string{file}})
		})
	}
}
