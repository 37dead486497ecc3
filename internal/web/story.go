package web

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/longstop-dev/longstop/internal/engine"
	"github.com/longstop-dev/longstop/internal/flow"
)

// story is a run as the page tells it: its steps in order, and under each what
// happened to it.
type story struct {
	run   *engine.RunView
	now   time.Time
	steps []chapter
}

// chapter is a step instance's part.
type chapter struct {
	step  engine.StepView
	lines []line
	from  float64 // of the run's time, 0 to 1
	to    float64
}

// line is one thing that happened: exactly one of its members is set.
type line struct {
	at   time.Time
	log  *flow.Log
	kase *flow.Case
	gate *flow.Gate
}

func newStory(now time.Time, run *engine.RunView, logs []flow.Log, cases []flow.Case, gates []flow.Gate) story {
	s := story{run: run, now: now}
	for _, step := range run.Steps {
		c := chapter{step: step}
		mine := func(index int, iteration string) bool { return index == step.Index && iteration == step.Iteration }
		for i := range logs {
			if mine(logs[i].StepIndex, logs[i].Iteration) {
				c.lines = append(c.lines, line{at: logs[i].At, log: &logs[i]})
			}
		}
		for i := range cases {
			if mine(cases[i].StepIndex, cases[i].Iteration) {
				c.lines = append(c.lines, line{at: cases[i].OpenedAt, kase: &cases[i]})
			}
		}
		for i := range gates {
			if mine(gates[i].StepIndex, gates[i].Iteration) {
				c.lines = append(c.lines, line{at: gates[i].OpenedAt, gate: &gates[i]})
			}
		}
		slices.SortStableFunc(c.lines, func(a, b line) int { return a.at.Compare(b.at) })
		c.from, c.to = s.share(step.StartedAt, 0), s.share(step.FinishedAt, 1)
		if step.StartedAt == nil {
			c.from, c.to = 0, 0
		}
		s.steps = append(s.steps, c)
	}
	return s
}

// end is when the run ended, or now.
func (s story) end() time.Time {
	if s.run.FinishedAt != nil {
		return *s.run.FinishedAt
	}
	return s.now
}

// share is where an instant lies in the run's time.
func (s story) share(at *time.Time, without float64) float64 {
	whole := s.end().Sub(s.run.CreatedAt)
	if at == nil || whole <= 0 {
		return without
	}
	return min(max(float64(at.Sub(s.run.CreatedAt))/float64(whole), 0), 1)
}

// bar is a chapter's place in the run's time, in a drawing 1000 wide.
func (c chapter) bar() (x, width string) {
	return fmt.Sprintf("%.1f", c.from*1000), fmt.Sprintf("%.1f", max((c.to-c.from)*1000, 3))
}

// open reports whether the run may still change.
func (s story) open() bool { return !s.run.Status.Finished() }

// mended are the steps that somebody mended, by who did.
func (s story) mended() []string {
	count := map[flow.Source]int{}
	for _, c := range s.steps {
		if c.step.RecoverySource != flow.SourceNone {
			count[c.step.RecoverySource]++
		}
	}
	var out []string
	for _, source := range slices.Sorted(maps.Keys(count)) {
		steps := "a step"
		if count[source] > 1 {
			steps = fmt.Sprintf("%d steps", count[source])
		}
		out = append(out, who(source)+" mended "+steps)
	}
	return out
}

func who(s flow.Source) string {
	switch s {
	case flow.SourceBYOA:
		return "your agent"
	case flow.SourceBuiltin:
		return "the built-in"
	case flow.SourceHuman:
		return "a person"
	}
	return "nobody"
}

// took is a duration for people.
func took(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return d.Round(time.Second).String()
}

func millis(ms float64) string { return took(time.Duration(ms * float64(time.Millisecond))) }

// lasted is how long a step took, "" if it has not begun.
func (s story) lasted(v engine.StepView) string {
	if v.StartedAt == nil {
		return ""
	}
	until := s.end()
	if v.FinishedAt != nil {
		until = *v.FinishedAt
	}
	return took(until.Sub(*v.StartedAt))
}

func instant(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05.000 UTC") }

// said is an action for people: its type, its diagnosis, and the rest of it.
type said struct {
	kind, diagnosis, rest string
}

func spoken(action json.RawMessage) said {
	var all map[string]json.RawMessage
	if json.Unmarshal(action, &all) != nil {
		return said{rest: pretty(action)}
	}
	var s said
	_ = json.Unmarshal(all["type"], &s.kind)
	_ = json.Unmarshal(all["diagnosis"], &s.diagnosis)
	for _, name := range []string{"suggestion", "code"} {
		var text string
		if json.Unmarshal(all[name], &text) == nil && text != "" {
			s.rest += text + "\n"
		}
		delete(all, name)
	}
	delete(all, "type")
	delete(all, "diagnosis")
	if len(all) > 0 {
		b, err := json.Marshal(all)
		if err == nil {
			s.rest += pretty(b)
		}
	}
	s.rest = strings.TrimSpace(s.rest)
	return s
}

// change is a line of a diff.
type change struct {
	sign, path, value string // sign is + or -
}

// changes lists what differs between two JSON values, member by member.
func changes(path string, a, b any) []change {
	x, xok := a.(map[string]any)
	y, yok := b.(map[string]any)
	if !xok || !yok {
		if flat(a) == flat(b) {
			return nil
		}
		var out []change
		if a != nil {
			out = append(out, change{"-", path, flat(a)})
		}
		if b != nil {
			out = append(out, change{"+", path, flat(b)})
		}
		return out
	}
	names := map[string]bool{}
	for _, m := range []map[string]any{x, y} {
		for name := range m {
			names[name] = true
		}
	}
	var out []change
	for _, name := range slices.Sorted(maps.Keys(names)) {
		out = append(out, changes(strings.TrimPrefix(path+"."+name, "."), x[name], y[name])...)
	}
	return out
}

func flat(v any) string {
	if text, ok := v.(string); ok {
		return text
	}
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(b)
}

// name is a step's title, or its id.
func name(v engine.StepView) string { return cmp.Or(v.Title, v.ID) }
