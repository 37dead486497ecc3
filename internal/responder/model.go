package responder

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/longstop-dev/longstop/internal/flow"
)

// Doer sends one request to the outside, through the egress guard.
type Doer interface {
	Do(*http.Request) (*http.Response, error)
}

// Ledger counts what the model uses, by workspace and day in UTC, such as
// 2026-12-01.
type Ledger interface {
	ModelTokens(ctx context.Context, workspace, day string) (int64, error)
	AddModelTokens(ctx context.Context, workspace, day string, u flow.Usage) error
}

const (
	maxEndpoints  = 1000 // whose want of schemas is remembered
	endpointAge   = time.Hour
	ledgerTimeout = 2 * time.Second
	lastWords     = 100 * time.Millisecond // of the caller's time, to say what was used
)

// Model is the built-in provider that asks a language model, at any
// OpenAI-compatible endpoint.
//
// What the model says is held to the same guard as anybody's answer. If the
// guard has something against it the model is told so, once. Its usage is
// counted whatever became of the answer.
type Model struct {
	http   Doer
	ledger Ledger
	clock  flow.Clock
	log    *slog.Logger

	mu       sync.Mutex
	inFlight map[string]int64     // tokens that may be in use now, by workspace
	plain    map[string]time.Time // endpoints that take no schema, and when that was seen
	wg       sync.WaitGroup
}

// NewModel makes the responder.
func NewModel(http Doer, ledger Ledger, clock flow.Clock, log *slog.Logger) *Model {
	return &Model{http: http, ledger: ledger, clock: clock, log: log, inFlight: map[string]int64{}, plain: map[string]time.Time{}}
}

// Name is model.
func (*Model) Name() string { return "model" }

// Close waits until nothing is asked any more.
func (m *Model) Close() { m.wg.Wait() }

// Ask puts the case before the model. An answer that is no action, or that the
// guard refuses, is repaired once.
func (m *Model) Ask(ctx context.Context, q flow.Question) (flow.Answer, error) {
	m.wg.Add(1)
	defer m.wg.Done()
	if end, ok := ctx.Deadline(); ok { // sooner than the caller: it is to hear what was used
		left := time.Until(end)
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, end.Add(-min(lastWords, left/10)))
		defer cancel()
	}
	c := &conversation{m: m, q: q, messages: opening(q)}
	action, err := c.hold(ctx)
	answer := flow.Answer{Action: action, Target: withoutQuery(q.Settings.Model.URL), Notes: c.notes}
	if c.calls > 0 {
		answer.Usage = &c.used
	}
	if err != nil {
		return answer, asAskError(ctx, flow.AskUnreachable, err)
	}
	return answer, nil
}

// conversation is one case before the model.
type conversation struct {
	m        *Model
	q        flow.Question
	messages []message
	used     flow.Usage
	calls    int
	notes    []string
}

// hold asks, and asks once more if the answer cannot be used. A second answer
// that the guard refuses is given as it is: the guard says why.
func (c *conversation) hold(ctx context.Context) (json.RawMessage, error) {
	c.notes = append(c.notes, "model: "+short(c.q.Settings.Model.Name, 100))
	said, err := c.say(ctx)
	if err != nil {
		return nil, err
	}
	action, problem := c.judge(ctx, said)
	if problem == "" {
		return action, nil
	}
	problem = short(problem, 400)
	c.notes = append(c.notes, "asked again, because of its first answer: "+problem)
	c.messages = append(c.messages, message{"assistant", said.shown()}, message{"user", again(problem)})
	if said, err = c.say(ctx); err != nil {
		return nil, err
	}
	if action, problem = c.judge(ctx, said); action == nil {
		return nil, failure(flow.AskInvalid, "the model's answer cannot be used, also after it was told why: "+short(problem, 200), nil)
	}
	return action, nil
}

// judge reads an answer. The action is nil if there is none; a problem is what
// the model is told.
func (c *conversation) judge(ctx context.Context, said saying) (action json.RawMessage, problem string) {
	if said.cut {
		return nil, "it was cut off before its end: be much shorter"
	}
	action, problem = actionOf(said.text)
	if problem != "" || c.q.Check == nil {
		return action, problem
	}
	if err := c.q.Check(ctx, action); err != nil {
		return action, err.Error()
	}
	return action, ""
}

// say has the model speak once, if its budget allows that, and counts what it
// used.
func (c *conversation) say(ctx context.Context) (saying, error) {
	guess := c.guess()
	leave, err := c.m.enter(ctx, c.q, guess.Total)
	if err != nil {
		return saying{}, err
	}
	defer leave()
	said, reached, err := c.m.complete(ctx, c.q.Settings.Model, c.messages)
	if !reached {
		return said, err
	}
	used := guess // it was at work, but has not said what that took
	if said.usage != nil {
		used = *said.usage
	} else if err == nil {
		used.Output = tokens(len(said.text))
		used.Total = used.Input + used.Output
	}
	c.used, c.calls = c.used.Add(used), c.calls+1
	c.m.count(ctx, c.q.Workspace, used)
	if err != nil {
		return said, err
	}
	return said, nil
}

// guess is what the question takes at least.
func (c *conversation) guess() flow.Usage {
	n := 0
	for _, msg := range c.messages {
		n += len(msg.Content)
	}
	return flow.Usage{Input: tokens(n), Total: tokens(n), Estimated: true}
}

func tokens(bytes int) int64 { return int64(bytes+3) / 4 }

// enter refuses when the day's tokens are spent. What others in the workspace
// are asking now counts too, so that many failures at once do not overrun the
// budget together.
func (m *Model) enter(ctx context.Context, q flow.Question, guess int64) (leave func(), err error) {
	if limit := q.Settings.Model.DailyTokens; limit > 0 {
		day := m.day()
		spent, err := m.ledger.ModelTokens(ctx, q.Workspace, day)
		if err != nil {
			return nil, failure(flow.AskUnreachable, "what the model has used today cannot be read", err)
		}
		m.mu.Lock()
		spent += m.inFlight[q.Workspace]
		m.mu.Unlock()
		if spent >= limit {
			return nil, failure(flow.AskUnreachable, fmt.Sprintf("model.daily_tokens is spent: %d of %d on %s; the next day begins at midnight UTC", spent, limit, day), nil)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.inFlight[q.Workspace] += guess
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.inFlight[q.Workspace] -= guess; m.inFlight[q.Workspace] <= 0 {
			delete(m.inFlight, q.Workspace)
		}
	}, nil
}

// count writes down what was used, also when the caller's time is over.
func (m *Model) count(ctx context.Context, workspace string, u flow.Usage) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), ledgerTimeout)
	defer cancel()
	if err := m.ledger.AddModelTokens(ctx, workspace, m.day(), u); err != nil {
		m.log.Error("what the model has used cannot be recorded", "workspace", workspace, "tokens", u.Total, "error", err)
	}
}

func (m *Model) day() string { return m.clock.Now().UTC().Format(time.DateOnly) }

// takesSchema says whether an endpoint is sent a schema.
func (m *Model) takesSchema(endpoint string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	seen, known := m.plain[endpoint]
	return !known || m.clock.Now().Sub(seen) > endpointAge
}

// takesNone remembers an endpoint that refuses schemas.
func (m *Model) takesNone(endpoint string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.plain) >= maxEndpoints {
		clear(m.plain)
	}
	m.plain[endpoint] = m.clock.Now()
}
