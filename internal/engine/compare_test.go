package engine_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/longstop-dev/longstop/internal/engine"
	"github.com/longstop-dev/longstop/internal/flow"
)

func (h *harness) compare(a, b string) *engine.CompareView {
	h.t.Helper()
	v, err := h.eng.CompareRuns(context.Background(), by, &engine.CompareIn{ID: a, Other: b})
	if err != nil {
		h.t.Fatal(err)
	}
	return v
}

func text(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestTwoRunsAreComparedStepByStep(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	old := h.begin(three(), `{"who":"x","list":[1,2]}`)
	h.ended(old)
	h.types.on("c", func(context.Context, flow.Call, int) (flow.Outcome, error) { return value(`{"who":["y"],"new":null}`) })
	r, err := h.again(old, `{"from":"three","input":{"who":"y","list":[1,3,4]}}`)
	if err != nil {
		t.Fatal(err)
	}
	h.ended(r.ID)
	v := h.compare(old, r.ID)
	wantEqual(t, "same", v.Same, false)
	wantEqual(t, "input", text(t, v.Input), `[{"path":"list.1","a":2,"b":3},{"path":"list.2","b":4},{"path":"who","a":"x","b":"y"}]`)
	wantEqual(t, "output", text(t, v.Output), `[{"path":"got","a":1},{"path":"new","b":null},{"path":"who","a":"x","b":["y"]}]`)
	wantEqual(t, "heads", v.A.ID+" "+v.B.ID+" "+v.B.RerunOf, old+" "+r.ID+" "+old)
	var same []string
	for _, s := range v.Steps {
		if s.Same {
			same = append(same, s.ID)
		}
	}
	wantEqual(t, "same steps", strings.Join(same, " "), "one two")
	wantEqual(t, "carried", v.Steps[0].B.CarriedFrom, old)
	if v.Steps[0].A.DurationMS == nil || v.Steps[0].B.DurationMS != nil {
		t.Errorf("durations: got %s, want one of the step that was executed", text(t, v.Steps[0]))
	}
	if again := h.compare(old, old); !again.Same {
		t.Errorf("a run and itself: got %s, want the same", text(t, again))
	}
}

func TestComparedRunsMayHaveOtherSteps(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	a := h.begin(flow.Definition{Steps: steps(flow.Step{ID: "x", Type: "a"}, flow.Step{ID: "y", Type: "b"})}, ``)
	b := h.begin(flow.Definition{Steps: steps(flow.Step{ID: "z", Type: "c"}, flow.Step{ID: "y", Type: "b"})}, ``)
	h.ended(a)
	h.ended(b)
	v := h.compare(a, b)
	var sides []string
	for _, s := range v.Steps {
		side := s.ID + ":"
		if s.A != nil {
			side += "a"
		}
		if s.B != nil {
			side += "b"
		}
		sides = append(sides, side)
	}
	wantEqual(t, "sides", strings.Join(sides, " "), "x:a y:ab z:b")
	wantEqual(t, "same", v.Same, false)
}

func TestComparedValuesAreBounded(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	long := func(v string) string {
		return `{"list":[` + strings.TrimSuffix(strings.Repeat(v+",", 5000), ",") + `]}`
	}
	a := h.begin(flow.Definition{Steps: steps(flow.Step{Type: "a"})}, long("1"))
	b := h.begin(flow.Definition{Steps: steps(flow.Step{Type: "a"})}, long("2"))
	h.ended(a)
	h.ended(b)
	wantEqual(t, "differences", len(h.compare(a, b).Input), 200)
	for _, pair := range [][2]string{{`{"v":{}}`, `{"v":[]}`}, {`{"v":[]}`, `{"v":{}}`}, {`{"v":{"a":1}}`, `{"v":null}`}, {`{"v":1}`, `{"v":1.0}`}} {
		v := h.compare(h.begin(flow.Definition{Steps: steps(flow.Step{Type: "a"})}, pair[0]), h.begin(flow.Definition{Steps: steps(flow.Step{Type: "a"})}, pair[1]))
		wantEqual(t, "differences of "+pair[0]+" and "+pair[1], len(v.Input), 1)
	}
	if _, err := h.eng.CompareRuns(t.Context(), flow.Caller{Workspace: "other"}, &engine.CompareIn{ID: a, Other: b}); flow.CodeOf(err) != flow.CodeNotFound {
		t.Errorf("from another workspace: got %v, want not_found", err)
	}
}
