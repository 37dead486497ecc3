package definition_test

import (
	"encoding/json"
	"errors"
	"os"
	"testing"

	"github.com/longstop-dev/longstop/internal/definition"
	"github.com/longstop-dev/longstop/internal/flow"
)

// FuzzParse: any text is either refused with problems that say what would be
// right, or gives a definition whose steps are numbered in order, whose ids
// are its own, and which survives being stored.
func FuzzParse(f *testing.F) {
	example, err := os.ReadFile("testdata/nightly-sync.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(example))
	f.Add(`{"name":"x","steps":[{"type":"conditional","config":{"if":"true","then":[{"type":"wait","config":{"for":"1s"}}]}}]}`)
	f.Add("name: x\nsteps: [&a {type: transform, config: {value: \"{{ input.x ?? 1 }}\"}}, *a]\n")
	f.Add("name: x\ninput: {$ref: \"#\"}\nsteps: [{type: transform, config: {value: {$cel: \"1\"}}}]")
	for _, c := range wrongSources() {
		if len(c[1]) < 10_000 {
			f.Add(c[1])
		}
	}
	all := types()
	f.Fuzz(func(t *testing.T, src string) {
		d, err := definition.Parse("x", []byte(src), all)
		if err != nil {
			var e *flow.Error
			if !errors.As(err, &e) || len(e.Problems) == 0 {
				t.Fatalf("got %#v, want a *flow.Error with problems", err)
			}
			return
		}
		next, ids := 0, map[string]bool{}
		d.Walk(func(s *flow.Step) { // indexes follow the order written, as branches do
			if s.Index != next || s.ID == "" || ids[s.ID] || !json.Valid(s.Config) {
				t.Fatalf("step %d of %q: got %+v", next, src, s)
			}
			next++
			ids[s.ID] = true
		})
		raw, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		var again flow.Definition
		if err := json.Unmarshal(raw, &again); err != nil {
			t.Fatal(err)
		}
	})
}
