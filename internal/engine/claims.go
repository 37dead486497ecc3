package engine

import (
	"context"
	"strings"
	"time"

	"github.com/longstop-dev/longstop/internal/flow"
)

// ClaimIn claims a case that waits in the inbox, or goes on with a claim.
type ClaimIn struct {
	StepIn
	Lease int    `query:"lease" minimum:"5" maximum:"3600" default:"60" doc:"Seconds that the claim holds; claim again to go on. It never outlives the case's own time."`
	Name  string `query:"name" maxLength:"60" pattern:"^[A-Za-z0-9 ._@:/-]*$" doc:"What the claimer calls itself. Those who share a key need names to be told apart."`
}

// ReleaseIn gives a claim up.
type ReleaseIn struct {
	StepIn
	Name string `query:"name" maxLength:"60" pattern:"^[A-Za-z0-9 ._@:/-]*$" doc:"The name that it was claimed under."`
}

// ClaimOut says who has claimed a case and for how long.
type ClaimOut struct {
	RunID     string    `json:"runId"`
	StepIndex int       `json:"stepIndex"`
	Iteration string    `json:"iteration"`
	GateID    string    `json:"gateId"`
	CaseID    string    `json:"caseId"`
	ClaimedBy string    `json:"claimedBy"`
	ClaimedAt time.Time `json:"claimedAt"`
	ExpiresAt time.Time `json:"expiresAt" doc:"When the claim ends unless it is made again."`
}

// Released is the answer to who gives up a claim.
type Released struct{}

// ClaimCase claims a case that waits in the inbox, so that other agents leave
// it alone, or prolongs the caller's claim. It answers conflict, naming the
// holder and when the claim ends, if it is somebody else's, and conflict if
// the case waits no longer. A claim never holds up the case's time-out.
func (e *Engine) ClaimCase(ctx context.Context, by flow.Caller, in *ClaimIn) (*ClaimOut, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	g, err := e.inboxGate(ctx, by, &in.StepIn)
	if err != nil {
		return nil, err
	}
	if g.Status != flow.GateOpen {
		return nil, e.taken(ctx, g)
	}
	lease := time.Duration(in.Lease) * time.Second
	if lease <= 0 {
		lease = time.Minute
	}
	now := e.Clock.Now()
	c := flow.Claim{GateID: g.ID, Workspace: by.Workspace, Holder: holder(by), Name: in.Name, ClaimedAt: now, ExpiresAt: now.Add(lease)}
	if c.ExpiresAt.After(g.ExpiresAt) {
		c.ExpiresAt = g.ExpiresAt
	}
	before, err := e.Config.Inbox.Claim(ctx, by.Workspace, g.ID)
	if err != nil {
		return nil, err
	}
	var did []flow.Audit
	fresh := before.By() != c.By() || !before.ExpiresAt.After(now)
	if fresh { // who goes on with a claim changes nothing that others see
		did = append(did, by.Did("recovery.claim", "run/"+g.RunID, now, claimDetails(g, c)))
	}
	if err := e.Config.Inbox.ClaimGate(ctx, c, did...); err != nil {
		if flow.CodeOf(err) != flow.CodeConflict {
			return nil, err
		}
		return nil, e.unclaimable(ctx, c)
	}
	if fresh {
		e.inbox.changed(by.Workspace)
	} else {
		c.ClaimedAt = before.ClaimedAt
	}
	return &ClaimOut{RunID: g.RunID, StepIndex: g.StepIndex, Iteration: g.Iteration, GateID: g.ID, CaseID: g.CaseID,
		ClaimedBy: c.By(), ClaimedAt: c.ClaimedAt, ExpiresAt: c.ExpiresAt}, nil
}

// unclaimable says why a claim was refused.
func (e *Engine) unclaimable(ctx context.Context, c flow.Claim) error {
	g, err := e.Records.Gate(ctx, c.Workspace, c.GateID)
	if err != nil {
		return err
	}
	if g.Status != flow.GateOpen {
		return e.taken(ctx, g)
	}
	has, err := e.Config.Inbox.Claim(ctx, c.Workspace, c.GateID)
	if err != nil {
		return err
	}
	return claimed(g, has)
}

// ReleaseCase gives up the caller's claim on a case; a person's key of the role
// operator or above may end anybody's. Where there is no claim it does
// nothing. It answers conflict, naming the holder, if the claim is somebody
// else's.
func (e *Engine) ReleaseCase(ctx context.Context, by flow.Caller, in *ReleaseIn) (*Released, error) {
	g, err := e.inboxGate(ctx, by, &in.StepIn)
	if err != nil {
		return nil, err
	}
	c, err := e.Config.Inbox.Claim(ctx, by.Workspace, g.ID)
	if err != nil || !c.ExpiresAt.After(e.Clock.Now()) {
		return &Released{}, err
	}
	if by.Role == flow.RoleAgent && (c.Holder != holder(by) || c.Name != in.Name) {
		return nil, claimed(g, c)
	}
	did := by.Did("recovery.release", "run/"+g.RunID, e.Clock.Now(), claimDetails(g, c))
	if err := e.Config.Inbox.ReleaseGate(ctx, c, did); err != nil {
		return nil, err
	}
	e.inbox.changed(by.Workspace)
	return &Released{}, nil
}

func claimDetails(g flow.Gate, c flow.Claim) map[string]any {
	return map[string]any{"gateId": g.ID, "stepIndex": g.StepIndex, "claimedBy": c.By()}
}

// heldBack answers conflict while somebody else's claim on an open case holds.
// Who has the key that claimed it may answer under any name.
func (e *Engine) heldBack(ctx context.Context, by flow.Caller, g flow.Gate) error {
	c, err := e.Config.Inbox.Claim(ctx, by.Workspace, g.ID)
	if err != nil {
		return err
	}
	if c.Holder == "" || c.Holder == holder(by) || !c.ExpiresAt.After(e.Clock.Now()) {
		return nil
	}
	return claimed(g, c)
}

func claimed(g flow.Gate, c flow.Claim) error {
	return flow.Errorf(flow.CodeConflict, "the case of step %d is claimed by %s until %s", g.StepIndex, c.By(), c.ExpiresAt.Format(time.RFC3339)).
		Right("take another case, or try again when the claim has ended; a person may answer its gate at any time")
}

// holder is whose a claim is: the key's.
func holder(by flow.Caller) string {
	if by.KeyID != "" {
		return by.KeyID
	}
	return by.Person
}

// check says what is wrong with a claim, however it came in.
func (in *ClaimIn) check() error {
	if in.Lease != 0 && (in.Lease < 5 || in.Lease > 3600) {
		return flow.Errorf(flow.CodeInvalid, "%d is out of range", in.Lease).At("lease").Right("5 to 3600 seconds")
	}
	if len(in.Name) > 60 || strings.Trim(in.Name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789 ._@:/-") != "" {
		return flow.Errorf(flow.CodeInvalid, "this is no name").At("name").Right("at most 60 letters, digits, spaces and ._@:/-")
	}
	return nil
}
