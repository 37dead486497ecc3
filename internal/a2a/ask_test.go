package a2a_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/longstop-dev/longstop/internal/a2a"
)

// TestRecoveryMessage pins the message that the recovery specification prints.
//
// spec: R-073 R-075 R-083 R-084 R-085 R-109
func TestRecoveryMessage(t *testing.T) {
	t.Parallel()
	srv := newAgent(t, always(200, reply(fixedOutput)))
	action, meta, err := newClient().Ask(withDeadline(t, 5*time.Second), recovery(srv.URL, nil))
	if err != nil || string(action) != fixedOutput {
		t.Fatalf("got %s, %v, want %s verbatim", action, err, fixedOutput)
	}
	got := srv.requests()
	if len(got) != 1 || got[0].path != "/message:send" || got[0].version != "1.0" || got[0].contentType != "application/json" {
		t.Fatalf("got %+v, want one POST to /message:send with version 1.0", got)
	}
	want := map[string]any{"jsonrpc": "2.0", "id": "recovery-r1-2", "method": "SendMessage", "params": map[string]any{
		"message": map[string]any{"messageId": meta.MessageID, "role": "ROLE_USER",
			"parts": []any{map[string]any{"type": "data", "data": map[string]any{"schema_version": "1"}}}}}}
	if !reflect.DeepEqual(got[0].body, want) {
		t.Errorf("got %v, want %v", got[0].body, want)
	}
	if uuid := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`); !uuid.MatchString(meta.MessageID) {
		t.Errorf("messageId %q is not a version 4 UUID", meta.MessageID)
	}
}

// TestAskAnswers are whole questions, by what the agent answers to the send
// and then to each poll.
//
// spec: R-074 R-087 R-090
func TestAskAnswers(t *testing.T) {
	t.Parallel()
	task := func(state, rest string) string {
		return `{"jsonrpc":"2.0","id":1,"result":{"id":"t","contextId":"c","status":{"state":"` + state + `"` + rest + `}}`
	}
	said := `,"message":{"parts":[{"text":"upstream exploded"}]}}`
	done := task("TASK_STATE_COMPLETED", `},"artifacts":[{"parts":[{"text":"x"},{"data":{"a":1}},{"data":{"a":2}}]}]`)
	for name, tc := range map[string]struct {
		answers []string
		want    string // the action
		err     error
		state   a2a.State // of a TaskError
		text    string    // in the error
	}{
		"task done at once":      {answers: []string{done}, want: `{"a":1}`},
		"task polled":            {answers: []string{task("TASK_STATE_SUBMITTED", "}"), task("TASK_STATE_WORKING", "}"), done}, want: `{"a":1}`},
		"polled through lapses":  {answers: []string{task("working", "}"), rpcError("-32001", "gone"), "503", "429", rpcError("-32001", "gone"), done}, want: `{"a":1}`},
		"task lost for good":     {answers: []string{task("working", "}"), rpcError("-32001", "gone")}, text: "-32001"},
		"poll refused":           {answers: []string{task("working", "}"), "403"}, text: "HTTP 403"},
		"another context":        {answers: []string{task("working", "}"), strings.Replace(done, `"c"`, `"d"`, 1)}, err: a2a.ErrShape, text: "contextId"},
		"another task":           {answers: []string{task("working", "}"), strings.Replace(done, `"t"`, `"u"`, 1)}, err: a2a.ErrShape, text: "another task"},
		"working without id":     {answers: []string{`{"result":{"status":{"state":"working"}}}`}, err: a2a.ErrShape, text: "without an id"},
		"failed with text":       {answers: []string{task("TASK_STATE_FAILED", said)}, state: a2a.StateFailed, text: "upstream exploded"},
		"failed with data":       {answers: []string{task("failed", `},"artifacts":[{"parts":[{"data":{"a":1}}]}]`)}, state: a2a.StateFailed},
		"cancelled, two Ls":      {answers: []string{task("cancelled", "}")}, state: a2a.StateCanceled},
		"rejected":               {answers: []string{task("rejected", said)}, state: a2a.StateRejected, text: "REJECTED: upstream"},
		"input required":         {answers: []string{task("input-required", said)}, state: a2a.StateInputRequired, text: "INPUT_REQUIRED"},
		"auth required":          {answers: []string{task("TASK_STATE_AUTH_REQUIRED", said)}, state: a2a.StateAuthRequired, text: "AUTH_REQUIRED"},
		"text only":              {answers: []string{`{"result":{"message":{"parts":[{"text":"sorry"}]}}}`}, err: a2a.ErrNoData, text: "sorry"},
		"an error of its own":    {answers: []string{rpcError("-32000", "reason")}, text: "-32000: reason"},
		"nothing in it":          {answers: []string{`{"jsonrpc":"2.0","id":1}`}, err: a2a.ErrShape},
		"neither task nor reply": {answers: []string{`{"result":{"hello":1}}`}, err: a2a.ErrShape},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := newAgent(t, func(w http.ResponseWriter, _ *http.Request, _ seen, n int) {
				body, status := tc.answers[min(n, len(tc.answers)-1)], 200
				if _, err := fmt.Sscanf(body, "%d", &status); err == nil {
					w.WriteHeader(status)
				}
				_, _ = io.WriteString(w, body)
			})
			action, meta, err := newClient().Ask(withDeadline(t, 5*time.Second), recovery(srv.URL, v1Card(t, srv.URL)))
			if string(action) != tc.want || (err == nil) != (tc.want != "") {
				t.Fatalf("got %s, %v, want %q", action, err, tc.want)
			}
			if tc.want != "" {
				return
			}
			var failed *a2a.TaskError
			if errors.As(err, &failed) != (tc.state != "") || tc.state != "" && (failed.State != tc.state || meta.State != tc.state) {
				t.Errorf("got %#v, want a TaskError in state %q", err, tc.state)
			}
			if tc.err != nil && !errors.Is(err, tc.err) || !strings.Contains(err.Error(), tc.text) {
				t.Errorf("got %v, want %v with %q", err, tc.err, tc.text)
			}
		})
	}
}

// TestStaysWorking: the one deadline covers send and polls.
func TestStaysWorking(t *testing.T) {
	t.Parallel()
	srv := newAgent(t, always(200, `{"result":{"id":"t","status":{"state":"working"}}}`))
	c := newClient()
	c.Wait = nil // the real timer, which the deadline interrupts
	_, meta, err := c.Ask(withDeadline(t, 60*time.Millisecond), recovery(srv.URL, v1Card(t, srv.URL)))
	if !errors.Is(err, a2a.ErrTimeout) || !strings.Contains(err.Error(), "WORKING") || meta.TaskID != "t" {
		t.Errorf("got %v with task %q, want a timeout that names the state, and task t", err, meta.TaskID)
	}
}

// TestTaskTextIsBounded: what a failed task says is cut, and never shows the token.
func TestTaskTextIsBounded(t *testing.T) {
	t.Parallel()
	const token = "tok-\"abc\"-123"
	text, _ := json.Marshal(token + strings.Repeat(" é", 5000))
	srv := newAgent(t, always(200, `{"result":{"id":"t","status":{"state":"failed","message":{"parts":[{"text":`+string(text)+`}]}}}}`))
	q := recovery(srv.URL, v1Card(t, srv.URL))
	q.Token, q.TokenOrigin = token, srv.URL
	_, _, err := newClient().Ask(withDeadline(t, 5*time.Second), q)
	checkErrorText(t, err, token)
	var failed *a2a.TaskError
	if !errors.As(err, &failed) || len([]rune(failed.Text)) != 200 || !strings.HasPrefix(failed.Text, "[token] é") {
		t.Errorf("got %v, want 200 characters that begin with [token]", err)
	}
}
