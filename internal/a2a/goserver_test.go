package a2a_test

import (
	"context"
	"iter"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2acompat/a2av0"
	"github.com/a2aproject/a2a-go/v2/a2asrv"
)

// goExecutor behaves like the servers in testdata/js, on a2a-go.
type goExecutor string

func (behaviour goExecutor) Execute(ctx context.Context, ec *a2asrv.ExecutorContext) iter.Seq2[sdk.Event, error] {
	return func(yield func(sdk.Event, error) bool) {
		says := func(parts ...*sdk.Part) *sdk.Message {
			return sdk.NewMessageForTask(sdk.MessageRoleAgent, ec, parts...)
		}
		status := func(state sdk.TaskState, m *sdk.Message) bool {
			return yield(sdk.NewStatusUpdateEvent(ec, state, m), nil)
		}
		if behaviour == "/message" {
			m := sdk.NewMessage(sdk.MessageRoleAgent, goAnswer(ec.Message)...)
			m.ContextID = ec.ContextID
			yield(m, nil)
			return
		}
		if !yield(sdk.NewSubmittedTask(ec, ec.Message), nil) {
			return
		}
		if behaviour == "/input" {
			status(sdk.TaskStateInputRequired, says(sdk.NewTextPart("Which city?")))
			return
		}
		if !status(sdk.TaskStateWorking, says(sdk.NewTextPart("thinking"))) {
			return
		}
		work := 50 * time.Millisecond
		if behaviour == "/slow" {
			work = time.Hour
		}
		timer := time.NewTimer(work)
		defer timer.Stop()
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		if behaviour == "/fail" {
			status(sdk.TaskStateFailed, says(sdk.NewTextPart("upstream exploded")))
			return
		}
		if yield(sdk.NewArtifactEvent(ec, goAnswer(ec.Message)...), nil) {
			status(sdk.TaskStateCompleted, nil)
		}
	}
}

func (goExecutor) Cancel(_ context.Context, ec *a2asrv.ExecutorContext) iter.Seq2[sdk.Event, error] {
	return func(yield func(sdk.Event, error) bool) {
		yield(sdk.NewStatusUpdateEvent(ec, sdk.TaskStateCanceled, nil), nil)
	}
}

// goAnswer is an action if the agent is asked about a failed step, else an echo.
func goAnswer(m *sdk.Message) []*sdk.Part {
	var text string
	var data any
	for _, p := range m.Parts {
		if p.Text() != "" {
			text = p.Text()
		}
		if p.Data() != nil {
			data = p.Data()
		}
	}
	if input, ok := data.(map[string]any); ok && input["schema_version"] != nil {
		return []*sdk.Part{sdk.NewDataPart(map[string]any{"type": "fixed_output", "diagnosis": "served by a2a-go", "output": map[string]any{"input": data}})}
	}
	return []*sdk.Part{sdk.NewTextPart("the answer"), sdk.NewDataPart(map[string]any{"text": text, "data": data, "contextId": m.ContextID, "metadata": m.Metadata})}
}

// startGo serves one agent of each behaviour on a2a-go in this process. Their
// cards offer one interface only: rpc, rest or v0.
func startGo(t *testing.T, only string) string {
	t.Helper()
	mux := http.NewServeMux()
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	for _, behaviour := range []string{"/message", "/task", "/slow", "/fail", "/input"} {
		serveGo(mux, srv.URL, only, behaviour)
	}
	return srv.URL
}

func serveGo(mux *http.ServeMux, base, only, behaviour string) {
	h := a2asrv.NewHandler(goExecutor(behaviour))
	mux.Handle(behaviour+"/rpc", a2asrv.NewJSONRPCHandler(h))
	mux.Handle(behaviour+"/rest/", http.StripPrefix(behaviour+"/rest", a2asrv.NewRESTHandler(h)))
	mux.Handle(behaviour+"/v0", a2av0.NewJSONRPCHandler(h))
	binding := sdk.TransportProtocolJSONRPC
	if only == "rest" {
		binding = sdk.TransportProtocolHTTPJSON
	}
	offer := sdk.NewAgentInterface(base+behaviour+"/"+only, binding)
	if only == "v0" {
		offer.ProtocolVersion = "0.3"
	}
	card := &sdk.AgentCard{
		Name: "go", Description: "sample", Version: "1.0.0", SupportedInterfaces: []*sdk.AgentInterface{offer},
		DefaultInputModes: []string{"text/plain"}, DefaultOutputModes: []string{"text/plain"},
		SecuritySchemes:      sdk.NamedSecuritySchemes{"jwt": sdk.HTTPAuthSecurityScheme{Scheme: "Bearer", BearerFormat: "JWT"}},
		SecurityRequirements: sdk.SecurityRequirementsOptions{{"jwt": {}}},
	}
	cards := a2asrv.NewStaticAgentCardHandler(card)
	if only == "v0" { // the card of 0.3, which this SDK blends with that of 1.0
		cards = a2asrv.NewAgentCardHandler(a2av0.NewStaticAgentCardProducer(card))
	}
	mux.Handle(behaviour+a2asrv.WellKnownAgentCardPath, cards)
}
