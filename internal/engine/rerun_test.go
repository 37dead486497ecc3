package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/longstop-dev/longstop/internal/engine"
	"github.com/longstop-dev/longstop/internal/flow"
)

// again starts a run again; body is the JSON of the request.
func (h *harness) again(id, body string) (*engine.RunView, error) {
	in := &engine.RerunIn{ID: id}
	if err := json.Unmarshal([]byte(body), &in.Body); err != nil {
		h.t.Fatal(err)
	}
	return h.eng.RerunRun(context.Background(), by, in)
}

func (h *harness) ran(types ...string) string {
	var out []string
	for _, name := range types {
		out = append(out, fmt.Sprint(name, len(h.types.made(name))))
	}
	return strings.Join(out, " ")
}

// three is a workflow whose last step reads what the others gave.
func three() flow.Definition {
	return flow.Definition{Steps: steps(
		flow.Step{ID: "one", Type: "a", Config: json.RawMessage(`{"n":1}`)},
		flow.Step{ID: "two", Type: "b", Config: json.RawMessage(`{"from":"{{ steps.one.output.n }}"}`)},
		flow.Step{ID: "three", Type: "c", Config: json.RawMessage(`{"who":"{{ input.who }}","got":"{{ steps.two.output.from }}"}`)})}
}

func TestARerunFromAStepCarriesOverWhatWasBefore(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	old := h.begin(three(), `{"who":"x"}`)
	wantStatus(t, h.ended(old), flow.RunSucceeded)
	for i, from := range []string{"three", "2"} {
		r, err := h.again(old, `{"from":"`+from+`","input":{"who":"y"}}`)
		if err != nil {
			t.Fatal(err)
		}
		v := h.ended(r.ID)
		wantStatus(t, v, flow.RunSucceeded)
		wantEqual(t, "output", string(v.Output), `{"got":1,"who":"y"}`)
		wantEqual(t, "executions", h.ran("a", "b", "c"), fmt.Sprint("a1 b1 c", i+2))
		wantEqual(t, "link back", v.RerunOf+" "+v.RerunFrom, old+" three")
		for _, s := range v.Steps {
			if carried := s.CarriedFrom == old && s.Attempts == 0 && s.StartedAt == nil; carried != (s.ID != "three") {
				t.Errorf("step %s: got %+v, want it carried over: %t", s.ID, s, s.ID != "three")
			}
		}
		wantEqual(t, "links on", strings.Join(h.ended(old).Reruns, " "), strings.Join(append(h.ended(old).Reruns[:i:i], r.ID), " "))
		l, err := h.eng.ListLogs(t.Context(), by, &engine.RecordsIn{ID: r.ID})
		if err != nil {
			t.Fatal(err)
		}
		var log []string
		for _, row := range l.Items {
			log = append(log, row.StepID+" "+row.Status+" "+row.Message)
		}
		wantEqual(t, "log", strings.Join(log, "; "), "one carried carried over from "+old+"; two carried carried over from "+old+"; three succeeded ")
	}
	key := h.types.made("c")[1].IdempotencyKey
	if strings.HasPrefix(key, old) {
		t.Errorf("a rerun sent the old run's key %s", key)
	}
}

func TestARerunOfARerunNamesWhoExecuted(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	old := h.begin(three(), `{"who":"x"}`)
	h.ended(old)
	second, err := h.again(old, `{"from":"two"}`)
	if err != nil {
		t.Fatal(err)
	}
	h.ended(second.ID)
	third, err := h.again(second.ID, `{"from":"three"}`)
	if err != nil {
		t.Fatal(err)
	}
	v := h.ended(third.ID)
	wantEqual(t, "who executed", v.Steps[0].CarriedFrom+" "+v.Steps[1].CarriedFrom+" "+v.RerunOf, old+" "+second.ID+" "+second.ID)
	wantEqual(t, "executions", h.ran("a", "b", "c"), "a1 b2 c3")
}

func TestARerunWithoutAStepBeginsAtTheFirst(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.types.on("b", failing)
	old := h.begin(three(), `{"who":"x"}`)
	wantStatus(t, h.ended(old), flow.RunFailed)
	h.types.on("b", nil)
	r, err := h.again(old, `{}`)
	if err != nil {
		t.Fatal(err)
	}
	v := h.ended(r.ID)
	wantStatus(t, v, flow.RunSucceeded)
	wantEqual(t, "executions", h.ran("a", "b", "c"), "a2 b2 c1")
	wantEqual(t, "input", string(v.Input), `{"who":"x"}`)
}

// nested has a choice in the middle.
func nested() flow.Definition {
	return flow.Definition{Steps: steps(
		flow.Step{ID: "one", Type: "a"},
		flow.Step{ID: "which", Type: "choose", Nested: []flow.Branch{
			{Name: "then", Steps: []flow.Step{{ID: "yes", Type: "b", Config: json.RawMessage(`{"v":7}`)}, {ID: "more", Type: "c", Config: json.RawMessage(`{"v":"{{ steps.yes.output.v }}"}`)}}},
			{Name: "else", Steps: []flow.Step{{ID: "no", Type: "mcp_call"}}}}},
		flow.Step{ID: "end", Type: "ok", Config: json.RawMessage(`{"v":"{{ steps.yes.output.v }}"}`)})}
}

func TestARerunBeginsInsideTheBranchThatWasTaken(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.types.on("choose", func(context.Context, flow.Call, int) (flow.Outcome, error) { return flow.Outcome{Branch: "then"}, nil })
	old := h.begin(nested(), ``)
	wantStatus(t, h.ended(old), flow.RunSucceeded)
	for from, want := range map[string]string{"more": "a1 choose1 b1 c2 ok2", "end": "a1 choose1 b1 c1 ok2", "which": "a1 choose2 b2 c2 ok2"} {
		t.Run(from, func(t *testing.T) {
			before := map[string]int{}
			for _, name := range []string{"a", "choose", "b", "c", "ok"} {
				before[name] = len(h.types.made(name)) - 1
			}
			r, err := h.again(old, `{"from":"`+from+`"}`)
			if err != nil {
				t.Fatal(err)
			}
			v := h.ended(r.ID)
			wantStatus(t, v, flow.RunSucceeded)
			wantEqual(t, "output", string(v.Output), `{"v":7}`)
			var got []string
			for _, name := range []string{"a", "choose", "b", "c", "ok"} {
				got = append(got, fmt.Sprint(name, len(h.types.made(name))-before[name]))
			}
			wantEqual(t, "executions", strings.Join(got, " "), want)
		})
	}
}

func TestARerunSaysWhyItCannotBegin(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.types.on("choose", func(context.Context, flow.Call, int) (flow.Outcome, error) { return flow.Outcome{Branch: "then"}, nil })
	h.types.on("c", failing)
	def := flow.Definition{Input: json.RawMessage(`{"type":"object","required":["who"]}`), Steps: steps(
		flow.Step{ID: "one", Type: "a"},
		flow.Step{ID: "which", Type: "choose", Nested: []flow.Branch{
			{Name: "then", Steps: []flow.Step{{ID: "yes", Type: "b"}}}, {Name: "else", Steps: []flow.Step{{ID: "no", Type: "mcp_call"}}}}},
		flow.Step{ID: "mid", Type: "c"}, flow.Step{ID: "end", Type: "ok"})}
	old := h.begin(def, `{"who":1}`)
	wantStatus(t, h.ended(old), flow.RunFailed)
	n := len(h.types.made("a"))
	for body, want := range map[string]string{
		`{"from":"nowhere"}`:            `from: the workflow has no step "nowhere" (one of one which yes no mid end)`,
		`{"from":"5000"}`:               `has no step "5000"`,
		`{"from":"no"}`:                 `stands in branch "else" of "which", and run ` + old + ` took "then" (begin with which`,
		`{"from":"end"}`:                `step "mid" comes before "end" and has no output in run ` + old,
		`{"input":{}}`:                  `input: the input does not satisfy`,
		`{"version":"ver_x"}`:           `workflow "w" has no version "ver_x" (pinned, newest, a version's number or its id)`,
		`{"from":"yes","input":"text"}`: `the input does not satisfy`,
	} {
		if _, err := h.again(old, body); flow.CodeOf(err) != flow.CodeInvalid || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want invalid and %q", body, err, want)
		}
	}
	if _, err := h.again("run_x", `{}`); flow.CodeOf(err) != flow.CodeNotFound {
		t.Errorf("another run: got %v, want not_found", err)
	}
	wantEqual(t, "executions", len(h.types.made("a")), n)
	wantEqual(t, "reruns", len(h.ended(old).Reruns), 0)
}

func TestARerunOnTheNewestVersion(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.types.on("c", failing)
	old := h.begin(three(), `{"who":"x"}`)
	wantStatus(t, h.ended(old), flow.RunFailed)
	step := func(id, kind, config string) flow.Step {
		return flow.Step{ID: id, Type: kind, Config: json.RawMessage(config)}
	}
	one, two := step("one", "a", `{"n":1}`), step("two", "b", `{"from":"{{ steps.one.output.n }}"}`)
	mended := step("three", "ok", `{"mended":"{{ steps.two.output.from }}"}`)
	for name, c := range map[string]struct {
		steps []flow.Step
		want  string
	}{
		"the last is mended":       {[]flow.Step{one, two, mended}, ""},
		"one is new before":        {[]flow.Step{one, step("new", "a", `{}`), two, mended}, `"new" is new`},
		"of another type":          {[]flow.Step{one, step("two", "a", `{}`), mended}, `"two" was of type b`},
		"moved into a branch":      {[]flow.Step{one, {ID: "if", Type: "choose", Nested: []flow.Branch{{Name: "then", Steps: []flow.Step{two, mended}}}}}, `"if" is new`},
		"without ids of their own": {[]flow.Step{{Type: "a"}, {Type: "b"}, mended}, `"s0" is new`},
		"one fewer":                {[]flow.Step{one, mended}, ""},
	} {
		def := flow.Definition{Name: "w", Steps: steps(c.steps...)}
		h.ended(h.begin(def, `{}`)) // publishes it
		r, err := h.again(old, `{"from":"three","version":"newest"}`)
		if c.want != "" {
			if flow.CodeOf(err) != flow.CodeInvalid || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "pinned") {
				t.Errorf("%s: got %v, want invalid, %q and what would be right", name, err, c.want)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if v := h.ended(r.ID); name == "the last is mended" && string(v.Output) != `{"mended":1}` {
			t.Errorf("%s: got %s (%s)", name, v.Output, v.Error)
		}
	}
}

func TestStepsWithoutIDsAreKnownByTheirConfig(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	config := func(c string) flow.Step { return flow.Step{Type: "a", Config: json.RawMessage(c)} }
	old := h.begin(flow.Definition{Steps: steps(config(`{"u":1}`), config(`{"u":2}`))}, ``)
	h.ended(old)
	h.ended(h.begin(flow.Definition{Steps: steps(config(`{"u":0}`), config(`{"u":1}`), config(`{"u":2}`))}, ``))
	_, err := h.again(old, `{"from":"1","version":"newest"}`)
	if flow.CodeOf(err) != flow.CodeInvalid || !strings.Contains(err.Error(), `"s0" has another config`) {
		t.Errorf("a step before that only looks like the old one: got %v, want invalid", err)
	}
}

func TestARerunKeepsAStepWhoseConfigChangedAndSaysSo(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	old := h.begin(three(), `{"who":"x"}`)
	h.ended(old)
	def := three()
	def.Steps[0].Config = json.RawMessage(`{"n":2}`)
	h.ended(h.begin(def, `{"who":"x"}`))
	r, err := h.again(old, `{"from":"three","version":"newest"}`)
	if err != nil {
		t.Fatal(err)
	}
	wantEqual(t, "output", string(h.ended(r.ID).Output), `{"got":1,"who":"x"}`)
	l, err := h.eng.ListLogs(t.Context(), by, &engine.RecordsIn{ID: r.ID})
	if err != nil || !strings.HasSuffix(l.Items[0].Message, "its config has changed since") {
		t.Errorf("log: got %+v, %v, want a note", l.Items[0], err)
	}
}

func TestARerunThatWaitedInTheQueueGoesOnFromItsStep(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	old := h.begin(three(), `{"who":"x"}`)
	h.ended(old)
	hold := make(chan struct{})
	h.types.on("ok", func(context.Context, flow.Call, int) (flow.Outcome, error) { <-hold; return value(`1`) })
	for range h.max {
		h.begin(flow.Definition{Name: "busy", Steps: steps(flow.Step{Type: "ok"})}, ``)
	}
	r, err := h.again(old, `{"from":"three"}`)
	if err != nil {
		t.Fatal(err)
	}
	wantEqual(t, "status", r.Status, flow.RunQueued)
	close(hold)
	wantStatus(t, h.ended(r.ID), flow.RunSucceeded)
	wantEqual(t, "executions", h.ran("a", "b", "c"), "a1 b1 c2")
}

func TestAHintGoesWithARetry(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.types.on("a", failing)
	id := h.begin(flow.Definition{Steps: steps(flow.Step{Type: "a"})}, ``)
	wantStatus(t, h.ended(id), flow.RunFailed)
	in := &engine.RetryIn{ID: id}
	in.Body.Hint = " look at s3cr3t-value "
	if _, err := h.eng.RetryRun(t.Context(), by, in); err != nil {
		t.Fatal(err)
	}
	h.ended(id)
	wantEqual(t, "hint", h.desk.saw()[1].Instance.Progress.Hint, "look at [secret:api]")
	l, err := h.eng.ListEvents(t.Context(), by, &engine.RecordsIn{ID: id})
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(l)
	if err != nil || strings.Contains(string(b), "s3cr3t") || !strings.Contains(string(b), `"hint":"look at [secret:api]"`) {
		t.Errorf("events: got %s, %v, want the hint, masked", b, err)
	}
}
