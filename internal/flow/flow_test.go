package flow_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/longstop-dev/longstop/internal/flow"
)

func TestStateTables(t *testing.T) {
	t.Parallel()
	runs := []flow.RunStatus{flow.RunQueued, flow.RunRunning, flow.RunWaiting, flow.RunSucceeded, flow.RunFailed, flow.RunCancelled}
	for _, s := range runs {
		// What has ended stays as it is, but for a failed run that a person retries.
		if s.Finished() && s != flow.RunFailed && len(s.Next()) > 0 {
			t.Errorf("%s is finished and goes on to %v", s, s.Next())
		}
		if !s.Finished() && !s.Can(flow.RunCancelled) {
			t.Errorf("%s cannot be cancelled", s)
		}
		if s.Can(flow.RunQueued) {
			t.Errorf("%s goes back to the queue", s)
		}
	}
	for _, s := range []flow.StepStatus{flow.StepPending, flow.StepRunning, flow.StepWaiting, flow.StepSucceeded, flow.StepFailed, flow.StepSkipped} {
		if s.Done() && len(s.Next()) > 0 {
			t.Errorf("%s is done and goes on to %v", s, s.Next())
		}
	}
}

func TestErrorsSayWhatWhereAndWhatWouldBeRight(t *testing.T) {
	t.Parallel()
	cause := errors.New("the cause, which nobody is shown")
	err := flow.Errorf(flow.CodeInvalid, "%d is out of range", 9).At("recovery.timeout_ms").Right("1000 to 60000").Because(cause)
	if got, want := err.Error(), "recovery.timeout_ms: 9 is out of range (1000 to 60000)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	wrapped := fmt.Errorf("saving: %w", err)
	if flow.CodeOf(wrapped) != flow.CodeInvalid || !errors.Is(wrapped, cause) {
		t.Errorf("code %s, cause found %v", flow.CodeOf(wrapped), errors.Is(wrapped, cause))
	}
	if flow.CodeOf(cause) != flow.CodeInternal || flow.CodeOf(nil) != "" {
		t.Error("another error is internal, and none has no code")
	}
}

func TestRoles(t *testing.T) {
	t.Parallel()
	roles := []flow.Role{flow.RoleViewer, flow.RoleOperator, flow.RoleEditor, flow.RoleOwner}
	for i, min := range roles {
		for j, role := range roles {
			if got := (flow.Op{Min: min}).Allows(role); got != (j >= i) {
				t.Errorf("%s may call what needs %s: got %v", role, min, got)
			}
		}
		if (flow.Op{Min: min}).Allows(flow.RoleAgent) || (flow.Op{Min: min}).Allows("") {
			t.Errorf("an agent, or nobody, may call what needs %s", min)
		}
	}
	if !(flow.Op{Min: flow.RoleViewer, Agents: true}).Allows(flow.RoleAgent) {
		t.Error("an agent may not call what is open to agents")
	}
}

func TestNoSourceIsNull(t *testing.T) {
	t.Parallel()
	for source, want := range map[flow.Source]string{flow.SourceNone: `null`, flow.SourceBYOA: `"byoa"`, flow.SourceBuiltin: `"builtin"`, flow.SourceHuman: `"human"`} {
		b, err := json.Marshal(source)
		if err != nil || string(b) != want {
			t.Errorf("%q: got %s, %v, want %s", source, b, err, want)
		}
		var back flow.Source
		if err := json.Unmarshal(b, &back); err != nil || back != source {
			t.Errorf("%s back: got %q, %v", b, back, err)
		}
	}
}

func TestPlace(t *testing.T) {
	t.Parallel()
	text := []byte("{\n é: x\n")
	for at, want := range map[int][2]int{-1: {1, 1}, 0: {1, 1}, 1: {1, 2}, 2: {2, 1}, 5: {2, 3}, 9: {3, 1}, 99: {3, 1}} {
		if line, column := flow.Place(text, at); line != want[0] || column != want[1] {
			t.Errorf("%d: line %d, column %d, want %v", at, line, column, want)
		}
	}
}
