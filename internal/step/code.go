package step

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/sandbox"
)

// Sandbox runs code that nobody has checked.
type Sandbox interface {
	Run(ctx context.Context, p sandbox.Program) (sandbox.Result, error)
}

// code computes its output in JavaScript, in the sandbox.
type code struct{ sandbox Sandbox }

type codeConfig struct {
	Code string `json:"code" required:"yes" doc:"The body of a JavaScript function that returns the output. It sees input (the run's) and steps (by id: steps.user.output); await works. No network, no timers; 5 s, 64 MiB, 1 MB out."`
}

// Describe describes code.
func (code) Describe() flow.StepType {
	return flow.StepType{
		Name:    "code",
		Summary: "Computes its output in JavaScript, in a sandbox without any access to the outside.",
		Config:  schemaOf[codeConfig](),
		Lazy:    []string{"code"}, // braces in it are its own
		Clocked: true,
	}
}

// Run runs the code.
func (t code) Run(ctx context.Context, c flow.Call) (flow.Outcome, error) {
	config, bad := decode[codeConfig](c)
	if bad != nil {
		return flow.Outcome{}, bad
	}
	if config.Code == "" {
		return flow.Outcome{}, failf(flow.KindConfig, "config.code: is empty; write the body of a function")
	}
	args := map[string]json.RawMessage{}
	for _, name := range []string{"input", "steps"} {
		raw, err := json.Marshal(c.Scope[name])
		if err != nil {
			return flow.Outcome{}, because(failf(flow.KindInternal, "%s cannot be given to the code", name), err)
		}
		args[name] = raw
	}
	res, err := t.sandbox.Run(ctx, sandbox.Program{Code: config.Code, Args: args})
	if err != nil {
		return flow.Outcome{}, because(failf(codeKindOf(err), "the code failed: %s", excerpt(err.Error(), 600)), err)
	}
	return flow.Outcome{Value: res.Value, Logs: res.Console}, nil
}

// codeKindOf sorts what stopped a program.
func codeKindOf(err error) flow.ErrorKind {
	var e *sandbox.Error
	if !errors.As(err, &e) {
		return flow.KindInternal
	}
	switch e.Kind {
	case sandbox.KindTimeout:
		return flow.KindTimeout
	case sandbox.KindMemory, sandbox.KindOutput:
		return flow.KindTooLarge
	case sandbox.KindInternal:
		return flow.KindInternal
	}
	return flow.KindRefused // the same code fails again
}
