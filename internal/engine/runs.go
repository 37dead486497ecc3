package engine

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/longstop-dev/longstop/internal/flow"
)

// StartRun starts a run of a workflow's published version, or of the version
// named. It answers not_found, and invalid if the input does not satisfy the
// workflow's input schema.
func (e *Engine) StartRun(ctx context.Context, by flow.Caller, in *StartRunIn) (*RunView, error) {
	once, err := e.once(by, in.Once, struct {
		Op, Name, VersionID string
		Version             int
		Input               json.RawMessage
	}{"runs.start", in.Name, in.Body.VersionID, in.Body.Version, given(in.Body.Input)})
	if err != nil {
		return nil, err
	}
	if v, err := e.begunBefore(ctx, by, once); v != nil || err != nil {
		return v, err
	}
	versionID, err := e.versionToStart(ctx, by, in)
	if err != nil {
		return nil, err
	}
	def, err := e.defs.get(ctx, versionID)
	if err != nil {
		return nil, err
	}
	input := in.Body.Input
	if len(input) == 0 || string(input) == "null" {
		input = json.RawMessage("{}")
	}
	if err := checkInput(def, input); err != nil {
		return nil, err
	}
	return e.begin(ctx, by, def, opening{versionID: versionID, input: input, once: once})
}

// versionToStart finds the version that a new run is pinned to.
func (e *Engine) versionToStart(ctx context.Context, by flow.Caller, in *StartRunIn) (string, error) {
	id, number := in.Body.VersionID, in.Body.Version
	switch {
	case id != "" && number != 0:
		return "", flow.Errorf(flow.CodeInvalid, "a run has one version").At("versionId").Right("send version or versionId")
	case number != 0:
		v, err := e.version(ctx, by, in.Name, strconv.Itoa(number))
		return v.ID, err
	case id == "":
		w, err := e.published(ctx, by, in.Name)
		return w.VersionID, err
	}
	v, err := e.Versions.Version(ctx, by.Workspace, id)
	if err == nil && v.Workflow != in.Name {
		err = flow.Errorf(flow.CodeInvalid, "version %s is not one of workflow %q", id, in.Name).At("versionId")
	}
	return id, err
}

func checkInput(def *compiled, input json.RawMessage) error {
	if def.input == nil {
		return nil
	}
	problems := def.input.Check(input)
	if len(problems) == 0 {
		return nil
	}
	for i := range problems {
		problems[i].Field = under("input", problems[i].Field)
	}
	bad := flow.Errorf(flow.CodeInvalid, "the input does not satisfy the workflow's input schema").At("input")
	bad.Problems = problems
	return bad
}

// under puts a field below the member that holds it.
func under(member, field string) string {
	if field == "" || strings.HasPrefix(field, "[") {
		return member + field
	}
	return member + "." + strings.TrimPrefix(field, ".")
}

// opening is what a new run starts with.
type opening struct {
	versionID string
	input     json.RawMessage
	rerunOf   string
	from      string    // the id of the step to begin with; "" for the first
	carried   []carried // checkpoints of the run that it was started again from
	once      *flow.Once
}

// begin creates a run, and drives it at once if there is room.
func (e *Engine) begin(ctx context.Context, by flow.Caller, def *compiled, b opening) (*RunView, error) {
	run := flow.Run{ID: e.NewID("run"), Workspace: by.Workspace, Workflow: def.def.Name, VersionID: b.versionID, Input: b.input,
		Author: by.Person, CreatedAt: e.Clock.Now(), Status: flow.RunQueued, RerunOf: b.rerunOf, RerunFrom: b.from}
	d, err := e.newDriver(ctx, run, b.rows())
	if err != nil {
		return nil, err
	}
	e.mu.Lock()
	now := e.enter()
	e.mu.Unlock()
	if now {
		e.register(d)
	}
	c := d.begin()
	c.event(flow.EventRunStarted, nil, runData{Workflow: run.Workflow, By: by.Person, RerunOf: b.rerunOf, From: b.from, Carried: b.ids()})
	if b.rerunOf == "" {
		c.did(by, "runs.start", map[string]any{"workflow": run.Workflow, "versionId": b.versionID})
	} else {
		c.did(by, "runs.rerun", map[string]any{"workflow": run.Workflow, "versionId": b.versionID, "rerunOf": b.rerunOf, "from": b.from})
	}
	c.carry(b.carried)
	if now {
		c.c.Run.Status, c.c.Run.Owner, c.c.Run.Epoch = flow.RunRunning, e.Node, 1
	}
	c.once = b.once
	if err := c.commit(ctx); err != nil {
		d.cancel()
		if now {
			e.unregister(d)
			e.leave()
		}
		if b.once != nil && flow.CodeOf(err) == flow.CodeConflict { // another request with this key was faster
			if v, err := e.begunBefore(ctx, by, b.once); v != nil || err != nil {
				return v, err
			}
		}
		return nil, err
	}
	view := e.view(d.run)
	if now {
		go e.drive(d)
	} else {
		d.cancel()
		e.take(job{runID: run.ID})
	}
	return view, nil
}

// CancelRun stops a run, whatever it is doing, within a second. Cancelling a
// run that has ended answers conflict.
func (e *Engine) CancelRun(ctx context.Context, by flow.Caller, in *CancelIn) (*RunView, error) {
	for {
		run, err := e.Runs.Run(ctx, by.Workspace, in.ID)
		if err != nil {
			return nil, err
		}
		if run.Status.Finished() {
			if run.Status == flow.RunCancelled {
				return e.GetRun(ctx, by, &RunIn{ID: in.ID})
			}
			return nil, flow.Errorf(flow.CodeConflict, "run %s has %s already", run.ID, run.Status)
		}
		if d := e.driving(run.ID); d != nil {
			d.stop(by)
			select {
			case <-d.ended:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
			continue // it has ended as cancelled, or parked or finished just before
		}
		if err := e.cancelParked(ctx, by, run); flow.CodeOf(err) != flow.CodeStale {
			if err != nil {
				return nil, err
			}
			return e.GetRun(ctx, by, &RunIn{ID: in.ID})
		}
	}
}

func (e *Engine) driving(runID string) *driver {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.active[runID]
}

// cancelParked ends a run that nobody drives, and closes its gates.
func (e *Engine) cancelParked(ctx context.Context, by flow.Caller, run flow.Run) error {
	d, err := e.load(ctx, run)
	if errors.Is(err, flow.ErrUnreadable) {
		return e.end(ctx, run, flow.RunCancelled, flow.EventRunCancelled, runData{By: by.Person}, &by)
	}
	if err != nil {
		return err
	}
	defer d.cancel()
	c := d.begin()
	c.c.Claim = true // whoever may be about to wake it is refused
	c.c.Run.Epoch++
	if err := c.cancel(ctx, by); err != nil {
		return err
	}
	return c.commit(ctx)
}

// GetRun reads a run with its steps and its open gates.
func (e *Engine) GetRun(ctx context.Context, by flow.Caller, in *RunIn) (*RunView, error) {
	run, err := e.Runs.Run(ctx, by.Workspace, in.ID)
	if err != nil {
		return nil, err
	}
	for range 4 { // a run that moves all the time is shown as it moves
		v, err := e.whole(ctx, by, run)
		if err != nil || run.Status.Finished() {
			return v, err
		}
		now, err := e.Runs.Run(ctx, by.Workspace, in.ID)
		if err != nil || now.Version == run.Version {
			return v, err
		}
		run = now // its steps or its gates may be later than what the run said
	}
	return e.whole(ctx, by, run)
}

// whole shows a run with its steps and gates, which are read one after the
// other.
func (e *Engine) whole(ctx context.Context, by flow.Caller, run flow.Run) (*RunView, error) {
	v := e.view(run)
	rows, err := e.Runs.Steps(ctx, run.ID)
	var def *compiled
	if err == nil {
		def, err = e.defs.get(ctx, run.VersionID)
	}
	if errors.Is(err, flow.ErrUnreadable) { // what is not damaged is shown
		if v.Error == "" {
			v.Error = err.Error()
		}
		return v, nil
	}
	if err != nil {
		return nil, err
	}
	v.Steps = stepViews(def, run, rows)
	if v.Reruns, err = e.Runs.Reruns(ctx, by.Workspace, run.ID, 100); err != nil {
		return nil, err
	}
	if slices.ContainsFunc(rows, func(s flow.StepInstance) bool { return s.Status == flow.StepWaiting && s.Progress.GateID != "" }) {
		v.Gates, err = e.Records.Gates(ctx, by.Workspace, run.ID, string(flow.GateOpen), "", 100)
	}
	return v, err
}

// ListRuns lists runs, newest first, without inputs, outputs and steps.
func (e *Engine) ListRuns(ctx context.Context, by flow.Caller, in *ListRunsIn) (*List[RunView], error) {
	limit := in.limit()
	runs, err := e.Runs.Runs(ctx, flow.RunFilter{Workspace: by.Workspace, Workflow: in.Workflow, Status: in.Status, Before: in.After, Limit: limit + 1})
	if err != nil {
		return nil, err
	}
	out := &List[RunView]{Items: make([]RunView, 0, len(runs))}
	for _, r := range runs {
		if len(out.Items) == limit {
			out.Next = out.Items[limit-1].ID
			break
		}
		v := e.view(r)
		v.Input, v.Output = nil, nil
		out.Items = append(out.Items, *v)
	}
	return out, nil
}

// ListEvents reads a run's events in order.
func (e *Engine) ListEvents(ctx context.Context, by flow.Caller, in *RecordsIn) (*List[flow.Event], error) {
	return records(ctx, e, by, in, e.Records.Events, func(v flow.Event) int64 { return v.Seq })
}

// ListLogs reads a run's step log in order.
func (e *Engine) ListLogs(ctx context.Context, by flow.Caller, in *RecordsIn) (*List[flow.Log], error) {
	return records(ctx, e, by, in, e.Records.Logs, func(v flow.Log) int64 { return v.Seq })
}

func (e *Engine) view(r flow.Run) *RunView {
	return &RunView{ID: r.ID, Workflow: r.Workflow, VersionID: r.VersionID, Status: r.Status, Input: shown(r.Input), Output: shown(r.Output), Error: r.Error,
		Author: r.Author, CreatedAt: r.CreatedAt, FinishedAt: optional(r.FinishedAt), WakeAt: optional(r.WakeAt), Seq: r.Seq, RerunOf: r.RerunOf, RerunFrom: r.RerunFrom}
}

func optional(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

func (p Page) limit() int {
	if p.Limit <= 0 {
		return 50
	}
	return min(p.Limit, 500)
}
