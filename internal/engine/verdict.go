package engine

import (
	"encoding/json"

	jsonpatch "github.com/evanphx/json-patch/v5"

	"github.com/longstop-dev/longstop/internal/flow"
)

// apply carries a verdict out. The change may hold what led to it already: a
// gate that was answered, a claim.
func (c *change) apply(n *node, inst flow.StepInstance, v flow.Verdict) error {
	p := &inst.Progress
	if v.Case.ID != "" {
		c.kase(v.Case)
	}
	if v.Message != "" {
		inst.Message = v.Message
	}
	if v.Agent != nil {
		p.Agent = v.Agent
	}
	if v.Kind == flow.VerdictGate && v.Gate.Kind == flow.GateNeedsAgent {
		return c.openGate(n, inst, *v.Gate) // nothing is decided yet
	}
	c.event(flow.EventStepAdapting, &inst.StepKey, v.Adapting)
	c.log(n, &inst, "adapted", func(l *flow.Log) {
		l.Message, l.Error = v.Message, inst.Error
		if v.Source != flow.SourceNone {
			l.RecoverySource = v.Source
		}
		if took := v.Adapting.BYOATimingMS; took != nil {
			l.DurationMS = float64(*took)
		}
	})
	if v.NewEpisode {
		p.Episode++
		p.Round, p.Tries, p.Hint, p.Agent = 0, 0, v.Hint, nil
		p.Deadline, p.Left = nil, 0 // an episode has the step's whole time
	}
	switch v.Kind {
	case flow.VerdictOutput:
		p.Source = v.Source
		return c.complete(n, inst, c.d.masker.JSON(v.Output))
	case flow.VerdictRetry, flow.VerdictTool:
		return c.mend(n, inst, v)
	case flow.VerdictAgain:
		return c.askAgain(n, inst, v)
	case flow.VerdictGate:
		return c.openGate(n, inst, *v.Gate)
	case flow.VerdictSkip:
		return c.skip(n, inst, v)
	}
	return c.giveUp(n, inst, v.Message)
}

// mend runs the step again, changed, or a tool in its place.
func (c *change) mend(n *node, inst flow.StepInstance, v flow.Verdict) error {
	p := &inst.Progress
	p.Mends++
	p.Tries, p.Source, p.CaseID, p.GateID = 0, v.Source, "", ""
	if !v.NewEpisode {
		p.Round++
	}
	if v.Tool != nil {
		p.Tool = v.Tool
	} else {
		p.Tool = nil
		p.Dropped = append(p.Dropped, v.Dropped...)
		if err := layMods(p, v.Mods); err != nil {
			return err
		}
	}
	startClock(p, n.TotalTimeout, c.now)
	inst.Status, p.Phase = flow.StepRunning, flow.PhaseAttempt
	if v.After > 0 {
		return c.backOff(n, inst, v.After)
	}
	c.step(inst)
	return c.commit(c.d.ctx)
}

// layMods lays new modifications over those that hold already.
func layMods(p *flow.Progress, mods json.RawMessage) error {
	switch {
	case len(mods) == 0:
		return nil
	case len(p.Mods) == 0:
		p.Mods = mods
		return nil
	}
	merged, err := jsonpatch.MergeMergePatches(p.Mods, mods)
	if err != nil {
		return flow.Errorf(flow.CodeInternal, "modifications cannot be merged").Because(err)
	}
	p.Mods = merged
	return nil
}

// askAgain freezes the same failure for the next recovery attempt.
func (c *change) askAgain(n *node, inst flow.StepInstance, v flow.Verdict) error {
	p := &inst.Progress
	if !v.NewEpisode {
		p.Round++
	}
	p.GateID = ""
	startClock(p, n.TotalTimeout, c.now)
	w := c.d.about(n, inst)
	config, err := w.resolve()
	if err != nil {
		config = nil
	}
	return c.freeze(n, inst, w.failure(config), "recovery could not go on")
}

// openGate parks a step on someone.
func (c *change) openGate(n *node, inst flow.StepInstance, g flow.Gate) error {
	stopClock(&inst.Progress, c.now)
	c.arm(&g)
	due := g.Due()
	inst.Status, inst.Progress.Phase, inst.Progress.GateID, inst.Progress.DueAt = flow.StepWaiting, flow.PhaseGated, g.ID, &due
	c.step(inst)
	c.gate(g)
	data := gateData{GateID: g.ID, Kind: g.Kind, CaseID: g.CaseID, ExpiresAt: &g.ExpiresAt, Message: inst.Message}
	if g.CaseID == "" { // nothing failed: the step itself asks
		var a flow.Approval
		if err := json.Unmarshal(g.Proposal, &a); err == nil {
			data.Message = a.Message
		}
	}
	for _, said := range []*flow.Escalation{g.Builtin, g.Agent} {
		if said != nil {
			data.Diagnosis, data.Suggestion = said.Diagnosis, said.Suggestion
		}
	}
	c.event(flow.EventGateOpened, &inst.StepKey, data)
	if g.Kind == flow.GateNeedsAgent {
		c.log(n, &inst, "waiting", func(l *flow.Log) { l.Message, l.Error = inst.Message, inst.Error })
	}
	return c.commit(c.d.ctx)
}

// skip goes on without the step.
func (c *change) skip(n *node, inst flow.StepInstance, v flow.Verdict) error {
	inst.Status, inst.Output, inst.FinishedAt = flow.StepSkipped, json.RawMessage("null"), c.now
	inst.RecoverySource = v.Source
	inst.Progress = flow.Progress{Mends: inst.Progress.Mends, Episode: inst.Progress.Episode}
	c.step(inst)
	c.event(flow.EventStepSkipped, &inst.StepKey, stepData{ID: n.ID, Type: n.Type, RecoverySource: v.Source, Message: v.Message})
	c.log(n, &inst, "skipped", func(l *flow.Log) { l.Message = v.Message })
	return c.commit(c.d.ctx)
}
