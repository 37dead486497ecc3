package server

import (
	"context"

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
