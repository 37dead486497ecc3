package engine

import (
	"context"

	"github.com/longstop-dev/longstop/internal/flow"
)

// misplaced refuses an answer with a member that its kind does not take: what
// somebody sends is never ignored silently.
func misplaced(a flow.GateAnswer) error {
	takes := map[string]string{"approve": "output", "output": "output", "edit": "modifications", "hint": "hint", "action": "action", "refuse": "", "skip": "", "fail": ""}
	may, known := takes[a.Answer]
	if !known {
		return nil // the gate says which answers it takes
	}
	for _, m := range []struct {
		name  string
		given bool
	}{{"output", len(a.Output) > 0}, {"modifications", len(a.Modifications) > 0}, {"hint", a.Hint != ""}, {"action", len(a.Action) > 0}} {
		if !m.given || m.name == may {
			continue
		}
		right := "leave it out; " + a.Answer + " takes a reason only"
		if may != "" {
			right = "leave it out; " + a.Answer + " takes " + may + " and a reason"
		}
		return flow.Errorf(flow.CodeInvalid, "the answer %s does not take %s", a.Answer, m.name).At(m.name).Right(right)
	}
	return nil
}

// mayApprove answers forbidden where the workspace wants another person's eyes
// and the gate is about the caller's own: a run that they started, or code
// that came in through the inbox with a key of theirs. Refusing is open to
// everybody who may answer.
func (e *Engine) mayApprove(ctx context.Context, by flow.Caller, run flow.Run, g flow.Gate) error {
	policy, err := e.Workspaces.Gates(ctx, by.Workspace)
	if err != nil || !policy.DenySelfApproval {
		return err
	}
	const right = "have another person approve it, refuse it, or have an editor set gates.self_approval to allow"
	if run.Author == by.Person {
		return flow.Errorf(flow.CodeForbidden, "you started run %s, and this workspace wants another person to approve it (setting gates.self_approval is deny)", run.ID).Right(right)
	}
	if g.CaseID == "" {
		return nil
	}
	k, err := e.Records.Case(ctx, by.Workspace, g.CaseID)
	if err != nil {
		return err
	}
	for _, asked := range k.Asked {
		if asked.Responder == "inbox" && asked.Accepted && asked.Target == by.Person {
			return flow.Errorf(flow.CodeForbidden, "this code was sent in with a key of yours, and this workspace wants another person to approve it (setting gates.self_approval is deny)").Right(right)
		}
	}
	return nil
}
