package responder

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/longstop-dev/longstop/internal/a2a"
	"github.com/longstop-dev/longstop/internal/flow"
)

const (
	cardAge     = 10 * time.Minute // after which a card is read again
	cardTimeout = 15 * time.Second // of reading it in the background
	maxCards    = 1000             // remembered
)

// AgentClient is what is needed of the A2A wire.
type AgentClient interface {
	FetchCard(ctx context.Context, rawURL string) (*a2a.Card, error)
	Ask(ctx context.Context, q a2a.RecoveryAsk) (json.RawMessage, a2a.Meta, error)
}

// A2A asks the workspace's own agent over A2A.
//
// Asking never waits for the agent's card: it begins with the one that was
// read when the setting was saved and reads it again in the background when
// it is old or a call has failed.
type A2A struct {
	client AgentClient
	clock  flow.Clock
	log    *slog.Logger

	mu    sync.Mutex
	cards map[string]*cached // by the agent's URL
	wg    sync.WaitGroup
}

type cached struct {
	card    *a2a.Card // nil: not readable yet
	saved   string    // the saved card that it began with
	readAt  time.Time
	reading bool
	stale   bool // a call has failed
}

// NewA2A makes the responder.
func NewA2A(client AgentClient, clock flow.Clock, log *slog.Logger) *A2A {
	return &A2A{client: client, clock: clock, log: log, cards: map[string]*cached{}}
}

// Name is a2a.
func (*A2A) Name() string { return "a2a" }

// Ask sends the case to the agent whose URL is in the settings.
func (a *A2A) Ask(ctx context.Context, q flow.Question) (flow.Answer, error) {
	s := q.Settings
	answer := flow.Answer{Target: withoutQuery(s.A2AAgentURL)}
	input, err := json.Marshal(q.Input)
	if err != nil {
		return answer, failure(flow.AskInvalid, "the case cannot be written as JSON", err)
	}
	ask := a2a.RecoveryAsk{URL: s.A2AAgentURL, Card: a.card(s), Token: s.A2AAuthToken, TokenOrigin: s.A2AOrigin,
		RunID: q.RunID, StepIndex: q.StepIndex, Input: input}
	action, _, err := a.client.Ask(ctx, ask)
	if err != nil {
		if ctx.Err() == nil || errors.Is(ctx.Err(), context.DeadlineExceeded) {
			a.failed(s.A2AAgentURL)
		}
		return answer, asAskError(ctx, agentKind(err), err)
	}
	answer.Action = action
	return answer, nil
}

// agentKind sorts the errors of the A2A wire.
func agentKind(err error) flow.AskKind {
	if errors.Is(err, a2a.ErrTimeout) {
		return flow.AskTimeout
	}
	var status *a2a.StatusError
	if errors.Is(err, a2a.ErrUnreachable) || errors.Is(err, a2a.ErrTLS) || errors.Is(err, a2a.ErrNoRoute) || errors.Is(err, a2a.ErrToken) || errors.As(err, &status) {
		return flow.AskUnreachable
	}
	return flow.AskInvalid
}

// card gives what is known of the agent's card now, and has it read again if
// that is due.
func (a *A2A) card(s flow.RecoverySettings) *a2a.Card {
	a.mu.Lock()
	defer a.mu.Unlock()
	c := a.cards[s.A2AAgentURL]
	if saved := string(s.A2ACard); c == nil || c.saved != saved {
		if len(a.cards) >= maxCards {
			clear(a.cards)
		}
		c = &cached{card: storedCard(s.A2ACard), saved: saved, readAt: a.clock.Now()}
		c.stale = c.card == nil
		a.cards[s.A2AAgentURL] = c
	}
	if !c.reading && (c.stale || a.clock.Now().Sub(c.readAt) > cardAge) {
		c.reading = true
		a.wg.Go(func() { a.refresh(s.A2AAgentURL, c) })
	}
	return c.card
}

// refresh reads the card again. What was known stays if it cannot be read.
func (a *A2A) refresh(rawURL string, c *cached) {
	ctx, cancel := context.WithTimeout(context.Background(), cardTimeout)
	defer cancel()
	card, err := a.client.FetchCard(ctx, rawURL)
	a.mu.Lock()
	defer a.mu.Unlock()
	c.reading, c.stale, c.readAt = false, false, a.clock.Now()
	if err != nil {
		a.log.Warn("an agent card cannot be read again", "url", withoutQuery(rawURL), "error", err)
		return
	}
	c.card = card
}

func (a *A2A) failed(rawURL string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if c := a.cards[rawURL]; c != nil {
		c.stale = true
	}
}

// Close waits for cards that are being read, at most 15 seconds.
func (a *A2A) Close() { a.wg.Wait() }

// storedCard reads a card as [CardInfo] keeps it; nil if there is none.
func storedCard(raw json.RawMessage) *a2a.Card {
	var c a2a.Card
	if len(raw) == 0 || string(raw) == "null" || json.Unmarshal(raw, &c) != nil || c.Name == "" {
		return nil
	}
	return &c
}

// CardInfo is what of an agent card is kept with the setting.
type CardInfo struct {
	Name           string
	Description    string
	URLOrigin      string          // of the URL that was given
	EndpointOrigin string          // of where calls and the token go
	Card           json.RawMessage // for [flow.RecoverySettings.A2ACard]
}

// Read fetches and checks the card of the agent at rawURL. Its error is for
// whoever saves the URL.
func (a *A2A) Read(ctx context.Context, rawURL string) (CardInfo, error) {
	card, err := a.client.FetchCard(ctx, rawURL)
	if err != nil {
		return CardInfo{}, err
	}
	info := CardInfo{Name: card.Name, Description: card.Description}
	if info.URLOrigin, err = a2a.Origin(rawURL); err != nil {
		return CardInfo{}, err
	}
	if info.EndpointOrigin, err = a2a.Origin(endpoint(rawURL, card)); err != nil {
		return CardInfo{}, err
	}
	info.Card, err = json.Marshal(card)
	return info, err
}

// endpoint is where the first call to an agent goes.
func endpoint(rawURL string, card *a2a.Card) string {
	return a2a.Target{Purpose: a2a.ForRecovery, URL: rawURL, Card: card}.Endpoint()
}
