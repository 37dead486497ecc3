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

// worker does one thing for one step instance beside the driver. It works on
// copies, and what it finds out is an act for the driver to carry out.
type worker struct {
	*stage
	n     *node
	inst  flow.StepInstance
	scope map[string]any
	ends  []*flow.StepInstance // of its nested lists
	told  *told
}

// told is what recovery is told beside the step itself.
type told struct {
	run    flow.Run
	prior  []flow.PriorOutput
	frozen *frozen // the case, if it is at hand
}

// worker makes the worker that does a task.
func (d *driver) worker(t task) *worker {
	w := &worker{stage: &d.stage, n: t.node, scope: d.sight(t.node), ends: t.ends}
	if t.inst == nil {
		w.inst = flow.StepInstance{StepKey: t.key(), Status: flow.StepPending}
		return w
	}
	w.inst = *t.inst
	switch w.inst.Progress.Phase {
	case flow.PhaseRecovering, flow.PhaseGated:
		w.told = d.tell(t.node, w.inst)
	}
	return w
}

// work does what there is to do. It gives nil if it was interrupted: nothing
// is known then.
func (w *worker) work() act {
	switch w.inst.Progress.Phase {
	case flow.PhaseNested:
		return w.join()
	case flow.PhaseWaiting:
		return func(c *change) error { return c.complete(w.n, w.inst, w.inst.Output) }
	case flow.PhaseRecovering:
		return w.decide()
	case flow.PhaseGated:
		return w.expire()
	}
	return w.attempt()
}

// attempt executes a step once.
func (w *worker) attempt() act {
	n, inst, now := w.n, &w.inst, w.e.Clock.Now()
	if inst.StartedAt.IsZero() {
		inst.StartedAt = now
	}
	if n.kind.Clocked {
		startClock(&inst.Progress, n.TotalTimeout, now)
	}
	if inst.Progress.Phase != flow.PhaseAwaiting { // else it looks for what it awaits
		inst.Progress.Phase, inst.Progress.Await = flow.PhaseAttempt, nil
		inst.Attempts++
	}
	inst.Progress.DueAt = nil
	config, err := w.resolve()
	if err != nil {
		return w.broke(nil, err)
	}
	out, err := w.execute(config, now)
	if w.ctx.Err() != nil {
		return nil // cancelled or interrupted
	}
	if err == nil {
		out.Value, err = w.check(n, out.Value)
	}
	if err != nil {
		return w.broke(config, err)
	}
	return func(c *change) error {
		switch {
		case out.Await != nil:
			return c.await(n, *inst, *out.Await)
		case out.Ask != nil:
			return c.askBack(n, *inst, *out.Ask)
		case !out.Until.IsZero():
			return c.suspend(n, *inst, out)
		case out.Branch != "":
			return c.nest(*inst, out.Branch)
		case out.Approval != nil:
			return c.askApproval(n, *inst, *out.Approval)
		}
		c.console = out.Logs
		return c.complete(n, *inst, out.Value)
	}
}

// broke is a failed attempt.
func (w *worker) broke(config json.RawMessage, err error) act {
	w.inst.Progress.Phase, w.inst.Progress.Await = flow.PhaseAttempt, nil
	return func(c *change) error { return c.broke(w.n, w.inst, config, err) }
}

// join ends a step whose nested lists are done.
func (w *worker) join() act {
	out, err := joined(w.ends, w.inst.Progress.Branch == flow.AllBranches)
	if err == nil {
		out, err = w.check(w.n, out)
	}
	if err != nil {
		return w.broke(nil, err)
	}
	return func(c *change) error { return c.complete(w.n, w.inst, out) }
}

// joined is the output of a step with nested lists: that of the last step in
// the list that ran, or the array of those of all lists.
func joined(ends []*flow.StepInstance, all bool) (json.RawMessage, error) {
	outputs := make([]json.RawMessage, len(ends))
	for i, last := range ends {
		outputs[i] = json.RawMessage("null") // a list without steps
		if last != nil {
			outputs[i] = null(last.Output)
		}
	}
	switch {
	case all:
		return encode(outputs)
	case len(outputs) == 0: // a list that the step does not have
		return json.RawMessage("null"), nil
	}
	return outputs[0], nil
}

// execute has the step's type, or the tool that recovery chose, make the
// attempt within its time.
func (w *worker) execute(config json.RawMessage, now time.Time) (flow.Outcome, error) {
	p := &w.inst.Progress
	limit := w.n.Timeout
	if _, mended := splitMods(p.Mods); mended > 0 {
		limit = mended
	}
	if p.Deadline != nil {
		limit = min(limit, p.Deadline.Sub(now))
	}
	ctx, cancel := context.WithTimeout(w.ctx, limit)
	defer cancel()
	call := flow.Call{Workspace: w.workspace, RunID: w.runID, StepIndex: w.n.Index, Config: config, Scope: w.scope,
		IdempotencyKey: idempotencyKey(w.runID, &w.inst), Now: now, MaxOutput: w.limits.OutputBytes, Iteration: w.inst.Iteration, Attempt: w.inst.Attempts, Awaited: p.Await}
	kind := w.n.Type
	if p.Tool != nil {
		kind = "mcp_call"
		tool, err := json.Marshal(p.Tool)
		if err != nil {
			return flow.Outcome{}, err
		}
		call.Config = tool
	}
	out, err := w.contained(ctx, kind, call)
	if err != nil && asStepError(err).Response == nil && w.ctx.Err() == nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = &flow.StepError{Kind: flow.KindTimeout, Message: fmt.Sprintf("no answer within %s", limit.Round(time.Millisecond)), Err: err}
	}
	return out, err
}

// contained keeps a step type that panics from taking the process along.
func (s *stage) contained(ctx context.Context, kind string, call flow.Call) (out flow.Outcome, err error) {
	defer func() {
		if r := recover(); r != nil {
			s.e.Log.Error("a step type panicked", "type", kind, "run", s.runID, "panic", s.masker.Text(fmt.Sprint(r)))
			err = &flow.StepError{Kind: flow.KindInternal, Message: "the step type " + kind + " failed unexpectedly"}
		}
	}()
	return s.e.Types.Run(ctx, kind, call)
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
func (w *worker) resolve() (json.RawMessage, error) {
	p := &w.inst.Progress
	config, err := fill(w.n, w.scope)
	if err != nil && len(p.Mods) > 0 {
		config, err = fillRest(w.n, w.scope, p.Mods)
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
		mods, _ := w.masker.Unmask(patch) // the guard has let [secret:NAME] through only where it may stand
		merged, err := jsonpatch.MergePatch(config, mods)
		if err != nil {
			return nil, &flow.StepError{Kind: flow.KindConfig, Message: "the mended config cannot be put together", Err: err}
		}
		config = merged
	}
	return config, nil
}

// fill evaluates the templates of a step's config.
func fill(n *node, scope map[string]any) (json.RawMessage, error) {
	if n.plain {
		return n.whole, nil
	}
	v, err := n.config.Eval(scope)
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
func fillRest(n *node, scope map[string]any, mods json.RawMessage) (json.RawMessage, error) {
	eager, lazy, err := split(n.Config, n.kind.Lazy)
	if err != nil {
		return nil, err
	}
	rest := *n
	if rest.config, err = expr.Compile(without(eager, mods)); err != nil {
		return nil, &flow.StepError{Kind: flow.KindTemplate, Message: err.Error(), Err: err}
	}
	rest.lazy, rest.plain = lazy, false
	return fill(&rest, scope)
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
func (s *stage) check(n *node, value json.RawMessage) (json.RawMessage, error) {
	if int64(len(value)) > s.limits.OutputBytes {
		return nil, &flow.StepError{Kind: flow.KindTooLarge, Message: tooLarge("the output", len(value), s.limits.OutputBytes)}
	}
	value = s.masker.JSON(value)
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
func (c *change) suspend(n *node, inst flow.StepInstance, out flow.Outcome) error {
	stopClock(&inst.Progress, c.now)
	inst.Status, inst.Output = flow.StepWaiting, null(out.Value)
	inst.Progress.Phase, inst.Progress.DueAt = flow.PhaseWaiting, &out.Until
	c.step(inst)
	c.event(flow.EventStepSuspended, &inst.StepKey, stepData{ID: n.ID, Type: n.Type, DueAt: &out.Until})
	c.log(n, &inst, "waiting", func(l *flow.Log) { l.Message = "until " + out.Until.UTC().Format(time.RFC3339Nano) })
	return c.commit(c.d.ctx)
}

// nest begins the nested lists that a step has chosen.
func (c *change) nest(inst flow.StepInstance, name string) error {
	inst.Status, inst.Progress.Phase, inst.Progress.Branch = flow.StepRunning, flow.PhaseNested, name
	inst.Progress.Deadline = nil // the nested steps have clocks of their own
	c.step(inst)
	return c.commit(c.d.ctx)
}

// millis is a duration for people; none is below zero, even if the clock was
// set back.
func millis(d time.Duration) float64 { return float64(max(d, 0).Microseconds()) / 1000 }
