package engine

import (
	"encoding/json"
	"time"

	"github.com/longstop-dev/longstop/internal/flow"
)

// approvalTime is how long an approval waits that sets no deadline.
const approvalTime = 7 * 24 * time.Hour

// askApproval parks a step at a person's gate.
func (c *change) askApproval(n *node, inst flow.StepInstance, a flow.Approval) error {
	d := c.d
	if a.Deadline <= 0 {
		a.Deadline = approvalTime
	}
	a.Message = d.masker.Text(a.Message)
	proposal, err := json.Marshal(a)
	if err != nil {
		return flow.Errorf(flow.CodeInternal, "an approval cannot be written as JSON").Because(err)
	}
	return c.openGate(n, inst, flow.Gate{ID: d.e.NewID("gate"), Workspace: d.run.Workspace, RunID: d.run.ID, Workflow: d.run.Workflow,
		StepIndex: n.Index, Iteration: inst.Iteration, Title: n.Title, StepType: n.Type, Kind: flow.GateApproval, Status: flow.GateOpen, Proposal: proposal,
		OpenedAt: c.now, ExpiresAt: c.now.Add(a.Deadline), Every: every(a.Remind)})
}

// approved is the output of an approved step.
type approved struct {
	Approved bool            `json:"approved"`
	By       string          `json:"by,omitempty"`
	Reason   string          `json:"reason,omitempty"`
	Data     json.RawMessage `json:"data,omitempty"` // what the person filled in
}

// approval decides what a person's answer to a step's gate does.
func (w *worker) approval(by flow.Caller, g flow.Gate, a flow.GateAnswer) (act, error) {
	switch a.Answer {
	case "approve":
		if err := checkForm(g, a.Output); err != nil {
			return nil, err
		}
		return w.approve(approved{Approved: true, By: by.Person, Reason: a.Reason, Data: a.Output}), nil
	case "refuse":
		return w.refuse("refused by " + by.Person + reason(a.Reason)), nil
	}
	return nil, flow.Errorf(flow.CodeInvalid, "%q is no answer to a gate of kind approval", a.Answer).At("answer").Right("approve or refuse")
}

func reason(text string) string {
	if text == "" {
		return ""
	}
	return ": " + text
}

// checkForm holds what a person filled in against the gate's form.
func checkForm(g flow.Gate, filled json.RawMessage) error {
	var a flow.Approval
	if err := json.Unmarshal(g.Proposal, &a); err != nil {
		return flow.Errorf(flow.CodeInternal, "the gate's proposal is not readable").Because(err)
	}
	form, err := schema(a.Form)
	if err != nil || form == nil {
		return err
	}
	problems := form.Check(null(filled))
	if len(problems) == 0 {
		return nil
	}
	for i := range problems {
		problems[i].Field = under("output", problems[i].Field)
	}
	bad := flow.Errorf(flow.CodeInvalid, "the form is not filled in rightly").At("output").Right("what the gate's form asks for")
	bad.Problems = problems
	return bad
}

func (w *worker) approve(v approved) act {
	return func(c *change) error {
		v.Reason = w.masker.Text(v.Reason)
		output, err := encode(v)
		if err != nil {
			return err
		}
		return c.complete(w.n, w.inst, w.masker.JSON(output))
	}
}

// refuse fails the step for good: nobody mends what a person refused.
func (w *worker) refuse(why string) act {
	return func(c *change) error {
		inst := w.inst
		inst.Error = w.masker.Text(why)
		return c.giveUp(w.n, inst, "")
	}
}

// unanswered says what follows when nobody has answered a step's gate.
func (w *worker) unanswered(g flow.Gate) act {
	var a flow.Approval
	if err := json.Unmarshal(g.Proposal, &a); err != nil {
		a.Default = ""
	}
	switch a.Default {
	case "approve":
		return w.approve(approved{Approved: true, Reason: "nobody answered in time, and the default is to approve"})
	case "refuse":
		return w.refuse("nobody answered in time, and the default is to refuse")
	}
	return w.refuse("nobody answered in time")
}
