package engine

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/longstop-dev/longstop/internal/flow"
)

// records reads a page of what a run has left behind.
func records[T any](ctx context.Context, e *Engine, by flow.Caller, in *RecordsIn,
	read func(context.Context, string, int64, int) ([]T, error), seq func(T) int64) (*List[T], error) {
	if _, err := e.Runs.Run(ctx, by.Workspace, in.ID); err != nil {
		return nil, err
	}
	limit := in.Limit
	if limit <= 0 {
		limit = 500
	}
	items, err := read(ctx, in.ID, in.After, limit+1)
	if err != nil {
		return nil, err
	}
	out := &List[T]{Items: items}
	if len(items) > limit {
		out.Items = items[:limit]
		last := limit - 1
		// Rows of one event share its number: a page ends between numbers.
		for last > 0 && seq(items[last]) == seq(items[limit]) {
			last--
		}
		out.Items = items[:last+1]
		out.Next = strconv.FormatInt(seq(items[last]), 10)
	}
	if out.Items == nil {
		out.Items = []T{}
	}
	return out, nil
}

// stepViews shows every step of the definition, begun or not.
func stepViews(def *compiled, run flow.Run, rows []flow.StepInstance) []StepView {
	at := map[flow.StepKey]*flow.StepInstance{}
	iterations := map[int][]string{}
	for i := range rows {
		at[rows[i].StepKey] = &rows[i]
		iterations[rows[i].Index] = append(iterations[rows[i].Index], rows[i].Iteration)
	}
	current := strings.Split(run.Current, ",")
	var out []StepView
	for _, n := range def.steps {
		its := iterations[n.Index]
		if len(its) == 0 {
			its = []string{""}
		}
		slices.Sort(its)
		for _, it := range its {
			key := flow.StepKey{Index: n.Index, Iteration: it}
			out = append(out, stepView(n, key, at[key], run, slices.Contains(current, key.String())))
		}
	}
	return out
}

func stepView(n *node, key flow.StepKey, inst *flow.StepInstance, run flow.Run, current bool) StepView {
	v := StepView{Index: key.Index, Iteration: key.Iteration, ID: n.ID, Type: n.Type, Title: n.Title, Status: flow.StepPending}
	switch {
	case inst != nil:
		v.Status, v.Output, v.Error, v.RecoverySource, v.Message = inst.Status, shown(inst.Output), inst.Error, inst.RecoverySource, inst.Message
		v.CarriedFrom = inst.Progress.Carried
		v.Attempts, v.StartedAt, v.FinishedAt = inst.Attempts, optional(inst.StartedAt), optional(inst.FinishedAt)
		if inst.Status == flow.StepWaiting {
			v.Output = nil // what it will be is not yet so
		}
	case run.Status.Finished():
		v.Status = flow.StepSkipped
	}
	if current && (v.Status == flow.StepPending || v.Status == flow.StepWaiting) && run.Status == flow.RunRunning {
		v.Status = flow.StepRunning
	}
	return v
}
