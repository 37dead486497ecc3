package turn

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/longstop-dev/longstop/internal/a2a"
	"github.com/longstop-dev/longstop/internal/flow"
)

// How many answers in a row that say that the task is unknown, or that cannot
// be used, are ridden out: replicas lose tasks for a moment, gateways break in.
const (
	maxLost  = 5
	maxFlaps = 5
)

// poll asks for the remote task.
func (s *session) poll(ctx context.Context) (time.Time, error) {
	if err := s.read(ctx); err != nil {
		return time.Time{}, err
	}
	if err := json.Unmarshal(s.t.Progress.Route, &s.way); err != nil {
		return s.end(ctx, verdict{code: flow.TurnInvalidResponse, why: "the turn's route cannot be read"})
	}
	p, now := &s.t.Progress, s.c.Clock.Now()
	if !s.con.RevokedAt.IsZero() {
		return s.letGo(ctx, verdict{code: flow.TurnConnectionRevoked, why: whyRevoked})
	}
	if p.Deadline.Sub(now) > flow.TurnTimeout { // the clock was set back
		p.Deadline = now.Add(flow.TurnTimeout)
	}
	if !now.Before(p.Deadline) {
		return s.rejoin(ctx, now)
	}
	limit, cancel := context.WithTimeout(ctx, min(requestTimeout, p.Deadline.Sub(now)))
	defer cancel()
	answer, err := s.c.Wire.GetTask(limit, s.t.Workspace, s.aim(nil), s.way.Route, p.TaskID)
	if err != nil {
		return s.rideOut(ctx, err)
	}
	p.Lost, s.e.flaps = 0, 0
	return s.heard(ctx, answer)
}

// rejoin begins the next try of a task that has not ended in time: the same
// task is asked for, the message is not sent again.
func (s *session) rejoin(ctx context.Context, now time.Time) (time.Time, error) {
	p := &s.t.Progress
	if p.Try >= flow.TurnTries {
		return s.letGo(ctx, verdict{code: flow.TurnTimedOut, why: "the agent's task has not ended in time"})
	}
	p.Try++
	p.Deadline, p.Failed, p.Code = now.Add(flow.TurnTimeout), "the agent's task has not ended in time", flow.TurnTimedOut
	s.t.NextAt = now
	return now, s.write(ctx, flow.TurnWrite{})
}

// rideOut takes a poll without an answer: most pass by.
func (s *session) rideOut(ctx context.Context, err error) (time.Time, error) {
	p := &s.t.Progress
	switch v := judge(err); {
	case unknownTask(err):
		if p.Lost++; p.Lost > maxLost {
			return s.end(ctx, verdict{code: flow.TurnAgentFailed, why: "the agent does not know its task any more"})
		}
	case v.code == flow.TurnUnreachable || v.code == flow.TurnTimedOut:
	case v.final:
		return s.end(ctx, v)
	default:
		if s.e.flaps++; s.e.flaps > maxFlaps {
			return s.end(ctx, v)
		}
	}
	return s.later(), nil
}

// later is when the next poll is due. It is not written: after a restart a
// task is asked for at once.
func (s *session) later() time.Time {
	p := &s.t.Progress
	p.Poll = min(max(time.Duration(float64(p.Poll)*pollFactor), pollFirst), pollMost)
	return s.c.Clock.Now().Add(p.Poll)
}

// heard takes an answer of the agent's, to a message or to a poll.
func (s *session) heard(ctx context.Context, a *a2a.Answer) (time.Time, error) {
	p := &s.t.Progress
	p.State = a.State.Wire()
	p.Used = max(p.Used, a.Usage.Count()) // stored with whatever is stored next
	switch {
	case a.ContextID != "" && s.job.ContextID != "" && a.ContextID != s.job.ContextID:
		return s.end(ctx, verdict{code: flow.TurnInvalidResponse, why: "the agent answered in another context", usage: a.Usage})
	case !a.Task:
		s.adopt(a)
		return s.end(ctx, verdict{answer: a})
	case a.State.Terminal() && a.State != a2a.StateCompleted:
		p.TaskID = cmp.Or(a.ID, p.TaskID)
		s.adopt(a)
		return s.failed(ctx, taskFailed(a))
	case a.State.Terminal(), a.State.Paused():
		p.TaskID = cmp.Or(a.ID, p.TaskID)
		s.adopt(a)
		return s.end(ctx, verdict{answer: a})
	case a.ID == "" && p.TaskID == "":
		return s.failed(ctx, verdict{code: flow.TurnInvalidResponse, why: "a working task without an id", usage: a.Usage})
	}
	return s.working(ctx, a)
}

// adopt keeps the context that the agent named for the Job. It reports whether
// that is new.
func (s *session) adopt(a *a2a.Answer) bool {
	if a.ContextID == "" || s.job.ContextID != "" {
		return false
	}
	s.job.ContextID = a.ContextID
	return true
}

// kept is the Job to be written: its idle clock does not run during a turn.
func (s *session) kept(now time.Time) *flow.Job {
	job := s.job
	job.LastAt = now
	return &job
}

// working stores the task's id before it is polled, and publishes progress
// when it has changed, at most once a second.
func (s *session) working(ctx context.Context, a *a2a.Answer) (time.Time, error) {
	p, now := &s.t.Progress, s.c.Clock.Now()
	var w flow.TurnWrite
	changed := s.adopt(a)
	if changed {
		w.Job = s.kept(now)
	}
	if s.t.Status != flow.TurnWaiting {
		s.t.Status, p.TaskID, p.Route, p.Poll = flow.TurnWaiting, a.ID, s.way.stored(), 0
		changed = true
	}
	if digest := progressDigest(a); digest != p.Seen && now.Sub(p.SeenAt).Abs() >= time.Second {
		if e, ok := s.progress(a); ok {
			w.Close = func(c flow.Connection) ([]flow.VaultEvent, bool) {
				if !c.RevokedAt.IsZero() {
					return nil, false
				}
				return []flow.VaultEvent{e}, false
			}
			changed = true
		}
		p.Seen, p.SeenAt = digest, now
	}
	next := s.later()
	if !changed {
		return next, nil
	}
	s.t.NextAt = next
	return next, s.write(ctx, w)
}

// progressDigest tells two states of a task apart by what a person would see.
func progressDigest(a *a2a.Answer) string {
	h := sha256.New()
	h.Write([]byte(a.Text()))
	for _, part := range a.Parts() {
		h.Write([]byte{0})
		h.Write([]byte(part.Text))
		h.Write(part.Data)
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// letGo answers a turn whose task has not ended, and has the agent stop the
// task. That is a courtesy: no answer waits for it, and whether the agent does
// it is not looked at.
func (s *session) letGo(ctx context.Context, v verdict) (time.Time, error) {
	turn := *s.t // as it is before it is answered
	beside := &session{Driver: s.Driver, t: &turn, ask: s.ask, way: s.way}
	next, err := s.end(ctx, v)
	s.work.Go(beside.cancelRemote)
	return next, err
}

// cancelRemote asks for the end of a task, unless so many others are being
// asked for that its turn has not come in half a minute.
func (s *session) cancelRemote() {
	limit, cancel := context.WithTimeout(s.ctx, cancelsWait)
	defer cancel()
	select {
	case s.cancels <- struct{}{}:
	case <-limit.Done():
		return
	}
	limit, cancel = context.WithTimeout(s.ctx, cancelTimeout)
	defer cancel()
	_, _ = s.c.Wire.CancelTask(limit, s.t.Workspace, s.aim(nil), s.way.Route, s.t.Progress.TaskID)
	<-s.cancels
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rest != nil {
		s.rest()
	}
}
