package recovery

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/longstop-dev/longstop/internal/flow"
)

// maxKept bounds what is kept of an answer, in bytes.
const maxKept = 64 << 10

// errPanicked stands for a responder that broke.
var errPanicked = errors.New("the responder broke")

// budget is how long one responder has: its own time-out, or what is left of
// the step's total time.
func (s *sitting) budget() time.Duration {
	return min(s.settings.Timeout, s.failure.Left)
}

// question is what responders are asked.
func (s *sitting) question() flow.Question {
	return flow.Question{
		Workspace: s.failure.Run.Workspace, RunID: s.failure.Run.ID, StepIndex: s.failure.Step.Index, Attempt: s.kase.Attempt,
		Input: s.kase.Input, Settings: s.settings, Failed: s.failure.Failed, Response: s.kase.Response,
		Contract: s.masker.JSON(s.failure.Step.Output), Timeout: s.timeout(), Cap: s.limits.StepTimeout,
	}
}

// timeout is that of the attempt which failed.
func (s *sitting) timeout() time.Duration {
	var mods struct {
		Timeout int64 `json:"timeout"`
	}
	if json.Unmarshal(s.progress().Mods, &mods) == nil && mods.Timeout > 0 {
		return time.Duration(mods.Timeout) * time.Millisecond
	}
	return s.failure.Step.Timeout
}

// ask puts a question to a responder and waits no longer than limit, whatever
// the responder does. An answer that comes later is dropped.
func ask(ctx context.Context, r Responder, q flow.Question, limit time.Duration) (flow.Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	type reply struct {
		answer flow.Answer
		err    error
	}
	replies := make(chan reply, 1) // nobody may be there to take a late one
	go func() {
		var got reply
		defer func() {
			if p := recover(); p != nil {
				got = reply{err: &flow.AskError{Kind: flow.AskInvalid, Message: "the responder " + r.Name() + " broke", Err: fmt.Errorf("%w: %v", errPanicked, p)}}
			}
			replies <- got
		}()
		got.answer, got.err = r.Ask(ctx, q)
	}()
	select {
	case got := <-replies:
		if ctx.Err() != nil && got.err != nil {
			return got.answer, lateError(limit, got.err)
		}
		return got.answer, got.err
	case <-ctx.Done():
		return flow.Answer{}, lateError(limit, ctx.Err())
	}
}

func lateError(limit time.Duration, err error) error {
	return &flow.AskError{Kind: flow.AskTimeout, Message: "no answer within " + limit.Round(time.Millisecond).String(), Err: err}
}

// consult asks one responder and checks its answer. It records its part in
// the case. The plan is nil if the answer cannot be used; why tells then.
func (s *sitting) consult(ctx context.Context, r Responder, source flow.Source) (p *plan, why string) {
	began := s.d.c.Clock.Now()
	part := flow.Asked{Responder: r.Name(), Source: source, At: began}
	limit := s.budget()
	if r.Name() == builtinStd { // it reads the case and asks nobody
		limit = s.settings.Timeout
	}
	var answer flow.Answer
	var err error
	if limit <= 0 {
		err = &flow.AskError{Kind: flow.AskTimeout, Message: "no time was left of the step's total_timeout"}
	} else {
		q, held := s.question(), *s // a copy: an answer may come when this sitting has gone on
		q.Check = held.check
		answer, err = ask(ctx, r, q, limit)
	}
	took := s.d.c.Clock.Now().Sub(began)
	part.DurationMS, part.Target, part.Usage = float64(took.Microseconds())/1000, s.mask(answer.Target), answer.Usage
	for i, note := range answer.Notes {
		answer.Notes[i] = s.mask(note)
	}
	part.Notes = answer.Notes
	if source == flow.SourceBYOA {
		s.attempted, s.took = limit > 0, took
	}
	if err != nil {
		why = s.mask(oneLine(err.Error(), 400))
		s.d.c.Log.Debug("a responder failed", "responder", r.Name(), "run", s.failure.Run.ID, "error", s.mask(causeOf(err)))
	} else {
		p, why = s.examine(ctx, answer, &part)
	}
	part.Accepted, part.Rejection = p != nil, why
	s.kase.Asked = append(s.kase.Asked, part)
	if p != nil {
		p.source, p.responder = source, r.Name()
	}
	return p, why
}

func causeOf(err error) string {
	var asked *flow.AskError
	if errors.As(err, &asked) && asked.Err != nil {
		return asked.Err.Error()
	}
	return err.Error()
}

// examine checks an answer. It is masked before anything else is done with
// it: a secret that an agent happens to know is kept like any other.
func (s *sitting) examine(ctx context.Context, answer flow.Answer, part *flow.Asked) (*plan, string) {
	raw := answer.Action
	if r := bounded(raw, s.limits.AnswerBytes); r != nil {
		part.Action = kept(s.mask(string(raw[:min(len(raw), maxKept)])), len(raw))
		return nil, s.mask(r.Error())
	}
	raw = s.masker.JSON(raw)
	part.Action = raw
	if len(raw) > maxKept {
		part.Action = kept(string(raw), len(raw))
	}
	limits := s.limits
	limits.AnswerBytes = 0 // masking may have made it longer
	action, notes, r := ParseAction(raw, limits)
	part.Notes = append(part.Notes, notes...)
	if r != nil {
		return nil, s.mask(r.Error())
	}
	p, r := s.plan(ctx, action, answer.After)
	if r != nil {
		return nil, s.mask(r.Error())
	}
	part.Notes = append(part.Notes, p.notes...)
	p.notes = append(notes, p.notes...) // what was ignored is logged too
	return p, ""
}

// check is the guard as a responder may ask it before it answers.
func (s *sitting) check(ctx context.Context, action json.RawMessage) error {
	var part flow.Asked
	if p, why := s.examine(ctx, flow.Answer{Action: action}, &part); p == nil {
		return errors.New(why)
	}
	return nil
}

// kept is the beginning of an answer that is too long, or no JSON, as a JSON
// string.
func kept(text string, size int) json.RawMessage {
	if len(text) > maxKept {
		text = text[:maxKept]
	}
	if size > len(text) {
		text = fmt.Sprintf("%s… (%d bytes)", text, size)
	}
	out, _ := json.Marshal(text) // a string always marshals
	return out
}

// mask takes the workspace's secrets out of a text.
func (s *sitting) mask(text string) string { return s.masker.Text(text) }
