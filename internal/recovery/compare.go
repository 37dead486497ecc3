package recovery

import (
	"context"
	"encoding/json"
	"reflect"

	"github.com/longstop-dev/longstop/internal/flow"
)

// weigh works out what would have come of an observed agent's answer, beside
// what was done.
func (d *Desk) weigh(ctx context.Context, k *flow.Case, seen latest) error {
	o := k.Observed
	if o == nil {
		return nil
	}
	o.Verdict, o.Compared = string(o.State), ""
	switch {
	case o.State == flow.ObservationAsked:
		o.Verdict = flow.WouldBePending
		return nil
	case o.State == flow.ObservationLost && o.Rejection == "":
		o.Rejection = "the server ended before its answer came"
		return nil
	case o.State != flow.ObservationAnswered:
		return nil
	case !o.Accepted:
		o.Verdict = flow.WouldBeRefused
		return nil
	}
	would, ok := readAction(o.Action)
	if !ok {
		return nil // too long to be kept whole
	}
	applied, any := carriedOut(k)
	if any {
		o.Compared = "different"
		if alike(would, applied) {
			o.Compared = "same"
		}
	}
	var err error
	o.Verdict, err = d.verdictOn(ctx, k, would, seen)
	return err
}

func (d *Desk) verdictOn(ctx context.Context, k *flow.Case, would flow.Action, seen latest) (string, error) {
	switch would.Type {
	case flow.ActionNeedsHuman:
		return flow.WouldCall, nil
	case flow.ActionFixedOutput, flow.ActionCodeFix:
		return flow.WouldMend, nil // the guard has held its output to the contract
	}
	if k.Observed.Compared != "same" {
		return flow.WouldRetry, nil
	}
	later, err := d.failedAgain(ctx, k, seen)
	if err != nil || later {
		return flow.WouldNotMend, err
	}
	status, err := d.c.Observations.StepStatus(ctx, k.RunID, flow.StepKey{Index: k.StepIndex, Iteration: k.Iteration})
	if err != nil || status != flow.StepSucceeded {
		return flow.WouldRetry, err // it is not known yet
	}
	return flow.WouldMend, nil
}

// latest is the newest case of each step instance, by run: a run's cases are
// read once, however many of them are weighed.
type latest map[string]map[flow.StepKey]string

// failedAgain reports whether the step failed once more after the case.
func (d *Desk) failedAgain(ctx context.Context, k *flow.Case, seen latest) (bool, error) {
	key := flow.StepKey{Index: k.StepIndex, Iteration: k.Iteration}
	if newest, read := seen[k.RunID]; read {
		return newest[key] > k.ID, nil
	}
	newest := map[flow.StepKey]string{}
	for before := ""; ; {
		page, err := d.c.Records.Cases(ctx, k.Workspace, k.RunID, before, 500)
		if err != nil {
			return false, err
		}
		for _, other := range page {
			at := flow.StepKey{Index: other.StepIndex, Iteration: other.Iteration}
			newest[at] = max(newest[at], other.ID)
		}
		if len(page) < 500 {
			break
		}
		before = page[len(page)-1].ID
	}
	seen[k.RunID] = newest
	return newest[key] > k.ID, nil
}

// carriedOut is the action that was applied to the case: the last that was
// taken and was not a call for a person.
func carriedOut(k *flow.Case) (flow.Action, bool) {
	var found flow.Action
	ok := false
	for _, part := range k.Asked {
		if !part.Accepted {
			continue
		}
		a, readable := readAction(part.Action)
		if readable && (a.Type != flow.ActionNeedsHuman || !ok) {
			found, ok = a, true
		}
	}
	return found, ok
}

func readAction(raw json.RawMessage) (flow.Action, bool) {
	var a flow.Action
	if json.Unmarshal(raw, &a) != nil {
		return a, false
	}
	return a, a.Type != ""
}

// alike reports whether two actions do the same. What they say of it does not
// matter.
func alike(a, b flow.Action) bool {
	if a.Type != b.Type {
		return false
	}
	switch a.Type {
	case flow.ActionFixedOutput:
		return reflect.DeepEqual(decoded(a.Output), decoded(b.Output))
	case flow.ActionRetryWithParams:
		return reflect.DeepEqual(plainly(a.Modifications), plainly(b.Modifications))
	case flow.ActionCodeFix:
		return a.Code == b.Code
	case flow.ActionRetryWithTool:
		return a.ToolCall != nil && b.ToolCall != nil && a.ToolCall.Server == b.ToolCall.Server && a.ToolCall.Tool == b.ToolCall.Tool &&
			reflect.DeepEqual(decoded(a.ToolCall.Params), decoded(b.ToolCall.Params))
	}
	return true
}

// plainly gives modifications with their short forms written out, and without
// objects that change nothing.
func plainly(raw json.RawMessage) map[string]any {
	mods, _ := decoded(raw).(map[string]any)
	out, request := map[string]any{}, map[string]any{}
	for name, v := range mods {
		switch name {
		case "httpRequest":
			whole, _ := v.(map[string]any)
			for field, value := range whole {
				request[field] = value
			}
		case "headers", "body":
			request[name] = v
		default:
			out[name] = v
		}
	}
	for field, v := range request {
		if object, ok := v.(map[string]any); !ok || len(object) > 0 || field == "body" {
			out["httpRequest."+field] = v
		}
	}
	return out
}
