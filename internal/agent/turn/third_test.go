package turn_test

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2acompat/a2av0"
	"github.com/a2aproject/a2a-go/v2/a2asrv"

	"github.com/longstop-dev/longstop/internal/agent/token"
	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/nodetest"
)

// executor works until it is told to end, on a2a-go.
type executor struct{ end chan struct{} }

func (x executor) Execute(ctx context.Context, ec *a2asrv.ExecutorContext) iter.Seq2[sdk.Event, error] {
	return func(yield func(sdk.Event, error) bool) {
		if !yield(sdk.NewSubmittedTask(ec, ec.Message), nil) {
			return
		}
		if !yield(sdk.NewStatusUpdateEvent(ec, sdk.TaskStateWorking, sdk.NewMessageForTask(sdk.MessageRoleAgent, ec, sdk.NewTextPart("reading"))), nil) {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-x.end:
		}
		var text string
		var data any
		for _, p := range ec.Message.Parts {
			if p.Text() != "" {
				text = p.Text()
			}
			if p.Data() != nil {
				data = p.Data()
			}
		}
		if yield(sdk.NewArtifactEvent(ec, sdk.NewTextPart("you said "+text), sdk.NewDataPart(map[string]any{"data": data, "contextId": ec.Message.ContextID, "metadata": ec.Message.Metadata})), nil) {
			yield(sdk.NewStatusUpdateEvent(ec, sdk.TaskStateCompleted, nil), nil)
		}
	}
}

func (executor) Cancel(_ context.Context, ec *a2asrv.ExecutorContext) iter.Seq2[sdk.Event, error] {
	return func(yield func(sdk.Event, error) bool) {
		yield(sdk.NewStatusUpdateEvent(ec, sdk.TaskStateCanceled, nil), nil)
	}
}

// goAgent serves an agent on a2a-go that speaks 1.0, or 0.3 only.
func goAgent(t *testing.T, old bool) (card string, x executor) {
	t.Helper()
	x = executor{end: make(chan struct{}, 8)}
	mux := http.NewServeMux()
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	h := a2asrv.NewHandler(x)
	offer := sdk.NewAgentInterface(srv.URL+"/rpc", sdk.TransportProtocolJSONRPC)
	described := &sdk.AgentCard{Name: "go", Description: "sample", Version: "1.0.0", SupportedInterfaces: []*sdk.AgentInterface{offer},
		DefaultInputModes: []string{"text/plain"}, DefaultOutputModes: []string{"text/plain"}}
	if old {
		offer.ProtocolVersion = "0.3"
		mux.Handle("/rpc", a2av0.NewJSONRPCHandler(h))
		mux.Handle(a2asrv.WellKnownAgentCardPath, a2asrv.NewAgentCardHandler(a2av0.NewStaticAgentCardProducer(described)))
	} else {
		mux.Handle("/rpc", a2asrv.NewJSONRPCHandler(h))
		mux.Handle(a2asrv.WellKnownAgentCardPath, a2asrv.NewStaticAgentCardHandler(described))
	}
	return srv.URL, x
}

// A whole conversation with somebody else's server: progress while it works,
// the answer with every member, and the context of the Job in the next turn.
//
// spec: A-038
// spec: A-040
// spec: A-041
// spec: A-045
// spec: A-048
// spec: A-049
// spec: A-050
// spec: A-053
// spec: A-061
// spec: A-063
// spec: A-066
// spec: A-067
// spec: A-068
func TestATurnOfAnAgentOnAnotherSDK(t *testing.T) {
	t.Parallel()
	for name, old := range map[string]bool{"1.0": false, "0.3": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			card, x := goAgent(t, old)
			b := newBed(t, card)
			first := b.ask(`{"text":"hi","n":1}`, `{"correlation":{"run":"r","n":[1]},"more":true}`)
			b.until("progress", func() bool { return len(b.events(flow.EventAgentProgress, first.ID)) > 0 })
			x.end <- struct{}{}
			a := b.answer(first)
			var echo struct {
				Data      map[string]any
				ContextID string
				Metadata  map[string]any
			}
			if err := json.Unmarshal(a.Data, &echo); err != nil {
				t.Fatalf("data %s: %v", a.Data, err)
			}
			if a.AgentID != agentID || a.Agent != "helper" || a.Text != "you said hi" || a.State != "TASK_STATE_COMPLETED" || a.A2ATaskID == "" || a.JobID == "" || a.TaskID == "" || a.Code+a.Error != "" {
				t.Errorf("answer: %+v", a)
			}
			if echo.ContextID != "" && !old || echo.Data["n"] != 1.0 || len(echo.Data) != 1 {
				t.Errorf("the agent saw: %+v", echo)
			}
			want := map[string]any{"vaultId": first.Vault, "jobId": a.JobID, "taskId": a.TaskID, "scope": "default", "context": "", "engagement": b.con,
				"eventType": "question.asked", "onBehalfOf": adaKey}
			for k, v := range want {
				if echo.Metadata[k] != v {
					t.Errorf("metadata.%s: got %v, want %v", k, echo.Metadata[k], v)
				}
			}
			e := b.events(flow.EventAgentAnswered, first.ID)[0]
			if string(e.Metadata) != `{"correlation":{"run":"r","n":[1]}}` || strings.Join(e.Parents, " ") != first.ID || e.Author != (flow.EventAuthor{Kind: flow.AuthorAgent, ID: agentID}) {
				t.Errorf("event: %+v", e)
			}
			second := b.ask(`{"question":"and now?"}`, ``)
			x.end <- struct{}{}
			again := b.answer(second)
			echo.Data = nil
			if err := json.Unmarshal(again.Data, &echo); err != nil || echo.ContextID == "" || echo.Data != nil {
				t.Errorf("the second turn: %s, %v", again.Data, err)
			}
			if again.JobID != a.JobID || again.TaskID == a.TaskID || again.A2ATaskID == a.A2ATaskID || again.Text != "you said and now?" {
				t.Errorf("the second turn: %+v", again)
			}
		})
	}
}

// TestTurnsOfTheJavaScriptSDK: the same against the official servers in Node,
// of both generations, and the one that speaks both.
//
// spec: A-039
// spec: A-054
func TestTurnsOfTheJavaScriptSDK(t *testing.T) {
	t.Parallel()
	for name, server := range map[string][]string{"1.3.0": {"js13", "COMPAT=0"}, "1.3.0 with 0.3": {"js13", "COMPAT=1"}, "0.3.14": {"js03"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := nodetest.StartIn(t, filepath.Join("..", "..", "a2a"), server[0], server[1:]...)
			for path, want := range map[string]payload{
				"/message": {State: "TASK_STATE_COMPLETED", Text: "the answer"},
				"/task":    {State: "TASK_STATE_COMPLETED", Text: "the answer"},
				"/input":   {State: "TASK_STATE_INPUT_REQUIRED", Text: "Which city?"},
				"/fail":    {State: "TASK_STATE_FAILED", Text: "upstream exploded", Code: flow.TurnAgentFailed},
			} {
				b := newBed(t, url+path, func(b *bed) { b.mints = func(token.Claims) (string, error) { return "t", nil } })
				a := b.answer(b.ask(`{"text":"hi","n":1}`, ``))
				if a.State != want.State || a.Text != want.Text || a.Code != want.Code {
					t.Errorf("%s: got %+v, want %+v", path, a, want)
				}
			}
		})
	}
}
