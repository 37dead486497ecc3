package sandbox_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/longstop-dev/longstop/internal/sandbox"
)

func TestRunGivesTheResultAndTheConsole(t *testing.T) {
	t.Parallel()
	s := sandbox.New(sandbox.Options{})
	got, err := s.Run(context.Background(), sandbox.Program{
		Code: "console.log('saw', input); return await Promise.resolve(input.a + 1)",
		Args: map[string]json.RawMessage{"input": json.RawMessage(`{"a":1}`)},
	})
	if err != nil || string(got.Value) != "2" || len(got.Console) != 1 || got.Console[0] != `saw {"a":1}` {
		t.Errorf("got %s %q %v, want 2 and one line", got.Value, got.Console, err)
	}
}
