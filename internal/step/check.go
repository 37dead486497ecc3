package step

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/longstop-dev/longstop/internal/flow"
)

// checker is a type that sees more in a config as it is written than its
// schema does.
type checker interface {
	// check gives a step error for what will be wrong whatever the templates
	// in config become, else nil.
	check(config json.RawMessage) error
}

// Check looks at a config as it is written, templates and all, for what the
// schema of its type cannot say: CEL that does not compile, a URL that is not
// absolute, a header that a step may not set. Field is a path that begins
// with config. A type that is not in the table has no problems here.
func (t Table) Check(name string, config json.RawMessage) []flow.Problem {
	typ, _ := t.Get(name)
	c, ok := typ.(checker)
	if !ok {
		return nil
	}
	err := c.check(config)
	if err == nil {
		return nil
	}
	problem := flow.Problem{Message: asStepError(err).Message}
	if field, rest, found := strings.Cut(problem.Message, ": "); found && strings.HasPrefix(field, "config") {
		problem.Field, problem.Message = field, rest
	}
	return []flow.Problem{problem}
}

func (t transform) check(config json.RawMessage) error {
	_, err := t.compiled.get(config, compileTransform)
	return err
}

func (t conditional) check(config json.RawMessage) error {
	_, err := t.compiled.get(config, compileConditional)
	return err
}

func (wait) check(raw json.RawMessage) error {
	config, bad := decode[waitConfig](flow.Call{Config: raw})
	if bad != nil {
		return bad
	}
	if strings.Contains(string(config.For)+config.Until, "{{") {
		return nil
	}
	if _, bad := config.end(time.Time{}); bad != nil {
		return bad
	}
	return nil
}

func (httpRequest) check(raw json.RawMessage) error {
	var config struct {
		URL     string          `json:"url"`
		Headers json.RawMessage `json:"headers"`
	}
	if err := json.Unmarshal(raw, &config); err != nil {
		return nil // the schema says it better
	}
	var headers map[string]json.RawMessage
	_ = json.Unmarshal(config.Headers, &headers) // one template has no names to look at
	names := make(map[string]scalars, len(headers))
	for name := range headers {
		names[name] = nil
	}
	if _, bad := headerOf(names); bad != nil {
		return bad
	}
	if strings.Contains(config.URL, "{{") {
		return nil
	}
	if _, bad := targetOf(config.URL, nil); bad != nil {
		return bad
	}
	return nil
}
