package recovery

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/longstop-dev/longstop/internal/flow"
)

func caller() flow.Caller { return flow.Caller{Workspace: "ws", Person: "p", Role: flow.RoleOwner} }

func TestCasesAndGates(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	for _, id := range []string{"case_3", "case_2", "case_1"} {
		b.cases = append(b.cases, flow.Case{ID: id, Workspace: "ws"})
	}
	for _, id := range []string{"gate_1", "gate_2"} {
		b.gates = append(b.gates, flow.Gate{ID: id, Workspace: "ws"})
	}
	d := b.desk()
	page, err := d.CasesList(t.Context(), caller(), &CasesListIn{Limit: 2})
	if err != nil || len(page.Items) != 2 || page.Items[0].ID != "case_3" || page.Next != "case_2" {
		t.Fatalf("first page = %+v, %v", page, err)
	}
	page, err = d.CasesList(t.Context(), caller(), &CasesListIn{Limit: 2, After: page.Next})
	if err != nil || len(page.Items) != 1 || page.Items[0].ID != "case_1" || page.Next != "" {
		t.Errorf("second page = %+v, %v", page, err)
	}
	gates, err := d.GatesList(t.Context(), caller(), &GatesListIn{})
	if err != nil || len(gates.Items) != 2 || gates.Next != "" {
		t.Errorf("gates = %+v, %v", gates, err)
	}
	if raw, _ := json.Marshal(paged([]flow.Gate(nil), 5, func(g flow.Gate) string { return g.ID })); string(raw) != `{"items":[],"next":""}` {
		t.Errorf("an empty page = %s", raw)
	}
	k, err := d.CasesGet(t.Context(), caller(), &CaseIn{ID: "case_1"})
	if err != nil || k.ID != "case_1" {
		t.Errorf("case = %+v, %v", k, err)
	}
	for _, ws := range []string{"other", ""} {
		if _, err := d.CasesGet(t.Context(), flow.Caller{Workspace: ws}, &CaseIn{ID: "case_1"}); flow.CodeOf(err) != flow.CodeNotFound {
			t.Errorf("workspace %q: %v, want not_found", ws, err)
		}
		if _, err := d.GatesGet(t.Context(), flow.Caller{Workspace: ws}, &GateIn{ID: "gate_1"}); flow.CodeOf(err) != flow.CodeNotFound {
			t.Errorf("workspace %q: %v, want not_found", ws, err)
		}
	}
	s, err := d.RecoverySchema(t.Context(), caller(), &None{})
	if err != nil || s.Tool != ToolName {
		t.Errorf("schema = %+v, %v", s, err)
	}
}

// trier answers trials as the test says.
type trier struct {
	sight  flow.Sighting
	answer string
	err    error
	asked  flow.AgentRef
	q      flow.Question
	hang   bool
}

func (f *trier) Try(ctx context.Context, agent flow.AgentRef, q flow.Question) (flow.Sighting, flow.Answer, error) {
	f.asked, f.q = agent, q
	if f.hang {
		<-ctx.Done()
	}
	return f.sight, flow.Answer{Action: json.RawMessage(f.answer), Target: "https://agent.example.com"}, f.err
}

func TestAgentsTest(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		trier trier
		want  TrialResult
	}{
		{"valid", trier{sight: flow.Sighting{Found: true, Kind: "a2a"}, answer: fixed}, TrialResult{Sent: true, Valid: true}},
		{"invalid", trier{sight: flow.Sighting{Found: true, Kind: "a2a"}, answer: `{"type":"foo"}`}, TrialResult{Sent: true, Rejection: "type: must be one of"}},
		{"refused by the guard", trier{sight: flow.Sighting{Found: true}, answer: `{"type":"retry_with_params","diagnosis":"d","modifications":{"title":"x"}}`},
			TrialResult{Sent: true, Rejection: "modifications.title: may not be changed"}},
		{"not found", trier{sight: flow.Sighting{Problem: "no card"}, err: &flow.AskError{Message: "no card"}}, TrialResult{Rejection: "no card"}},
		{"failing", trier{sight: flow.Sighting{Found: true}, err: errors.New("HTTP 500")}, TrialResult{Sent: true, Rejection: "HTTP 500"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t)
			b.trier = &c.trier
			in := &AgentsTestIn{}
			in.Body.Agent, in.Body.Token = "https://agent.example.com", "tok"
			got, err := b.desk().AgentsTest(t.Context(), caller(), in)
			if err != nil {
				t.Fatal(err)
			}
			if got.Sent != c.want.Sent || got.Valid != c.want.Valid || !strings.HasPrefix(got.Rejection, c.want.Rejection) || got.Agent != "https://agent.example.com" {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
			if c.trier.asked.Token != "tok" || c.trier.q.Input.Error != "HTTP 429: Too Many Requests" || c.trier.q.Workspace != "ws" {
				t.Errorf("asked %+v with %+v", c.trier.asked, c.trier.q)
			}
		})
	}
}

func TestTrialOfASlowAgent(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.settings.Timeout = 20 * time.Millisecond
	b.trier = &trier{sight: flow.Sighting{Found: true, Kind: "a2a", Name: "Slow"}, err: context.DeadlineExceeded, hang: true}
	in := &AgentsTestIn{}
	in.Body.Agent = "https://agent.example.com"
	got, err := b.desk().AgentsTest(t.Context(), caller(), in)
	if err != nil || !got.Found.Found || !got.Sent || got.Valid || got.Rejection != "no answer within 20ms" {
		t.Errorf("got %+v, %v, want it found, asked and too slow", got, err)
	}
}

func TestReplay(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	k := b.freeze(httpFailure())
	k.Asked = []flow.Asked{{Responder: "rules", Action: json.RawMessage(human)}}
	b.cases = []flow.Case{k}
	f := &trier{sight: flow.Sighting{Found: true}, answer: fixed}
	b.trier = f
	in := &ReplayIn{ID: k.ID}
	in.Body.Agent = "mcp:mine"
	got, err := b.desk().CasesReplay(t.Context(), caller(), in)
	if err != nil || !got.Now.Valid || len(got.Then) != 1 || got.CaseID != k.ID || f.asked.Server != "mine" {
		t.Errorf("got %+v, %v", got, err)
	}
	same(t, "what was sent", f.q.Input, string(encoded(k.Input)))
	if len(b.cases[0].Asked) != 1 {
		t.Error("the replay was recorded in the case")
	}
	if _, err := b.desk().CasesReplay(t.Context(), flow.Caller{Workspace: "other"}, in); flow.CodeOf(err) != flow.CodeNotFound {
		t.Errorf("another workspace: %v, want not_found", err)
	}
}

// TestReplayKnowsWhatACaseKeeps: a case keeps neither templates nor values; of
// both it knows the place-holders of secrets.
func TestReplayKnowsWhatACaseKeeps(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer string
		valid  bool
		want   string // in the rejection, or in the notes
	}{
		"a secret put back":    {`{"type":"retry_with_params","diagnosis":"d","modifications":{"headers":{"Authorization":"Bearer [secret:api]"}}}`, true, ""},
		"a secret of others":   {`{"type":"retry_with_params","diagnosis":"d","modifications":{"headers":{"X-Key":"[secret:other]"}}}`, false, "does not use"},
		"another origin":       {`{"type":"retry_with_params","diagnosis":"d","modifications":{"httpRequest":{"url":"https://other.example.com/"}}}`, true, "dropped for the new origin"},
		"code over the answer": {`{"type":"code_fix","diagnosis":"d","code":"return input"}`, false, "no sandbox"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t)
			k := b.freeze(httpFailure())
			b.cases, b.trier = []flow.Case{k}, &trier{sight: flow.Sighting{Found: true}, answer: c.answer}
			in := &ReplayIn{ID: k.ID}
			in.Body.Agent = "mcp:mine"
			got, err := b.desk().CasesReplay(t.Context(), caller(), in)
			if err != nil {
				t.Fatal(err)
			}
			if said := got.Now.Rejection + strings.Join(got.Now.Notes, " "); got.Now.Valid != c.valid || !strings.Contains(said, c.want) {
				t.Errorf("valid %t, said %q; want %t, %q", got.Now.Valid, said, c.valid, c.want)
			}
		})
	}
}

func TestAgentSpec(t *testing.T) {
	t.Parallel()
	for _, s := range []AgentSpec{{}, {Agent: "ftp://x"}, {Agent: "mcp:"}, {Agent: "mine"}, {Agent: "https://x", Command: []string{"y"}}} {
		if _, err := s.ref(); flow.CodeOf(err) != flow.CodeInvalid {
			t.Errorf("%+v: %v, want invalid", s, err)
		}
	}
	r, err := AgentSpec{Command: []string{"./agent", "-v"}}.ref()
	if err != nil || len(r.Command) != 2 {
		t.Errorf("command: %+v, %v", r, err)
	}
	in := &AgentsTestIn{}
	in.Body.Agent = "https://x"
	for _, raw := range []string{`[]`, `{"step":{}}`, `{"step":{"type":"x","config":7}}`, `{`} {
		in.Body.Input = json.RawMessage(raw)
		if _, err := newBed(t).desk().AgentsTest(t.Context(), caller(), in); flow.CodeOf(err) != flow.CodeInvalid {
			t.Errorf("input %s: %v, want invalid", raw, err)
		}
	}
}

func TestModelUsagePages(t *testing.T) {
	t.Parallel()
	d := newBed(t).desk()
	l, err := d.ModelUsage(t.Context(), flow.Caller{Workspace: "ws"}, &ModelUsageIn{Limit: 2})
	if err != nil || len(l.Items) != 2 || l.Next != "2026-03-02" {
		t.Fatalf("got %+v, %v; want two days and a cursor", l, err)
	}
	l, err = d.ModelUsage(t.Context(), flow.Caller{Workspace: "ws"}, &ModelUsageIn{Limit: 2, After: l.Next})
	if err != nil || len(l.Items) != 1 || l.Next != "" {
		t.Errorf("got %+v, %v; want the last day", l, err)
	}
}
