package engine_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/longstop-dev/longstop/internal/flow"
)

// twoLists has two lists that run at the same time, with a step before and one
// after.
func twoLists(second string) flow.Definition {
	return flow.Definition{Steps: steps(
		flow.Step{ID: "first", Type: "ok"},
		flow.Step{ID: "fork", Type: "fork", Nested: []flow.Branch{
			{Name: "branches.0", Steps: []flow.Step{{ID: "a1", Type: "a", Config: json.RawMessage(`{"v":1}`)}, {ID: "a2", Type: second, Config: json.RawMessage(`{"v":"{{ steps.a1.output.v }}"}`)}}},
			{Name: "branches.1", Steps: []flow.Step{{ID: "b1", Type: "b", Config: json.RawMessage(`{"v":2}`)}}}}},
		flow.Step{ID: "end", Type: "mcp_call", Config: json.RawMessage(`{"v":"{{ steps.fork.output }}"}`)})}
}

func TestARerunInABranchKeepsWhatRanBesideIt(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	old := h.begin(twoLists("c"), ``)
	wantStatus(t, h.ended(old), flow.RunSucceeded)
	output := string(h.ended(old).Output)
	for _, c := range []struct{ from, carried, executed string }{
		{"a2", "a1 b1 first", "ok1 fork1 a1 c2 b1 mcp_call2"},
		{"b1", "a1 a2 first", "ok1 fork1 a1 c2 b2 mcp_call3"},
		{"fork", "first", "ok1 fork2 a2 c3 b3 mcp_call4"},
		{"end", "a1 a2 b1 first fork", "ok1 fork2 a2 c3 b3 mcp_call5"},
	} {
		r, err := h.again(old, `{"from":"`+c.from+`"}`)
		if err != nil {
			t.Fatalf("from %s: %v", c.from, err)
		}
		v := h.ended(r.ID)
		wantStatus(t, v, flow.RunSucceeded)
		wantEqual(t, "output from "+c.from, string(v.Output), output)
		wantEqual(t, "executions from "+c.from, h.ran("ok", "fork", "a", "c", "b", "mcp_call"), c.executed)
		for _, s := range v.Steps {
			want := strings.Contains(" "+c.carried+" ", " "+s.ID+" ")
			if got := s.CarriedFrom == old; got != want && (s.ID != "fork" || c.from == "end" || c.from == "fork") {
				t.Errorf("from %s: %s carried over: %t, want %t", c.from, s.ID, got, want)
			}
		}
	}
}

func TestARerunExecutesWhatHadNotRunBesideIt(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.types.on("b", failing)
	old := h.begin(twoLists("c"), ``)
	wantStatus(t, h.ended(old), flow.RunFailed)
	h.types.on("b", nil)
	for _, from := range []string{"a1", "b1"} {
		r, err := h.again(old, `{"from":"`+from+`"}`)
		if err != nil {
			t.Fatalf("from %s: %v", from, err)
		}
		v := h.ended(r.ID)
		wantStatus(t, v, flow.RunSucceeded)
		for _, s := range v.Steps {
			if s.ID == "b1" && (s.CarriedFrom != "" || s.Attempts != 1) {
				t.Errorf("from %s: got %+v, want b1 executed", from, s)
			}
		}
	}
	if _, err := h.again(old, `{"from":"end"}`); flow.CodeOf(err) != flow.CodeInvalid || !strings.Contains(err.Error(), `"fork" comes before "end" and has no output`) {
		t.Errorf("after a branch that failed: got %v, want invalid", err)
	}
}

func TestARerunOnANewerVersionExecutesWhatChangedBesideIt(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	old := h.begin(twoLists("c"), ``)
	h.ended(old)
	h.ended(h.begin(twoLists("a"), ``)) // a2 is of another type
	r, err := h.again(old, `{"from":"b1","version":"newest"}`)
	if err != nil {
		t.Fatal(err)
	}
	v := h.ended(r.ID)
	wantStatus(t, v, flow.RunSucceeded)
	for _, s := range v.Steps {
		if s.ID == "a2" && s.CarriedFrom != "" || s.ID == "a1" && s.CarriedFrom != old {
			t.Errorf("%s: got %+v, want a1 carried over and a2 executed", s.ID, s)
		}
	}
}
