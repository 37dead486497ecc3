package definition_test

import (
	"encoding/json"
	"errors"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/longstop-dev/longstop/internal/definition"
	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/step"
)

// The list is fixed, so that a new type changes no text that is expected here.
func types() []flow.StepType {
	var out []flow.StepType
	for _, t := range step.NewTable(step.Deps{}).Types() {
		if slices.Contains([]string{"http_request", "transform", "conditional", "wait", "mcp_call"}, t.Name) {
			out = append(out, t)
		}
	}
	return out
}

// problems gives what is wrong with a source.
func problems(t *testing.T, name, src string) []flow.Problem {
	t.Helper()
	_, err := definition.Parse(name, []byte(src), types())
	if err == nil {
		return nil
	}
	var e *flow.Error
	if !errors.As(err, &e) || e.Code != flow.CodeInvalid || e.Field != name || len(e.Problems) == 0 {
		t.Fatalf("got %#v, want a *flow.Error of code invalid about %s with problems", err, name)
	}
	return e.Problems
}

func TestParseTheContractsExample(t *testing.T) {
	t.Parallel()
	src, err := os.ReadFile("testdata/nightly-sync.yaml")
	if err != nil {
		t.Fatal(err)
	}
	d, err := definition.Parse("nightly-sync.yaml", src, types())
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "testdata/nightly-sync.golden.json", d)
	if got := definition.SecretRefs(d, types()); len(got) != 1 || got[0] != "api" {
		t.Errorf("secrets: got %v, want [api]", got)
	}
}

// golden compares with a file; UPDATE=1 writes it.
func golden(t *testing.T, file string, v any) {
	t.Helper()
	got, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	got = append(got, '\n')
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(file, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Errorf("%s:\n got %s\nwant %s", file, got, want)
	}
}

func TestYAMLAndJSONMeanTheSame(t *testing.T) {
	t.Parallel()
	yaml := "name: x\nsteps:\n  - type: transform\n    config:\n      value: {date: 2026-01-02, big: 12345678901234567890, e: 1.50, s: \"007\", no: no, n: ~, t: True}\n    timeout: 90s\n"
	json1 := `{"name": "x", "steps": [{"type": "transform", "config": {"value": {"date": "2026-01-02", "big": 12345678901234567890, "e": 1.50, "s": "007", "no": "no", "n": null, "t": true}}, "timeout": "1m30s"}]}`
	a, err := definition.Parse("x.yaml", []byte(yaml), types())
	if err != nil {
		t.Fatal(err)
	}
	b, err := definition.Parse("", []byte(json1), types())
	if err != nil {
		t.Fatal(err)
	}
	want := `{"value":{"date":"2026-01-02","big":12345678901234567890,"e":1.50,"s":"007","no":"no","n":null,"t":true}}`
	for name, d := range map[string]*flow.Definition{"YAML": a, "JSON": b} {
		if got := string(d.Steps[0].Config); got != want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, want)
		}
		if d.Steps[0].Timeout != 90*time.Second || d.Steps[0].TotalTimeout != flow.DefaultTotalTimeout || d.Steps[0].ID != "s0" {
			t.Errorf("%s: got %+v", name, d.Steps[0])
		}
	}
}

// BenchmarkParse checks the example again and again, as a server does that
// keeps its parser, and each time with a new one.
func BenchmarkParse(b *testing.B) {
	src, err := os.ReadFile("testdata/nightly-sync.yaml")
	if err != nil {
		b.Fatal(err)
	}
	kept := definition.NewParser(types())
	for name, parser := range map[string]func() *definition.Parser{
		"kept": func() *definition.Parser { return kept },
		"new":  func() *definition.Parser { return definition.NewParser(types()) },
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := parser().Parse("x", src); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
