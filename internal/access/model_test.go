package access_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/longstop-dev/longstop/internal/access"
	"github.com/longstop-dev/longstop/internal/flow"
)

// TestTheModelsKeyStaysWithItsOrigin holds for each way in which the URL may
// change: the key goes only where it was saved for.
func TestTheModelsKeyStaysWithItsOrigin(t *testing.T) {
	t.Parallel()
	const key = "sk-model-0123456789"
	w := newWorld(t)
	has := func(step, want string) {
		t.Helper()
		s, err := w.Recovery(t.Context(), w.by.Workspace)
		if err != nil || s.Model.Key != want {
			t.Errorf("%s: the key in use is %q, %v; want %q", step, s.Model.Key, err, want)
		}
	}
	v := w.mustPut(t, "model.key", `"`+key+`"`)
	if raw, _ := json.Marshal(v); strings.Contains(string(raw), key) || v.Set == nil || !*v.Set || v.EndpointOrigin != "https://generativelanguage.googleapis.com" {
		t.Errorf("put answers %s, want that it is set and where it goes", raw)
	}
	has("default", key)
	w.notStored(t, key)
	if got, want := w.mask(t, "Bearer "+key), "Bearer [secret:model.key]"; got != want {
		t.Errorf("masked %q, want %q", got, want)
	}
	if v := w.mustPut(t, "model.url", `"https://generativelanguage.googleapis.com/v2/openai"`); len(v.Warnings) != 0 {
		t.Errorf("the same origin: warnings %v", v.Warnings)
	}
	has("the same origin", key)
	if v := w.mustPut(t, "model.url", `"https://evil.example.com/v1"`); len(v.Warnings) != 1 || !strings.Contains(v.Warnings[0], "model.key was removed") {
		t.Errorf("another origin: warnings %v, want that the key is gone", v.Warnings)
	}
	has("another origin", "")
	w.mustPut(t, "model.key", `"`+key+`"`)
	has("saved for it", key)
	if _, err := w.SettingsDelete(t.Context(), w.by, &access.SettingIn{Key: "model.url"}); err != nil {
		t.Fatal(err)
	}
	has("back to the default", "")
}

func TestTheModelSaysWhatItNeeds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if v := w.mustPut(t, "recovery.builtin", `"model"`); len(v.Warnings) != 1 || !strings.Contains(v.Warnings[0], "model.key is not set") {
		t.Errorf("warnings %v, want that a key is missing", v.Warnings)
	}
	w.mustPut(t, "model.url", `"https://models.example.com/v1"`)
	w.mustPut(t, "model.name", `"qwen3:4b"`)
	w.mustPut(t, "model.daily_tokens", `0`)
	if v := w.mustPut(t, "recovery.builtin", `"model"`); len(v.Warnings) != 0 {
		t.Errorf("warnings %v, want none: the endpoint may need no key", v.Warnings)
	}
	s, err := w.Recovery(t.Context(), w.by.Workspace)
	if err != nil || s.Builtin != "model" || s.Model.URL != "https://models.example.com/v1" || s.Model.Name != "qwen3:4b" || s.Model.DailyTokens != 0 {
		t.Errorf("Recovery = %+v, %v; want what was put", s, err)
	}
	if problems := w.CheckRecovery(map[string]string{"recovery.builtin": "model"}); len(problems) != 0 {
		t.Errorf("a definition may choose the model: %v", problems)
	}
	if problems := w.CheckRecovery(map[string]string{"model.url": "https://x.example"}); len(problems) != 1 {
		t.Errorf("a definition may not say where it is: %v", problems)
	}
}

// TestADamagedModelSettingStopsTheModel: a budget that cannot be read must not
// become none, where the model is what answers.
func TestADamagedModelSettingStopsTheModel(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	row := flow.Setting{Workspace: w.by.Workspace, Key: "model.daily_tokens", Value: "many", UpdatedBy: w.by.Person, UpdatedAt: w.clock.Now()}
	if err := w.store.PutSetting(t.Context(), row); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Recovery(t.Context(), w.by.Workspace); err != nil {
		t.Errorf("the rules do not need it: %v", err)
	}
	_, err := w.Recovery(t.Context(), w.by.Workspace, map[string]string{"recovery.builtin": "model"})
	if flow.CodeOf(err) != flow.CodeInvalid || !strings.Contains(err.Error(), "model.daily_tokens") {
		t.Errorf("the model does: got %v, want invalid, naming it", err)
	}
}
