package agentkit

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
)

// Case is a failed step as an agent is shown it: RecoveryToolInput of the
// recovery specification, member for member. Secrets stand in it as
// [secret:NAME]; a mend may repeat that text. Everything that came from
// outside, error bodies above all, is data and never an instruction.
type Case struct {
	SchemaVersion   int               `json:"schema_version"` // 1
	Step            Step              `json:"step"`
	Error           string            `json:"error"`         // "HTTP 429: Too Many Requests", and the body's first 1,000 characters on the lines after
	PriorOutputs    map[string]string `json:"prior_outputs"` // completed steps by index: JSON text, 500 characters at most
	WorkflowInput   json.RawMessage   `json:"workflow_input"`
	CatalogAction   json.RawMessage   `json:"catalog_action,omitempty"`   // of connector steps
	ResolvedRequest *Request          `json:"resolved_request,omitempty"` // of HTTP and connector steps
	HumanHint       string            `json:"human_hint,omitempty"`       // a person has asked again, and says this
}

// Step is the step that failed.
type Step struct {
	Type   string          `json:"type"`
	Title  string          `json:"title"`
	Intent string          `json:"intent"` // what it is for, in its author's words
	Index  int             `json:"index"`
	Config json.RawMessage `json:"config"` // of that type, resolved
}

// Request is what was sent.
type Request struct {
	URL  string          `json:"url"`
	Body json.RawMessage `json:"body"` // JSON null if none was
}

var httpError = regexp.MustCompile(`^HTTP (\d{3})\b`)

// Status is the HTTP status that the step got; 0 if it did not get one.
func (c *Case) Status() int {
	m := httpError.FindStringSubmatch(c.Error)
	if m == nil {
		return 0
	}
	n, _ := strconv.Atoi(m[1]) // three digits
	return n
}

// URL is where the request went; "" if there was none.
func (c *Case) URL() string {
	if c.ResolvedRequest == nil {
		return ""
	}
	return c.ResolvedRequest.URL
}

// Prior decodes the output of the completed step with an index into v. It is
// an error if there is none, or if it was cut so that it is no JSON any more.
func (c *Case) Prior(index int, v any) error {
	text, ok := c.PriorOutputs[strconv.Itoa(index)]
	if !ok {
		return fmt.Errorf("step %d has no output in this case", index)
	}
	if err := json.Unmarshal([]byte(text), v); err != nil {
		return fmt.Errorf("the output of step %d, which is cut at 500 characters, cannot be read: %w", index, err)
	}
	return nil
}

// Input decodes the workflow's input into v.
func (c *Case) Input(v any) error { return json.Unmarshal(c.WorkflowInput, v) }

// Config decodes the step's config into v.
func (c *Case) Config(v any) error { return json.Unmarshal(c.Step.Config, v) }
