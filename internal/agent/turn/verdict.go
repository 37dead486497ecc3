package turn

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/longstop-dev/longstop/internal/a2a"
	"github.com/longstop-dev/longstop/internal/flow"
)

// verdict is what came of a try: an answer, or why there is none.
type verdict struct {
	answer *a2a.Answer // of a turn that succeeded or asks back, and of a task that failed
	code   string      // "" for a turn that succeeded
	why    string
	final  bool // another try would end in the same way
	again  bool // the next try sends a new message
	usage  a2a.Usage
}

// taskFailed is the verdict on a task that ended without success.
func taskFailed(a *a2a.Answer) verdict {
	v := verdict{answer: a, code: flow.TurnAgentFailed, again: true, usage: a.Usage}
	switch a.State {
	case a2a.StateCanceled:
		v.code = flow.TurnAgentCanceled
	case a2a.StateRejected:
		v.code = flow.TurnAgentRejected
	}
	v.why = "the agent's task ended as " + a.State.Wire()
	return v
}

// judge is the verdict on a call that failed.
func judge(err error) verdict {
	v := verdict{code: flow.TurnUnreachable, why: err.Error()}
	var spoken *a2a.RPCError
	var status *a2a.StatusError
	switch {
	case errors.Is(err, a2a.ErrToken):
		v.code, v.final = flow.TurnAuthUnavailable, flow.CodeOf(err) != flow.CodeUnavailable
	case errors.Is(err, a2a.ErrNoRoute):
		v.code, v.final = flow.TurnCardInvalid, true
	case errors.Is(err, a2a.ErrTimeout):
		v.code = flow.TurnTimedOut
	case errors.As(err, &spoken):
		v.code = flow.TurnAgentFailed
	case errors.As(err, &status):
		v.code = statusCode(status.Status)
	case errors.Is(err, a2a.ErrShape), errors.Is(err, a2a.ErrHTML), errors.Is(err, a2a.ErrTooLarge), errors.Is(err, a2a.ErrTooDeep),
		errors.Is(err, a2a.ErrMessage):
		v.code = flow.TurnInvalidResponse
	}
	return v
}

// statusCode is the code of a turn whose agent answered with an HTTP status
// that is no success.
func statusCode(status int) string {
	switch {
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return flow.TurnAuthUnavailable
	case status >= 500, status == http.StatusTooManyRequests, status == http.StatusRequestTimeout: // it may pass
		return flow.TurnUnreachable
	}
	return flow.TurnInvalidResponse
}

// judgeCard is the verdict on a card that could not be read: what is there and
// is no usable card, or nothing that answers.
func judgeCard(err error) verdict {
	v := judge(err)
	var status *a2a.StatusError
	switch {
	case errors.Is(err, a2a.ErrCard), errors.Is(err, a2a.ErrHTML), errors.Is(err, a2a.ErrTooLarge), errors.Is(err, a2a.ErrTooDeep):
		v.code = flow.TurnCardInvalid
	case errors.As(err, &status) && status.Status < 500 && status.Status != http.StatusTooManyRequests:
		v.code = flow.TurnCardInvalid
	default:
		v.code = flow.TurnUnreachable
	}
	v.final = errors.Is(err, a2a.ErrSignature)
	v.why = "its card: " + v.why
	return v
}

// unknownTask tells whether an agent says that it does not know the task.
func unknownTask(err error) bool {
	var spoken *a2a.RPCError
	const taskNotFound = -32001
	return errors.As(err, &spoken) && spoken.Code == taskNotFound
}

// failed ends a try without success: there is another, or the turn is
// answered.
func (s *session) failed(ctx context.Context, v verdict) (time.Time, error) {
	p, now := &s.t.Progress, s.c.Clock.Now()
	if ctx.Err() != nil { // the server stops: the try goes on at the next start
		return now, ctx.Err()
	}
	if v.final || p.Try >= flow.TurnTries {
		return s.end(ctx, v)
	}
	pause := tryPauses()[min(p.Try, len(tryPauses()))-1]
	pause += time.Duration(s.c.Jitter() * float64(pause) / 2)
	p.Failed, p.Code = clip(v.why, maxWhy), v.code
	p.Spent, p.Used = p.Spent+max(v.usage.Count(), p.Used), 0
	if v.again {
		p.MessageID, p.TaskID = "", ""
	}
	p.Lost, p.Poll = 0, 0
	s.t.Status, s.t.NextAt = flow.TurnQueued, now.Add(pause)
	return s.t.NextAt, s.write(ctx, flow.TurnWrite{Job: s.kept(now)})
}

func ceilingText(c flow.Connection) string {
	return fmt.Sprintf("the agent has spent %d tokens in this vault, past its ceiling of %d; the vault's owner can raise a2aTokens of the connection %s", c.Spent, c.Ceiling, c.ID)
}
