package demo

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/pgtest"
)

func TestTheDemo(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	ok, err := Run(t.Context(), Options{Out: &out})
	if err != nil || !ok {
		t.Fatalf("got %v, %v\n%s", ok, err, out.String())
	}
	for _, want := range []string{"mended by your agent", "mended by the built-in", "mended by a person", "passed over", "- url:", "+ url:", "every run ended as expected", "Try next"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the demo does not show %q:\n%s", want, out.String())
		}
	}
}

// TestTheDemoOnPostgreSQL plays on a database that is empty, and not on one
// that is not.
func TestTheDemoOnPostgreSQL(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	o := Options{Out: &out, DatabaseURL: pgtest.URL(t)}
	if ok, err := Run(t.Context(), o); err != nil || !ok {
		t.Fatalf("got %v, %v\n%s", ok, err, out.String())
	}
	if _, err := Run(t.Context(), o); flow.CodeOf(err) != flow.CodeConflict {
		t.Errorf("a second time: got %v, want conflict", err)
	}
}

func TestTheDemoForMachines(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	list := scenarios()[2:4] // the built-in, and an agent over A2A
	ok, err := Run(t.Context(), Options{Out: &out, JSON: true, list: list})
	if err != nil || !ok {
		t.Fatalf("got %v, %v\n%s", ok, err, out.String())
	}
	var r Report
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatalf("%v in %s", err, out.String())
	}
	if !r.OK || r.Key != "" || len(r.Scenarios) != len(list) {
		t.Errorf("got ok %v, key %q, %d scenarios; want true, none, %d", r.OK, r.Key, len(r.Scenarios), len(list))
	}
	for _, s := range r.Scenarios {
		if !s.OK || s.RunID == "" || s.Happened.Status != s.Expected.Status || s.Happened.Source != s.Expected.Source {
			t.Errorf("%s: got %+v", s.Name, s)
		}
	}
}

// TestAWrongExpectationIsSeen proves that the demo can fail.
func TestAWrongExpectationIsSeen(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	st, err := set(t.Context(), Options{Out: &out})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := st.clear(); err != nil {
			t.Error(err)
		}
	})
	s := scenarios()[2]
	for name, spoil := range map[string]func(*scenario){
		"status":  func(s *scenario) { s.want.status = flow.RunFailed },
		"source":  func(s *scenario) { s.want.source = flow.SourceBYOA },
		"output":  func(s *scenario) { s.want.output = "never" },
		"message": func(s *scenario) { s.want.message = "never" },
	} {
		wrong := s
		spoil(&wrong)
		results, err := st.play(t.Context(), []scenario{wrong})
		if err != nil {
			t.Fatal(err)
		}
		if st.summary(results, 0) {
			t.Errorf("a wrong %s was not seen", name)
		}
	}
}
