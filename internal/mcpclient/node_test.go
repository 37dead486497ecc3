package mcpclient_test

import (
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/longstop-dev/longstop/internal/mcpclient"
	"github.com/longstop-dev/longstop/internal/nettest"
	"github.com/longstop-dev/longstop/internal/nodetest"
)

func TestTypeScriptServer(t *testing.T) {
	t.Parallel()
	url := nodetest.Start(t, "mcpjs")
	p, seen := newPool(t, mcpclient.Options{})
	srv := mcpclient.Server{ID: "js", URL: url + "/mcp"}
	tools, err := p.Tools(patient(t), srv)
	if err != nil || len(tools) != 3 || tools[0].Name != "diagnose_step_failure" || !strings.Contains(string(tools[0].InputSchema), `"error"`) {
		t.Fatalf("tools: got %+v, %v", tools, err)
	}
	args := json.RawMessage(`{"error":"HTTP 429","step":{"type":"http_request"}}`)
	session := func() string {
		t.Helper()
		r, err := p.Call(patient(t), srv, "diagnose_step_failure", args)
		var v struct{ Type, Diagnosis, Session string }
		if bad := json.Unmarshal(r.Value(), &v); err != nil || r.IsError || bad != nil || v.Type != "retry_with_params" || v.Diagnosis != "http_request: HTTP 429" {
			t.Errorf("diagnose: got %s, %+v, %v", r.Value(), r, err)
		}
		return v.Session
	}
	first := session()
	seen.take()
	if again := session(); again != first {
		t.Errorf("a second call: got session %s, want %s", again, first)
	}
	if got := seen.take(); len(got) != 1 {
		t.Errorf("a second call: got %v, want one request", got)
	}

	r, err := p.Call(patient(t), srv, "text", nil)
	if err != nil || string(r.Value()) != `{"type":"needs_human"}` {
		t.Errorf("text: got %s, %v", r.Value(), err)
	}
	r, err = p.Call(patient(t), srv, "throws", nil)
	if err != nil || !r.IsError || !strings.Contains(strings.Join(r.Text, ""), "boom") {
		t.Errorf("throws: got %+v, %v, want an error of the tool's", r, err)
	}
	r, err = p.Call(patient(t), srv, "diagnose_step_failure", json.RawMessage(`{"error":1}`))
	if err != nil || !r.IsError || !strings.Contains(strings.Join(r.Text, ""), "error") {
		t.Errorf("wrong arguments: got %+v, %v, want an error of the tool's", r, err)
	}
	if r, err = p.Call(patient(t), srv, "nope", nil); !errors.Is(err, mcpclient.ErrNoTool) {
		t.Errorf("unknown tool: got %+v, %v, want %v", r, err, mcpclient.ErrNoTool)
	}

	resp, err := nettest.Client().Post(url+"/forget", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	second := session()
	if second == first || second == "" {
		t.Errorf("after the server forgot it: got session %s still", second)
	}
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			if got := session(); got != second {
				t.Errorf("one of 50 calls: got session %s, want %s", got, second)
			}
		})
	}
	wg.Wait()
}
