package mcp

import (
	"context"

	"github.com/longstop-dev/longstop/internal/engine"
	"github.com/longstop-dev/longstop/internal/flow"
)

// maxPlan bounds a definition, as over REST.
const maxPlan = 1 << 20

func plan() member {
	return member{name: "plan", kind: "string", required: true, about: "the definition as YAML or JSON text"}
}

func paging() shape {
	return shape{
		{name: "limit", kind: "integer", least: 1, most: 500, about: "items on a page; 50 if absent"},
		{name: "after", kind: "string", about: "the cursor that the page before gave as next"},
	}
}

func (o *offer) offerWorkflows() {
	w := o.c.Workflows
	if w == nil {
		return
	}
	o.tool(tool{op: "workflows.validate", name: "validate_plan", title: "Check a plan", in: shape{plan()},
		about: "Checks a workflow definition and stores nothing. Names each thing that is wrong, where, and what would be right.",
		call: func(ctx context.Context, by flow.Caller, a args) (any, error) {
			in, err := definitionOf(a)
			if err != nil {
				return nil, err
			}
			return w.ValidateWorkflow(ctx, by, in)
		}})
	o.tool(tool{op: "workflows.validate", name: "prevalidate_markdown", title: "Check a description before a plan is made of it",
		in: shape{{name: "markdown", kind: "string", required: true, about: "what the workflow should do: a title (# Name), the steps as a numbered list"}},
		about: "Says what a description in markdown leaves out: missing is what no plan can be made without, ask is what could be guessed and should be asked. " +
			"It looks at words and marks, stores nothing and asks no model; ready means that it found nothing missing.",
		call: func(ctx context.Context, by flow.Caller, a args) (any, error) {
			text := a.text("markdown")
			if len(text) > maxDescription {
				return nil, flow.Errorf(flow.CodeTooLarge, "the description is too long").At("markdown").Right("send at most 64 KiB")
			}
			return w.PrevalidateMarkdown(ctx, by, &engine.PrevalidateIn{Markdown: text})
		}})
	o.tool(tool{op: "workflows.create", name: "deploy_workflow", title: "Publish a plan", in: shape{plan()},
		about: "Publishes a workflow definition as the next version of the workflow that it names; new runs use it, runs under way keep theirs.",
		call: func(ctx context.Context, by flow.Caller, a args) (any, error) {
			in, err := definitionOf(a)
			if err != nil {
				return nil, err
			}
			v, err := w.CreateWorkflow(ctx, by, in)
			if err != nil {
				return nil, err
			}
			v.Source, v.Definition = "", nil // the caller has just sent it
			return v, nil
		}})
	o.tool(tool{op: "workflows.create", name: "update_workflow", title: "Publish a changed plan",
		in:    shape{{name: "name", kind: "string", required: true, about: "the workflow's name, which the plan must have too"}, plan()},
		about: "Publishes a changed definition as the next version of a workflow that is there; new runs use it, runs under way keep theirs.",
		call:  func(ctx context.Context, by flow.Caller, a args) (any, error) { return update(ctx, w, by, a) }})
	o.tool(tool{op: "workflows.list", name: "list_workflows", title: "The published workflows", in: paging(),
		about: "Lists the published workflows by name.",
		call: func(ctx context.Context, by flow.Caller, a args) (any, error) {
			return w.ListWorkflows(ctx, by, &engine.Page{Limit: a.whole("limit"), After: a.text("after")})
		}})
	o.tool(tool{op: "workflows.get", name: "get_workflow", title: "A workflow", in: shape{{name: "name", kind: "string", required: true, about: "the workflow's name"}},
		about: "Gives a workflow's published version: the definition as it was written and as it was checked.",
		call: func(ctx context.Context, by flow.Caller, a args) (any, error) {
			return w.GetWorkflow(ctx, by, &engine.WorkflowIn{Name: a.text("name")})
		}})
}

func definitionOf(a args) (*engine.CreateWorkflowIn, error) {
	text := a.text("plan")
	if len(text) > maxPlan {
		return nil, flow.Errorf(flow.CodeTooLarge, "the plan is too large").At("plan").Right("send at most 1 MiB")
	}
	return &engine.CreateWorkflowIn{Filename: "plan", Publish: true, RawBody: []byte(text)}, nil
}

func (o *offer) offerRuns() {
	runs := o.c.Runs
	if runs == nil {
		return
	}
	o.tool(tool{op: "runs.start", name: "run_workflow", title: "Start a run",
		about: "Starts a run of a workflow and returns at once; get_run_status says how it goes.",
		in: shape{
			{name: "name", kind: "string", required: true, about: "the workflow's name"},
			{name: "input", about: "the run's input, checked against the workflow's input schema; {} if absent"},
			{name: "version", kind: "integer", least: 1, about: "the number of a version instead of the published one"},
			{name: "versionId", kind: "string", about: "the id of a stored version instead of the published one"},
		},
		call: func(ctx context.Context, by flow.Caller, a args) (any, error) {
			in := &engine.StartRunIn{Name: a.text("name")}
			in.Body.Input, in.Body.VersionID, in.Body.Version = a["input"], a.text("versionId"), a.whole("version")
			return runs.StartRun(ctx, by, in)
		}})
	o.tool(tool{op: "runs.get", name: "get_run_status", title: "A run", in: shape{{name: "runId", kind: "string", required: true, about: "the run's id"}},
		about: "Gives a run with its steps, their outputs and errors, who mended what (recovery_source), and the gates that are open.",
		call: func(ctx context.Context, by flow.Caller, a args) (any, error) {
			return runs.GetRun(ctx, by, &engine.RunIn{ID: a.text("runId")})
		}})
	statuses := []string{"queued", "running", "waiting", "succeeded", "failed", "cancelled"}
	o.tool(tool{op: "runs.list", name: "list_runs", title: "Runs", about: "Lists runs, newest first.",
		in: append(paging(), member{name: "workflow", kind: "string", about: "only those of this workflow"},
			member{name: "status", kind: "string", oneOf: statuses, about: "only those of this status"}),
		call: func(ctx context.Context, by flow.Caller, a args) (any, error) {
			return runs.ListRuns(ctx, by, &engine.ListRunsIn{Page: engine.Page{Limit: a.whole("limit"), After: a.text("after")},
				Workflow: a.text("workflow"), Status: a.text("status")})
		}})
}
