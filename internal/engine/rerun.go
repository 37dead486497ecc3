package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"strconv"

	"github.com/longstop-dev/longstop/internal/flow"
)

// RerunRun starts a new run out of an old one: from any step, with other input
// if it is given, on the old run's version or another one of its workflow.
// What the steps before gave is carried over and nothing of it is executed
// again. Old and new run name each other.
//
// It answers not_found, and invalid for a step that is not there or cannot be
// begun with, for input that does not satisfy the input schema, and for a
// version whose earlier steps are not those of the old run.
func (e *Engine) RerunRun(ctx context.Context, by flow.Caller, in *RerunIn) (*RunView, error) {
	once, err := e.once(by, in.Once, struct {
		Op, ID, From, Version string
		Input                 json.RawMessage
	}{"runs.rerun", in.ID, in.Body.From, in.Body.Version, given(in.Body.Input)})
	if err != nil {
		return nil, err
	}
	if v, err := e.begunBefore(ctx, by, once); v != nil || err != nil {
		return v, err
	}
	old, err := e.Runs.Run(ctx, by.Workspace, in.ID)
	if err != nil {
		return nil, err
	}
	versionID, err := e.rerunVersion(ctx, by, old, in.Body.Version)
	if err != nil {
		return nil, err
	}
	was, err := e.defs.get(ctx, old.VersionID)
	if err != nil {
		return nil, err
	}
	def, err := e.defs.get(ctx, versionID)
	if err != nil {
		return nil, err
	}
	b := opening{versionID: versionID, input: in.Body.Input, rerunOf: old.ID, once: once}
	if len(b.input) == 0 || string(b.input) == "null" {
		b.input = old.Input
	}
	if err := checkInput(def, b.input); err != nil {
		return nil, err
	}
	if in.Body.From == "" {
		return e.begin(ctx, by, def, b)
	}
	from, err := def.named(in.Body.From)
	if err != nil {
		return nil, err
	}
	rows, err := e.Runs.Steps(ctx, old.ID)
	if err != nil {
		return nil, err
	}
	b.from = from.ID
	if b.carried, err = newHandover(old, was, def, rows, from).all(); err != nil {
		return nil, err
	}
	return e.begin(ctx, by, def, b)
}

// rerunVersion finds the version that a new run of an old one's workflow has.
func (e *Engine) rerunVersion(ctx context.Context, by flow.Caller, old flow.Run, which string) (string, error) {
	switch which {
	case "", "pinned":
		return old.VersionID, nil
	case "newest":
		w, err := e.Versions.Workflow(ctx, by.Workspace, old.Workflow)
		if flow.CodeOf(err) == flow.CodeNotFound {
			return "", flow.Errorf(flow.CodeInvalid, "workflow %q is not published, so that it has no newest version", old.Workflow).
				At("version").Right("pinned, or publish it first")
		}
		return w.VersionID, err
	}
	v, err := e.version(ctx, by, old.Workflow, which)
	if flow.CodeOf(err) == flow.CodeNotFound {
		err = flow.Errorf(flow.CodeInvalid, "workflow %q has no version %q", old.Workflow, cut(which, 80)).At("version").Right("pinned, newest, a version's number or its id")
	}
	return v.ID, err
}

// named finds a step by its id, or by its index.
func (c *compiled) named(name string) (*node, error) {
	for _, n := range c.steps {
		if n.ID == name {
			return n, nil
		}
	}
	if i, err := strconv.Atoi(name); err == nil && i >= 0 && i < len(c.steps) {
		return c.steps[i], nil
	}
	right := "one of"
	for i, n := range c.steps {
		if i == 20 {
			right += " ..."
			break
		}
		right += " " + n.ID
	}
	return nil, flow.Errorf(flow.CodeInvalid, "the workflow has no step %q", cut(name, 80)).At("from").Right(right)
}

// carried is a checkpoint that a new run takes over.
type carried struct {
	node *node
	inst flow.StepInstance
	note string // for its log
}

func (b *opening) rows() []flow.StepInstance {
	var out []flow.StepInstance
	for _, c := range b.carried {
		out = append(out, c.inst)
	}
	return out
}

func (b *opening) ids() []string {
	var out []string
	for _, c := range b.carried {
		if c.inst.Iteration == "" && c.inst.Status.Done() {
			out = append(out, c.node.ID)
		}
	}
	return out
}

// carry adds the checkpoints that a run begins with, under its first event.
func (c *change) carry(over []carried) {
	for i := range over {
		o := &over[i]
		c.step(o.inst)
		c.log(o.node, &o.inst, "carried", func(l *flow.Log) { l.Message = o.note })
	}
}

// sameJSON reports whether two texts are the same JSON, however spaced.
func sameJSON(a, b json.RawMessage) bool {
	var x, y bytes.Buffer
	if json.Compact(&x, null(a)) != nil || json.Compact(&y, null(b)) != nil {
		return false
	}
	return bytes.Equal(x.Bytes(), y.Bytes())
}
