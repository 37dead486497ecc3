package server

import (
	"context"

	"github.com/longstop-dev/longstop/internal/a2a"
	"github.com/longstop-dev/longstop/internal/access"
	"github.com/longstop-dev/longstop/internal/responder"
)

// cards reads agent cards for whoever saves an agent's URL: services do not
// import each other, and this joins two of them.
type cards struct{ agents *responder.A2A }

// Read fetches and checks the card of the agent at rawURL.
func (c cards) Read(ctx context.Context, rawURL string) (access.CardInfo, error) {
	info, err := c.agents.Read(ctx, rawURL)
	return access.CardInfo(info), err
}

// agents calls agents that are hosted elsewhere: whoever drives a turn does not
// care how its card is read.
type agents struct{ *a2a.Client }

// Card reads the card at a URL, or below it.
func (a agents) Card(ctx context.Context, _, url string) (*a2a.Card, error) {
	return a.FetchCard(ctx, url)
}
