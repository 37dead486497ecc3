package cli

import (
	"fmt"
	"strings"

	"github.com/longstop-dev/longstop/internal/client"
	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/show"
)

// observed lists what observed agents would have done, and what it comes to.
func (a *app) observed(s *session, asJSON bool, l *client.List[flow.Case]) error {
	var rows [][]string
	for _, k := range l.Items {
		if o := k.Observed; o != nil {
			rows = append(rows, []string{k.ID, k.Workflow, fmt.Sprint(k.StepIndex), strings.ReplaceAll(o.Verdict, "_", " "), show.Line(answerOf(*o), 50), o.Compared, show.Line(k.Outcome, 40), ago(k.OpenedAt)})
		}
	}
	if err := a.table(asJSON, l, []string{"case", "workflow", "step", "it", "with", "compared", "was done", "opened"}, rows); err != nil || asJSON {
		return err
	}
	a.more(asJSON, l.Next)
	sum, err := s.Observed(a.ctx, "", 0)
	if err != nil {
		return err
	}
	for _, agent := range sum.Agents {
		a.record(agent)
	}
	return nil
}

// answerOf is what an observed agent answered, or why that is not known.
func answerOf(o flow.Observation) string {
	if !o.Accepted {
		return o.Rejection
	}
	return show.Summary(o.Action)
}

// record shows one agent's record.
func (a *app) record(r client.ObservedAgent) {
	fmt.Fprintf(a.out, "\n%s %s\n", a.ink.Bold(r.Responder), show.Line(r.Target, 120))
	answered := r.WouldMend + r.WouldRetry + r.WouldNotMend + r.WouldCall + r.Refused
	fmt.Fprintf(a.out, "  %d cases: %d answered in %s (median), %d not in time or not at all, %d pending, %d lost, %d not asked\n",
		r.Cases, answered, show.Millis(r.MedianMS), r.Failed, r.Pending, r.Lost, r.Skipped)
	fmt.Fprintf(a.out, "  would have mended %d (%d of them while a person was called), retried %d with an unknown end, failed %d, called a person %d; refused by the guard %d\n",
		r.WouldMend, r.Spared, r.WouldRetry, r.WouldNotMend, r.WouldCall, r.Refused)
	fmt.Fprintf(a.out, "  beside what was applied: same %d, different %d\n", r.Same, r.Different)
}

// wouldHave shows what an observed agent would have done.
func (a *app) wouldHave(o flow.Observation) {
	mark := a.ink.Warn("·")
	if o.Accepted {
		mark = a.ink.Good("○")
	}
	text := strings.ReplaceAll(o.Verdict, "_", " ")
	if o.Compared != "" {
		text += ", " + o.Compared + " as what was applied"
		text = strings.Replace(text, "different as", "different from", 1)
	}
	fmt.Fprintf(a.out, "  %s %s %s  %s\n", mark, show.Line("observed: "+strings.TrimSpace(o.Responder+" "+o.Target), 80), a.ink.Faint(show.Millis(o.DurationMS)), text)
	if line := answerOf(o); line != "" {
		fmt.Fprintf(a.out, "      %s\n", show.Line(line, 200))
	}
	for _, n := range o.Notes {
		fmt.Fprintf(a.out, "      %s\n", a.ink.Faint(show.Line(n, 200)))
	}
}
