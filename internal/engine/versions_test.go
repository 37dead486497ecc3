package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/longstop-dev/longstop/internal/engine"
	"github.com/longstop-dev/longstop/internal/flow"
)

func (h *harness) versions(name string) string {
	h.t.Helper()
	l, err := h.eng.ListVersions(h.t.Context(), by, &engine.VersionsIn{Name: name})
	if err != nil {
		h.t.Fatal(err)
	}
	var out []string
	for _, v := range l.Items {
		mark := ""
		if v.Published {
			mark = "*"
		}
		if v.Source != "" || v.Definition != nil || v.Digest == "" {
			h.t.Errorf("version %d: got %+v, want a digest and no texts", v.Number, v)
		}
		out = append(out, fmt.Sprint(v.Number, mark))
	}
	return strings.Join(out, " ")
}

// put stores a text as a version.
func (h *harness) put(text string, publish bool) *engine.WorkflowView {
	h.t.Helper()
	v, err := h.eng.CreateWorkflow(h.t.Context(), by, &engine.CreateWorkflowIn{Publish: publish, RawBody: []byte(text)})
	if err != nil {
		h.t.Fatal(err)
	}
	return v
}

func (h *harness) publish(name, version string) (*engine.WorkflowView, error) {
	in := &engine.PublishIn{Name: name}
	in.Body.Version = version
	return h.eng.PublishWorkflow(h.t.Context(), by, in)
}

func source(n int) string {
	return fmt.Sprintf("name: w\nsteps:\n  - {id: one, type: a, config: {n: %d}}\n", n)
}

func TestNewRunsUseThePublishedVersion(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	one, kept := h.put(source(1), true), h.put(source(9), false)
	h.put(source(2), true)
	wantEqual(t, "versions", h.versions("w"), "2* 1")
	out := func(version int) string {
		in := &engine.StartRunIn{Name: "w"}
		in.Body.Version = version
		r, err := h.eng.StartRun(t.Context(), by, in)
		if err != nil {
			return string(flow.CodeOf(err))
		}
		v := h.ended(r.ID)
		return string(v.Output)
	}
	wantEqual(t, "newest", out(0), `{"n":2}`)
	wantEqual(t, "pinned", out(1), `{"n":1}`)
	wantEqual(t, "unknown", out(7), "not_found")
	if v, err := h.publish("w", "1"); err != nil || v.VersionID != one.VersionID || !v.Published {
		t.Fatalf("publish 1: got %+v, %v", v, err)
	}
	wantEqual(t, "back to 1", out(0)+" "+h.versions("w"), `{"n":1} 2 1*`)
	if again := h.put(source(2), true); again.Number != 2 || !again.Published {
		t.Errorf("the newest text again: got %+v, want version 2", again)
	}
	wantEqual(t, "forth to 2", h.versions("w"), "2* 1")
	if v, err := h.publish("w", kept.VersionID); err != nil || v.Number != 3 || v.VersionID == kept.VersionID {
		t.Errorf("publish what was kept: got %+v, %v, want a version 3 of its own", v, err)
	}
	wantEqual(t, "what was kept", out(0)+" "+h.versions("w"), `{"n":9} 3* 2 1`)
	if v, err := h.publish("w", ""); err != nil || v.Number != 3 {
		t.Errorf("publish the newest: got %+v, %v", v, err)
	}
	for _, which := range []string{"0", "-1", "4", "99999999999", "ver_x"} {
		if _, err := h.publish("w", which); flow.CodeOf(err) != flow.CodeNotFound {
			t.Errorf("publish %q: got %v, want not_found", which, err)
		}
	}
}

func TestAnUnpublishedWorkflowStartsNoRuns(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	one := h.put(source(1), true)
	h.types.on("a", failing)
	old := h.begin(flow.Definition{Name: "w", Steps: steps(flow.Step{ID: "one", Type: "a"})}, ``)
	wantStatus(t, h.ended(old), flow.RunFailed)
	v, err := h.eng.UnpublishWorkflow(t.Context(), by, &engine.WorkflowIn{Name: "w"})
	if err != nil || v.Published || v.Number != 2 {
		t.Fatalf("unpublish: got %+v, %v, want what was published", v, err)
	}
	_, getErr := h.eng.GetWorkflow(t.Context(), by, &engine.WorkflowIn{Name: "w"})
	_, startErr := h.eng.StartRun(t.Context(), by, &engine.StartRunIn{Name: "w"})
	_, twiceErr := h.eng.UnpublishWorkflow(t.Context(), by, &engine.WorkflowIn{Name: "w"})
	for what, err := range map[string]error{"get": getErr, "start": startErr, "unpublish twice": twiceErr} {
		if flow.CodeOf(err) != flow.CodeNotFound || !strings.Contains(err.Error(), `"w" is not published (publish it again`) {
			t.Errorf("%s: got %v, want not_found that says so", what, err)
		}
	}
	if _, err := h.eng.UnpublishWorkflow(t.Context(), by, &engine.WorkflowIn{Name: "never"}); !strings.Contains(fmt.Sprint(err), `there is no workflow "never"`) {
		t.Errorf("a workflow that never was: got %v", err)
	}
	l, err := h.eng.ListWorkflows(t.Context(), by, &engine.Page{})
	if err != nil || len(l.Items) != 0 {
		t.Errorf("list: got %+v, %v, want none", l, err)
	}
	wantEqual(t, "versions stay", h.versions("w"), "2 1")
	h.types.on("a", nil)
	if _, err := h.eng.RetryRun(t.Context(), by, &engine.RetryIn{ID: old}); err != nil {
		t.Errorf("retry of an old run: %v", err)
	}
	wantStatus(t, h.ended(old), flow.RunSucceeded)
	in := &engine.StartRunIn{Name: "w"}
	in.Body.VersionID = one.VersionID
	r, err := h.eng.StartRun(t.Context(), by, in)
	if err != nil {
		t.Fatalf("a run pinned to a version: %v", err)
	}
	wantEqual(t, "output", string(h.ended(r.ID).Output), `{"n":1}`)
	if _, err := h.publish("w", ""); err != nil {
		t.Error(err)
	}
	wantEqual(t, "published again", h.versions("w"), "2* 1")
}

func TestVersionsArePages(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	for n := range 5 {
		h.put(source(n), true)
	}
	var got []int
	in := &engine.VersionsIn{Name: "w", Page: engine.Page{Limit: 2}}
	for {
		l, err := h.eng.ListVersions(t.Context(), by, in)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range l.Items {
			got = append(got, v.Number)
		}
		if in.After = l.Next; l.Next == "" {
			break
		}
	}
	wantEqual(t, "numbers", fmt.Sprint(got), "[5 4 3 2 1]")
	in.After = "x"
	if _, err := h.eng.ListVersions(t.Context(), by, in); flow.CodeOf(err) != flow.CodeInvalid {
		t.Errorf("a cursor that is none: got %v, want invalid", err)
	}
	if _, err := h.eng.ListVersions(t.Context(), flow.Caller{Workspace: "other"}, &engine.VersionsIn{Name: "w"}); flow.CodeOf(err) != flow.CodeNotFound {
		t.Errorf("another workspace: got %v, want not_found", err)
	}
	v, err := h.eng.GetVersion(t.Context(), by, &engine.VersionIn{Name: "w", Version: "2"})
	if err != nil || v.Source != source(1) || v.Published {
		t.Errorf("version 2: got %+v, %v", v, err)
	}
}
