package demo

import (
	"encoding/json"
	"time"

	"github.com/longstop-dev/longstop/internal/flow"
)

// Report is the demo's outcome for machines.
type Report struct {
	OK        bool       `json:"ok"`
	Took      float64    `json:"durationMs"`
	URL       string     `json:"url,omitempty"` // of the server that was left up
	Key       string     `json:"key,omitempty"`
	Scenarios []Scenario `json:"scenarios"`
}

// Scenario is one of the demo's runs: what was expected and what happened.
type Scenario struct {
	Name     string  `json:"name"`
	Agent    string  `json:"agent"` // whose agent the settings named: none, A2A or MCP
	OK       bool    `json:"ok"`
	Problem  string  `json:"problem,omitempty"` // why it is not what was expected
	RunID    string  `json:"runId"`
	Took     float64 `json:"durationMs"`
	Expected Ending  `json:"expected"`
	Happened Ending  `json:"happened"`
}

// Ending is how a run ended.
type Ending struct {
	Status flow.RunStatus  `json:"status"`
	Source flow.Source     `json:"recovery_source"` // who mended the last step
	Output json.RawMessage `json:"output,omitempty"`
}

// report writes a Report.
func (st *stage) report(o Options, results []result, ok bool, took time.Duration) error {
	r := Report{OK: ok, Took: float64(took.Milliseconds())}
	if o.Keep {
		r.URL, r.Key = st.server.URL(), st.server.Key()
	}
	for _, v := range results {
		last := v.run.Steps[len(v.run.Steps)-1]
		r.Scenarios = append(r.Scenarios, Scenario{Name: v.name, Agent: string(v.agent), OK: v.fail == "", Problem: v.fail, RunID: v.run.ID,
			Took: float64(v.took.Milliseconds()), Expected: Ending{Status: v.want.status, Source: v.want.source},
			Happened: Ending{Status: v.run.Status, Source: last.RecoverySource, Output: v.run.Output}})
	}
	e := json.NewEncoder(o.Out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(r)
}
