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

// published publishes a definition and gives the version.
func (h *harness) published(def flow.Definition) flow.WorkflowVersion {
	h.t.Helper()
	raw, err := json.Marshal(def)
	if err != nil {
		h.t.Fatal(err)
	}
	v, err := h.store.Publish(context.Background(), flow.WorkflowVersion{ID: h.id("ver"), Workspace: "ws", Workflow: def.Name,
		Digest: h.id("digest"), Definition: raw, CreatedAt: h.clock.Now()}, nil)
	if err != nil {
		h.t.Fatal(err)
	}
	return v
}

func keyed(key, workflow, input string) *engine.StartRunIn {
	in := &engine.StartRunIn{Name: workflow}
	in.IdempotencyKey, in.Body.Input = key, json.RawMessage(input)
	return in
}

func TestACreationSentAgainMakesNothingMore(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.published(flow.Definition{Name: "w", Steps: steps(flow.Step{Type: "a"})})
	first, err := h.eng.StartRun(t.Context(), by, keyed("k-1", "w", `{"n": 1}`))
	if err != nil {
		t.Fatal(err)
	}
	h.ended(first.ID)
	again, err := h.eng.StartRun(t.Context(), by, keyed("k-1", "w", `{"n":1}`))
	if err != nil {
		t.Fatal(err)
	}
	first.Input, again.Input = nil, nil // spaced otherwise
	wantEqual(t, "the same answer", text(t, again), text(t, first))
	wantEqual(t, "executions", h.ran("a"), "a1")
	for name, in := range map[string]*engine.StartRunIn{
		"another input": keyed("k-1", "w", `{"n":2}`), "another workflow": keyed("k-1", "other", `{"n":1}`), "no input": keyed("k-1", "w", ``),
	} {
		if _, err := h.eng.StartRun(t.Context(), by, in); flow.CodeOf(err) != flow.CodeInvalid || !strings.Contains(err.Error(), "came with another request before") {
			t.Errorf("%s: got %v, want invalid", name, err)
		}
	}
	for _, key := range []string{"k-2", ""} {
		if other, err := h.eng.StartRun(t.Context(), by, keyed(key, "w", `{"n":1}`)); err != nil || other.ID == first.ID {
			t.Errorf("key %q: got %+v, %v, want another run", key, other, err)
		}
	}
	for _, key := range []string{strings.Repeat("k", 256), "a\nb", "ä"} {
		if _, err := h.eng.StartRun(t.Context(), by, keyed(key, "w", `{}`)); flow.CodeOf(err) != flow.CodeInvalid {
			t.Errorf("key %q: got %v, want invalid", key, err)
		}
	}
}

func TestAKeyIsOfOneWorkspaceAndOneDay(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.published(flow.Definition{Name: "w", Steps: steps(flow.Step{Type: "a"})})
	first, err := h.eng.StartRun(t.Context(), by, keyed("k", "w", `{}`))
	if err != nil {
		t.Fatal(err)
	}
	other := flow.Caller{Workspace: "other"}
	if _, err := h.eng.StartRun(t.Context(), other, keyed("k", "w", `{}`)); flow.CodeOf(err) != flow.CodeNotFound {
		t.Errorf("another workspace: got %v, want not_found: its key is its own", err)
	}
	h.clock.Advance(24*time.Hour - time.Second)
	if again, err := h.eng.StartRun(t.Context(), by, keyed("k", "w", `{}`)); err != nil || again.ID != first.ID {
		t.Errorf("within the day: got %+v, %v, want %s", again, err, first.ID)
	}
	h.clock.Advance(2 * time.Second)
	next, err := h.eng.StartRun(t.Context(), by, keyed("k", "w", `{"n":2}`))
	if err != nil || next.ID == first.ID {
		t.Fatalf("after the day: got %+v, %v, want a run of its own", next, err)
	}
	if again, err := h.eng.StartRun(t.Context(), by, keyed("k", "w", `{"n":2}`)); err != nil || again.ID != next.ID {
		t.Errorf("the next day: got %+v, %v, want %s", again, err, next.ID)
	}
}

func TestOfCreationsAtTheSameInstantOneMakesARun(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.published(flow.Definition{Name: "w", Steps: steps(flow.Step{Type: "a"})})
	for round := range 10 {
		ids := make(chan string, 16)
		var wg sync.WaitGroup
		for range cap(ids) {
			wg.Go(func() {
				v, err := h.eng.StartRun(context.Background(), by, keyed(fmt.Sprint("k", round), "w", `{}`))
				if err != nil {
					t.Errorf("round %d: %v", round, err)
					return
				}
				ids <- v.ID
			})
		}
		wg.Wait()
		close(ids)
		got := map[string]bool{}
		for id := range ids {
			got[id] = true
			h.ended(id)
		}
		wantEqual(t, "runs", len(got), 1)
		wantEqual(t, "executions", len(h.types.made("a")), round+1)
	}
}

func TestARefusedCreationLeavesItsKeyFree(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	if _, err := h.eng.StartRun(t.Context(), by, keyed("k", "w", `{}`)); flow.CodeOf(err) != flow.CodeNotFound {
		t.Fatalf("got %v, want not_found", err)
	}
	h.published(flow.Definition{Name: "w", Steps: steps(flow.Step{Type: "a"})})
	if _, err := h.eng.StartRun(t.Context(), by, keyed("k", "w", `{}`)); err != nil {
		t.Errorf("the same request, now right: %v", err)
	}
}

func TestARerunAndAVersionHaveKeysToo(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	old := h.begin(three(), `{"who":"x"}`)
	h.ended(old)
	in := &engine.RerunIn{ID: old}
	in.IdempotencyKey, in.Body.From = "k", "three"
	one, err := h.eng.RerunRun(t.Context(), by, in)
	if err != nil {
		t.Fatal(err)
	}
	if two, err := h.eng.RerunRun(t.Context(), by, in); err != nil || two.ID != one.ID {
		t.Errorf("rerun: got %+v, %v, want %s again", two, err, one.ID)
	}
	if _, err := h.eng.StartRun(t.Context(), by, keyed("k", "w", `{}`)); flow.CodeOf(err) != flow.CodeInvalid {
		t.Errorf("the same key for something else: got %v, want invalid", err)
	}
	create := func(publish bool, source string) (*engine.WorkflowView, error) {
		c := &engine.CreateWorkflowIn{Publish: publish, RawBody: []byte(source)}
		c.IdempotencyKey = "v"
		return h.eng.CreateWorkflow(t.Context(), by, c)
	}
	const source = "name: v\nsteps:\n  - {type: a}\n"
	var wg sync.WaitGroup
	views := make([]string, 8)
	for i := range views {
		wg.Go(func() {
			v, err := create(true, source)
			if err != nil {
				t.Errorf("create: %v", err)
				return
			}
			views[i] = text(t, v)
		})
	}
	wg.Wait()
	for _, v := range views {
		wantEqual(t, "version", v, views[0])
	}
	if _, err := create(true, source+"# other\n"); flow.CodeOf(err) != flow.CodeInvalid {
		t.Errorf("another text: got %v, want invalid", err)
	}
	if _, err := create(false, source); flow.CodeOf(err) != flow.CodeInvalid {
		t.Errorf("unpublished: got %v, want invalid", err)
	}
}
