package mcp

import (
	"context"

	"github.com/longstop-dev/longstop/internal/engine"
	"github.com/longstop-dev/longstop/internal/flow"
)

// update publishes a plan only as a workflow that is published already.
func update(ctx context.Context, w Workflows, by flow.Caller, a args) (any, error) {
	in, err := definitionOf(a)
	if err != nil {
		return nil, err
	}
	name := a.text("name")
	if _, err := w.GetWorkflow(ctx, by, &engine.WorkflowIn{Name: name}); err != nil {
		return nil, err
	}
	checked, err := w.ValidateWorkflow(ctx, by, in)
	if err != nil {
		return nil, err
	}
	if checked.Name != name {
		return nil, flow.Errorf(flow.CodeInvalid, "the plan is of another workflow than the one that is to be updated").At("plan").
			Right("give both the same name, or use deploy_workflow")
	}
	return slim(w.CreateWorkflow(ctx, by, in))
}

// offerVersions says which version new runs use.
func (o *offer) offerVersions() {
	v := o.c.Versions
	if v == nil {
		return
	}
	name := member{name: "name", kind: "string", required: true, about: "the workflow's name"}
	o.tool(tool{op: "workflows.publish", name: "publish_workflow", title: "Publish a stored version",
		in:    shape{name, {name: "version", kind: "string", about: "a version's number or id; the newest if absent"}},
		about: "Has new runs use a version that is stored: to publish a workflow again, or to go back to an earlier version.",
		call: func(ctx context.Context, by flow.Caller, a args) (any, error) {
			in := &engine.PublishIn{Name: a.text("name")}
			in.Body.Version = a.text("version")
			return slim(v.PublishWorkflow(ctx, by, in))
		}})
	o.tool(tool{op: "workflows.unpublish", name: "unpublish_workflow", title: "Unpublish a workflow", in: shape{name},
		about: "Has a workflow start no new runs by its name. Its versions stay, and so do its runs; publish_workflow brings it back.",
		call: func(ctx context.Context, by flow.Caller, a args) (any, error) {
			return slim(v.UnpublishWorkflow(ctx, by, &engine.WorkflowIn{Name: a.text("name")}))
		}})
}

// slim leaves a version's texts out: get_workflow gives them.
func slim(v *engine.WorkflowView, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	v.Source, v.Definition = "", nil
	return v, nil
}
