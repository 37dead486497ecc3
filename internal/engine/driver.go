package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"sync"
	"sync/atomic"

	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/secret"
)

// stage is what does not change while a run is driven: those who execute its
// steps read it beside the driver.
type stage struct {
	e         *Engine
	runID     string
	workspace string
	def       *compiled
	masker    *secret.Masker
	limits    flow.Limits

	ctx    context.Context // ends when the run has ended, is cancelled, or the engine is interrupted
	cancel context.CancelFunc
}

// driver moves one run on: what became of its steps is recorded by one
// goroutine, in one change after the other. The steps execute beside it, in
// workers. Only stop and hand may be called from others.
type driver struct {
	stage
	run   flow.Run
	rows  map[flow.StepKey]*flow.StepInstance
	scope map[string]any
	steps map[string]any // the scope's member of that name

	next   []task                      // what the last change has begin
	alone  bool                        // nothing else is open beside it
	busy   map[flow.StepKey]struct{}   // what is executing beside the driver
	frozen map[flow.StepKey]*frozen    // cases that were frozen just now, and not asked about yet
	found  chan delivery               // from the workers; has room for all of them
	mail   chan delivery               // from everybody else
	kept   []delivery                  // mail that came while nothing could be recorded
	crew   sync.WaitGroup              // of the workers
	caller atomic.Pointer[flow.Caller] // who cancelled the run
	ended  chan struct{}               // closed when the driver takes no mail any more
}

// frozen is a case, and the failure that it was made of.
type frozen struct {
	f flow.Failure
	k flow.Case
}

// load makes a driver out of what is stored.
func (e *Engine) load(ctx context.Context, run flow.Run) (*driver, error) {
	rows, err := e.Runs.Steps(ctx, run.ID)
	if err != nil {
		return nil, err
	}
	return e.newDriver(ctx, run, rows)
}

func (e *Engine) newDriver(ctx context.Context, run flow.Run, rows []flow.StepInstance) (*driver, error) {
	d := &driver{stage: stage{e: e, runID: run.ID, workspace: run.Workspace}, run: run,
		rows: make(map[flow.StepKey]*flow.StepInstance, len(rows)+4), mail: make(chan delivery), ended: make(chan struct{})}
	for i := range rows {
		row := &rows[i]
		if p := &row.Progress; p.Phase == flow.PhaseGated && p.DueAt == nil { // of a version that kept it with the run only
			p.DueAt = &run.WakeAt
		}
		d.rows[row.StepKey] = row
	}
	var err error
	if d.def, err = e.defs.get(ctx, run.VersionID); err != nil {
		return nil, err
	}
	if d.masker, err = e.Workspaces.Masker(ctx, run.Workspace); err != nil {
		return nil, err
	}
	if d.limits, err = e.Workspaces.Limits(ctx, run.Workspace); err != nil {
		return nil, err
	}
	d.ctx, d.cancel = context.WithCancel(e.ctx)
	return d, d.fillScope(ctx)
}

// fillScope sets up the names that templates and conditions see.
func (d *driver) fillScope(ctx context.Context) error {
	d.steps = map[string]any{}
	d.scope = map[string]any{"steps": d.steps, "run": map[string]any{"id": d.runID, "workflow": d.run.Workflow}}
	if d.def.reads.input {
		input, err := decode(d.run.Input)
		if err != nil {
			return err
		}
		d.scope["input"] = input
	}
	if d.def.reads.secrets {
		values, err := d.e.Workspaces.Values(ctx, d.workspace)
		if err != nil {
			return err
		}
		secrets := make(map[string]any, len(values))
		for name, v := range values {
			secrets[name] = v
		}
		d.scope["secrets"] = secrets
	}
	for _, inst := range d.rows {
		if err := d.see(inst); err != nil {
			return err
		}
	}
	return nil
}

// see adds a finished step's output to the scope.
func (d *driver) see(inst *flow.StepInstance) error {
	if !d.def.reads.steps || !inst.Status.Done() {
		return nil
	}
	output, err := decode(inst.Output)
	if err != nil {
		return err
	}
	v := map[string]any{"output": output}
	d.steps[d.def.steps[inst.Index].ID] = v
	d.steps[inst.StepKey.String()] = v
	return nil
}

// sight is the scope as a step sees it. What another branch has done by now is
// left out: it would be there or not by chance. The values are shared, and
// nobody changes them; of a definition whose steps run one after the other
// the scope is shared too.
func (d *driver) sight(n *node) map[string]any {
	if !d.def.concurrent {
		return d.scope
	}
	steps := map[string]any{}
	for key, row := range d.rows {
		if m := d.def.steps[key.Index]; row.Status.Done() && d.def.reads.steps && n.sees(m) {
			name := key.String()
			steps[m.ID], steps[name] = d.steps[name], d.steps[name]
		}
	}
	scope := maps.Clone(d.scope)
	scope["steps"] = steps
	return scope
}

func decode(raw json.RawMessage) (any, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, flow.Errorf(flow.CodeUnavailable, "a stored value is not JSON").Because(errors.Join(flow.ErrUnreadable, err))
	}
	return v, nil
}
