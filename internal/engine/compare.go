package engine

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/longstop-dev/longstop/internal/flow"
)

// maxDifferences bounds what is listed of two values that differ.
const maxDifferences = 200

// CompareIn names two runs.
type CompareIn struct {
	ID    string `path:"id"`
	Other string `path:"other" doc:"The run that it is compared with."`
}

// CompareView is what differs between two runs, step by step.
type CompareView struct {
	A      RunHead        `json:"a"`
	B      RunHead        `json:"b"`
	Same   bool           `json:"same" doc:"Whether input, outputs and statuses are the same; times are not looked at."`
	Input  []Difference   `json:"input,omitempty"`
	Output []Difference   `json:"output,omitempty"`
	Steps  []StepCompared `json:"steps" doc:"In the order of the first run, then those that only the second has."`
}

// RunHead is a run without what it was given and gave.
type RunHead struct {
	ID         string         `json:"id"`
	Workflow   string         `json:"workflow"`
	VersionID  string         `json:"versionId"`
	Status     flow.RunStatus `json:"status"`
	Error      string         `json:"error,omitempty"`
	CreatedAt  time.Time      `json:"createdAt"`
	DurationMS *float64       `json:"durationMs,omitempty" doc:"Absent until it has finished."`
	RerunOf    string         `json:"rerunOf,omitempty"`
}

// StepCompared is a step of two runs, paired by id and iteration.
type StepCompared struct {
	ID        string       `json:"id"`
	Iteration string       `json:"iteration,omitempty"`
	Type      string       `json:"type"`
	Title     string       `json:"title,omitempty"`
	Same      bool         `json:"same"`
	A         *StepSide    `json:"a,omitempty" doc:"Absent if the run has no such step."`
	B         *StepSide    `json:"b,omitempty"`
	Output    []Difference `json:"output,omitempty"`
}

// StepSide is a step in one of two runs.
type StepSide struct {
	Index          int             `json:"index"`
	Status         flow.StepStatus `json:"status"`
	DurationMS     *float64        `json:"durationMs,omitempty"`
	Attempts       int             `json:"attempts"`
	RecoverySource flow.Source     `json:"recovery_source"`
	Error          string          `json:"error,omitempty"`
	CarriedFrom    string          `json:"carriedFrom,omitempty"`

	output json.RawMessage
}

// Difference is one place where two JSON values differ.
type Difference struct {
	Path string          `json:"path" doc:"Members and indexes joined by dots; empty for the whole value."`
	A    json.RawMessage `json:"a,omitempty" doc:"Absent if only the second has it."`
	B    json.RawMessage `json:"b,omitempty" doc:"Absent if only the first has it."`
}

// CompareRuns says what differs between two runs: of the same workflow or not,
// steps are paired by their ids. Of each value at most 200 differences are
// listed. It answers not_found.
func (e *Engine) CompareRuns(ctx context.Context, by flow.Caller, in *CompareIn) (*CompareView, error) {
	a, err := e.GetRun(ctx, by, &RunIn{ID: in.ID})
	if err != nil {
		return nil, err
	}
	b, err := e.GetRun(ctx, by, &RunIn{ID: in.Other})
	if err != nil {
		return nil, err
	}
	v := &CompareView{A: head(a), B: head(b), Input: differences(a.Input, b.Input), Output: differences(a.Output, b.Output), Steps: pair(a.Steps, b.Steps)}
	v.Same = a.Status == b.Status && len(v.Input) == 0 && len(v.Output) == 0 && !slices.ContainsFunc(v.Steps, func(s StepCompared) bool { return !s.Same })
	return v, nil
}

func head(r *RunView) RunHead {
	return RunHead{ID: r.ID, Workflow: r.Workflow, VersionID: r.VersionID, Status: r.Status, Error: r.Error, CreatedAt: r.CreatedAt,
		DurationMS: took(&r.CreatedAt, r.FinishedAt), RerunOf: r.RerunOf}
}

func took(from, to *time.Time) *float64 {
	if from == nil || to == nil {
		return nil
	}
	ms := millis(to.Sub(*from))
	return &ms
}

// pair puts the steps of two runs beside each other.
func pair(a, b []StepView) []StepCompared {
	type key struct{ id, iteration string }
	at := map[key]int{}
	out := []StepCompared{}
	for i := range a {
		s := &a[i]
		at[key{s.ID, s.Iteration}] = len(out)
		out = append(out, StepCompared{ID: s.ID, Iteration: s.Iteration, Type: s.Type, Title: s.Title, A: side(s)})
	}
	for i := range b {
		s := &b[i]
		if j, ok := at[key{s.ID, s.Iteration}]; ok {
			out[j].B = side(s)
			continue
		}
		out = append(out, StepCompared{ID: s.ID, Iteration: s.Iteration, Type: s.Type, Title: s.Title, B: side(s)})
	}
	for i := range out {
		s := &out[i]
		if s.A == nil || s.B == nil {
			continue
		}
		s.Output = differences(s.A.output, s.B.output)
		s.Same = s.A.Status == s.B.Status && s.A.RecoverySource == s.B.RecoverySource && s.A.Error == s.B.Error && len(s.Output) == 0
	}
	return out
}

func side(s *StepView) *StepSide {
	return &StepSide{Index: s.Index, Status: s.Status, DurationMS: took(s.StartedAt, s.FinishedAt), Attempts: s.Attempts,
		RecoverySource: s.RecoverySource, Error: s.Error, CarriedFrom: s.CarriedFrom, output: s.Output}
}

// differences lists where two JSON values differ; absent and null are one.
func differences(a, b json.RawMessage) []Difference {
	x, errX := decode(a)
	y, errY := decode(b)
	if errX != nil || errY != nil || sameJSON(a, b) {
		return nil
	}
	var out []Difference
	differ(&out, "", x, y)
	return out
}

func differ(out *[]Difference, path string, a, b any) {
	if len(*out) >= maxDifferences {
		return
	}
	under := func(name string) string {
		if path == "" {
			return name
		}
		return path + "." + name
	}
	if x, y, ok := both[map[string]any](a, b); ok {
		names := slices.AppendSeq(slices.Collect(maps.Keys(x)), maps.Keys(y))
		slices.Sort(names)
		for _, name := range slices.Compact(names) {
			va, inA := x[name]
			vb, inB := y[name]
			beside(out, under(name), va, vb, inA, inB)
		}
		return
	}
	if x, y, ok := both[[]any](a, b); ok {
		for i := range max(len(x), len(y)) {
			var va, vb any
			if i < len(x) {
				va = x[i]
			}
			if i < len(y) {
				vb = y[i]
			}
			beside(out, under(strconv.Itoa(i)), va, vb, i < len(x), i < len(y))
		}
		return
	}
	beside(out, path, a, b, true, true)
}

// beside compares two members, of which one may be absent.
func beside(out *[]Difference, path string, a, b any, inA, inB bool) {
	if inA && inB && alike(a, b) {
		differ(out, path, a, b)
		return
	}
	va, errA := encode(a)
	vb, errB := encode(b)
	if errA != nil || errB != nil || inA && inB && string(va) == string(vb) || len(*out) >= maxDifferences {
		return
	}
	d := Difference{Path: path}
	if inA {
		d.A = va
	}
	if inB {
		d.B = vb
	}
	*out = append(*out, d)
}

// alike reports two objects or two arrays, which are compared inside.
func alike(a, b any) bool {
	_, _, objects := both[map[string]any](a, b)
	_, _, arrays := both[[]any](a, b)
	return objects || arrays
}

func both[T any](a, b any) (x, y T, ok bool) {
	x, okX := a.(T)
	y, okY := b.(T)
	return x, y, okX && okY
}
