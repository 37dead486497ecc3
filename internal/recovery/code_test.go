package recovery

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/sandbox"
)

// coding is a desk with a real sandbox, whose own agent answers with code.
func coding(t *testing.T, code string) (*bed, *Desk) {
	t.Helper()
	b := newBed(t)
	answer, err := json.Marshal(flow.Action{Type: flow.ActionCodeFix, Diagnosis: "renamed.", Code: code})
	if err != nil {
		t.Fatal(err)
	}
	b.settings.A2AAgentURL, b.own.answer = "https://agent.example", string(answer)
	// Compiling the engine takes a second; all tests of this machine share it.
	box := sandbox.New(sandbox.Options{CacheDir: filepath.Join(os.TempDir(), "longstop-test-sandbox")})
	t.Cleanup(func() {
		if err := box.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	d := b.desk()
	d.c.Sandbox = box
	return b, d
}

// changed is a failure whose answer has another shape than the contract.
func changed() flow.Failure {
	f := httpFailure()
	f.Step.Output = json.RawMessage(`{"type":"object","required":["id"]}`)
	f.Failed = flow.Failed{Error: "the output does not satisfy its contract", Kind: flow.KindContract,
		Response: &flow.Response{Status: 200, Body: `{"userId":42,"fullName":"Alice"}`}}
	return f
}

func decideWith(t *testing.T, d *Desk, f flow.Failure) flow.Verdict {
	t.Helper()
	k, err := d.Freeze(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	return d.Decide(t.Context(), f, k)
}

const fixCode = "return { id: input.userId, name: input.fullName };"

// spec: R-036 R-037
func TestACodeFixIsApprovedByAPerson(t *testing.T) {
	t.Parallel()
	_, d := coding(t, fixCode)
	f := changed()
	v := decideWith(t, d, f)
	if v.Kind != flow.VerdictGate || v.Gate.Kind != flow.GateApproval {
		t.Fatalf("got %s, want an approval gate (%s)", v.Kind, v.Message)
	}
	var p Proposal
	if err := json.Unmarshal(v.Gate.Proposal, &p); err != nil {
		t.Fatal(err)
	}
	if p.Code != fixCode || string(p.Output) != `{"id":42,"name":"Alice"}` || string(p.Input) != `{"userId":42,"fullName":"Alice"}` || p.Source != flow.SourceBYOA {
		t.Errorf("proposal: got %+v", p)
	}
	yes, err := d.Answered(t.Context(), flow.Caller{Person: "p"}, f, v.Case, *v.Gate, flow.GateAnswer{Answer: "approve", Reason: "looks right"})
	if err != nil || yes.Kind != flow.VerdictOutput || string(yes.Output) != `{"id":42,"name":"Alice"}` || yes.Source != flow.SourceBYOA {
		t.Errorf("approved: got %+v, %v", yes, err)
	}
	if want := "a person approved the code fix: renamed: looks right"; yes.Message != want {
		t.Errorf("message: got %q, want %q", yes.Message, want)
	}
	no, err := d.Answered(t.Context(), flow.Caller{Person: "p"}, f, v.Case, *v.Gate, flow.GateAnswer{Answer: "refuse", Reason: "no"})
	if err != nil || no.Kind != flow.VerdictAgain || no.NewEpisode {
		t.Errorf("refused: got %+v, %v, want the next recovery attempt", no, err)
	}
	if _, err := d.Answered(t.Context(), flow.Caller{Person: "p"}, f, v.Case, *v.Gate, flow.GateAnswer{Answer: "skip"}); flow.CodeOf(err) != flow.CodeInvalid {
		t.Errorf("skip: got %v, want invalid", err)
	}
}

// spec: R-038
func TestACodeFixMayBeAppliedAtOnce(t *testing.T) {
	t.Parallel()
	b, d := coding(t, fixCode)
	b.settings.CodeFixApproval = "never"
	v := decideWith(t, d, changed())
	if v.Kind != flow.VerdictOutput || string(v.Output) != `{"id":42,"name":"Alice"}` || v.Source != flow.SourceBYOA {
		t.Errorf("got %s with %s by %q (%s)", v.Kind, v.Output, v.Source, v.Message)
	}
}

func TestCodeThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	_, d := coding(t, "")
	own := d.responders["a2a"].(*fake)
	for code, why := range map[string]string{
		"return {":                         "code: failed",
		"throw new Error('no idea')":       "no idea",
		"return { name: input.fullName };": "contract",
		"return process.env":               "process",
		"return fetch('http://10.0.0.1/')": "fetch",
		"return { id: () => 1, f: 10n };":  "code: failed",
	} {
		answer, err := json.Marshal(flow.Action{Type: flow.ActionCodeFix, Diagnosis: "d", Code: code})
		if err != nil {
			t.Fatal(err)
		}
		own.answer = string(answer)
		v := decideWith(t, d, changed())
		if v.Kind == flow.VerdictOutput || v.Kind == flow.VerdictGate && v.Gate.Kind == flow.GateApproval || !strings.Contains(v.Message, why) {
			t.Errorf("%s: got %s: %s, want a refusal with %q", code, v.Kind, v.Message, why)
		}
	}
}

// spec: R-036
func TestWhatTheCodeSees(t *testing.T) {
	t.Parallel()
	b, d := coding(t, "return { id: Object.keys(context).sort().join(), body: context.response.body, prior: context.prior_outputs, user: context.workflow_input };")
	b.settings.CodeFixApproval = "never"
	v := decideWith(t, d, changed())
	var got map[string]any
	if err := json.Unmarshal(v.Output, &got); err != nil {
		t.Fatalf("%v: %s (%s)", err, v.Output, v.Message)
	}
	if got["id"] != "error,prior_outputs,response,workflow_input" || got["body"] != `{"userId":42,"fullName":"Alice"}` {
		t.Errorf("got %s", v.Output)
	}
}
