package step

import (
	"context"

	"github.com/longstop-dev/longstop/internal/flow"
)

// maxBranches bounds the branches of one step. How many of them execute at the
// same time is the engine's to bound.
const maxBranches = 64

// parallel runs all of its lists of steps, at the same time.
type parallel struct{}

type parallelConfig struct {
	Branches branches `json:"branches" required:"yes" doc:"Lists of steps, 1 to 64. They run at the same time, the steps of each one after another, at most 16 steps of a run at once. A step sees the outputs of its own branch and of what ran before; after this step all outputs are there."`
}

// branches are lists of nested steps.
type branches []steps

func (branches) schema() object {
	return object{"type": "array", "minItems": 1, "maxItems": maxBranches, "items": steps(nil).schema()}
}

// Describe describes parallel.
func (parallel) Describe() flow.StepType {
	return flow.StepType{
		Name:       "parallel",
		Summary:    "Runs lists of steps at the same time. Its output is the array of the outputs of their last steps, in the order written, null for an empty list.",
		Config:     schemaOf[parallelConfig](),
		Nested:     []string{"branches.*"},
		Clocked:    true,
		Concurrent: true,
	}
}

// Run has all branches run. Whoever runs it has taken the steps out of them.
func (parallel) Run(_ context.Context, c flow.Call) (flow.Outcome, error) {
	config, bad := decode[parallelConfig](c)
	switch {
	case bad != nil:
		return flow.Outcome{}, bad
	case config.Branches == nil:
		return flow.Outcome{}, failf(flow.KindConfig, "config.branches: lists of steps are needed")
	}
	return flow.Outcome{Branch: flow.AllBranches}, nil
}
