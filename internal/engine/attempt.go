package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"

	"github.com/longstop-dev/longstop/internal/expr"
	"github.com/longstop-dev/longstop/internal/flow"
)

// attempt executes a step once.
func (d *driver) attempt(n *node, inst flow.StepInstance) (bool, error) {
	now := d.e.Clock.Now()
	if inst.StartedAt.IsZero() {
		inst.StartedAt = now
	}
	if n.kind.Clocked {
		startClock(&inst.Progress, n.TotalTimeout, now)
	}
	inst.Progress.Phase, inst.Progress.DueAt = flow.PhaseAttempt, nil
	inst.Attempts++
	config, err := d.resolve(n, &inst.Progress)
	if err != nil {
		return d.failed(n, inst, nil, err)
	}
	out, err := d.execute(n, &inst, config, now)
	if d.ctx.Err() != nil {
		return false, d.ctx.Err() // cancelled or interrupted: nothing is known of this attempt
	}
	if err == nil {
		out.Value, err = d.check(n, out.Value)
	}
	switch {
	case err != nil:
		return d.failed(n, inst, config, err)
	case !out.Until.IsZero():
		return false, d.suspend(n, inst, out)
	case out.Branch != "":
		return d.nest(n, inst, out.Branch)
	case out.Approval != nil:
		return false, d.askApproval(n, inst, *out.Approval)
	}
	c := d.begin()
	c.console = out.Logs
	return d.complete(c, n, inst, out.Value)
}

// execute has the step's type, or the tool that recovery chose, make the
// attempt within its time.
func (d *driver) execute(n *node, inst *flow.StepInstance, config json.RawMessage, now time.Time) (flow.Outcome, error) {
	p := &inst.Progress
	limit := n.Timeout
	if _, mended := splitMods(p.Mods); mended > 0 {
		limit = mended
	}
	if p.Deadline != nil {
		limit = min(limit, p.Deadline.Sub(now))
	}
	ctx, cancel := context.WithTimeout(d.ctx, limit)
	defer cancel()
	call := flow.Call{Workspace: d.run.Workspace, RunID: d.run.ID, StepIndex: n.Index, Config: config, Scope: d.scope,
		IdempotencyKey: idempotencyKey(d.run.ID, inst), Now: now, MaxOutput: d.limits.OutputBytes}
	kind := n.Type
	if p.Tool != nil {
		kind = "mcp_call"
		tool, err := json.Marshal(p.Tool)
		if err != nil {
			return flow.Outcome{}, err
		}
		call.Config = tool
	}
	out, err := d.contained(ctx, kind, call)
	if err != nil && asStepError(err).Response == nil && d.ctx.Err() == nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = &flow.StepError{Kind: flow.KindTimeout, Message: fmt.Sprintf("no answer within %s", limit.Round(time.Millisecond)), Err: err}
	}
	return out, err
}

// contained keeps a step type that panics from taking the process along.
func (d *driver) contained(ctx context.Context, kind string, call flow.Call) (out flow.Outcome, err error) {
	defer func() {
		if r := recover(); r != nil {
			d.e.Log.Error("a step type panicked", "type", kind, "run", d.run.ID, "panic", d.masker.Text(fmt.Sprint(r)))
			err = &flow.StepError{Kind: flow.KindInternal, Message: "the step type " + kind + " failed unexpectedly"}
		}
	}()
	return d.e.Types.Run(ctx, kind, call)
}

// startClock begins the step's total time, or goes on with what a gate or a
// wait had left of it.
func startClock(p *flow.Progress, total time.Duration, now time.Time) {
	if p.Deadline != nil {
		return
	}
	if p.Left > 0 {
		total = p.Left
	}
	at := now.Add(total)
	p.Deadline, p.Left = &at, 0
}

// stopClock keeps what is left of the step's total time while it is parked on
// someone.
func stopClock(p *flow.Progress, now time.Time) {
	if p.Deadline == nil {
		return
	}
	p.Left = max(p.Deadline.Sub(now), time.Millisecond)
	p.Deadline = nil
}

func idempotencyKey(runID string, inst *flow.StepInstance) string {
	key := runID + "-" + strconv.Itoa(inst.Index)
	if inst.Iteration != "" {
		key += "-" + inst.Iteration
	}
	if inst.Progress.Mends > 0 {
		key += "-m" + strconv.Itoa(inst.Progress.Mends)
	}
	return key
}

// resolve fills in a step's config and lays over it what recovery changed.
// The result may hold secrets; a failure is a *flow.StepError.
func (d *driver) resolve(n *node, p *flow.Progress) (json.RawMessage, error) {
	config, err := d.fill(n)
	if err != nil && len(p.Mods) > 0 {
		config, err = d.fillRest(n, p.Mods)
	}
	if err != nil {
		return nil, err
	}
	if len(p.Dropped) == 0 && len(p.Mods) == 0 {
		return config, nil
	}
	for _, pointer := range p.Dropped {
		config = drop(config, pointer)
	}
	if patch, _ := splitMods(p.Mods); len(patch) > 0 {
		mods, _ := d.masker.Unmask(patch) // the guard has let [secret:NAME] through only where it may stand
		merged, err := jsonpatch.MergePatch(config, mods)
		if err != nil {
			return nil, &flow.StepError{Kind: flow.KindConfig, Message: "the mended config cannot be put together", Err: err}
		}
		config = merged
	}
	return config, nil
}

// fill evaluates the templates of a step's config.
func (d *driver) fill(n *node) (json.RawMessage, error) {
	if n.plain {
		return n.whole, nil
	}
	v, err := n.config.Eval(d.scope)
	if err != nil {
		return nil, &flow.StepError{Kind: flow.KindTemplate, Message: err.Error(), Err: err}
	}
	config, err := encode(v)
	if err != nil {
		return nil, &flow.StepError{Kind: flow.KindTemplate, Message: "the config cannot be written as JSON", Err: err}
	}
	return glue(config, n.lazy), nil
}

// fillRest evaluates what a mend does not replace: the template that failed
// may be what it mends.
func (d *driver) fillRest(n *node, mods json.RawMessage) (json.RawMessage, error) {
	eager, lazy, err := split(n.Config, n.kind.Lazy)
	if err != nil {
		return nil, err
	}
	rest := *n
	if rest.config, err = expr.Compile(without(eager, mods)); err != nil {
		return nil, &flow.StepError{Kind: flow.KindTemplate, Message: err.Error(), Err: err}
	}
	rest.lazy, rest.plain = lazy, false
	return d.fill(&rest)
}

// without leaves out of a config what a merge patch sets.
func without(config, mods json.RawMessage) json.RawMessage {
	var a, b map[string]json.RawMessage
	if json.Unmarshal(config, &a) != nil || json.Unmarshal(mods, &b) != nil {
		return config
	}
	for name, v := range b {
		if old, ok := a[name]; !ok {
			continue
		} else if inner := without(old, v); json.Unmarshal(v, new(map[string]json.RawMessage)) == nil && string(v) != "null" {
			a[name] = inner
			continue
		}
		delete(a, name)
	}
	out, err := encode(a)
	if err != nil {
		return config
	}
	return out
}

// encode writes a value as JSON, with <, > and & as they are: a body is sent
// as it was written.
func encode(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// glue puts two objects that share no member together; b may be nil.
func glue(a, b json.RawMessage) json.RawMessage {
	switch {
	case len(b) == 0 || string(b) == "{}":
		return a
	case string(a) == "{}":
		return b
	}
	return slices.Concat(a[:len(a)-1], json.RawMessage(","), b[1:])
}

// drop removes what a JSON pointer names; what is not there stays away.
func drop(config json.RawMessage, pointer string) json.RawMessage {
	patch, err := jsonpatch.DecodePatch([]byte(`[{"op":"remove","path":` + strconv.Quote(pointer) + `}]`))
	if err != nil {
		return config
	}
	out, err := patch.Apply(config)
	if err != nil {
		return config
	}
	return out
}

// splitMods takes the reserved member by which a mend bounds an attempt,
// {"timeout": milliseconds}, out of what it lays over the config.
func splitMods(mods json.RawMessage) (patch json.RawMessage, timeout time.Duration) {
	if len(mods) == 0 {
		return nil, 0
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(mods, &all); err != nil {
		return mods, 0
	}
	ms, ok := all["timeout"]
	if !ok {
		return mods, 0
	}
	delete(all, "timeout")
	n, err := strconv.ParseInt(string(ms), 10, 64)
	if err != nil {
		n = 0
	}
	patch, err = json.Marshal(all)
	if err != nil {
		return nil, 0
	}
	return patch, time.Duration(n) * time.Millisecond
}

// check bounds, masks and verifies a step's output.
func (d *driver) check(n *node, value json.RawMessage) (json.RawMessage, error) {
	if int64(len(value)) > d.limits.OutputBytes {
		return nil, &flow.StepError{Kind: flow.KindTooLarge, Message: tooLarge("the output", len(value), d.limits.OutputBytes)}
	}
	value = d.masker.JSON(value)
	if n.contract == nil || len(value) == 0 {
		return value, nil
	}
	problems := n.contract.Check(value)
	if len(problems) == 0 {
		return value, nil
	}
	lines := make([]string, 0, len(problems))
	for _, p := range problems {
		lines = append(lines, strings.TrimPrefix(p.Field+": "+p.Message, ": "))
	}
	return nil, &flow.StepError{Kind: flow.KindContract, Message: "the output does not satisfy its contract: " + strings.Join(lines, "; "),
		Response: &flow.Response{Body: cut(string(value), maxKept)}}
}

// maxKept bounds what is kept of an answer that was not good enough.
const maxKept = 64 << 10

func tooLarge(what string, has int, limit int64) string {
	return fmt.Sprintf("%s is %d bytes, over the limit of %d (setting limits.output_bytes)", what, has, limit)
}

// cut shortens text to at most n bytes, on a character.
func cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return strings.ToValidUTF8(text[:n], "")
}

// suspend parks a step that waits for a time.
func (d *driver) suspend(n *node, inst flow.StepInstance, out flow.Outcome) error {
	c := d.begin()
	stopClock(&inst.Progress, c.now)
	inst.Status, inst.Output = flow.StepWaiting, null(out.Value)
	inst.Progress.Phase, inst.Progress.DueAt = flow.PhaseWaiting, &out.Until
	c.step(inst)
	c.park(out.Until)
	c.c.Run.Current = inst.StepKey.String()
	c.event(flow.EventStepSuspended, &inst.StepKey, stepData{ID: n.ID, Type: n.Type, DueAt: &out.Until})
	c.log(n, &inst, "waiting", func(l *flow.Log) { l.Message = "until " + out.Until.UTC().Format(time.RFC3339Nano) })
	return c.commit(d.ctx)
}

// nest begins the nested list that a step has chosen.
func (d *driver) nest(n *node, inst flow.StepInstance, name string) (bool, error) {
	inst.Status, inst.Progress.Phase, inst.Progress.Branch = flow.StepRunning, flow.PhaseNested, name
	inst.Progress.Deadline = nil // the nested steps have clocks of their own
	c := d.begin()
	c.step(inst)
	return d.goOn(c, &inst)
}

// millis is a duration for people; none is below zero, even if the clock was
// set back.
func millis(d time.Duration) float64 { return float64(max(d, 0).Microseconds()) / 1000 }
