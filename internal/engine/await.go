package engine

import (
	"bytes"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/longstop-dev/longstop/internal/flow"
)

// How long a step waits to be told that what it awaits is there before it
// looks by itself: each further look waits as long as all before, up to a
// bound. Being told is lost only with the process.
const (
	firstLook = time.Minute
	lookMost  = 30 * time.Minute
)

// await parks a step until something outside is there.
func (c *change) await(n *node, inst flow.StepInstance, a flow.Await) error {
	p := &inst.Progress
	stopClock(p, c.now)
	again := p.Await != nil && p.Await.Token == a.Token
	next := flow.Awaited{Token: a.Token, State: a.State, Since: c.now, Until: a.Until}
	if again {
		next.Since = p.Await.Since
	}
	due := c.now.Add(min(max(firstLook, c.now.Sub(next.Since)), lookMost))
	if a.Until.Before(due) {
		due = a.Until
	}
	if c.d.e.early.take(a.Token) { // it came while the step was still asking for it
		due = c.now
	}
	inst.Status, p.Phase, p.Await, p.DueAt = flow.StepWaiting, flow.PhaseAwaiting, &next, &due
	c.step(inst)
	if !again {
		c.event(flow.EventStepSuspended, &inst.StepKey, stepData{ID: n.ID, Type: n.Type, DueAt: &a.Until, Message: a.Says})
		c.log(n, &inst, "waiting", func(l *flow.Log) { l.Message = a.Says })
	}
	return c.commit(c.d.ctx)
}

// asked is what the gate of a question shows: the members of an approval that
// people and pages know already, and who asks.
type asked struct {
	flow.Approval
	From string `json:"from,omitempty"`
}

// askBack parks a step at a gate because whoever was asked asks back.
func (c *change) askBack(n *node, inst flow.StepInstance, q flow.AskBack) error {
	d := c.d
	inst.Progress.Await = &flow.Awaited{State: q.State, Since: c.now}
	proposal, err := json.Marshal(asked{Approval: flow.Approval{Message: d.masker.Text(q.Text)}, From: q.From})
	if err != nil {
		return flow.Errorf(flow.CodeInternal, "a question cannot be written as JSON").Because(err)
	}
	return c.openGate(n, inst, flow.Gate{ID: d.e.NewID("gate"), Workspace: d.run.Workspace, RunID: d.run.ID, Workflow: d.run.Workflow,
		StepIndex: n.Index, Iteration: inst.Iteration, Title: n.Title, StepType: n.Type, Kind: flow.GateInputRequired, Status: flow.GateOpen, Proposal: proposal,
		OpenedAt: c.now, ExpiresAt: c.now.Add(approvalTime), Every: every(0)})
}

// reply decides what a person's answer to a question does.
func (w *worker) reply(by flow.Caller, a flow.GateAnswer) (act, error) {
	const right = `output with the reply, a text or an object such as {"text": "Berlin"}; or fail`
	switch a.Answer {
	case "output":
		said := bytes.TrimSpace(a.Output)
		if len(said) == 0 || said[0] != '"' && said[0] != '{' || string(said) == `""` || string(said) == "{}" {
			return nil, flow.Errorf(flow.CodeInvalid, "that is no reply").At("output").Right(right)
		}
		return func(c *change) error {
			inst, p := w.inst, &w.inst.Progress
			if p.Await == nil {
				return flow.Errorf(flow.CodeInternal, "the step has forgotten what was asked")
			}
			told := *p.Await
			told.Reply = said
			inst.Status = flow.StepWaiting
			inst.Progress.Phase, inst.Progress.GateID, inst.Progress.DueAt, inst.Progress.Await = flow.PhaseAwaiting, "", &c.now, &told
			c.step(inst)
			return c.commit(c.d.ctx)
		}, nil
	case "fail":
		return w.refuse("nobody wanted to answer what was asked back: " + by.Person + reason(a.Reason)), nil
	}
	return nil, flow.Errorf(flow.CodeInvalid, "%q is no answer to a gate of kind input_required", a.Answer).At("answer").Right(right)
}

// Arrived tells that what a step of a run awaits is there, as far as somebody
// outside can see; the step looks for itself. It does not block.
func (e *Engine) Arrived(runID, token string) {
	e.early.add(token)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.draining {
		return
	}
	e.wg.Go(func() { e.arrive(runID, token) })
}

// arrive has the step look now. While it is still asking, nothing is to be
// done: it finds the token among those that came early.
func (e *Engine) arrive(runID, token string) {
	for e.ctx.Err() == nil {
		run, err := e.Runs.Run(e.ctx, "", runID)
		if err != nil || run.Status.Finished() {
			e.early.take(token)
			return
		}
		d, err := e.load(e.ctx, run)
		if err != nil {
			e.Log.Warn("an answer waits to be looked at", "run", runID, "error", err)
			return // the step looks by itself
		}
		err = e.move(e.ctx, d, func(c *change) error { return c.look(token) })
		switch {
		case flow.CodeOf(err) == flow.CodeStale:
		case errors.Is(err, flow.ErrLater):
			e.pause(e.ctx, againMost)
		default:
			return
		}
	}
}

// look makes the step due that awaits a token.
func (c *change) look(token string) error {
	for _, row := range c.d.rows {
		p := &row.Progress
		if p.Phase != flow.PhaseAwaiting || p.Await == nil || p.Await.Token != token {
			continue
		}
		c.d.e.early.take(token)
		inst := *row
		inst.Progress.DueAt = &c.now
		c.step(inst)
		return c.commit(c.d.ctx)
	}
	return flow.Errorf(flow.CodeConflict, "no step of run %s awaits that", c.d.runID)
}

// early keeps the tokens of what came before the step that asked for it was
// parked.
type early struct {
	mu     sync.Mutex
	tokens map[string]struct{}
}

// maxEarly bounds the tokens that are kept; a step whose token is lost looks by
// itself after a while.
const maxEarly = 10_000

func (x *early) add(token string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.tokens) >= maxEarly {
		clear(x.tokens)
	}
	x.tokens[token] = struct{}{}
}

func (x *early) take(token string) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	_, had := x.tokens[token]
	delete(x.tokens, token)
	return had
}
