package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/longstop-dev/longstop/internal/engine"
	"github.com/longstop-dev/longstop/internal/flow"
)

// fork is a step whose branches run at the same time.
func fork(id string, branches ...[]flow.Step) flow.Step {
	s := flow.Step{Type: "fork", ID: id}
	for i, b := range branches {
		s.Nested = append(s.Nested, flow.Branch{Name: fmt.Sprint("branches.", i), Steps: b})
	}
	return s
}

func list(s ...flow.Step) []flow.Step { return s }

// meeting lets a step go on when as many as are expected are at work at the
// same time, and fails the test if they never are.
type meeting struct {
	mu   sync.Mutex
	here int
	all  chan struct{}
	want int
}

func meet(want int) *meeting { return &meeting{all: make(chan struct{}), want: want} }

func (m *meeting) step(ctx context.Context, c flow.Call, _ int) (flow.Outcome, error) {
	m.mu.Lock()
	if m.here++; m.here == m.want {
		close(m.all)
	}
	m.mu.Unlock()
	select {
	case <-m.all:
		return flow.Outcome{Value: c.Config}, nil
	case <-ctx.Done():
		return flow.Outcome{}, ctx.Err()
	}
}

// held is a step that tells when it has begun, and ends when it is let go or
// its context ends.
type held struct {
	begun chan struct{}
	end   chan struct{}
	cut   chan struct{}
}

func hold() *held {
	return &held{begun: make(chan struct{}, 100), end: make(chan struct{}), cut: make(chan struct{}, 100)}
}

func (h *held) step(ctx context.Context, _ flow.Call, _ int) (flow.Outcome, error) {
	h.begun <- struct{}{}
	select {
	case <-h.end:
		return value(`"held"`)
	case <-ctx.Done():
		h.cut <- struct{}{}
		return flow.Outcome{}, ctx.Err()
	}
}

// statuses are a run's steps in short.
func statuses(v *engine.RunView) string {
	var out []string
	for _, s := range v.Steps {
		out = append(out, fmt.Sprintf("%s:%s", s.ID, s.Status))
	}
	return strings.Join(out, " ")
}

func (h *harness) view(runID string) *engine.RunView {
	h.t.Helper()
	v, err := h.eng.GetRun(context.Background(), by, &engine.RunIn{ID: runID})
	if err != nil {
		h.t.Fatalf("get run: %v", err)
	}
	return v
}

func (h *harness) gates(runID string, n int) []flow.Gate {
	h.t.Helper()
	return h.await(runID, fmt.Sprint("at ", n, " gates"), func(v *engine.RunView) bool { return len(v.Gates) == n }).Gates
}

func TestBranchesRunAtTheSameTime(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.types.on("a", meet(3).step)
	id := h.begin(flow.Definition{Steps: steps(
		fork("p",
			list(flow.Step{Type: "a", Config: json.RawMessage(`1`)}, flow.Step{Type: "b", ID: "b1", Config: json.RawMessage(`{"of":"{{ steps.s1.output }}"}`)}),
			list(flow.Step{Type: "a", Config: json.RawMessage(`2`)}),
			list(),
			list(flow.Step{Type: "a", Config: json.RawMessage(`3`)})),
		flow.Step{Type: "c", Config: json.RawMessage(`{"all":"{{ steps.p.output }}","one":"{{ steps.b1.output.of }}"}`)},
	)}, ``)
	v := h.ended(id)
	wantStatus(t, v, flow.RunSucceeded)
	wantEqual(t, "output", string(v.Output), `{"all":[{"of":1},2,null,3],"one":1}`)
	ev := joined(h.events(id))
	wantEqual(t, "the first events", ev[:len("run:started step:started step:started step:started step:started")], "run:started step:started step:started step:started step:started")
	wantEqual(t, "steps started", strings.Count(ev, "step:started"), 6)
	wantEqual(t, "steps succeeded", strings.Count(ev, "step:succeeded"), 6)
}

func TestBranchesNest(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.types.on("a", meet(4).step)
	h.types.on("choose", func(context.Context, flow.Call, int) (flow.Outcome, error) { return flow.Outcome{Branch: "then"}, nil })
	one := func(n string) flow.Step { return flow.Step{Type: "a", Config: json.RawMessage(n)} }
	id := h.begin(flow.Definition{Steps: steps(
		flow.Step{Type: "choose", Nested: []flow.Branch{{Name: "then", Steps: list(
			fork("p",
				list(fork("q", list(one(`1`)), list(one(`2`)))),
				list(flow.Step{Type: "choose", Nested: []flow.Branch{{Name: "then", Steps: list(one(`3`), fork("r", list(flow.Step{Type: "b", Config: json.RawMessage(`5`)})))}}}),
				list(one(`4`))),
		)}}},
	)}, ``)
	v := h.ended(id)
	wantStatus(t, v, flow.RunSucceeded)
	wantEqual(t, "output", string(v.Output), `[[1,2],[5],4]`)
}

// What another branch has done by now is there or not by chance: a step never
// sees it, whatever way it looks.
func TestAStepSeesNothingOfAnotherBranch(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	other := hold()
	seen := make(chan []string, 2)
	look := func(_ context.Context, c flow.Call, _ int) (flow.Outcome, error) {
		var names []string
		for name := range c.Scope["steps"].(map[string]any) {
			names = append(names, name)
		}
		slices.Sort(names)
		seen <- names
		return refused("HTTP 400: Bad Request")
	}
	h.types.on("b", other.step)
	h.types.on("c", look)
	h.desk.dictate(flow.Verdict{Kind: flow.VerdictSkip, Source: flow.SourceBYOA})
	id := h.begin(flow.Definition{Steps: steps(flow.Step{Type: "a", ID: "first", Config: json.RawMessage(`"steps"`)},
		fork("p", list(flow.Step{Type: "a", ID: "x"}, flow.Step{Type: "b", ID: "y"}), list(flow.Step{Type: "b", ID: "z"}, flow.Step{Type: "c", Config: json.RawMessage(`"{{ steps.z.output }}"`)})))}, ``)
	<-other.begun
	<-other.begun
	close(other.end)
	wantStatus(t, h.ended(id), flow.RunSucceeded)
	wantEqual(t, "seen", joined(<-seen), "0 4 first z")
	var prior []int
	for _, p := range h.desk.saw()[0].Prior {
		prior = append(prior, p.Index)
	}
	wantEqual(t, "prior outputs", fmt.Sprint(prior), "[0 4]")
}

// However many branches a definition has, only so many steps are at work.
func TestConcurrencyIsBounded(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	var mu sync.Mutex
	now, most := 0, 0
	full := meet(engine.MaxAtWork)
	h.types.on("a", func(ctx context.Context, c flow.Call, n int) (flow.Outcome, error) {
		mu.Lock()
		now++
		most = max(most, now)
		mu.Unlock()
		out, err := full.step(ctx, c, n)
		mu.Lock()
		now--
		mu.Unlock()
		return out, err
	})
	var all [][]flow.Step
	for range 8 {
		var inner [][]flow.Step
		for range 8 {
			inner = append(inner, list(flow.Step{Type: "a"}))
		}
		all = append(all, list(fork("", inner...)))
	}
	id := h.begin(flow.Definition{Steps: steps(fork("", all...))}, ``)
	wantStatus(t, h.ended(id), flow.RunSucceeded)
	wantEqual(t, "at work at the same time", most, engine.MaxAtWork)
	wantEqual(t, "executed", len(h.types.made("a")), 64)
	wantEqual(t, "started", strings.Count(joined(h.events(id)), "step:started"), 64+8+1)
}

// A branch that waits, backs off or is parked at a gate does not keep the
// others, and the run waits only when nothing is at work.
func TestAParkedBranchDoesNotKeepTheOthers(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	work := hold()
	h.types.on("b", work.step)
	h.types.on("a", func(_ context.Context, _ flow.Call, nth int) (flow.Outcome, error) {
		if nth == 1 {
			return transient("HTTP 503: Service Unavailable")
		}
		return value(`"second"`)
	})
	h.types.on("pause", func(_ context.Context, c flow.Call, _ int) (flow.Outcome, error) {
		return flow.Outcome{Until: c.Now.Add(time.Hour), Value: json.RawMessage(`"later"`)}, nil
	})
	id := h.begin(flow.Definition{Steps: steps(fork("p",
		list(flow.Step{Type: "pause"}, flow.Step{Type: "c", Config: json.RawMessage(`"after the wait"`)}),
		list(flow.Step{Type: "a", Retry: flow.Retry{Attempts: 2, Backoff: time.Minute, MaxBackoff: time.Minute}}),
		list(flow.Step{Type: "ask"}),
		list(flow.Step{Type: "b"})))}, ``)
	<-work.begun
	v := h.await(id, "parked in three branches", func(v *engine.RunView) bool {
		return len(v.Gates) == 1 && v.Steps[1].Status == flow.StepWaiting && v.Steps[3].Status == flow.StepWaiting && v.Steps[4].Status == flow.StepWaiting
	})
	wantEqual(t, "statuses", statuses(v), "p:running s1:waiting s2:pending s3:waiting s4:waiting s5:running")
	wantEqual(t, "run", v.Status, flow.RunRunning)
	wantEqual(t, "the first that is due", v.WakeAt.Sub(h.clock.Now()), time.Minute)

	h.clock.Advance(time.Minute) // the back-off ends while b is at work
	v = h.await(id, "over its back-off", func(v *engine.RunView) bool { return v.Steps[3].Status == flow.StepSucceeded })
	wantEqual(t, "then the wait is due", v.WakeAt.Sub(h.clock.Now()), 59*time.Minute)
	close(work.end)
	h.waits(id)
	h.undriven(id)
	if ev := joined(h.events(id)); strings.Count(ev, "run:waiting") != 1 || !strings.HasSuffix(ev, "step:succeeded run:waiting") {
		t.Errorf("the run waits once, when nothing is at work: %s", ev)
	}
	h.clock.Advance(59 * time.Minute)
	v = h.await(id, "waiting at the gate alone", func(v *engine.RunView) bool {
		return v.Status == flow.RunWaiting && v.Steps[2].Status == flow.StepSucceeded
	})
	if _, err := answer(h, v.Gates[0].ID, flow.GateAnswer{Answer: "approve"}); err != nil {
		t.Fatal(err)
	}
	v = h.ended(id)
	wantStatus(t, v, flow.RunSucceeded)
	wantEqual(t, "output", string(v.Output), `["after the wait","second",{"approved":true,"by":"person_1"},"held"]`)
	wantEqual(t, "executions", fmt.Sprint(len(h.types.made("a")), len(h.types.made("b")), len(h.types.made("c")), len(h.types.made("pause")), len(h.types.made("ask"))), "2 1 1 1 1")
}

func TestGatesOfOneRunAreAnsweredInAnyOrder(t *testing.T) {
	t.Parallel()
	for _, order := range [][]int{{0, 1, 2}, {2, 1, 0}, {1, 2, 0}} {
		h := newHarness(t)
		id := h.begin(flow.Definition{Steps: steps(fork("p", list(flow.Step{Type: "ask"}), list(flow.Step{Type: "ask"}), list(flow.Step{Type: "ask"})))}, ``)
		gates := h.gates(id, 3)
		for n, i := range order {
			h.waits(id)
			if _, err := answer(h, gates[i].ID, flow.GateAnswer{Answer: "approve", Reason: fmt.Sprint(n)}); err != nil {
				t.Fatalf("order %v: %v", order, err)
			}
			if _, err := answer(h, gates[i].ID, flow.GateAnswer{Answer: "approve"}); flow.CodeOf(err) != flow.CodeConflict {
				t.Errorf("order %v, again: got %v, want conflict", order, err)
			}
		}
		wantStatus(t, h.ended(id), flow.RunSucceeded)
	}
}

// Of answers in the same instant each counts, whoever drives the run just
// then.
func TestAnswersInTheSameInstant(t *testing.T) {
	t.Parallel()
	for range 10 {
		h := newHarness(t)
		var branches [][]flow.Step
		for range 8 {
			branches = append(branches, list(flow.Step{Type: "ask"}, flow.Step{Type: "a", Config: json.RawMessage(`1`)}))
		}
		id := h.begin(flow.Definition{Steps: steps(fork("p", branches...))}, ``)
		var wg sync.WaitGroup
		for _, g := range h.gates(id, 8) {
			for range 2 {
				wg.Go(func() {
					if _, err := answer(h, g.ID, flow.GateAnswer{Answer: "approve"}); err != nil && flow.CodeOf(err) != flow.CodeConflict {
						t.Errorf("got %v, want an answer or a conflict", err)
					}
				})
			}
		}
		wg.Wait()
		v := h.ended(id)
		wantStatus(t, v, flow.RunSucceeded)
		ev := joined(h.events(id))
		wantEqual(t, "answers", strings.Count(ev, "gate:answered"), 8)
		wantEqual(t, "a executed", len(h.types.made("a")), 8)
	}
}

// An answer that comes while another branch is at work is carried out at once.
func TestAGateIsAnsweredWhileAnotherBranchIsAtWork(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	work := hold()
	h.types.on("b", work.step)
	id := h.begin(flow.Definition{Steps: steps(fork("p", list(flow.Step{Type: "ask"}, flow.Step{Type: "a"}), list(flow.Step{Type: "b"})))}, ``)
	<-work.begun
	g := h.gates(id, 1)[0]
	if _, err := answer(h, g.ID, flow.GateAnswer{Answer: "maybe"}); flow.CodeOf(err) != flow.CodeInvalid {
		t.Errorf("an answer that does not fit: got %v, want invalid", err)
	}
	if _, err := answer(h, g.ID, flow.GateAnswer{Answer: "approve"}); err != nil {
		t.Fatal(err)
	}
	v := h.await(id, "past the gate", func(v *engine.RunView) bool { return v.Steps[2].Status == flow.StepSucceeded })
	wantEqual(t, "run", v.Status, flow.RunRunning)
	if _, err := answer(h, g.ID, flow.GateAnswer{Answer: "approve"}); flow.CodeOf(err) != flow.CodeConflict {
		t.Errorf("again: got %v, want conflict", err)
	}
	close(work.end)
	wantStatus(t, h.ended(id), flow.RunSucceeded)
	wantEqual(t, "b executed", len(h.types.made("b")), 1)
}

// A reminder of a gate is sent also while another branch is at work.
func TestAGateRemindsWhileAnotherBranchIsAtWork(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	work := hold()
	h.types.on("b", work.step)
	h.types.on("ask", func(context.Context, flow.Call, int) (flow.Outcome, error) {
		return flow.Outcome{Approval: &flow.Approval{Message: "May it?", Remind: time.Hour, Deadline: 90 * time.Minute}}, nil
	})
	id := h.begin(flow.Definition{Steps: steps(fork("p", list(flow.Step{Type: "ask"}), list(flow.Step{Type: "b"})))}, ``)
	<-work.begun
	h.gates(id, 1)
	h.clock.Advance(time.Hour)
	h.remindedTimes(id, 1)
	v := h.view(id)
	wantEqual(t, "run", v.Status, flow.RunRunning)
	wantEqual(t, "then the deadline is due", v.WakeAt.Sub(h.clock.Now()), 30*time.Minute)
	h.clock.Advance(30 * time.Minute)
	<-work.cut // nobody answered: the gate's step has failed, and with it the run
	v = h.ended(id)
	wantStatus(t, v, flow.RunFailed)
	wantEqual(t, "steps", statuses(v), "p:failed s1:failed s2:failed")
	wantEqual(t, "reminders", h.reminders(id), 1)
}

// Responders are asked about two branches at the same time, and each gets the
// answer to its own question.
func TestTwoBranchesAreMendedAtTheSameTime(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.types.on("a", failing)
	both := meet(2)
	h.desk.decide = func(ctx context.Context, f flow.Failure) flow.Verdict {
		if _, err := both.step(ctx, flow.Call{}, 1); err != nil {
			return flow.Verdict{Kind: flow.VerdictFail, Message: "the other was not asked"}
		}
		return flow.Verdict{Kind: flow.VerdictOutput, Source: flow.SourceBYOA, Output: json.RawMessage(fmt.Sprintf(`"mend of %d"`, f.Step.Index))}
	}
	v := h.ended(h.begin(flow.Definition{Steps: steps(fork("p", list(flow.Step{Type: "a"}), list(flow.Step{Type: "a"})))}, ``))
	wantStatus(t, v, flow.RunSucceeded)
	wantEqual(t, "output", string(v.Output), `["mend of 1","mend of 2"]`)
}

// The inbox holds a case of each branch; each is answered for itself.
func TestTwoCasesOfOneRunWaitInTheInbox(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.types.on("a", failing)
	inbox := flow.Verdict{Kind: flow.VerdictGate, Gate: &flow.Gate{Kind: flow.GateNeedsAgent, ExpiresAt: h.clock.Now().Add(time.Hour)}}
	h.desk.dictate(inbox, inbox)
	h.desk.answers = func(a flow.GateAnswer) (flow.Verdict, error) {
		return flow.Verdict{Kind: flow.VerdictOutput, Output: a.Action, Source: flow.SourceBYOA}, nil
	}
	id := h.begin(flow.Definition{Steps: steps(fork("p", list(flow.Step{Type: "a"}), list(flow.Step{Type: "a"})))}, ``)
	h.gates(id, 2)
	out, err := h.eng.Pending(t.Context(), by, &engine.PendingIn{})
	if err != nil || len(out.Items) != 2 {
		t.Fatalf("inbox: got %+v, %v, want 2", out, err)
	}
	for _, i := range []int{2, 1} {
		in := &engine.SubmitIn{StepIn: engine.StepIn{RunID: id, StepIndex: i}, Body: json.RawMessage(fmt.Sprint(i * 10))}
		if _, err := h.eng.SubmitAction(t.Context(), by, in); err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
	}
	v := h.ended(id)
	wantStatus(t, v, flow.RunSucceeded)
	wantEqual(t, "output", string(v.Output), `[10,20]`)
}
