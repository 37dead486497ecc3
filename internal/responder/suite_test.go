package responder

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/flow/flowtest"
)

const fixed = `{"type":"fixed_output","diagnosis":"d","output":{"id":42}}`

// subject is a responder with an outsider behind it that the suite scripts.
type subject struct {
	responder Responder
	question  flow.Question
	// behave has the outsider answer with an action, fail, or hang until its
	// caller goes away; nil if there is no outsider.
	behave func(how string)
}

// suite is what every responder must pass.
func suite(t *testing.T, fresh func(t *testing.T) subject) {
	t.Run("has a name", func(t *testing.T) {
		t.Parallel()
		if name := fresh(t).responder.Name(); name == "" || strings.ToLower(name) != name {
			t.Errorf("name = %q, want lower-case letters", name)
		}
	})
	t.Run("answers an action", func(t *testing.T) {
		t.Parallel()
		s := fresh(t)
		a, err := s.responder.Ask(t.Context(), s.question)
		if err != nil {
			t.Fatalf("ask: %v", err)
		}
		var action flow.Action
		if err := json.Unmarshal(a.Action, &action); err != nil || action.Type == "" || action.Diagnosis == "" {
			t.Errorf("answer = %s, %v, want an action", a.Action, err)
		}
	})
	t.Run("can be asked by many at once", func(t *testing.T) {
		t.Parallel()
		s := fresh(t)
		errs := make(chan error, 8)
		for range cap(errs) {
			go func() { _, err := s.responder.Ask(t.Context(), s.question); errs <- err }()
		}
		for range cap(errs) {
			if err := <-errs; err != nil {
				t.Errorf("ask: %v", err)
			}
		}
	})
	t.Run("fails in a few words and without secrets", func(t *testing.T) {
		t.Parallel()
		s := fresh(t)
		if s.behave == nil {
			return
		}
		s.behave("fail")
		a, err := s.responder.Ask(t.Context(), s.question)
		var e *flow.AskError
		if !errors.As(err, &e) || e.Kind == "" || e.Message == "" || len([]rune(e.Message)) > 300 || strings.Contains(e.Message, "s3cr3t") {
			t.Errorf("got %#v, want a short AskError", err)
		}
		if a.Target == "" || strings.Contains(a.Target, "?") {
			t.Errorf("target = %q, want it told even now, without a query", a.Target)
		}
	})
	t.Run("gives up with its context", func(t *testing.T) {
		t.Parallel()
		s := fresh(t)
		if s.behave == nil {
			return
		}
		s.behave("hang")
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		began := time.Now()
		_, err := s.responder.Ask(ctx, s.question)
		var e *flow.AskError
		if !errors.As(err, &e) || e.Kind != flow.AskTimeout {
			t.Errorf("got %#v, want a timeout", err)
		}
		if took := time.Since(began); took > 3*time.Second {
			t.Errorf("came back after %s", took)
		}
	})
}

func testClock() *flowtest.Clock {
	return flowtest.NewClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
}

func question() flow.Question {
	return flow.Question{Workspace: "ws", RunID: "run_1", StepIndex: 2, Timeout: 30 * time.Second, Cap: 10 * time.Minute,
		Input: flow.RecoveryInput{SchemaVersion: 1, Error: "HTTP 429: Too Many Requests", PriorOutputs: map[string]string{}, WorkflowInput: json.RawMessage(`{}`),
			Step: flow.RecoveryStep{Type: "http_request", Index: 2, Config: json.RawMessage(`{"method":"GET","url":"https://api.example.com/users/42?full=1"}`)}}}
}
