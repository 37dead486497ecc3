package mcp_test

import "testing"

func TestVersionsArePublishedAndUnpublished(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	key, _ := b.key("editor")
	s := b.connect(key, "")
	plan := func(text string) string {
		return "name: w\nsteps:\n  - {id: a, type: transform, config: {value: " + text + "}}\n"
	}
	var w struct {
		Number    int
		Published bool
		Source    string
	}
	has(t, "update of nothing", refused(t, s, "update_workflow", map[string]any{"name": "w", "plan": plan("one")}), `there is no workflow "w"`)
	call(t, s, "deploy_workflow", map[string]any{"plan": plan("one")}, &w)
	call(t, s, "update_workflow", map[string]any{"name": "w", "plan": plan("two")}, &w)
	if w.Number != 2 || !w.Published || w.Source != "" {
		t.Errorf("update: got %+v, want version 2", w)
	}
	has(t, "another workflow's plan", refused(t, s, "update_workflow", map[string]any{"name": "w", "plan": "name: x\nsteps:\n  - {type: transform, config: {value: 1}}\n"}), "another workflow", "deploy_workflow")
	output := func(in map[string]any) string {
		var run struct{ ID, Output string }
		in["name"] = "w"
		call(t, s, "run_workflow", in, &run)
		b.status(run.ID)
		call(t, s, "get_run_status", map[string]any{"runId": run.ID}, &run)
		return run.Output
	}
	call(t, s, "publish_workflow", map[string]any{"name": "w", "version": "1"}, &w)
	if got := output(map[string]any{}); got != "one" || w.Number != 1 {
		t.Errorf("back to 1: got %s by %+v, want one", got, w)
	}
	if got := output(map[string]any{"version": 2}); got != "two" {
		t.Errorf("pinned to 2: got %s, want two", got)
	}
	call(t, s, "unpublish_workflow", map[string]any{"name": "w"}, &w)
	has(t, "run of an unpublished workflow", refused(t, s, "run_workflow", map[string]any{"name": "w"}), "is not published", "publish it again")
	call(t, s, "publish_workflow", map[string]any{"name": "w"}, &w)
	if got := output(map[string]any{}); got != "two" || w.Number != 2 {
		t.Errorf("published again: got %s by %+v, want two", got, w)
	}
}
