package a2a_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/longstop-dev/longstop/internal/a2a"
	"github.com/longstop-dev/longstop/internal/nodetest"
)

// kind is one real server in one configuration. It serves an agent of each
// behaviour below its URL: message, task, slow, fail, input.
type kind struct {
	url     string
	dialect a2a.Dialect
	rest    bool
}

// startAll runs the official SDKs, in both generations and both bindings.
func startAll(t *testing.T) map[string]kind {
	return map[string]kind{
		"js 1.3":             {url: nodetest.Start(t, "js13", "COMPAT=0"), dialect: a2a.V1},
		"js 1.3 with compat": {url: nodetest.Start(t, "js13", "COMPAT=1"), dialect: a2a.V1},
		"js 0.3":             {url: nodetest.Start(t, "js03"), dialect: a2a.V03},
		"go rpc":             {url: startGo(t, "rpc"), dialect: a2a.V1},
		"go rest":            {url: startGo(t, "rest"), dialect: a2a.V1, rest: true},
		"go 0.3":             {url: startGo(t, "v0"), dialect: a2a.V03},
	}
}

// TestSDKs is what recovery and agent turns do, against every server.
//
// spec: R-070 R-092 A-037 A-038 A-041
func TestSDKs(t *testing.T) {
	t.Parallel()
	all := startAll(t)
	for name, k := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			t.Run("recovery by message", func(t *testing.T) { t.Parallel(); askToRecover(t, k, "/message", "") })
			t.Run("recovery by task", func(t *testing.T) { t.Parallel(); askToRecover(t, k, "/task", "") })
			if k.rest {
				return // an agent turn needs a card with JSON-RPC
			}
			t.Run("answer", func(t *testing.T) { t.Parallel(); turnAnswer(t, k) })
			t.Run("failure", func(t *testing.T) { t.Parallel(); turnEnds(t, k, "/fail", a2a.StateFailed, "upstream exploded") })
			t.Run("question", func(t *testing.T) { t.Parallel(); turnEnds(t, k, "/input", a2a.StateInputRequired, "Which city?") })
			t.Run("cancel", func(t *testing.T) { t.Parallel(); turnCancel(t, k) })
		})
	}
	// What the user typed leads to an endpoint, and no card can be read.
	for name, tc := range map[string]struct {
		of, path string
		dialect  a2a.Dialect
		rest     bool
	}{
		"js 1.3 rest": {of: "js 1.3", path: "/rest", dialect: a2a.V1, rest: true},
		"js 1.3 rpc":  {of: "js 1.3", path: "/rpc", dialect: a2a.Recovery},
		"js 0.3 rpc":  {of: "js 0.3", path: "/rpc", dialect: a2a.V03},
		"go rest":     {of: "go rest", path: "/rest", dialect: a2a.V1, rest: true},
		"go rpc":      {of: "go rpc", path: "/rpc", dialect: a2a.Recovery},
		"go 0.3 rpc":  {of: "go 0.3", path: "/v0", dialect: a2a.V03},
	} {
		k := kind{url: all[tc.of].url, dialect: tc.dialect, rest: tc.rest}
		for _, behaviour := range []string{"/message", "/task"} {
			t.Run("no card, "+name+behaviour, func(t *testing.T) { t.Parallel(); askToRecover(t, k, behaviour, tc.path) })
		}
	}
}

// askToRecover asks about a failed step. A path beyond the agent's URL stands for
// an endpoint whose card cannot be read.
func askToRecover(t *testing.T, k kind, behaviour, path string) {
	ctx := withDeadline(t, 60*time.Second)
	c := realTime()
	q := recovery(k.url+behaviour+path, nil)
	q.Input = json.RawMessage(`{"schema_version":"1.0","step":{"id":"s","n":[1,2.5,null,"é"]}}`)
	if path == "" {
		var err error
		if q.Card, err = c.FetchCard(ctx, q.URL); err != nil {
			t.Fatal(err)
		}
		if needs, err := q.Card.NeedsToken(); !needs || err != nil {
			t.Errorf("NeedsToken: got %t, %v, want true of %+v", needs, err, q.Card)
		}
	}
	action, meta, err := c.Ask(ctx, q)
	if err != nil {
		t.Fatalf("over %+v: %v", meta.Route, err)
	}
	var got struct {
		Type   string
		Output struct{ Input any }
	}
	var want any
	_ = json.Unmarshal(q.Input, &want) // written above
	if err := json.Unmarshal(action, &got); err != nil || got.Type != "fixed_output" || !reflect.DeepEqual(got.Output.Input, want) {
		t.Errorf("got %s, %v, want a fixed_output that echoes %s", action, err, q.Input)
	}
	if meta.Route.Dialect != k.dialect || meta.Route.REST != k.rest || (meta.TaskID != "") != (behaviour == "/task") {
		t.Errorf("got %+v, want dialect %s, REST: %t", meta, k.dialect, k.rest)
	}
}

// realTime polls with the real timer: these servers work for a moment.
func realTime() *a2a.Client {
	c := newClient()
	c.Wait = nil
	return c
}

func turnOut(contextID string) a2a.Out {
	return a2a.Out{ID: "1", MessageID: "m-" + contextID, ContextID: contextID, Text: "hello", Data: json.RawMessage(`{"a":1}`), ReturnImmediately: true,
		AcceptedOutputModes: []string{"text/plain", "application/json"}, Metadata: map[string]any{"vaultId": "v", "taskId": "ours", "onBehalfOf": ""}}
}

// begin sends the first message of a context.
func begin(t *testing.T, k kind, behaviour string) (*a2a.Client, a2a.Target, a2a.Route, *a2a.Answer) {
	t.Helper()
	ctx := withDeadline(t, 60*time.Second)
	c := realTime()
	card, err := c.FetchCard(ctx, k.url+behaviour)
	if err != nil {
		t.Fatal(err)
	}
	target := a2a.Target{Card: card}
	a, route, err := c.Send(ctx, target, turnOut(""))
	if err != nil || !a.Task || a.ID == "" || a.ContextID == "" || route.Dialect != k.dialect {
		t.Fatalf("got %+v over %+v, %v, want a task in a context, dialect %s", a, route, err, k.dialect)
	}
	return c, target, route, a
}

func turnAnswer(t *testing.T, k kind) {
	ctx := withDeadline(t, 60*time.Second)
	c, target, route, first := begin(t, k, "/task")
	if first.State.Terminal() {
		t.Errorf("got %s at once, want the server to return immediately", first.State)
	}
	a, err := c.Poll(ctx, target, route, first, a2a.RecoveryBackoff())
	if err != nil || a.State != a2a.StateCompleted || a.Text() != "the answer" {
		t.Fatalf("got %+v, %v, want the answer", a, err)
	}
	second, _, err := c.Send(ctx, target, turnOut(a.ContextID))
	if err == nil {
		second, err = c.Poll(ctx, target, route, second, a2a.RecoveryBackoff())
	}
	if err != nil || second.ContextID != a.ContextID || second.ID == a.ID {
		t.Fatalf("got %+v, %v, want another task in context %s", second, err, a.ContextID)
	}
	var got map[string]any
	if err := json.Unmarshal(second.Data(), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"text": "hello", "data": map[string]any{"a": 1.0}, "contextId": a.ContextID,
		"metadata": map[string]any{"vaultId": "v", "taskId": "ours", "onBehalfOf": ""}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the agent saw %v, want %v", got, want)
	}
}

func turnEnds(t *testing.T, k kind, behaviour string, state a2a.State, text string) {
	c, target, route, first := begin(t, k, behaviour)
	a, err := c.Poll(withDeadline(t, 60*time.Second), target, route, first, a2a.RecoveryBackoff())
	if err != nil || a.State != state || a.Text() != text {
		t.Errorf("got %+v, %v, want %s and %q", a, err, state, text)
	}
}

func turnCancel(t *testing.T, k kind) {
	ctx := withDeadline(t, 60*time.Second)
	c, target, route, first := begin(t, k, "/slow")
	if _, err := c.CancelTask(ctx, target, route, first.ID); err != nil {
		t.Fatalf("CancelTask: %v", err)
	}
	a, err := c.Poll(ctx, target, route, first, a2a.RecoveryBackoff())
	if err != nil || a.State != a2a.StateCanceled {
		t.Errorf("got %+v, %v, want it canceled", a, err)
	}
	var spoken *a2a.RPCError
	if _, err := c.GetTask(ctx, target, route, "no-such-task"); !errors.As(err, &spoken) || spoken.Code != -32001 {
		t.Errorf("GetTask of no task: got %v, want error -32001", err)
	}
}
