package step

import (
	"context"
	"encoding/json"
	"time"

	"github.com/longstop-dev/longstop/internal/definition"
	"github.com/longstop-dev/longstop/internal/flow"
)

// humanApproval parks its run until a person approves or refuses.
type humanApproval struct{}

type humanApprovalConfig struct {
	Message  string          `json:"message" required:"yes" doc:"What the person is asked."`
	Form     json.RawMessage `json:"form,omitempty" doc:"A JSON Schema of what the person fills in when approving; it becomes data in the output."`
	Deadline duration        `json:"deadline,omitempty" doc:"How long the gate stays open: 1h, 2d; at most 30d. Default 7d."`
	Remind   duration        `json:"remind,omitempty" doc:"How often a reminder is sent while nobody has answered: 4h, 1d; at least 1m, and 0s for never. Default: as the setting gates.remind_every says."`
	Default  string          `json:"default,omitempty" enum:"approve,refuse" doc:"What happens when nobody answers in time; without it the step fails."`
}

// Describe describes human_approval.
func (humanApproval) Describe() flow.StepType {
	return flow.StepType{
		Name:    "human_approval",
		Summary: "Waits until a person approves or refuses. Its output is {\"approved\": true, \"by\", \"reason\", \"data\"}; a refusal fails the run.",
		Config:  schemaOf[humanApprovalConfig](),
	}
}

// Run says what the person is asked.
func (humanApproval) Run(_ context.Context, c flow.Call) (flow.Outcome, error) {
	config, bad := decode[humanApprovalConfig](c)
	if bad != nil {
		return flow.Outcome{}, bad
	}
	if config.Message == "" {
		return flow.Outcome{}, failf(flow.KindConfig, "config.message: is empty; say what the person is asked")
	}
	a := &flow.Approval{Message: config.Message, Form: config.Form, Default: config.Default}
	if len(config.Form) > 0 {
		if _, err := definition.CompileSchema(config.Form); err != nil {
			return flow.Outcome{}, because(failf(flow.KindConfig, "config.form: is not a JSON Schema"), err)
		}
	}
	if config.Deadline != "" {
		end, bad := waitConfig{For: config.Deadline}.end(time.Time{})
		if bad != nil {
			return flow.Outcome{}, failf(flow.KindConfig, "config.deadline: must be a duration of at most 30d, such as 2d")
		}
		a.Deadline = end.Sub(time.Time{})
	}
	if config.Remind != "" {
		every, err := config.Remind.parse()
		if err != nil || every > maxWait || every > 0 && every < time.Minute {
			return flow.Outcome{}, failf(flow.KindConfig, "config.remind: must be a duration of 1m to 30d, such as 4h, or 0s for never")
		}
		if a.Remind = every; every == 0 {
			a.Remind = -1
		}
	}
	return flow.Outcome{Approval: a}, nil
}
