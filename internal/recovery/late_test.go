package recovery

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/longstop-dev/longstop/internal/flow"
)

const late = "late-secret-0123456789"

type noting struct{ q flow.Question }

func (n *noting) Try(_ context.Context, _ flow.AgentRef, q flow.Question) (flow.Sighting, flow.Answer, error) {
	n.q = q
	return flow.Sighting{Found: true}, flow.Answer{Action: json.RawMessage(`{"type":"needs_human","diagnosis":"d","suggestion":"s"}`)}, nil
}

// holding reports whether anything of v holds the late secret.
func holding(t *testing.T, v any) bool {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Contains(string(raw), late)
}

// A secret that was stored after a case was frozen is masked when an agent is
// asked about it anew.
func TestAReplayMasksSecretsOfToday(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.cases = []flow.Case{{ID: "case_1", Workspace: "ws", RunID: "run_1", StepIndex: 1, Contract: json.RawMessage(`{"description":"` + late + `"}`),
		Input: flow.RecoveryInput{SchemaVersion: 1, Step: flow.RecoveryStep{Type: "http_request", Title: late, Intent: late,
			Config: json.RawMessage(`{"method":"GET","url":"https://api.example.com/","headers":{"X":"` + late + `"}}`)},
			Error: "HTTP 500: Internal Server Error\ntoken " + late, PriorOutputs: map[string]string{"0": late}, WorkflowInput: json.RawMessage(`{"t":"` + late + `"}`)},
		Response: &flow.Response{Status: 500, Body: late}}}
	b.secrets["late"] = late
	asked := &noting{}
	b.trier = asked
	if _, err := b.desk().CasesReplay(t.Context(), flow.Caller{Workspace: "ws"}, &ReplayIn{ID: "case_1", Body: AgentSpec{Agent: "https://agent.example"}}); err != nil {
		t.Fatal(err)
	}
	if asked.q.Input.Step.Title != "[secret:late]" || holding(t, []any{asked.q.Input, asked.q.Response, asked.q.Contract, asked.q.Failed}) {
		t.Errorf("the agent was sent %+v", asked.q)
	}
}

// The built-in answers a case that has waited in the inbox meanwhile: the
// built-in may be a model elsewhere.
func TestACaseOfTheInboxIsMaskedAgain(t *testing.T) {
	t.Parallel()
	b, f := newBed(t), httpFailure()
	b.settings.Mode, f.Step.Title, f.Step.Output = "agent", late, json.RawMessage(`{"description":"`+late+`"}`)
	v := b.decide(f)
	if !holding(t, v.Case) {
		t.Fatal("the case holds nothing")
	}
	b.secrets["late"], b.rules.answer = late, fixed
	after := b.desk().Expired(t.Context(), f, v.Case, *v.Gate)
	q := b.rules.asked[0]
	if q.Input.Step.Title != "[secret:late]" || holding(t, q.Input) || holding(t, q.Contract) {
		t.Errorf("the built-in was asked %+v", q)
	}
	if holding(t, after.Case) {
		t.Errorf("the case is kept as %+v", after.Case)
	}
}
