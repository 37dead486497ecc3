package engine

import (
	"context"
	"strconv"

	"github.com/longstop-dev/longstop/internal/flow"
)

// ListVersions lists a workflow's numbered versions, newest first, without
// their texts. It answers not_found if there are none.
func (e *Engine) ListVersions(ctx context.Context, by flow.Caller, in *VersionsIn) (*List[WorkflowView], error) {
	before := 0
	if in.After != "" {
		var err error
		if before, err = strconv.Atoi(in.After); err != nil || before < 1 {
			return nil, flow.Errorf(flow.CodeInvalid, "this is no cursor of a list of versions").At("after").Right("what the page before gave as next")
		}
	}
	limit := in.limit()
	all, err := e.Versions.Numbered(ctx, by.Workspace, in.Name, before, limit+1)
	if err != nil {
		return nil, err
	}
	current, err := e.Versions.Workflow(ctx, by.Workspace, in.Name)
	if code := flow.CodeOf(err); err != nil && (code != flow.CodeNotFound || len(all) == 0 && before == 0) {
		return nil, err
	}
	out := &List[WorkflowView]{Items: make([]WorkflowView, 0, len(all))}
	for _, v := range all {
		if len(out.Items) == limit {
			out.Next = strconv.Itoa(out.Items[limit-1].Number)
			break
		}
		view := versionView(v, v.ID == current.VersionID)
		view.Source, view.Definition = "", nil
		out.Items = append(out.Items, *view)
	}
	return out, nil
}

// GetVersion reads a version of a workflow by its number or its id. It answers
// not_found.
func (e *Engine) GetVersion(ctx context.Context, by flow.Caller, in *VersionIn) (*WorkflowView, error) {
	v, err := e.version(ctx, by, in.Name, in.Version)
	if err != nil {
		return nil, err
	}
	current, err := e.Versions.Workflow(ctx, by.Workspace, in.Name)
	if err != nil && flow.CodeOf(err) != flow.CodeNotFound {
		return nil, err
	}
	return versionView(v, v.ID == current.VersionID), nil
}

// PublishWorkflow has new runs use a version that is stored: the newest
// number, or the one named. One that was kept unpublished becomes the next
// number. Runs under way keep theirs. It answers not_found.
func (e *Engine) PublishWorkflow(ctx context.Context, by flow.Caller, in *PublishIn) (*WorkflowView, error) {
	v, err := e.version(ctx, by, in.Name, in.Body.Version)
	if err != nil {
		return nil, err
	}
	now := e.Clock.Now()
	did := by.Did("workflows.publish", "workflow/"+v.Workflow, now, map[string]any{"versionId": v.ID, "digest": v.Digest})
	if v.Number == 0 {
		v.ID, v.Author, v.CreatedAt = e.NewID("ver"), by.Person, now
		if v, err = e.Versions.Publish(ctx, v, nil, did); err != nil {
			return nil, err
		}
		return versionView(v, true), nil
	}
	err = e.Versions.Point(ctx, flow.Workflow{Workspace: by.Workspace, Name: v.Workflow, VersionID: v.ID, Number: v.Number, UpdatedAt: now}, did)
	if err != nil {
		return nil, err
	}
	return versionView(v, true), nil
}

// UnpublishWorkflow has a workflow start no new runs by its name. Its versions
// stay, and so do its runs. It answers not_found if it is not published.
func (e *Engine) UnpublishWorkflow(ctx context.Context, by flow.Caller, in *WorkflowIn) (*WorkflowView, error) {
	w, err := e.published(ctx, by, in.Name)
	if err != nil {
		return nil, err
	}
	v, err := e.Versions.Version(ctx, by.Workspace, w.VersionID)
	if err != nil {
		return nil, err
	}
	if err := e.Versions.Unpublish(ctx, by.Workspace, in.Name,
		by.Did("workflows.unpublish", "workflow/"+in.Name, e.Clock.Now(), map[string]any{"versionId": v.ID})); err != nil {
		return nil, err
	}
	return versionView(v, false), nil
}

// published reads a workflow that new runs may use. It answers not_found, and
// says whether it is not published or not there at all.
func (e *Engine) published(ctx context.Context, by flow.Caller, name string) (flow.Workflow, error) {
	w, err := e.Versions.Workflow(ctx, by.Workspace, name)
	if flow.CodeOf(err) != flow.CodeNotFound {
		return w, err
	}
	if kept, keptErr := e.Versions.Numbered(ctx, by.Workspace, name, 0, 1); keptErr != nil {
		return w, keptErr
	} else if len(kept) > 0 {
		return w, flow.Errorf(flow.CodeNotFound, "workflow %q is not published", name).
			Right("publish it again, or name one of its versions, up to " + strconv.Itoa(kept[0].Number))
	}
	return w, err
}

// version finds a version of a workflow: by its number, by its id, or the one
// with the highest number for "". It answers not_found.
func (e *Engine) version(ctx context.Context, by flow.Caller, name, which string) (flow.WorkflowVersion, error) {
	n, numErr := strconv.Atoi(which)
	if which != "" && numErr != nil {
		v, err := e.Versions.Version(ctx, by.Workspace, which)
		if err != nil && flow.CodeOf(err) != flow.CodeNotFound || err == nil && v.Workflow == name {
			return v, err
		}
		return v, noVersion(name, which)
	}
	before := 0
	if which != "" {
		if n < 1 || n >= 1<<31 {
			return flow.WorkflowVersion{}, noVersion(name, which)
		}
		before = n + 1
	}
	all, err := e.Versions.Numbered(ctx, by.Workspace, name, before, 1)
	switch {
	case err != nil:
		return flow.WorkflowVersion{}, err
	case len(all) == 0 && which == "":
		return flow.WorkflowVersion{}, flow.Errorf(flow.CodeNotFound, "there is no workflow %q", name)
	case len(all) == 0 || which != "" && all[0].Number != n:
		return flow.WorkflowVersion{}, noVersion(name, which)
	}
	return all[0], nil
}

func noVersion(name, which string) error {
	return flow.Errorf(flow.CodeNotFound, "workflow %q has no version %q", name, cut(which, 80)).At("version").Right("a number that its list of versions has, or a version's id")
}
