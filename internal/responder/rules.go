package responder

import (
	"context"
	"encoding/json"
	"time"

	"github.com/longstop-dev/longstop/internal/flow"
)

// Rules is the built-in provider that needs no key and no network: a table of
// small rules, of which the first that explains the failure answers.
type Rules struct{ clock flow.Clock }

// NewRules makes the responder.
func NewRules(clock flow.Clock) *Rules { return &Rules{clock: clock} }

// Name is rules.
func (*Rules) Name() string { return "rules" }

// remedy is what a rule answers.
type remedy struct {
	action flow.Action
	after  time.Duration
}

// rule looks at a failure and answers, or leaves it to the next.
type rule struct {
	name string
	look func(q flow.Question, now time.Time) (remedy, bool)
}

// rules is the table, the more telling before the more general.
func rules() []rule {
	return []rule{
		{"credentials", credentials},
		{"moved", moved},
		{"content type", contentType},
		{"rate limit", rateLimit},
		{"time-out", timedOut},
		{"renamed", renamed},
		{"template", template},
		{"passing", passing},
	}
}

// Ask answers by the first rule that explains the failure, else with
// needs_human. It never fails.
func (r *Rules) Ask(_ context.Context, q flow.Question) (flow.Answer, error) {
	now := r.clock.Now()
	for _, rule := range rules() {
		if m, ok := rule.look(q, now); ok {
			return answered(m, "rule: "+rule.name)
		}
	}
	m, _ := toHuman("No built-in rule explains this failure: "+short(q.Failed.Error, 200),
		"Look at the error, then edit the request, give the output, or leave a hint for your own agent.")
	return answered(m, "no rule applies")
}

func answered(m remedy, note string) (flow.Answer, error) {
	raw, err := json.Marshal(m.action)
	if err != nil {
		return flow.Answer{}, failure(flow.AskInvalid, "the built-in's answer cannot be written as JSON", err)
	}
	return flow.Answer{Action: raw, After: m.after, Notes: []string{note}}, nil
}

func toHuman(diagnosis, suggestion string) (remedy, bool) {
	return remedy{action: flow.Action{Type: flow.ActionNeedsHuman, Diagnosis: diagnosis, Suggestion: suggestion}}, true
}

// retry runs the step again with the members of modifications.
func retry(diagnosis string, modifications map[string]any) remedy {
	raw, err := json.Marshal(modifications)
	if err != nil || modifications == nil {
		raw = json.RawMessage("{}")
	}
	return remedy{action: flow.Action{Type: flow.ActionRetryWithParams, Diagnosis: diagnosis, Modifications: raw}}
}

// status is that of the HTTP answer, 0 if there was none.
func status(q flow.Question) int {
	if q.Response == nil {
		return 0
	}
	return q.Response.Status
}

// header is one of the HTTP answer's.
func header(q flow.Question, name string) string {
	if q.Response == nil {
		return ""
	}
	return q.Response.Header[name]
}

// sent is the step's config, as far as the rules read it.
type sent struct {
	Method      string         `json:"method"`
	URL         string         `json:"url"`
	Headers     map[string]any `json:"headers"`
	ContentType string         `json:"contentType"`
}

func request(q flow.Question) sent {
	var s sent
	if json.Unmarshal(q.Input.Step.Config, &s) != nil {
		return sent{}
	}
	return s
}
