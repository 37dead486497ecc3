package recovery

import (
	"encoding/json"
	"testing"

	"github.com/longstop-dev/longstop/internal/flow"
)

// FuzzTheGuard: whatever an agent answers, the desk refuses or takes it and
// does not break. Where an agent is observed, a panic would end the server.
func FuzzTheGuard(f *testing.F) {
	for _, s := range []string{`{"type":"retry_with_params","diagnosis":"d","modifications":{"httpRequest":{"url":"https://x.example/a","query":{"page":null},"body":{"who":null,"list":[1]}},"timeout":5}}`,
		`{"type":"retry_with_params","diagnosis":"d","modifications":{"body":[null],"headers":{"authorization":"[secret:api]"}}}`,
		`{"type":"fixed_output","diagnosis":"d","output":null}`, `{"type":"retry_with_params","diagnosis":"d","modifications":{"body":null}}`,
		`{"type":"retry_with_tool","diagnosis":"d","toolCall":{"server":"s","tool":"t","params":{}}}`, `{"type":"needs_human","diagnosis":"d","suggestion":"s"}`,
		`{"type":"retry_with_params","diagnosis":"d","modifications":{"httpRequest":{"body":{"":{"~1":"/"}}}}}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, answer string) {
		b := newBed(t)
		b.settings.A2AAgentURL, b.own.answer = "https://agent.example", answer
		d := b.desk()
		fail := httpFailure()
		fail.Step.Output = json.RawMessage(`{"type":"object","required":["id"]}`)
		k := flow.Case{ID: "case_1", Workspace: "ws"}
		s, err := d.sit(t.Context(), fail, k)
		if err != nil {
			t.Fatal(err)
		}
		var part flow.Asked
		p, why := s.examine(t.Context(), flow.Answer{Action: json.RawMessage(answer)}, &part)
		if p == nil && why == "" {
			t.Errorf("neither a plan nor why not")
		}
		if _, err := json.Marshal(part); err != nil {
			t.Errorf("the case cannot be written: %v", err)
		}
		a, _ := readAction(part.Action)
		alike(a, a)
	})
}
