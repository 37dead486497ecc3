package a2a

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// GetTask reads a task over the route that started it.
func (c *Client) GetTask(ctx context.Context, t Target, r Route, taskID string) (*Answer, error) {
	return c.task(ctx, t, r, opGet, taskID)
}

// CancelTask asks the agent to stop a task. That it accepted is no promise.
func (c *Client) CancelTask(ctx context.Context, t Target, r Route, taskID string) (*Answer, error) {
	return c.task(ctx, t, r, opCancel, taskID)
}

func (c *Client) task(ctx context.Context, t Target, r Route, op operation, taskID string) (*Answer, error) {
	p := taskParams{ID: taskID, Tenant: r.Tenant}
	if r.Dialect == V03 {
		p.Tenant = ""
	}
	params, err := encode(p)
	if err != nil {
		return nil, err
	}
	result, err := c.call(ctx, t, r, op, taskID, params)
	if err != nil {
		return nil, err
	}
	a, err := ReadAnswer(result)
	switch {
	case err != nil:
		return nil, err
	case !a.Task:
		return nil, fault(ErrShape, "a message where a task was asked for")
	case a.ID == "":
		a.ID = taskID
	case a.ID != taskID:
		return nil, fault(ErrShape, "another task than the one asked for")
	}
	return a, nil
}

// Backoff is how long polling waits: First, then each time Factor times as
// long, never longer than Most.
type Backoff struct {
	First, Most time.Duration
	Factor      float64
}

// RecoveryBackoff is that of a recovery, whose deadline is seconds away.
func RecoveryBackoff() Backoff {
	return Backoff{First: 200 * time.Millisecond, Most: 2 * time.Second, Factor: 1.5}
}

func (b Backoff) after(d time.Duration) time.Duration {
	return min(max(time.Duration(float64(d)*b.Factor), b.First), b.Most)
}

// How many polls in a row may fail before the task is given up. Replicas lose
// a task for a moment, and gateways restart.
const (
	maxMissing = 3
	maxFlaps   = 10
)

// Poll reads a task until it is terminal or paused, and returns it as it is
// then. An answer that needs no polling is returned as it is. On an error the
// last state that was seen comes with it.
func (c *Client) Poll(ctx context.Context, t Target, r Route, a *Answer, b Backoff) (*Answer, error) {
	if a.Task && a.ID == "" && !a.State.Terminal() && !a.State.Paused() {
		return a, fault(ErrShape, "a working task without an id")
	}
	missing, flaps, pause := 0, 0, b.First
	for !a.State.Terminal() && !a.State.Paused() {
		if err := c.wait(ctx, pause); err != nil {
			return a, stillWorking(ctx, a)
		}
		pause = b.after(pause)
		next, err := c.GetTask(ctx, t, r, a.ID)
		switch kind := classify(err); {
		case err == nil:
			missing, flaps = 0, 0
			if err := adopt(next, a); err != nil {
				return a, err
			}
			a = next
		case ctx.Err() != nil:
			return a, stillWorking(ctx, a)
		case kind == pollMissing && missing < maxMissing:
			missing++
		case kind == pollFlap && flaps < maxFlaps:
			flaps++
			pause = max(pause, retryAfter(err))
		default:
			return a, err
		}
	}
	return a, nil
}

// adopt keeps the context that is known if the new reading names none; a
// different one is an error.
func adopt(next, known *Answer) error {
	if next.ContextID == "" {
		next.ContextID = known.ContextID
	}
	if known.ContextID != "" && next.ContextID != known.ContextID {
		return fault(ErrShape, "the task moved to another contextId")
	}
	return nil
}

func stillWorking(ctx context.Context, a *Answer) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return &Fault{Kind: context.Canceled}
	}
	return fault(ErrTimeout, "its task is still %s", a.State)
}

type pollFailure int

const (
	pollFatal   pollFailure = iota
	pollMissing             // the task is not known, perhaps at this replica
	pollFlap                // asking again may help
)

func classify(err error) pollFailure {
	var spoken *RPCError
	if errors.As(err, &spoken) {
		if spoken.Code == codeTaskNotFound || strings.Contains(strings.ToLower(spoken.Message), "task not found") {
			return pollMissing
		}
		if spoken.Status >= 500 || spoken.Status == http.StatusTooManyRequests {
			return pollFlap
		}
		return pollFatal
	}
	var status *StatusError
	if errors.As(err, &status) {
		switch {
		case status.Status >= 500, status.Status == http.StatusTooManyRequests, status.Status == http.StatusRequestTimeout:
			return pollFlap
		}
		return pollFatal
	}
	if errors.Is(err, ErrUnreachable) || errors.Is(err, ErrTimeout) {
		return pollFlap
	}
	return pollFatal
}

func retryAfter(err error) time.Duration {
	var status *StatusError
	var spoken *RPCError
	switch {
	case errors.As(err, &status):
		return status.RetryAfter
	case errors.As(err, &spoken):
		return spoken.RetryAfter
	}
	return 0
}

func (c *Client) wait(ctx context.Context, d time.Duration) error {
	if c.Wait != nil {
		if err := c.Wait(ctx, d); err != nil {
			return fmt.Errorf("waiting: %w", err)
		}
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
