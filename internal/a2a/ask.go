package a2a

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"time"
)

// maxAsk ends an Ask whose context has no deadline.
const maxAsk = time.Minute

// recoveryID begins the id of every question about a failed step.
const recoveryID = "recovery-"

// RecoveryAsk is the question to a recovery agent: what to do about a failed
// step.
type RecoveryAsk struct {
	URL         string // recovery.a2a_agent_url
	Card        *Card  // as it reads now; nil if it cannot be read
	Token       string // recovery.a2a_auth_token; may be empty
	TokenOrigin string // the origin of the endpoint that was shown when the settings were saved

	RunID     string
	StepIndex int
	Input     json.RawMessage // RecoveryToolInput
}

// Meta says how an answer was come by.
type Meta struct {
	Route     Route
	MessageID string
	TaskID    string
	ContextID string
	State     State
	Usage     Usage
}

// Ask puts the question, polls the task if the agent answers with one that is
// still working, and returns the first data part, unchecked: whether it is a
// recovery action is for the caller to say. All of it happens within the
// deadline of ctx. A task that failed, or that waits for a person, is a
// [TaskError]; an answer without data is an [ErrNoData].
func (c *Client) Ask(ctx context.Context, q RecoveryAsk) (json.RawMessage, Meta, error) {
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, maxAsk)
		defer cancel()
	}
	t := Target{Purpose: ForRecovery, URL: q.URL, Card: q.Card, Token: q.Token, TokenOrigin: q.TokenOrigin}
	meta := Meta{MessageID: newUUID()}
	a, route, err := c.Send(ctx, t, Out{
		ID:        fmt.Sprintf(recoveryID+"%s-%d", q.RunID, q.StepIndex),
		MessageID: meta.MessageID,
		Data:      q.Input,
	})
	meta.Route = route
	if err == nil {
		a, err = c.Poll(ctx, t, route, a, RecoveryBackoff())
	}
	if a != nil {
		meta.TaskID, meta.ContextID, meta.State, meta.Usage = a.ID, a.ContextID, a.State, a.Usage
	}
	if err != nil {
		return nil, meta, err
	}
	said := scrubber(q.Token)(a.Text(), maxTaskText)
	if a.State != StateCompleted {
		return nil, meta, &TaskError{State: a.State, TaskID: a.ID, Text: said}
	}
	action := a.Data()
	if action == nil {
		return nil, meta, fault(ErrNoData, "%s", said)
	}
	return action, meta, nil
}

// newUUID makes a random (version 4) UUID.
func newUUID() string {
	var b [16]byte
	rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
