package turn

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/longstop-dev/longstop/internal/a2a"
	"github.com/longstop-dev/longstop/internal/flow"
)

// The pauses of a turn, by the external-agent contract.
const (
	pollFirst  = 500 * time.Millisecond
	pollMost   = 10 * time.Second
	pollFactor = 1.5

	requestTimeout = 30 * time.Second // of a poll, and of reading a card
	maxPause       = time.Minute      // more than any pause between tries
	cancelTimeout  = 5 * time.Second
	cancelsWait    = 30 * time.Second // for one of the places of those that cancel
	maxCancels     = 32
	storePause     = 200 * time.Millisecond
	storeMost      = 30 * time.Second
)

// tryPauses are the pauses before the second and the third try, to which up to
// half as much is added.
func tryPauses() []time.Duration { return []time.Duration{5 * time.Second, 30 * time.Second} }

// step takes an entry's turn one step further and says when it has something
// to do again, or that it is done with, because it was answered or because
// it is gone with its vault.
func (d *Driver) step(e *entry) (next time.Time, done bool) {
	ctx := d.ctx
	next, done, err := d.advance(ctx, e)
	switch code := flow.CodeOf(err); {
	case err == nil:
		e.fails = 0
		return next, done
	case ctx.Err() != nil:
		return d.c.Clock.Now(), false // it is taken up at the next start
	case code == flow.CodeStale, code == flow.CodeNotFound:
		// Somebody else has moved it, or its vault was removed: what is stored counts.
		fresh, err := d.c.Store.NextTurn(ctx, e.job)
		if flow.CodeOf(err) == flow.CodeNotFound {
			return time.Time{}, true
		}
		if err == nil {
			e.turn = fresh
		}
	}
	e.fails++
	pause := min(storePause<<min(e.fails, 10), storeMost)
	d.c.Log.Warn("turn: cannot go on now", slog.String("job", e.job), slog.String("turn", e.turn.ID), slog.Duration("again in", pause), slog.Any("error", err))
	return d.c.Clock.Now().Add(pause), false
}

// advance does what is next. Its error is the database's; what an agent does
// wrong is written into the turn.
func (d *Driver) advance(ctx context.Context, e *entry) (time.Time, bool, error) {
	if e.unwritten != nil {
		s := &session{Driver: d, e: e, t: &e.turn}
		err := s.commit(ctx)
		return e.turn.NextAt, false, err
	}
	if e.turn.ID == "" {
		t, err := d.c.Store.NextTurn(ctx, e.job)
		if flow.CodeOf(err) == flow.CodeNotFound {
			return time.Time{}, true, nil
		}
		if err != nil {
			return time.Time{}, false, err
		}
		e.turn, e.flaps = t, 0
		if t.NextAt.After(d.c.Clock.Now()) || e.polls() {
			return t.NextAt, false, nil
		}
	}
	s := &session{Driver: d, e: e, t: &e.turn}
	do := s.begin
	if e.polls() {
		do = s.poll
	}
	next, err := s.contained(ctx, do)
	return next, false, err
}

// contained keeps what an agent sends from taking the process along, now and
// after each restart: a try in which something panics is one that failed.
func (s *session) contained(ctx context.Context, do func(context.Context) (time.Time, error)) (next time.Time, err error) {
	defer func() {
		if p := recover(); p != nil {
			s.c.Log.Error("turn: panic", slog.String("turn", s.t.ID), slog.String("stack", string(debug.Stack())))
			s.t.Progress.Try = max(s.t.Progress.Try, 1)
			next, err = s.failed(ctx, verdict{code: flow.TurnInvalidResponse, why: "the agent's answer cannot be read"})
		}
	}()
	return do(ctx)
}

const whyRevoked = "the agent's connection to this vault was revoked"

// session is one step of a turn: what was read for it. A method that gives a
// time says when the Job has something to do again.
type session struct {
	*Driver
	e *entry
	t *flow.Turn

	ask flow.VaultEvent
	con flow.Connection
	job flow.Job
	way path
}

// path is over which route a try goes, and what its requests need. It is
// stored with the turn, so that a task is polled where it was started even if
// the card has changed since.
type path struct {
	a2a.Route
	Card  string `json:"card,omitempty"`  // the URL of the card
	Token bool   `json:"token,omitempty"` // the card requires an execution token
}

// read reads what every step needs. Its error is the store's: not_found for
// what went with the vault.
func (s *session) read(ctx context.Context) error {
	var err error
	if s.con, err = s.c.Store.Connection(ctx, s.t.Workspace, s.t.Connection); err != nil {
		return err
	}
	if s.job, err = s.c.Store.Job(ctx, s.t.Workspace, s.t.Job); err != nil {
		return err
	}
	s.ask, err = s.c.Store.VaultEvent(ctx, s.t.Workspace, s.t.Vault, s.t.EventID)
	if flow.CodeOf(err) == flow.CodeNotFound { // past its retention
		s.ask = flow.VaultEvent{ID: s.t.EventID, Workspace: s.t.Workspace, Vault: s.t.Vault, Scope: s.t.Scope}
		err = nil
	}
	if err != nil || s.c.Secrets == nil {
		return err
	}
	masker, err := s.c.Secrets.Masker(ctx, s.t.Workspace) // with secrets that have come since the event
	s.ask.Payload, s.ask.Type, s.job.Key = masker.JSON(s.ask.Payload), masker.Text(s.ask.Type), masker.Text(s.job.Key)
	return err
}

// write stores the turn as it is with what goes with it, and tells the feed.
func (s *session) write(ctx context.Context, w flow.TurnWrite) error {
	w.Turn = *s.t
	w.Turn.Version++
	s.e.unwritten = &w
	return s.commit(ctx)
}

// commit writes what is not written yet. It is kept while the database is
// away: what was heard of an agent is not asked for again.
func (s *session) commit(ctx context.Context) error {
	w := s.e.unwritten
	events, err := s.c.Store.WriteTurn(ctx, *w)
	if code := flow.CodeOf(err); err == nil || code == flow.CodeStale || code == flow.CodeNotFound {
		s.e.unwritten = nil
	}
	if err != nil {
		return err
	}
	*s.t = w.Turn
	if w.Turn.Status == flow.TurnDone { // the Job's next one, if there is any
		*s.t = flow.Turn{Job: w.Turn.Job, Workspace: w.Turn.Workspace, Agent: w.Turn.Agent}
	}
	s.c.Feed.Published(events)
	return nil
}

// begin sends the message of a turn that is queued, or whose message may not
// have arrived.
func (s *session) begin(ctx context.Context) (time.Time, error) {
	if err := s.read(ctx); err != nil {
		return time.Time{}, err
	}
	now := s.c.Clock.Now()
	if code, why := s.barred(); code != "" {
		return s.end(ctx, verdict{code: code, why: why})
	}
	agent, err := s.c.Store.Agent(ctx, s.t.Workspace, s.t.Agent)
	switch {
	case flow.CodeOf(err) == flow.CodeNotFound:
		fresh, err := s.c.Store.NextTurn(ctx, s.t.Job)
		if err == nil && fresh.ID == s.t.ID && fresh.Agent != s.t.Agent { // its service has another key now
			*s.t = fresh
			return s.begin(ctx)
		}
		return s.end(ctx, verdict{code: flow.TurnNotConnected, why: "the agent is not registered any more"})
	case err != nil:
		return time.Time{}, err
	}
	p := &s.t.Progress
	if p.Deadline.Sub(now) > flow.TurnTimeout { // the clock was set back
		p.Deadline = now.Add(flow.TurnTimeout)
	}
	if s.t.Status == flow.TurnQueued || !now.Before(p.Deadline) { // else a try goes on whose message may have arrived
		if p.Try >= flow.TurnTries {
			return s.end(ctx, verdict{code: flow.TurnTimedOut, why: cmp.Or(p.Failed, "the agent has not answered in time")})
		}
		p.Try++
		p.Deadline = now.Add(flow.TurnTimeout)
	}
	if p.MessageID == "" {
		p.MessageID = s.c.NewID("msg")
	}
	target, bad := s.target(ctx, agent.Manifest.Card)
	if bad != nil {
		return s.failed(ctx, *bad)
	}
	s.t.Status, s.t.NextAt = flow.TurnSending, time.Time{}
	revoked := false // while the card was read
	look := func(c flow.Connection) ([]flow.VaultEvent, bool) { revoked = !c.RevokedAt.IsZero(); return nil, false }
	if err := s.write(ctx, flow.TurnWrite{Close: look}); err != nil { // before the first byte
		return time.Time{}, err
	}
	if revoked {
		return s.end(ctx, verdict{code: flow.TurnConnectionRevoked, why: whyRevoked})
	}
	answer, route, err := s.send(ctx, p.Deadline.Sub(now), target)
	if errors.Is(err, errRevoked) {
		return s.end(ctx, verdict{code: flow.TurnConnectionRevoked, why: whyRevoked})
	}
	if err != nil {
		return s.failed(ctx, judge(err))
	}
	s.way.Route = route
	return s.heard(ctx, answer)
}

// errRevoked ends a message that an agent holds: its connection was revoked.
var errRevoked = errors.New("the connection was revoked")

// send sends the message, until the agent may not be asked any more.
func (s *session) send(ctx context.Context, most time.Duration, target a2a.Target) (*a2a.Answer, a2a.Route, error) {
	limit, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	held, giveUp := context.WithCancelCause(limit)
	defer giveUp(nil)
	s.hold(s.e, s.t.Connection, giveUp)
	defer s.hold(s.e, "", nil)
	answer, route, err := s.c.Wire.Send(held, s.t.Workspace, target, s.message())
	if err != nil && errors.Is(context.Cause(held), errRevoked) {
		err = errRevoked
	}
	return answer, route, err
}

// hold keeps with an entry how what it sends is given up; nil when it is done.
func (d *Driver) hold(e *entry, connection string, giveUp context.CancelCauseFunc) {
	d.mu.Lock()
	defer d.mu.Unlock()
	e.connection, e.giveUp = connection, giveUp
}

// barred says why an agent may not be asked now; "" if it may. A turn that has
// begun is not held up by the ceiling.
func (s *session) barred() (code, why string) {
	p := s.t.Progress
	switch {
	case !s.con.RevokedAt.IsZero():
		return flow.TurnConnectionRevoked, whyRevoked
	case !s.con.Grants(s.t.Scope):
		return flow.TurnNotConnected, "the agent's connection does not grant the scope " + s.t.Scope
	case p.Try == 0 && s.con.Ceiling > 0 && s.con.Spent > s.con.Ceiling:
		return flow.TurnCeilingReached, ceilingText(s.con)
	case len(s.ask.Payload) == 0:
		return flow.TurnTimedOut, "the asking event was past its retention before the agent could be asked"
	}
	return "", ""
}

// target reads the card and decides whom to call and with what credential.
func (s *session) target(ctx context.Context, cardURL string) (a2a.Target, *verdict) {
	limit, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	card, err := s.c.Wire.Card(limit, s.t.Workspace, cardURL)
	if err != nil {
		v := judgeCard(err)
		return a2a.Target{}, &v
	}
	token, err := card.NeedsToken()
	if err != nil {
		return a2a.Target{}, &verdict{code: flow.TurnCardInvalid, why: err.Error(), final: true}
	}
	s.way = path{Card: cardURL, Token: token}
	return s.aim(card), nil
}

// aim is the target of a request of this turn.
func (s *session) aim(card *a2a.Card) a2a.Target {
	t := a2a.Target{Purpose: a2a.ForAgent, URL: s.way.Card, Card: card}
	if s.way.Token {
		t.Mint = s.mint
	}
	return t
}

// store keeps the way with the turn.
func (p path) stored() json.RawMessage {
	b, err := json.Marshal(p)
	if err != nil {
		return nil // strings and flags always marshal
	}
	return b
}
