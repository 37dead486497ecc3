package step

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"github.com/longstop-dev/longstop/internal/expr"
	"github.com/longstop-dev/longstop/internal/flow"
)

// conditional chooses one of its lists of steps.
type conditional struct{ compiled *cache[[]choice] }

type conditionalConfig struct {
	If    condition `json:"if,omitempty" doc:"A CEL expression over input, steps, item and run that is true or false; or a boolean, or one template that gives one."`
	Then  steps     `json:"then,omitempty" doc:"The steps that run if it is true."`
	Else  steps     `json:"else,omitempty" doc:"The steps that run if it is false, or if no case is true. Without them the output is null."`
	Cases []chosen  `json:"cases,omitempty" doc:"Instead of if and then: the first case whose condition is true runs."`
}

type chosen struct {
	When  condition `json:"when" required:"yes" doc:"As if."`
	Steps steps     `json:"steps" required:"yes" doc:"The steps of this case."`
}

func (conditionalConfig) schemaRules() object {
	return object{
		"anyOf":             []any{object{"required": []string{"if"}}, object{"required": []string{"cases"}}},
		"dependentRequired": object{"if": []string{"then"}, "then": []string{"if"}},
		"not":               object{"required": []string{"if", "cases"}},
	}
}

// errNotBoolean is of a template in the place of a condition.
var errNotBoolean = errors.New("its template gives neither true nor false (write CEL without braces: input.count == 3)")

// condition is the text of a condition, or a boolean.
type condition json.RawMessage

func (condition) schema() object { return object{"type": []string{"string", "boolean"}} }

// UnmarshalJSON keeps the condition as it is.
func (c *condition) UnmarshalJSON(raw []byte) error {
	*c = append((*c)[:0], raw...)
	return nil
}

// choice is a list of steps and the condition that it runs under.
type choice struct {
	branch string
	path   string // of the condition in config
	when   test
}

// test is a compiled condition.
type test interface {
	holds(ctx context.Context, scope map[string]any) (bool, error)
}

func newConditional() conditional { return conditional{compiled: &cache[[]choice]{}} }

// Describe describes conditional.
func (conditional) Describe() flow.StepType {
	return flow.StepType{
		Name:    "conditional",
		Summary: "Runs one of its lists of steps. Its output is that of the last step that ran, null if none did.",
		Config:  schemaOf[conditionalConfig](),
		Nested:  []string{"then", "else", "cases.*.steps"},
		Lazy:    []string{"if", "cases"},
		Clocked: true,
	}
}

// Run names the list that runs next: then, else or cases.<n>. A list that the
// step does not have (an else that nobody wrote) runs no steps and its output
// is null.
func (t conditional) Run(ctx context.Context, c flow.Call) (flow.Outcome, error) {
	choices, err := t.compiled.get(c.Config, compileConditional)
	if err != nil {
		return flow.Outcome{}, err
	}
	limit := budget(ctx)
	for _, one := range choices {
		yes, err := one.when.holds(ctx, c.Scope)
		if err != nil {
			return flow.Outcome{}, exprFailure(ctx, limit, one.path, err)
		}
		if yes {
			return flow.Outcome{Branch: one.branch}, nil
		}
	}
	return flow.Outcome{Branch: "else"}, nil
}

func compileConditional(raw []byte) ([]choice, error) {
	config, bad := decode[conditionalConfig](flow.Call{Config: raw})
	if bad != nil {
		return nil, bad
	}
	if (len(config.If) > 0) == (len(config.Cases) > 0) {
		return nil, failf(flow.KindConfig, "config: conditional needs either if or cases")
	}
	choices := []choice{{branch: "then", path: "config.if"}}
	texts := []condition{config.If}
	if len(config.Cases) > 0 {
		choices, texts = nil, nil
		for i, one := range config.Cases {
			n := strconv.Itoa(i)
			choices = append(choices, choice{branch: "cases." + n, path: "config.cases[" + n + "].when"})
			texts = append(texts, one.When)
		}
	}
	for i := range choices {
		when, bad := compileTest(texts[i], choices[i].path)
		if bad != nil {
			return nil, bad
		}
		choices[i].when = when
	}
	return choices, nil
}

// compileTest compiles a boolean, a template, or a CEL expression.
func compileTest(raw condition, path string) (test, *flow.StepError) {
	var v any
	if len(raw) > 0 && json.Unmarshal(raw, &v) != nil {
		return nil, failf(flow.KindConfig, "%s: not valid JSON", path)
	}
	switch v := v.(type) {
	case bool:
		return fixed(v), nil
	case string:
		if strings.Contains(v, "{{") {
			template, err := expr.Compile(json.RawMessage(raw))
			if err != nil {
				return nil, exprRefused(path, err)
			}
			return templateTest{template}, nil
		}
		condition, err := expr.CompileCondition(v)
		if err != nil {
			return nil, exprRefused(path, err)
		}
		return celTest{condition}, nil
	}
	return nil, failf(flow.KindConfig, "%s: must be a CEL expression, or true or false", path)
}

type (
	fixed        bool
	celTest      struct{ condition *expr.Condition }
	templateTest struct{ template *expr.Template }
)

func (f fixed) holds(context.Context, map[string]any) (bool, error) { return bool(f), nil }

func (t celTest) holds(ctx context.Context, scope map[string]any) (bool, error) {
	return t.condition.Bool(ctx, expr.Scope(scope))
}

func (t templateTest) holds(_ context.Context, scope map[string]any) (bool, error) {
	v, err := t.template.Eval(expr.Scope(scope))
	if err != nil {
		return false, err
	}
	yes, ok := v.(bool)
	if !ok {
		return false, errNotBoolean
	}
	return yes, nil
}
