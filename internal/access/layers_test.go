package access_test

import (
	"encoding/json"
	"testing"

	"github.com/longstop-dev/longstop/internal/access"
	"github.com/longstop-dev/longstop/internal/flow"
)

// publish stores a workflow with settings of its own, and a nested step with
// more of them.
func (w *world) publish(t *testing.T) {
	t.Helper()
	def := flow.Definition{Name: "w", Recovery: map[string]string{"recovery.mode": "agent", "recovery.max_attempts": "4"},
		Steps: []flow.Step{{ID: "outer", Nested: []flow.Branch{{Name: "then", Steps: []flow.Step{
			{Index: 1, ID: "inner", Recovery: map[string]string{"recovery.max_attempts": "5", "recovery.builtin": "off"}}}}}}}}
	raw, err := json.Marshal(def)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.store.Publish(t.Context(), flow.WorkflowVersion{ID: "ver_1", Workspace: w.by.Workspace, Workflow: "w", Digest: "d", Definition: raw}, nil); err != nil {
		t.Fatal(err)
	}
}

func TestSettingsSayWhereTheirValuesComeFrom(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.publish(t)
	w.mustPut(t, "recovery.max_attempts", `"3"`)
	w.mustPut(t, "recovery.timeout_ms", `"2000"`)
	for name, tc := range map[string]struct {
		in   access.SettingsIn
		want map[string][2]string
	}{
		"the workspace": {access.SettingsIn{}, map[string][2]string{"recovery.mode": {"sync", "default"}, "recovery.max_attempts": {"3", "workspace"}, "recovery.builtin": {"rules", "default"}}},
		"a workflow": {access.SettingsIn{Workflow: "w"}, map[string][2]string{"recovery.mode": {"agent", "workflow"}, "recovery.max_attempts": {"4", "workflow"},
			"recovery.timeout_ms": {"2000", "workspace"}, "recovery.builtin": {"rules", "default"}}},
		"a step without": {access.SettingsIn{Workflow: "w", Step: "outer"}, map[string][2]string{"recovery.max_attempts": {"4", "workflow"}}},
		"a nested step": {access.SettingsIn{Workflow: "w", Step: "inner"}, map[string][2]string{"recovery.mode": {"agent", "workflow"}, "recovery.max_attempts": {"5", "step"},
			"recovery.builtin": {"off", "step"}, "recovery.timeout_ms": {"2000", "workspace"}}},
		"by index": {access.SettingsIn{Workflow: "w", Step: "1"}, map[string][2]string{"recovery.max_attempts": {"5", "step"}}},
	} {
		list, err := w.SettingsList(t.Context(), w.by, &tc.in)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, v := range list.Items {
			if want, ok := tc.want[v.Key]; ok && (text(&v) != want[0] || v.Source != want[1]) {
				t.Errorf("%s: %s is %s from %s, want %v", name, v.Key, text(&v), v.Source, want)
			}
		}
		for key, want := range tc.want {
			v, err := w.SettingsGet(t.Context(), w.by, &access.GetSettingIn{Key: key, SettingsIn: tc.in})
			if err != nil || text(v) != want[0] || v.Source != want[1] {
				t.Errorf("%s: get %s: got %+v, %v, want %v", name, key, v, err, want)
			}
		}
	}
}

func TestSettingsOfWhatIsNotThere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.publish(t)
	stranger := w.by
	stranger.Workspace = "ws_other"
	for name, tc := range map[string]struct {
		by   flow.Caller
		in   access.SettingsIn
		code flow.Code
	}{
		"no workflow":         {w.by, access.SettingsIn{Workflow: "x"}, flow.CodeNotFound},
		"no step":             {w.by, access.SettingsIn{Workflow: "w", Step: "x"}, flow.CodeNotFound},
		"a step of nothing":   {w.by, access.SettingsIn{Step: "inner"}, flow.CodeInvalid},
		"another's workflow":  {stranger, access.SettingsIn{Workflow: "w"}, flow.CodeNotFound},
		"a step of another's": {stranger, access.SettingsIn{Workflow: "w", Step: "inner"}, flow.CodeNotFound},
	} {
		_, err := w.SettingsList(t.Context(), tc.by, &tc.in)
		wantError(t, name, err, tc.code)
	}
}
