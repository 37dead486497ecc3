package recovery

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/longstop-dev/longstop/internal/flow"
)

// slow is an own agent that answers when the test lets it.
type slow struct {
	started chan struct{}
	release chan struct{}
	answer  string
}

func newSlow(answer string) *slow {
	return &slow{started: make(chan struct{}, 1000), release: make(chan struct{}), answer: answer}
}

func (s *slow) Name() string { return "a2a" }

func (s *slow) Ask(ctx context.Context, _ flow.Question) (flow.Answer, error) {
	s.started <- struct{}{}
	select {
	case <-s.release:
		return flow.Answer{Action: json.RawMessage(s.answer), Target: "https://agent.example.com"}, nil
	case <-ctx.Done():
		return flow.Answer{}, ctx.Err()
	}
}

// observing is a desk before which the own agent is observed.
func observing(b *bed, own Responder) *Desk {
	b.settings.Mode, b.settings.A2AAgentURL, b.rules.answer = "observe", "https://agent.example.com/x?key=1", fixed
	d := b.desk()
	d.responders["a2a"] = own
	b.t.Cleanup(func() { stopNow(d) })
	return d
}

func stopNow(d *Desk) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	d.Stop(ctx)
}

func freeze(t *testing.T, d *Desk, f flow.Failure) flow.Case {
	t.Helper()
	k, err := d.Freeze(t.Context(), f)
	if err != nil {
		t.Fatalf("freeze: %v", err)
	}
	return k
}

func TestWhoIsObserved(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		set  func(*bed, *flow.Failure)
		want string
	}{
		"the agent":            {func(*bed, *flow.Failure) {}, "a2a https://agent.example.com/x"},
		"the server":           {func(b *bed, _ *flow.Failure) { b.settings.A2AAgentURL, b.settings.MCPServerID = "", "mine" }, "mcp mine"},
		"nobody":               {func(b *bed, _ *flow.Failure) { b.settings.A2AAgentURL = "" }, ""},
		"not in sync":          {func(b *bed, _ *flow.Failure) { b.settings.Mode = "sync" }, ""},
		"the first only":       {func(_ *bed, f *flow.Failure) { f.Instance.Progress.Round = 1 }, ""},
		"not without settings": {func(b *bed, _ *flow.Failure) { b.broken = fmt.Errorf("disk") }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, f := newBed(t), httpFailure()
			d := observing(b, newSlow(fixed))
			tc.set(b, &f)
			got := ""
			if o := freeze(t, d, f).Observed; o != nil {
				got = o.Responder + " " + o.Target
				if o.State != flow.ObservationAsked || o.At.IsZero() {
					t.Errorf("begins as %+v", o)
				}
			}
			if got != tc.want {
				t.Errorf("observed %q, want %q", got, tc.want)
			}
		})
	}
}

type breaking struct{ Responder }

func (breaking) Name() string { panic("broken") }

// TestAnObservedAgentThatBreaksSomething takes nothing along.
func TestAnObservedAgentThatBreaksSomething(t *testing.T) {
	t.Parallel()
	b, f := newBed(t), httpFailure()
	d := observing(b, newSlow(fixed))
	k := freeze(t, d, f)
	d.observer.ask(observation{s: &sitting{d: d, failure: f, kase: k}, own: breaking{}})
	if o, ok := b.observation(k.ID); !ok || o.State != flow.ObservationFailed || o.Rejection == "" {
		t.Errorf("recorded %+v, want that it failed", o)
	}
}

// TestARunDoesNotWaitForWhoIsObserved decides while the agent is still being
// asked, and looks at what it would have done when it has answered.
func TestARunDoesNotWaitForWhoIsObserved(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		answer   string
		state    flow.ObservationState
		accepted bool
		why      string
	}{
		"valid":          {fixed, flow.ObservationAnswered, true, ""},
		"refused":        {`{"type":"retry_with_params","diagnosis":"d","modifications":{"title":"x"}}`, flow.ObservationAnswered, false, "title"},
		"no action":      {`certainly`, flow.ObservationAnswered, false, "not JSON"},
		"with a secret":  {`{"type":"needs_human","diagnosis":"sk-live-0123456789","suggestion":"s"}`, flow.ObservationAnswered, true, ""},
		"another's mask": {`{"type":"retry_with_params","diagnosis":"d","modifications":{"headers":{"X":"[secret:other]"}}}`, flow.ObservationAnswered, false, "other"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, f, own := newBed(t), httpFailure(), newSlow(tc.answer)
			d := observing(b, own)
			k := freeze(t, d, f)
			v := d.Decide(t.Context(), f, k)
			if v.Kind != flow.VerdictOutput || v.Source != flow.SourceBuiltin || v.Adapting.BYOAAttempted || len(v.Case.Asked) != 1 ||
				!strings.HasPrefix(v.Message, "your agent (a2a) is observed and not waited for; the built-in (rules) answered") {
				t.Fatalf("verdict = %s by %q: %q, asked %+v; want the built-in's", v.Kind, v.Source, v.Message, v.Case.Asked)
			}
			<-own.started
			if o, ok := b.observation(k.ID); ok {
				t.Fatalf("there is an answer already: %+v", o)
			}
			close(own.release)
			d.Stop(t.Context())
			o, _ := b.observation(k.ID)
			if o.State != tc.state || o.Accepted != tc.accepted || !strings.Contains(o.Rejection, tc.why) || o.Target != "https://agent.example.com" || o.Action == nil {
				t.Errorf("recorded %+v, want %s, accepted %t, %q", o, tc.state, tc.accepted, tc.why)
			}
			if strings.Contains(string(o.Action), "sk-live") {
				t.Errorf("a secret is recorded: %s", o.Action)
			}
		})
	}
}

func TestWhoIsObservedMayFail(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		own Responder
		set func(*bed)
		why string
	}{
		"an error":        {&fake{name: "a2a", err: &flow.AskError{Kind: flow.AskUnreachable, Message: "HTTP 500"}}, func(*bed) {}, "HTTP 500"},
		"a panic":         {&fake{name: "a2a", panics: true}, func(*bed) {}, "broke"},
		"too late":        {&fake{name: "a2a", hang: true}, func(b *bed) { b.settings.Timeout = 10 * time.Millisecond }, "no answer within 10ms"},
		"not there again": {&fake{name: "a2a"}, func(b *bed) { b.settings.A2AAgentURL = "" }, "no agent is set any more"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, f := newBed(t), httpFailure()
			d := observing(b, tc.own)
			k := freeze(t, d, f)
			tc.set(b)
			f.Left = 0 // the run's time is not the observation's
			if v := d.Decide(t.Context(), f, k); v.Kind != flow.VerdictOutput {
				t.Errorf("verdict = %s: %q, want the built-in's", v.Kind, v.Message)
			}
			d.Stop(t.Context())
			if o, _ := b.observation(k.ID); o.State != flow.ObservationFailed || o.Accepted || !strings.Contains(o.Rejection, tc.why) {
				t.Errorf("recorded %+v, want failed with %q", o, tc.why)
			}
		})
	}
}

// TestStoppingLosesWhatHasNoAnswer ends while an agent is asked.
func TestStoppingLosesWhatHasNoAnswer(t *testing.T) {
	t.Parallel()
	b, f, own := newBed(t), httpFailure(), newSlow(fixed)
	d := observing(b, own)
	k := freeze(t, d, f)
	d.Decide(t.Context(), f, k)
	<-own.started
	stopNow(d)
	if o, ok := b.observation(k.ID); ok || b.losses != 1 {
		t.Errorf("recorded %+v, marked lost %d times; want nothing but the mark", o, b.losses)
	}
	// The next start makes the decision again: so it asks again.
	d = observing(b, own)
	if err := d.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	k.Observed.State = flow.ObservationLost
	d.Decide(t.Context(), f, k)
	<-own.started
	close(own.release)
	d.Stop(t.Context())
	o, _ := b.observation(k.ID)
	if o.State != flow.ObservationAnswered {
		t.Errorf("recorded %+v, want an answer", o)
	}
	k.Observed = &o
	d = observing(b, own)
	d.Decide(t.Context(), f, k)
	d.Stop(t.Context())
	if len(own.started) != 0 {
		t.Error("the agent was asked again although it had answered")
	}
}

// TestAStepIsNotSyncBecauseTheModeHasChanged freezes in observe and decides in
// sync: the case says that the agent is only observed.
func TestAStepIsNotSyncBecauseTheModeHasChanged(t *testing.T) {
	t.Parallel()
	b, f, own := newBed(t), httpFailure(), newSlow(`{"type":"needs_human","diagnosis":"d","suggestion":"s"}`)
	d := observing(b, own)
	k := freeze(t, d, f)
	b.settings.Mode = "sync"
	close(own.release)
	if v := d.Decide(t.Context(), f, k); v.Kind != flow.VerdictOutput || v.Source != flow.SourceBuiltin {
		t.Errorf("verdict = %s by %q, want the built-in's", v.Kind, v.Source)
	}
	d.Stop(t.Context())
	if o, _ := b.observation(k.ID); o.State != flow.ObservationAnswered {
		t.Errorf("recorded %+v, want an answer", o)
	}
}

func TestObservingIsBounded(t *testing.T) {
	t.Parallel()
	b, f, own := newBed(t), httpFailure(), newSlow(fixed)
	d := observing(b, own)
	const skipped = 3
	var ids []string
	for range maxObserving + maxWaiting + skipped {
		k := freeze(t, d, f)
		ids = append(ids, k.ID)
		d.Decide(t.Context(), f, k)
	}
	for range maxObserving {
		<-own.started
	}
	if n := len(own.started); n != 0 {
		t.Errorf("%d more are asked at once than %d", n, maxObserving)
	}
	close(own.release)
	for range maxWaiting {
		<-own.started
	}
	d.Stop(t.Context())
	count := map[flow.ObservationState]int{}
	for _, id := range ids {
		o, _ := b.observation(id)
		count[o.State]++
	}
	if count[flow.ObservationAnswered] != maxObserving+maxWaiting || count[flow.ObservationSkipped] != skipped {
		t.Errorf("recorded %v, want %d answered and %d skipped", count, maxObserving+maxWaiting, skipped)
	}
	t.Run("by size", func(t *testing.T) {
		b, f, own := newBed(t), httpFailure(), newSlow(fixed)
		d := observing(b, own)
		for range maxObserving {
			d.Decide(t.Context(), f, freeze(t, d, f))
		}
		f.Prior = []flow.PriorOutput{{Output: make([]byte, maxWaitingBytes)}}
		k := freeze(t, d, httpFailure())
		d.Decide(t.Context(), f, k)
		close(own.release)
		d.Stop(t.Context())
		if o, _ := b.observation(k.ID); o.State != flow.ObservationSkipped || !strings.Contains(o.Rejection, "too many") {
			t.Errorf("recorded %+v, want skipped", o)
		}
	})
}

// TestManyObservedAtOnce is for the race detector.
func TestManyObservedAtOnce(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	d := observing(b, &fake{name: "a2a", answer: fixed})
	var wg sync.WaitGroup
	for range maxObserving { // those that wait when it stops would be lost
		wg.Go(func() {
			f := httpFailure()
			k, err := d.Freeze(t.Context(), f)
			if err != nil {
				t.Errorf("freeze: %v", err)
				return
			}
			d.Decide(t.Context(), f, k)
		})
	}
	wg.Wait()
	d.Stop(t.Context())
	if len(b.seen) != maxObserving {
		t.Errorf("%d recorded, want %d", len(b.seen), maxObserving)
	}
}

// observedCase is one with this answer beside these parts.
func observedCase(id, would string, accepted bool, parts ...flow.Asked) flow.Case {
	state := flow.ObservationAnswered
	if would == "" {
		state = flow.ObservationAsked
	}
	return flow.Case{ID: id, Workspace: "ws", RunID: "run_" + id, Workflow: "w", Asked: parts,
		Observed: &flow.Observation{State: state, Asked: flow.Asked{Responder: "a2a", Target: "https://a", Action: json.RawMessage(would), Accepted: accepted, DurationMS: 10}}}
}

func did(source flow.Source, action string) flow.Asked {
	return flow.Asked{Source: source, Accepted: true, Action: json.RawMessage(action)}
}

func TestWhatWouldHaveComeOfIt(t *testing.T) {
	t.Parallel()
	retry := func(mods string) string {
		return `{"type":"retry_with_params","diagnosis":"d","modifications":` + mods + `}`
	}
	human := `{"type":"needs_human","diagnosis":"d","suggestion":"s"}`
	tool := `{"type":"retry_with_tool","diagnosis":"other words","toolCall":{"server":"s","tool":"t","params":{"a":1}}}`
	for name, tc := range map[string]struct {
		would    string
		accepted bool
		done     []flow.Asked
		status   flow.StepStatus
		verdict  string
		compared string
	}{
		"no answer yet":              {"", false, nil, "", "pending", ""},
		"refused":                    {retry(`{"title":"x"}`), false, []flow.Asked{did(flow.SourceBuiltin, retry(`{}`))}, "", "refused", ""},
		"an output":                  {fixed, true, nil, flow.StepFailed, "would_mend", ""},
		"another output":             {fixed, true, []flow.Asked{did(flow.SourceHuman, `{"type":"fixed_output","diagnosis":"x","output":1}`)}, "", "would_mend", "different"},
		"a call":                     {human, true, []flow.Asked{did(flow.SourceBuiltin, human)}, "", "would_call", "same"},
		"a call, where it was done":  {human, true, []flow.Asked{did(flow.SourceBuiltin, human), did(flow.SourceHuman, fixed)}, "", "would_call", "different"},
		"another retry":              {retry(`{"timeout":5}`), true, []flow.Asked{did(flow.SourceBuiltin, retry(`{}`))}, flow.StepSucceeded, "would_retry", "different"},
		"the same retry, that held":  {retry(`{"httpRequest":{"headers":{"A":"1"}}}`), true, []flow.Asked{did(flow.SourceBuiltin, retry(`{"headers":{"A":"1"},"httpRequest":{}}`))}, flow.StepSucceeded, "would_mend", "same"},
		"the same retry, running":    {retry(`{}`), true, []flow.Asked{did(flow.SourceBuiltin, retry(`{"headers":{}}`))}, flow.StepRunning, "would_retry", "same"},
		"the same tool":              {tool, true, []flow.Asked{did(flow.SourceBuiltin, strings.Replace(tool, "other words", "x", 1))}, flow.StepSucceeded, "would_mend", "same"},
		"another tool":               {tool, true, []flow.Asked{did(flow.SourceBuiltin, strings.Replace(tool, `"a":1`, `"a":2`, 1))}, flow.StepSucceeded, "would_retry", "different"},
		"nobody was taken":           {retry(`{}`), true, []flow.Asked{{Source: flow.SourceBuiltin, Action: json.RawMessage(retry(`{}`))}}, "", "would_retry", ""},
		"code":                       {`{"type":"code_fix","diagnosis":"d","code":"return 1"}`, true, []flow.Asked{did(flow.SourceBuiltin, `{"type":"code_fix","diagnosis":"x","code":"return 1"}`)}, "", "would_mend", "same"},
		"the same, which failed too": {retry(`{}`), true, []flow.Asked{did(flow.SourceBuiltin, retry(`{}`))}, flow.StepSucceeded, "would_not_mend", "same"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t)
			k := observedCase("case_5", tc.would, tc.accepted, tc.done...)
			b.statuses = map[string]flow.StepStatus{k.RunID: tc.status}
			b.cases = []flow.Case{k}
			if tc.verdict == "would_not_mend" {
				b.cases = append([]flow.Case{{ID: "case_6", Workspace: "ws", RunID: k.RunID}}, b.cases...)
			}
			got, err := b.desk().CasesGet(t.Context(), flow.Caller{Workspace: "ws"}, &CaseIn{ID: "case_5"})
			if err != nil || got.Observed.Verdict != tc.verdict || got.Observed.Compared != tc.compared {
				t.Errorf("got %+v, %v; want %s, %q", got.Observed, err, tc.verdict, tc.compared)
			}
		})
	}
}

func TestObservedIsSummedUp(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	lost := observedCase("case_9", "", false)
	lost.Observed.State = flow.ObservationLost
	person := observedCase("case_8", fixed, true)
	person.Outcome = "needs_human gate opened"
	other := observedCase("case_7", fixed, true)
	other.Observed.Target, other.Workflow = "https://b", "v"
	b.cases = []flow.Case{lost, person, other, observedCase("case_6", `{"type":"needs_human","diagnosis":"d","suggestion":"s"}`, true, did(flow.SourceBuiltin, fixed)),
		observedCase("case_5", `{"x":1}`, false), observedCase("case_4", "", false)}
	by := flow.Caller{Workspace: "ws"}
	got, err := b.desk().CasesObserved(t.Context(), by, &ObservedIn{})
	if err != nil || got.Cases != 6 || len(got.Agents) != 2 || got.Since == nil {
		t.Fatalf("got %+v, %v; want six cases of two agents", got, err)
	}
	want := ObservedAgent{Responder: "a2a", Target: "https://a", Cases: 5, WouldMend: 1, WouldCall: 1, Refused: 1, Pending: 1, Lost: 1, Different: 1, Spared: 1, MedianMS: 10}
	if got.Agents[0] != want {
		t.Errorf("got %+v\nwant %+v", got.Agents[0], want)
	}
	if got, err = b.desk().CasesObserved(t.Context(), by, &ObservedIn{Workflow: "v"}); err != nil || got.Cases != 1 || got.Agents[0].Target != "https://b" {
		t.Errorf("of one workflow: %+v, %v", got, err)
	}
	if got, err = b.desk().CasesObserved(t.Context(), by, &ObservedIn{Cases: 2}); err != nil || got.Cases != 2 {
		t.Errorf("of the newest two: %+v, %v", got, err)
	}
	list, err := b.desk().CasesList(t.Context(), by, &CasesListIn{Observed: true, Limit: 1})
	if err != nil || len(list.Items) != 1 || list.Items[0].Observed.Rejection != "the server ended before its answer came" || list.Items[0].Observed.Verdict != "lost" {
		t.Errorf("listed %+v, %v; want the lost one, and why", list.Items, err)
	}
	if _, err := b.desk().CasesList(t.Context(), by, &CasesListIn{Observed: true, RunID: "r"}); flow.CodeOf(err) != flow.CodeInvalid {
		t.Errorf("observed and a run: got %v, want invalid", err)
	}
}
