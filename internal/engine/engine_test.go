package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/longstop-dev/longstop/internal/engine"
	"github.com/longstop-dev/longstop/internal/flow"
)

// spec: R-049 R-052
func TestARunGoesThroughItsSteps(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.types.on("a", func(_ context.Context, c flow.Call, _ int) (flow.Outcome, error) {
		return value(`{"n":12345678901234567890}`)
	})
	id := h.begin(flow.Definition{Steps: steps(
		flow.Step{Type: "a", ID: "first"},
		flow.Step{Type: "b", Config: json.RawMessage(`{"v":"{{ steps.first.output.n }}","w":"{{ steps.0.output.n }}","x":"{{ input.x }}"}`)},
		flow.Step{Type: "c", Config: json.RawMessage(`{"done":true}`)},
	)}, `{"x":[1,2]}`)
	v := h.ended(id)
	wantStatus(t, v, flow.RunSucceeded)
	wantEqual(t, "output", string(v.Output), `{"done":true}`)
	wantEqual(t, "resolved config", string(h.types.made("b")[0].Config), `{"v":12345678901234567890,"w":12345678901234567890,"x":[1,2]}`)
	wantEqual(t, "events", joined(h.events(id)), "run:started step:started step:succeeded step:started step:succeeded step:started step:succeeded run:succeeded")
	logs, err := h.eng.ListLogs(t.Context(), by, &engine.RecordsIn{ID: id})
	if err != nil || len(logs.Items) != 3 {
		t.Fatalf("logs: got %+v, %v, want 3", logs, err)
	}
	b, _ := json.Marshal(logs.Items[0])
	if !strings.Contains(string(b), `"recovery_source":null`) {
		t.Errorf("a log row of a step that needed no recovery: got %s", b)
	}
	wantEqual(t, "idempotency key", h.types.made("b")[0].IdempotencyKey, id+"-1")
}

func TestTierOneBacksOffAndHonoursRetryAfter(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.types.on("a", func(_ context.Context, c flow.Call, nth int) (flow.Outcome, error) {
		switch nth {
		case 1:
			return transient("HTTP 503: Service Unavailable")
		case 2:
			return flow.Outcome{}, &flow.StepError{Kind: flow.KindTransient, Message: "HTTP 429: Too Many Requests", RetryAfter: 20 * time.Second}
		}
		return value(`1`)
	})
	id := h.begin(flow.Definition{Steps: steps(flow.Step{Type: "a", Retry: flow.Retry{Attempts: 3, Backoff: 2 * time.Second, MaxBackoff: 30 * time.Second}})}, ``)
	v := h.waits(id)
	wantEqual(t, "first back-off", v.WakeAt.Sub(h.clock.Now()), 2*time.Second)
	h.clock.Advance(2 * time.Second)
	v = h.await(id, "waiting again", func(v *engine.RunView) bool { return v.WakeAt != nil && v.Steps[0].Attempts == 2 })
	wantEqual(t, "what the server asked for", v.WakeAt.Sub(h.clock.Now()), 20*time.Second)
	h.clock.Advance(20 * time.Second)
	v = h.ended(id)
	wantStatus(t, v, flow.RunSucceeded)
	wantEqual(t, "recovery source", v.Steps[0].RecoverySource, flow.SourceNone)
	for i, c := range h.types.made("a") {
		wantEqual(t, fmt.Sprint("key of attempt ", i), c.IdempotencyKey, id+"-0")
	}
	if n := len(h.desk.saw()); n != 0 {
		t.Errorf("recovery was asked %d times, want 0", n)
	}
}

func TestARefusedRequestIsNotSentAgainByTierOne(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.types.on("a", func(context.Context, flow.Call, int) (flow.Outcome, error) { return refused("HTTP 404: Not Found") })
	id := h.begin(flow.Definition{Steps: steps(flow.Step{Type: "a", Title: "Fetch", Retry: flow.Retry{Attempts: 5, Backoff: time.Second, MaxBackoff: time.Second}})}, ``)
	v := h.ended(id)
	wantStatus(t, v, flow.RunFailed)
	wantEqual(t, "attempts", len(h.types.made("a")), 1)
	wantEqual(t, "error", v.Error, "step 0 (s0) failed: HTTP 404: Not Found\nnobody can mend this")
	wantEqual(t, "step", v.Steps[0].Status, flow.StepFailed)
}

// spec: R-031 R-039 R-050 R-051
func TestVerdicts(t *testing.T) {
	t.Parallel()
	// A step that fails until its url is right.
	picky := func(_ context.Context, c flow.Call, _ int) (flow.Outcome, error) {
		if strings.Contains(string(c.Config), "v2") {
			return value(`{"id":42}`)
		}
		return refused("HTTP 404: Not Found")
	}
	def := func() flow.Definition {
		return flow.Definition{Steps: steps(flow.Step{Type: "a", Config: json.RawMessage(`{"url":"http://h/v1","keep":{"x":1}}`)}, flow.Step{Type: "b"})}
	}
	for name, tc := range map[string]struct {
		verdict flow.Verdict
		status  flow.RunStatus
		output  string
		source  flow.Source
	}{
		"output": {flow.Verdict{Kind: flow.VerdictOutput, Output: json.RawMessage(`{"id":1}`), Source: flow.SourceBYOA, Message: "cached"}, flow.RunSucceeded, `{"id":1}`, flow.SourceBYOA},
		"retry":  {flow.Verdict{Kind: flow.VerdictRetry, Mods: json.RawMessage(`{"url":"http://h/v2"}`), Source: flow.SourceBuiltin}, flow.RunSucceeded, `{"id":42}`, flow.SourceBuiltin},
		"tool":   {flow.Verdict{Kind: flow.VerdictTool, Tool: &flow.ToolCall{Server: "s", Tool: "t", Params: json.RawMessage(`{"a":1}`)}, Source: flow.SourceBYOA}, flow.RunSucceeded, `{"server":"s","tool":"t","params":{"a":1}}`, flow.SourceBYOA},
		"skip":   {flow.Verdict{Kind: flow.VerdictSkip, Source: flow.SourceHuman}, flow.RunSucceeded, `null`, flow.SourceHuman},
		"fail":   {flow.Verdict{Kind: flow.VerdictFail, Message: "no"}, flow.RunFailed, ``, flow.SourceNone},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t)
			h.types.on("a", picky)
			tc.verdict.Adapting = flow.Adapting{BYOAAttempted: true}
			h.desk.dictate(tc.verdict)
			id := h.begin(def(), ``)
			v := h.ended(id)
			wantStatus(t, v, tc.status)
			wantEqual(t, "output", string(v.Steps[0].Output), tc.output)
			wantEqual(t, "source", v.Steps[0].RecoverySource, tc.source)
			if ev := joined(h.events(id)); !strings.Contains(ev, "step:recovery step:adapting") {
				t.Errorf("events: got %s", ev)
			}
			if tc.status == flow.RunSucceeded {
				wantEqual(t, "next step ran", len(h.types.made("b")), 1)
			}
		})
	}
}

// spec: R-032 R-034
func TestAMendIsMergedAndCounted(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.types.on("a", func(_ context.Context, c flow.Call, nth int) (flow.Outcome, error) {
		if nth == 3 {
			return value(`1`)
		}
		return refused("HTTP 400: Bad Request")
	})
	h.desk.dictate(
		flow.Verdict{Kind: flow.VerdictRetry, Mods: json.RawMessage(`{"url":"http://h/2","headers":{"X":"1","Y":null}}`), Dropped: []string{"/headers/Authorization"}, Source: flow.SourceBYOA},
		flow.Verdict{Kind: flow.VerdictRetry, Mods: json.RawMessage(`{"headers":{"Z":"[secret:api]"},"timeout":1500}`), Source: flow.SourceBuiltin},
	)
	id := h.begin(flow.Definition{Steps: steps(flow.Step{Type: "a",
		Config: json.RawMessage(`{"url":"http://h/1","headers":{"Authorization":"Bearer {{ secrets.api }}","Y":"y"}}`)})}, ``)
	v := h.ended(id)
	wantStatus(t, v, flow.RunSucceeded)
	calls := h.types.made("a")
	wantEqual(t, "attempts", len(calls), 3)
	wantEqual(t, "first", string(calls[0].Config), `{"headers":{"Authorization":"Bearer s3cr3t-value","Y":"y"},"url":"http://h/1"}`)
	wantEqual(t, "second", canonical(t, calls[1].Config), `{"headers":{"X":"1"},"url":"http://h/2"}`)
	wantEqual(t, "third", canonical(t, calls[2].Config), `{"headers":{"X":"1","Z":"s3cr3t-value"},"url":"http://h/2"}`)
	wantEqual(t, "keys", calls[0].IdempotencyKey+" "+calls[1].IdempotencyKey+" "+calls[2].IdempotencyKey, id+"-0 "+id+"-0-m1 "+id+"-0-m2")
	saw := h.desk.saw()
	wantEqual(t, "recovery attempts", fmt.Sprint(saw[0].Instance.Progress.Round, saw[1].Instance.Progress.Round), "0 1")
}

func canonical(t *testing.T, raw json.RawMessage) string {
	t.Helper()
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatal(err)
	}
	b, _ := json.Marshal(v)
	return string(b)
}

func TestAMendMayPause(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.types.on("a", func(_ context.Context, _ flow.Call, nth int) (flow.Outcome, error) {
		if nth > 1 {
			return value(`1`)
		}
		return transient("HTTP 429: Too Many Requests")
	})
	h.desk.dictate(flow.Verdict{Kind: flow.VerdictRetry, After: 7 * time.Second, Source: flow.SourceBuiltin})
	id := h.begin(flow.Definition{Steps: steps(flow.Step{Type: "a"})}, ``)
	v := h.waits(id)
	wantEqual(t, "pause", v.WakeAt.Sub(h.clock.Now()), 7*time.Second)
	h.clock.Advance(7 * time.Second)
	wantStatus(t, h.ended(id), flow.RunSucceeded)
}

func TestNestedStepsRunInTheirBranch(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.types.on("choose", func(_ context.Context, c flow.Call, _ int) (flow.Outcome, error) {
		wantEqual(t, "lazy member", string(c.Config), `{"if":"{{ not evaluated }}"}`)
		return flow.Outcome{Branch: "else"}, nil
	})
	id := h.begin(flow.Definition{Steps: steps(
		flow.Step{Type: "choose", ID: "vip", Config: json.RawMessage(`{"if":"{{ not evaluated }}"}`), Nested: []flow.Branch{
			{Name: "then", Steps: []flow.Step{{Type: "a"}}},
			{Name: "else", Steps: []flow.Step{{Type: "b", Config: json.RawMessage(`1`)}, {Type: "b", Config: json.RawMessage(`2`)}}},
		}},
		flow.Step{Type: "c", Config: json.RawMessage(`"{{ steps.vip.output }}"`)},
	)}, ``)
	v := h.ended(id)
	wantStatus(t, v, flow.RunSucceeded)
	wantEqual(t, "output", string(v.Output), `2`)
	var got []string
	for _, s := range v.Steps {
		got = append(got, fmt.Sprintf("%d:%s", s.Index, s.Status))
	}
	wantEqual(t, "steps", joined(got), "0:succeeded 1:skipped 2:succeeded 3:succeeded 4:succeeded")
}

func TestAWaitCostsARowAndStopsTheClock(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.types.on("pause", func(_ context.Context, c flow.Call, _ int) (flow.Outcome, error) {
		return flow.Outcome{Until: c.Now.Add(48 * time.Hour), Value: json.RawMessage(`"later"`)}, nil
	})
	id := h.begin(flow.Definition{Steps: steps(flow.Step{Type: "pause"}, flow.Step{Type: "a", Config: json.RawMessage(`1`)})}, ``)
	v := h.waits(id)
	wantEqual(t, "due", v.WakeAt.Sub(h.clock.Now()), 48*time.Hour)
	if v.Steps[0].Output != nil {
		t.Errorf("output before it is due: got %s", v.Steps[0].Output)
	}
	h.undriven(id)
	h.clock.Advance(48 * time.Hour)
	v = h.ended(id)
	wantStatus(t, v, flow.RunSucceeded)
	wantEqual(t, "output", string(v.Steps[0].Output), `"later"`)
	wantEqual(t, "the wait ran", len(h.types.made("pause")), 1)
}

func TestTimeOuts(t *testing.T) {
	t.Parallel()
	t.Run("an attempt", func(t *testing.T) {
		t.Parallel()
		h := newHarness(t)
		h.types.on("a", func(ctx context.Context, _ flow.Call, _ int) (flow.Outcome, error) {
			<-ctx.Done()
			return flow.Outcome{}, ctx.Err()
		})
		id := h.begin(flow.Definition{Steps: steps(flow.Step{Type: "a", Timeout: 20 * time.Millisecond})}, ``)
		v := h.ended(id)
		wantStatus(t, v, flow.RunFailed)
		wantEqual(t, "error", v.Steps[0].Error, "no answer within 20ms")
		wantEqual(t, "kind", h.desk.saw()[0].Failed.Kind, flow.KindTimeout)
	})
	t.Run("the whole step: no back-off that would end in it", func(t *testing.T) {
		t.Parallel()
		h := newHarness(t)
		h.types.on("a", func(context.Context, flow.Call, int) (flow.Outcome, error) {
			return transient("HTTP 500: Internal Server Error")
		})
		id := h.begin(flow.Definition{Steps: steps(flow.Step{Type: "a", TotalTimeout: 5 * time.Second,
			Retry: flow.Retry{Attempts: 100, Backoff: 2 * time.Second, MaxBackoff: time.Minute}})}, ``)
		h.waits(id)
		h.clock.Advance(2 * time.Second)
		v := h.ended(id)
		wantStatus(t, v, flow.RunFailed)
		wantEqual(t, "attempts", len(h.types.made("a")), 2)
		wantEqual(t, "what recovery is told is left", h.desk.saw()[0].Left, 3*time.Second)
	})
}

func TestOutputs(t *testing.T) {
	t.Parallel()
	t.Run("over the limit", func(t *testing.T) {
		t.Parallel()
		h := newHarness(t)
		h.limit.OutputBytes = 100
		h.types.on("a", func(context.Context, flow.Call, int) (flow.Outcome, error) {
			return value(`"` + strings.Repeat("x", 200) + `"`)
		})
		v := h.ended(h.begin(flow.Definition{Steps: steps(flow.Step{Type: "a"})}, ``))
		wantStatus(t, v, flow.RunFailed)
		wantEqual(t, "error", v.Steps[0].Error, "the output is 202 bytes, over the limit of 100 (setting limits.output_bytes)")
	})
	t.Run("against the contract", func(t *testing.T) {
		t.Parallel()
		h := newHarness(t)
		h.types.on("a", func(context.Context, flow.Call, int) (flow.Outcome, error) { return value(`{"userId":1}`) })
		v := h.ended(h.begin(flow.Definition{Steps: steps(flow.Step{Type: "a", Output: json.RawMessage(`{"type":"object","required":["id"]}`)})}, ``))
		wantStatus(t, v, flow.RunFailed)
		f := h.desk.saw()[0].Failed
		wantEqual(t, "kind", f.Kind, flow.KindContract)
		wantEqual(t, "what it was", f.Response.Body, `{"userId":1}`)
		if !strings.Contains(f.Error, "id") {
			t.Errorf("error does not name the member: %s", f.Error)
		}
	})
	t.Run("secrets are masked at rest", func(t *testing.T) {
		t.Parallel()
		h := newHarness(t)
		h.types.on("a", func(context.Context, flow.Call, int) (flow.Outcome, error) {
			return value(`{"echo":"Bearer s3cr3t-value"}`)
		})
		v := h.ended(h.begin(flow.Definition{Steps: steps(flow.Step{Type: "a"})}, ``))
		wantEqual(t, "output", string(v.Output), `{"echo":"Bearer [secret:api]"}`)
	})
	t.Run("a type that panics", func(t *testing.T) {
		t.Parallel()
		h := newHarness(t)
		h.types.on("a", func(context.Context, flow.Call, int) (flow.Outcome, error) { panic("boom") })
		v := h.ended(h.begin(flow.Definition{Steps: steps(flow.Step{Type: "a"})}, ``))
		wantStatus(t, v, flow.RunFailed)
	})
	t.Run("of the workflow", func(t *testing.T) {
		t.Parallel()
		h := newHarness(t)
		h.types.on("a", func(context.Context, flow.Call, int) (flow.Outcome, error) { return value(`{"n":7}`) })
		v := h.ended(h.begin(flow.Definition{Steps: steps(flow.Step{Type: "a"}), Output: json.RawMessage(`{"got":"{{ steps.0.output.n }}"}`)}, ``))
		wantEqual(t, "output", string(v.Output), `{"got":7}`)
	})
}

func TestAFailingTemplateGoesToRecovery(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.desk.dictate(flow.Verdict{Kind: flow.VerdictOutput, Output: json.RawMessage(`1`), Source: flow.SourceBYOA})
	id := h.begin(flow.Definition{Steps: steps(flow.Step{Type: "a", Config: json.RawMessage(`{"u":"{{ input.nope }}"}`)})}, `{"x":1}`)
	v := h.ended(id)
	wantStatus(t, v, flow.RunSucceeded)
	f := h.desk.saw()[0]
	wantEqual(t, "kind", f.Failed.Kind, flow.KindTemplate)
	if f.Config != nil || !strings.Contains(f.Failed.Error, "input.nope") {
		t.Errorf("got config %s, error %q", f.Config, f.Failed.Error)
	}
}

func TestAMendCuresATemplate(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.desk.dictate(flow.Verdict{Kind: flow.VerdictRetry, Mods: json.RawMessage(`{"url":"http://h/{{ input.x }}","headers":{"A":"a"}}`), Source: flow.SourceBYOA})
	id := h.begin(flow.Definition{Recovery: map[string]string{"recovery.mode": "sync"}, Steps: steps(flow.Step{Type: "a",
		Config: json.RawMessage(`{"url":"http://h/{{ input.nope }}","headers":{"A":"{{ input.nope }}","B":"{{ input.x }}"}}`)})}, `{"x":"y"}`)
	wantStatus(t, h.ended(id), flow.RunSucceeded)
	wantEqual(t, "config: what the mend says is not evaluated", canonical(t, h.types.made("a")[0].Config), `{"headers":{"A":"a","B":"y"},"url":"http://h/{{ input.x }}"}`)
	wantEqual(t, "the definition's settings", h.desk.saw()[0].Recovery["recovery.mode"], "sync")
}

func TestAnEscalationAsksTheNextRecoveryAttempt(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.types.on("a", func(context.Context, flow.Call, int) (flow.Outcome, error) { return refused("HTTP 401: Unauthorized") })
	said := &flow.Escalation{Diagnosis: "expired", Suggestion: "log in again"}
	h.desk.dictate(flow.Verdict{Kind: flow.VerdictAgain, Agent: said}, flow.Verdict{Kind: flow.VerdictOutput, Output: json.RawMessage(`1`), Source: flow.SourceBuiltin})
	id := h.begin(flow.Definition{Steps: steps(flow.Step{Type: "a"})}, ``)
	wantStatus(t, h.ended(id), flow.RunSucceeded)
	wantEqual(t, "attempts", len(h.types.made("a")), 1)
	saw := h.desk.saw()
	if len(saw) != 2 || saw[1].Instance.Progress.Round != 1 || saw[1].Instance.Progress.Agent == nil || *saw[1].Instance.Progress.Agent != *said {
		t.Errorf("second attempt was told %+v", saw[len(saw)-1].Instance.Progress)
	}
}

func TestMoreRunsThanPlacesAreQueued(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.stop()
	h.max = 2
	h.start()
	var mu sync.Mutex
	now, most := 0, 0
	release := make(chan struct{})
	h.types.on("a", func(context.Context, flow.Call, int) (flow.Outcome, error) {
		mu.Lock()
		now++
		most = max(most, now)
		mu.Unlock()
		defer func() { mu.Lock(); now--; mu.Unlock() }()
		<-release
		return value(`1`)
	})
	var ids []string
	for i := range 30 {
		ids = append(ids, h.begin(flow.Definition{Steps: steps(flow.Step{Type: "a"})}, ``))
		want := flow.RunRunning
		if i >= h.max {
			want = flow.RunQueued
		}
		v, err := h.eng.GetRun(t.Context(), by, &engine.RunIn{ID: ids[i]})
		if err != nil || v.Status != want {
			t.Fatalf("run %d: got %+v, %v, want %s", i, v, err, want)
		}
	}
	last := len(ids) - 1
	if v, err := h.eng.CancelRun(t.Context(), by, &engine.CancelIn{ID: ids[last]}); err != nil || v.Status != flow.RunCancelled {
		t.Errorf("cancelling a queued run: got %+v, %v", v, err)
	}
	close(release)
	for _, id := range ids[:last] {
		wantStatus(t, h.ended(id), flow.RunSucceeded)
	}
	wantStatus(t, h.ended(ids[last]), flow.RunCancelled)
	if most > 2 || len(h.types.made("a")) != last {
		t.Errorf("at the same time: got %d of %d, want at most 2 of %d", most, len(h.types.made("a")), last)
	}
}
