package step

import (
	"context"
	"encoding/json"

	"github.com/longstop-dev/longstop/internal/expr"
	"github.com/longstop-dev/longstop/internal/flow"
)

// transform computes a value out of what the run holds.
type transform struct{ compiled *cache[computed] }

type transformConfig struct {
	Value json.RawMessage `json:"value" required:"yes" doc:"Any JSON with templates. An object whose only member is $cel computes: {\"$cel\": \"steps.cart.output.items.size() * 2\"}."`
}

func newTransform() transform { return transform{compiled: &cache[computed]{}} }

// Describe describes transform.
func (transform) Describe() flow.StepType {
	return flow.StepType{
		Name:    "transform",
		Summary: "Makes a value out of the input and of earlier outputs, with templates and CEL. Its output is that value.",
		Config:  schemaOf[transformConfig](),
		Lazy:    []string{"value"},
		Clocked: true,
	}
}

// computed is a compiled value: constant where it holds nothing to compute.
type computed struct {
	template *expr.Template
	constant json.RawMessage
}

// Run computes the value.
func (t transform) Run(ctx context.Context, c flow.Call) (flow.Outcome, error) {
	value, err := t.compiled.get(c.Config, compileTransform)
	if err != nil {
		return flow.Outcome{}, err
	}
	if value.constant != nil {
		return flow.Outcome{Value: value.constant}, nil
	}
	limit := budget(ctx)
	v, err := value.template.EvalContext(ctx, expr.Scope(c.Scope))
	if err != nil {
		return flow.Outcome{}, exprFailure(ctx, limit, "config.value", err)
	}
	raw, err := encode(v)
	if err != nil {
		return flow.Outcome{}, because(failf(flow.KindTemplate, "config.value: its result is not JSON"), err)
	}
	return flow.Outcome{Value: raw}, nil
}

// compileTransform compiles what the author wrote: data that a template
// brings in is looked at neither for templates nor for $cel.
func compileTransform(raw []byte) (computed, error) {
	config, bad := decode[transformConfig](flow.Call{Config: raw})
	if bad != nil {
		return computed{}, bad
	}
	if len(config.Value) == 0 {
		return computed{}, failf(flow.KindConfig, "config.value: a value is needed")
	}
	template, err := expr.CompileComputed(config.Value)
	if err != nil {
		return computed{}, exprRefused("config.value", err)
	}
	if len(template.Filled()) > 0 {
		return computed{template: template}, nil
	}
	v, err := template.Eval(nil)
	if err != nil {
		return computed{}, exprRefused("config.value", err)
	}
	plain, err := encode(v)
	if err != nil {
		return computed{}, because(failf(flow.KindConfig, "config.value: not valid JSON"), err)
	}
	return computed{constant: plain}, nil
}
