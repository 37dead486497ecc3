package conform

import (
	"encoding/json"
	"slices"

	"github.com/longstop-dev/longstop/internal/flow"
)

// The kinds of what can be wrong with an answer.
const (
	KindContract = "contract" // Longstop would not take it
	KindTime     = "time"     // it came too late, or not at all
	KindSafety   = "safety"   // it would be taken, and should not have been given
)

// Report is what came of trying an agent.
type Report struct {
	Agent      string      `json:"agent"`
	Name       string      `json:"name,omitempty"` // what it calls itself
	Transports []Transport `json:"transports"`
	Passed     bool        `json:"passed"` // each transport that was tried, and at least one was
}

// Transport is one way in which the agent was asked.
type Transport struct {
	Name    string   `json:"name"`              // "a2a-1.0", "a2a-0.3", "a2a-http", "mcp", "inbox"
	Skipped string   `json:"skipped,omitempty"` // why it was not tried
	Results []Result `json:"results"`
	Passed  int      `json:"passed"`
	Failed  int      `json:"failed"`
	P50MS   float64  `json:"p50Ms"` // of the answers, failed ones too
	MaxMS   float64  `json:"maxMs"`
}

// Result is one case's.
type Result struct {
	Case       string          `json:"case"`
	About      string          `json:"about"`
	Passed     bool            `json:"passed"`
	DurationMS float64         `json:"durationMs"`
	Type       flow.ActionType `json:"type,omitempty"`
	Action     json.RawMessage `json:"action,omitempty"`
	Problems   []Problem       `json:"problems,omitempty"`
	Notes      []string        `json:"notes,omitempty"` // what would be ignored or dropped
}

// Problem is one thing wrong with an answer.
type Problem struct {
	Kind    string `json:"kind"`
	Message string `json:"message"`
}

// finish counts.
func (t *Transport) finish() {
	var times []float64
	for _, r := range t.Results {
		if r.Passed {
			t.Passed++
		} else {
			t.Failed++
		}
		times = append(times, r.DurationMS)
	}
	if len(times) > 0 {
		slices.Sort(times)
		t.P50MS, t.MaxMS = times[len(times)/2], times[len(times)-1]
	}
}

// finish says whether the agent has passed.
func (r *Report) finish() {
	tried := 0
	r.Passed = true
	for i := range r.Transports {
		t := &r.Transports[i]
		t.finish()
		if t.Skipped == "" {
			tried++
			r.Passed = r.Passed && t.Failed == 0
		}
	}
	r.Passed = r.Passed && tried > 0
}
