package show_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/show"
)

func TestDiffNamesWhatWentAndWhatCame(t *testing.T) {
	t.Parallel()
	var a, b any
	_ = json.Unmarshal([]byte(`{"url":"u1","same":1,"headers":{"A":"a","B":"b"},"list":[1]}`), &a)
	_ = json.Unmarshal([]byte(`{"url":"u2","same":1,"headers":{"A":"a","C":"c"},"list":[1,2]}`), &b)
	var out bytes.Buffer
	show.Diff(&out, show.Ink{}, "", a, b)
	want := "- headers.B: b\n+ headers.C: c\n- list: [1]\n+ list: [1,2]\n- url: u1\n+ url: u2\n"
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
}

func TestTextFromOutsideCannotDriveTheTerminal(t *testing.T) {
	t.Parallel()
	for _, hostile := range []string{"\x1b[2Jx", "\x07x", "\u202egnp.exe", "\x9b31mx", "a\rb"} {
		if got := show.Clean(hostile); strings.ContainsAny(got, "\x1b\x07\u202e\u009b\r") {
			t.Errorf("%q: got %q", hostile, got)
		}
	}
	if got := show.Line("one\ntwo", 10); got != "one" {
		t.Errorf("line: got %q", got)
	}
	if got := show.Line("äöüäöü", 4); got != "äöü…" {
		t.Errorf("cut: got %q", got)
	}
}

func TestTableAlignsByCharacters(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	show.Table(&out, show.Ink{}, []string{"a", "b"}, [][]string{{"äöü", "1"}, {"x", "2"}})
	if want := "a    b\näöü  1\nx    2\n"; out.String() != want {
		t.Errorf("got\n%q want\n%q", out.String(), want)
	}
}

func TestTimelineShowsEachAnswerOnce(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	k := &flow.Case{ID: "case_1", Asked: []flow.Asked{{Responder: "a2a", Target: "http://x", Rejection: "no answer within 1s"}}}
	line := &show.Timeline{W: &out, Case: func(string) (*flow.Case, error) { return k, nil }}
	i := 0
	ev := func(kind string, data any) {
		b, err := json.Marshal(data)
		if err != nil {
			t.Fatal(err)
		}
		line.Event(flow.Event{Type: kind, At: time.Unix(0, 0), StepIndex: &i, Data: b})
	}
	ev(flow.EventStepStarted, map[string]any{"id": "get", "title": "Get it"})
	ev(flow.EventStepRecovery, map[string]any{"id": "get", "error": "HTTP 404: Not Found\n{}", "caseId": "case_1"})
	ev(flow.EventStepAdapting, flow.Adapting{BYOAAttempted: true})
	k.Asked = append(k.Asked, flow.Asked{Responder: "human", Accepted: true, Action: json.RawMessage(`{"type":"fixed_output","diagnosis":"by hand"}`)})
	ev(flow.EventStepAdapting, flow.Adapting{})
	ev(flow.EventStepSucceeded, map[string]any{"id": "get", "durationMs": 12, "recovery_source": "human"})
	text := out.String()
	for want, times := range map[string]int{"HTTP 404: Not Found": 1, "passed over: no answer within 1s": 1, "fixed_output: by hand": 1, "mended by a person": 1, "{}": 0} {
		if got := strings.Count(text, want); got != times {
			t.Errorf("%q: got %d times, want %d, in\n%s", want, got, times, text)
		}
	}
}

func TestEachKindOfGateSaysWhatIsWanted(t *testing.T) {
	t.Parallel()
	for kind, want := range map[flow.GateKind]string{
		flow.GateApproval:      "to approve: Send 300 letters?",
		flow.GateNeedsHuman:    "waits for a person: nobody could mend it",
		flow.GateInputRequired: "an agent asks back",
		flow.GateNeedsAgent:    "waits in the inbox for your agent; without an answer the built-in is asked in 5m0s",
	} {
		var out bytes.Buffer
		line := &show.Timeline{W: &out,
			Gate: func(string) (*flow.Gate, error) {
				return &flow.Gate{Proposal: json.RawMessage(`{"message":"Send 300 letters?"}`)}, nil
			},
			Answer: func(id string, k flow.GateKind) string { return "answer " + id + " " + string(k) }}
		line.Event(flow.Event{Type: flow.EventGateOpened, At: time.Unix(0, 0), Data: json.RawMessage(`{"gateId":"gate_1","expiresAt":"1970-01-01T00:05:00Z","kind":"` + string(kind) + `"}`)})
		for _, part := range []string{want, "answer gate_1 " + string(kind)} {
			if !strings.Contains(out.String(), part) {
				t.Errorf("%s: no %q in %q", kind, part, out.String())
			}
		}
	}
}

func TestACodeFixIsShownWithWhatItMakes(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	show.Proposal(&out, show.Ink{}, "  ", json.RawMessage(`{"type":"code_fix","code":"a();\nb();\u001b[2J","input":{"user_id":1,"n":2},"output":{"id":1,"n":2}}`))
	want := "  the code:\n    a();\n    b();\uFFFD[2J\n  what it makes of the answer:\n    + id: 1\n    - user_id: 1\n"
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
}

// Lines of branches come as they come: each line names its step, and what is
// below a line is about that step.
func TestLinesOfBranchesNameTheirStep(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	line := &show.Timeline{W: &out}
	ev := func(i int, kind, data string) {
		line.Event(flow.Event{Type: kind, At: time.Unix(0, 0), StepIndex: &i, Data: json.RawMessage(data)})
	}
	ev(1, flow.EventStepStarted, `{"id":"ask","title":"May it?"}`)
	ev(2, flow.EventStepStarted, `{"id":"work","title":"Work"}`)
	ev(1, flow.EventGateOpened, `{"gateId":"gate_1","kind":"needs_human"}`)
	ev(2, flow.EventStepSucceeded, `{"id":"work","durationMs":5}`)
	ev(1, flow.EventGateAnswered, `{"gateId":"gate_1","answer":"fail"}`)
	ev(1, flow.EventStepFailed, `{"id":"ask","error":"refused"}`)
	ev(3, flow.EventStepFailed, `{"id":"other","error":"stopped: step 1 (ask) failed","stopped":true}`)
	want := `        ⏸ waits for a person: nobody could mend it
  ✓  2 work         Work                                   5 ms
  ·  1 ask          May it?
        ✓ answered fail
  ✗  1 ask          failed for good: refused
  ■  3 other        stopped: step 1 (ask) failed
`
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
}

func TestMillis(t *testing.T) {
	t.Parallel()
	for ms, want := range map[float64]string{0: "0 ms", 7.4: "7 ms", 1000: "1.0 s", 59949: "59.9 s", 60000: "1m0s", 609200: "10m9s", 3_600_000: "1h0m0s"} {
		if got := show.Millis(ms); got != want {
			t.Errorf("%v: got %s, want %s", ms, got, want)
		}
	}
}
