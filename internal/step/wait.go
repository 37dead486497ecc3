package step

import (
	"context"
	"encoding/json"
	"time"

	"github.com/longstop-dev/longstop/internal/flow"
)

// maxWait is the longest that a wait may take by its length.
const maxWait = 30 * 24 * time.Hour

// wait suspends its run for a time, or until an instant. It costs a row.
type wait struct{}

type waitConfig struct {
	For   duration `json:"for,omitempty" doc:"How long: 90s, 1h30m, 2d; at most 30d."`
	Until string   `json:"until,omitempty" doc:"Until when: an instant such as 2026-03-01T09:00:00Z or 2026-03-01T09:00:00+01:00. One in the past does not wait."`
}

func (waitConfig) schemaRules() object {
	return object{"minProperties": 1, "maxProperties": 1} // exactly one of the two
}

// Describe describes wait.
func (wait) Describe() flow.StepType {
	return flow.StepType{
		Name:    "wait",
		Summary: "Waits for a time or until an instant. Its output is {\"until\": \"...\"}.",
		Config:  schemaOf[waitConfig](),
	}
}

// Run says until when the step is suspended.
func (wait) Run(_ context.Context, c flow.Call) (flow.Outcome, error) {
	config, bad := decode[waitConfig](c)
	if bad != nil {
		return flow.Outcome{}, bad
	}
	until, bad := config.end(c.Now)
	if bad != nil {
		return flow.Outcome{}, bad
	}
	value, err := json.Marshal(map[string]time.Time{"until": until})
	if err != nil {
		return flow.Outcome{}, because(failf(flow.KindConfig, "config.until: out of range"), err)
	}
	if !until.After(c.Now) {
		return flow.Outcome{Value: value}, nil
	}
	return flow.Outcome{Value: value, Until: until}, nil
}

// end is when a wait that begins now ends, in UTC.
func (config waitConfig) end(now time.Time) (time.Time, *flow.StepError) {
	if (config.For != "") == (config.Until != "") {
		return now, failf(flow.KindConfig, "config: wait needs exactly one of for and until")
	}
	if config.Until != "" {
		at, err := time.Parse(time.RFC3339, config.Until)
		if err != nil {
			return now, failf(flow.KindConfig, "config.until: %q is not an instant such as 2026-03-01T09:00:00Z", firstRunes(config.Until, 40))
		}
		return at.UTC(), nil
	}
	d, err := config.For.parse()
	if err != nil {
		return now, failf(flow.KindConfig, "config.for: %v", err)
	}
	if d > maxWait {
		return now, failf(flow.KindConfig, "config.for: at most 30d (with until there is no limit)")
	}
	return now.Add(d).UTC(), nil
}
