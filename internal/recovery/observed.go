package recovery

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/longstop-dev/longstop/internal/flow"
)

// maxSummed bounds how many observed cases are summed up.
const maxSummed = 5000

// ObservedIn narrows what is summed up.
type ObservedIn struct {
	Workflow string `query:"workflow" doc:"Only cases of this workflow."`
	Cases    int    `query:"cases" minimum:"1" maximum:"5000" default:"1000" doc:"How many of the newest observed cases are summed up."`
}

// ObservedView is what observed agents would have done, summed up: whether one
// has earned trust.
type ObservedView struct {
	Cases  int             `json:"cases" doc:"How many are summed up."`
	Since  *time.Time      `json:"since,omitempty" doc:"When the oldest of them was opened."`
	Agents []ObservedAgent `json:"agents" doc:"One for each agent that was asked."`
}

// ObservedAgent is one agent's record.
type ObservedAgent struct {
	Responder    string  `json:"responder" enum:"a2a,mcp"`
	Target       string  `json:"target,omitempty" doc:"Its URL without a query, or its server's id."`
	Cases        int     `json:"cases"`
	WouldMend    int     `json:"wouldMend" doc:"Its answer gives an output that passes every check, or is what was applied and has mended the step."`
	WouldRetry   int     `json:"wouldRetry" doc:"The step would have run again, changed; nobody knows with what end."`
	WouldNotMend int     `json:"wouldNotMend" doc:"Its answer is what was applied, and the step failed again."`
	WouldCall    int     `json:"wouldCall" doc:"It calls for a person."`
	Refused      int     `json:"refused" doc:"The guard refuses its answer."`
	Failed       int     `json:"failed" doc:"It gave no answer: too late, out of reach, no action."`
	Pending      int     `json:"pending"`
	Lost         int     `json:"lost" doc:"The server ended before its answer came."`
	Skipped      int     `json:"skipped" doc:"It was not asked, since too many were being asked."`
	Same         int     `json:"same" doc:"Its answer is what was applied."`
	Different    int     `json:"different" doc:"Something else was applied."`
	Spared       int     `json:"spared" doc:"It would have mended where a person was called."`
	MedianMS     float64 `json:"medianMs" doc:"Of the time that its answers took."`
}

// tally is an agent's record as it grows.
type tally struct {
	ObservedAgent
	took []float64 // milliseconds
}

// CasesObserved sums up what observed agents would have done.
func (d *Desk) CasesObserved(ctx context.Context, by flow.Caller, in *ObservedIn) (*ObservedView, error) {
	limit := in.Cases
	if limit <= 0 {
		limit = 1000
	}
	limit = min(limit, maxSummed)
	out, agents := &ObservedView{}, map[[2]string]*tally{}
	before, seen := "", latest{}
	for out.Cases < limit {
		page, err := d.c.Observations.ObservedCases(ctx, by.Workspace, before, 200)
		if err != nil {
			return nil, err
		}
		for i := range page {
			k := &page[i]
			if out.Cases == limit || in.Workflow != "" && k.Workflow != in.Workflow {
				continue
			}
			if err := d.weigh(ctx, k, seen); err != nil {
				return nil, err
			}
			out.Cases++
			out.Since = &k.OpenedAt
			name := [2]string{k.Observed.Responder, k.Observed.Target}
			if agents[name] == nil {
				agents[name] = &tally{ObservedAgent: ObservedAgent{Responder: name[0], Target: name[1]}}
			}
			agents[name].add(k)
		}
		if len(page) < 200 {
			break
		}
		before = page[len(page)-1].ID
	}
	out.Agents = []ObservedAgent{}
	for _, a := range slices.SortedFunc(maps.Values(agents), func(a, b *tally) int { return cmp.Or(cmp.Compare(b.Cases, a.Cases), cmp.Compare(a.Target, b.Target)) }) {
		slices.Sort(a.took)
		if n := len(a.took); n > 0 {
			a.MedianMS = a.took[n/2]
		}
		out.Agents = append(out.Agents, a.ObservedAgent)
	}
	return out, nil
}

func (a *tally) add(k *flow.Case) {
	o := k.Observed
	a.Cases++
	switch o.Verdict {
	case flow.WouldMend:
		a.WouldMend++
		if calledAPerson(k) {
			a.Spared++
		}
	case flow.WouldRetry:
		a.WouldRetry++
	case flow.WouldNotMend:
		a.WouldNotMend++
	case flow.WouldCall:
		a.WouldCall++
	case flow.WouldBeRefused:
		a.Refused++
	case flow.WouldBePending:
		a.Pending++
	case string(flow.ObservationFailed):
		a.Failed++
	case string(flow.ObservationLost):
		a.Lost++
	case string(flow.ObservationSkipped):
		a.Skipped++
	}
	switch o.Compared {
	case "same":
		a.Same++
	case "different":
		a.Different++
	}
	if o.State == flow.ObservationAnswered {
		a.took = append(a.took, o.DurationMS)
	}
}

// calledAPerson reports whether a person was needed for the case.
func calledAPerson(k *flow.Case) bool {
	if k.Outcome == string(flow.GateNeedsHuman)+" gate opened" {
		return true
	}
	return slices.ContainsFunc(k.Asked, func(part flow.Asked) bool { return part.Source == flow.SourceHuman })
}
