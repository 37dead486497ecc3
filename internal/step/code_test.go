package step

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/longstop-dev/longstop/internal/flow"
)

func TestCode(t *testing.T) {
	t.Parallel()
	table := NewTable(calm())
	run := func(code string) (flow.Outcome, error) {
		config, err := json.Marshal(map[string]string{"code": code})
		if err != nil {
			t.Fatal(err)
		}
		c := callOf(string(config))
		c.Scope = map[string]any{"input": map[string]any{"a": json.Number("1")},
			"steps": map[string]any{"user": map[string]any{"output": map[string]any{"b": json.Number("2")}}}, "secrets": map[string]any{"api": "sk-secret"}}
		return table.Run(t.Context(), "code", c)
	}
	out, err := run("console.log('adding'); const b = await Promise.resolve(steps.user.output.b); return { sum: input.a + b };")
	if err != nil || string(out.Value) != `{"sum":3}` || len(out.Logs) != 1 || !strings.Contains(out.Logs[0], "adding") {
		t.Errorf("got %s, logs %q, %v", out.Value, out.Logs, err)
	}
	for code, want := range map[string]struct {
		kind flow.ErrorKind
		says string
	}{
		"return {":                   {flow.KindRefused, "line"},
		"throw new Error('no idea')": {flow.KindRefused, "no idea"},
		"return secrets.api":         {flow.KindRefused, "secrets"},
		"return () => 1":             {flow.KindTooLarge, "function"},
	} {
		_, err := run(code)
		var e *flow.StepError
		if !errors.As(err, &e) || e.Kind != want.kind || !strings.Contains(e.Message, want.says) {
			t.Errorf("%s: got %v, want %s with %q", code, err, want.kind, want.says)
		}
	}
}
