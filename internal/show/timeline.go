package show

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/longstop-dev/longstop/internal/flow"
)

// Timeline writes a run's events as they come, a line for each thing that a
// person would tell.
type Timeline struct {
	W      io.Writer
	Ink    Ink
	Indent string
	// Case reads a case, so that a mend can be shown with what was asked,
	// what was answered and what it changed.
	Case func(id string) (*flow.Case, error)
	// Gate reads a gate, so that what is to be approved can be shown. Optional.
	Gate func(id string) (*flow.Gate, error)
	// Answer is the command that answers a gate, for copying; "" leaves it out.
	Answer func(gateID string, kind flow.GateKind) string

	cases map[int]string // the case that a step is in
	title map[int]string
	names map[int]string
	last  int               // the step that the last line was about
	shown map[string]int    // how much of a case has been shown
	diffs map[string]string // what of its change
}

// data is every payload that the timeline reads.
type data struct {
	ID             string        `json:"id"`
	Type           string        `json:"type"`
	Title          string        `json:"title"`
	Attempt        int           `json:"attempt"`
	DurationMS     float64       `json:"durationMs"`
	RecoverySource flow.Source   `json:"recovery_source"`
	Error          string        `json:"error"`
	Message        string        `json:"message"`
	Stopped        bool          `json:"stopped"`
	DueAt          *time.Time    `json:"dueAt"`
	ExpiresAt      *time.Time    `json:"expiresAt"`
	CaseID         string        `json:"caseId"`
	GateID         string        `json:"gateId"`
	Kind           flow.GateKind `json:"kind"`
	Diagnosis      string        `json:"diagnosis"`
	Suggestion     string        `json:"suggestion"`
	Answer         string        `json:"answer"`
	Reason         string        `json:"reason"`
	Hint           string        `json:"hint"`
	RerunOf        string        `json:"rerunOf"`
	From           string        `json:"from"`
	Carried        []string      `json:"carried"`
}

// Event writes one event.
func (t *Timeline) Event(e flow.Event) {
	if t.cases == nil {
		t.cases, t.title, t.names, t.shown, t.diffs = map[int]string{}, map[int]string{}, map[int]string{}, map[string]int{}, map[string]string{}
		t.last = -1
	}
	var d data
	if len(e.Data) > 0 {
		_ = json.Unmarshal(e.Data, &d) // a payload of a newer server shows what it can
	}
	i := -1
	if e.StepIndex != nil {
		i = *e.StepIndex
	}
	switch e.Type {
	case flow.EventRunStarted:
		t.again(d)
	case flow.EventRunResumed:
		if d.Hint != "" {
			t.sub("%s retried with a hint: %s", t.Ink.Warn("↻"), Line(d.Hint, 160))
		}
	case flow.EventStepStarted:
		t.title[i], t.names[i] = d.Title, d.ID
	case flow.EventStepSucceeded:
		t.succeeded(i, d)
	case flow.EventStepRetrying:
		t.line(t.Ink.Warn("↻"), i, d.ID, "attempt %d: %s; the next in %s", d.Attempt, Line(d.Error, 80), until(e.At, d.DueAt))
	case flow.EventStepRecovery:
		t.cases[i] = d.CaseID
		t.line(t.Ink.Bad("✗"), i, d.ID, "%s", Line(d.Error, 100))
	case flow.EventStepAdapting:
		t.adapting(i, e.At)
	case flow.EventStepSuspended:
		if d.Message != "" { // for whom or what
			t.line(t.Ink.Faint("…"), i, d.ID, "%s, at most %s", Line(d.Message, 100), until(e.At, d.DueAt))
			return
		}
		t.line(t.Ink.Faint("…"), i, d.ID, "waits %s", until(e.At, d.DueAt))
	case flow.EventStepSkipped:
		t.line(t.Ink.Warn("⤼"), i, d.ID, "skipped %s", t.Ink.Faint(Line(d.Message, 120)))
	case flow.EventStepFailed:
		if d.Stopped {
			t.line(t.Ink.Warn("■"), i, d.ID, "%s", Line(d.Error, 120))
		} else {
			t.line(t.Ink.Bad("✗"), i, d.ID, "failed for good: %s", Line(d.Error, 120))
		}
	case flow.EventGateOpened:
		t.about(i)
		t.gate(e.At, d)
	case flow.EventGateAnswered:
		t.about(i)
		t.sub("%s answered %s %s", t.Ink.Good("✓"), t.Ink.Bold(Clean(d.Answer)), t.Ink.Faint(Line(strings.TrimSpace(d.Hint+" "+d.Reason), 120)))
	case flow.EventGateExpired:
		t.about(i)
		t.sub("%s nobody answered in time", t.Ink.Warn("…"))
	}
}

// again says what a run was started again from.
func (t *Timeline) again(d data) {
	if d.RerunOf == "" {
		return
	}
	from := ""
	if d.From != "" {
		from = ", from step " + Line(d.From, 60)
	}
	t.sub("%s started again from %s%s", t.Ink.Warn("↻"), Line(d.RerunOf, 60), from)
	if len(d.Carried) > 0 {
		t.sub("  %s", t.Ink.Faint("carried over, not executed: "+Line(strings.Join(d.Carried, ", "), 160)))
	}
}

func (t *Timeline) succeeded(i int, d data) {
	by := ""
	if d.RecoverySource != flow.SourceNone {
		by = t.Ink.Good("mended by " + Who(d.RecoverySource))
	}
	t.line(t.Ink.Good("✓"), i, d.ID, "%-34s %8s  %s", Line(t.title[i], 34), Millis(d.DurationMS), by)
}

// Who says who a source is, in words.
func Who(s flow.Source) string {
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

// Millis is a duration for people.
func Millis(ms float64) string {
	switch d := time.Duration(ms * float64(time.Millisecond)); {
	case d >= time.Minute:
		return d.Round(time.Second).String()
	case d >= time.Second:
		return fmt.Sprintf("%.1f s", ms/1000)
	}
	return fmt.Sprintf("%.0f ms", ms)
}

func until(now time.Time, due *time.Time) string {
	if due == nil {
		return "a moment"
	}
	return max(0, due.Sub(now)).Round(10 * time.Millisecond).String()
}

// adapting shows what recovery made of the step's case.
//
// A case may have been answered since: only what was said by then is shown.
func (t *Timeline) adapting(i int, by time.Time) {
	id := t.cases[i]
	if id == "" || t.Case == nil {
		return
	}
	t.about(i)
	k, err := t.Case(id)
	if err != nil {
		t.sub("%s", t.Ink.Faint("the case cannot be read: "+Line(err.Error(), 100)))
		return
	}
	for _, a := range k.Asked[min(t.shown[id], len(k.Asked)):] {
		if a.At.After(by) {
			break
		}
		t.asked(a)
		t.shown[id]++
	}
	if all := t.shown[id] == len(k.Asked); all && (k.Before != nil || k.After != nil) {
		var b strings.Builder
		Diff(&b, t.Ink, t.Indent+"          ", k.Before, k.After)
		if b.String() != t.diffs[id] {
			fmt.Fprint(t.W, b.String())
		}
		t.diffs[id] = b.String()
	}
}

// asked shows one responder's part.
func (t *Timeline) asked(a flow.Asked) {
	who, took, said, notes := t.Ink.Bold(Line(strings.TrimSpace(a.Responder+" "+a.Target), 60)), t.Ink.Faint(Millis(a.DurationMS)), Summary(a.Action), a.Notes
	if a.Responder == "human" { // whose name is of no use here, and whose time is the gate's
		who, took = t.Ink.Bold(Who(flow.SourceHuman)), ""
		if said == "" && len(notes) > 0 {
			said, notes = strings.TrimPrefix(notes[0], Who(flow.SourceHuman)+" "), notes[1:]
		}
	}
	head := strings.TrimSpace(who + " " + took)
	switch {
	case !a.Accepted:
		t.sub("%s %s  passed over: %s", t.Ink.Warn("·"), head, Line(a.Rejection, 160))
	case strings.HasPrefix(said, string(flow.ActionNeedsHuman)):
		t.sub("%s %s  %s", t.Ink.Warn("→"), head, Line(said, 120))
	default:
		t.sub("%s %s  %s", t.Ink.Good("↻"), head, Line(said, 120))
	}
	for _, n := range notes {
		t.sub("  %s", t.Ink.Faint(Line(n, 160)))
	}
}

// Summary is an action in one line: its type and its diagnosis.
func Summary(action json.RawMessage) string {
	var a flow.Action
	if len(action) == 0 || json.Unmarshal(action, &a) != nil {
		return ""
	}
	return strings.TrimSpace(string(a.Type) + ": " + a.Diagnosis)
}

func (t *Timeline) gate(now time.Time, d data) {
	t.sub("%s %s", t.Ink.Warn("⏸"), Line(waits(now, d), 160))
	if d.Suggestion != "" {
		t.sub("  %s", Line(d.Suggestion, 160))
	}
	if d.Kind == flow.GateApproval && t.Gate != nil {
		if g, err := t.Gate(d.GateID); err != nil {
			t.sub("  %s", t.Ink.Faint("the gate cannot be read: "+Line(err.Error(), 100)))
		} else {
			proposal(t.W, t.Ink, t.Indent+"          ", g.Proposal, t.diffs[g.CaseID] == "")
		}
	}
	if t.Answer != nil {
		if how := t.Answer(d.GateID, d.Kind); how != "" {
			t.sub("  %s", t.Ink.Faint(how))
		}
	}
}

// waits says on whom a run is parked, and why.
func waits(now time.Time, d data) string {
	who := "waits for a person"
	switch d.Kind {
	case flow.GateApproval:
		who = "waits for approval"
	case flow.GateInputRequired:
		who = "an agent asks back"
	case flow.GateNeedsAgent:
		return "waits in the inbox for your agent; without an answer the built-in is asked in " + until(now, d.ExpiresAt)
	}
	switch {
	case d.Diagnosis != "":
		return who + ": " + d.Diagnosis
	case d.Message != "":
		return who + ": " + d.Message
	case d.Kind == flow.GateNeedsHuman:
		return who + ": nobody could mend it"
	}
	return who
}

// about names the step that the next lines are about, if the line above them
// is another branch's.
func (t *Timeline) about(i int) {
	if i >= 0 && t.last >= 0 && t.last != i {
		t.line(t.Ink.Faint("·"), i, t.names[i], "%s", t.Ink.Faint(Line(t.title[i], 34)))
	}
}

func (t *Timeline) line(mark string, i int, id, format string, args ...any) {
	t.last = i
	fmt.Fprintf(t.W, "%s  %s %2d %-12s %s\n", t.Indent, mark, i, Line(id, 12), strings.TrimRight(fmt.Sprintf(format, args...), " "))
}

func (t *Timeline) sub(format string, args ...any) {
	fmt.Fprintf(t.W, "%s        %s\n", t.Indent, strings.TrimRight(fmt.Sprintf(format, args...), " "))
}
