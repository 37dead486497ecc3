package cli

import (
	"fmt"
	"time"

	"github.com/longstop-dev/longstop/internal/client"
	"github.com/longstop-dev/longstop/internal/show"
)

type casesClaimCmd struct {
	RunID     string        `arg:"" name:"run" help:"The run."`
	Step      int           `arg:"" help:"The step's index."`
	Lease     time.Duration `default:"60s" help:"How long the claim holds (5s to 1h); claim again to go on."`
	Name      string        `help:"What you call yourself. Those who share a key need names."`
	Iteration string        `help:"Inside a loop: which time round."`
	connection
}

// Help is shown under --help.
func (casesClaimCmd) Help() string {
	return `While the claim holds, nobody else's recovery action for the case is taken. It does not hold up the case's time-out,
and a person may answer the gate all the same.

Example:
  longstop cases claim RUN 2 --lease 2m --name agent-7`
}

// Run claims a case.
func (c *casesClaimCmd) Run(a *app) error {
	return c.with(a, func(s *session) error {
		v, err := s.Claim(a.ctx, client.StepRef{RunID: c.RunID, StepIndex: c.Step, Iteration: c.Iteration}, c.Lease, c.Name)
		if err != nil {
			return err
		}
		if c.JSON {
			return a.printJSON(v)
		}
		fmt.Fprintf(a.out, "claimed by %s until %s\n", show.Line(v.ClaimedBy, 120), v.ExpiresAt.Format(time.RFC3339))
		return nil
	})
}

type casesReleaseCmd struct {
	RunID     string `arg:"" name:"run" help:"The run."`
	Step      int    `arg:"" help:"The step's index."`
	Name      string `help:"The name that it was claimed under."`
	Iteration string `help:"Inside a loop: which time round."`
	connection
}

// Help is shown under --help.
func (casesReleaseCmd) Help() string {
	return `Example:
  longstop cases release RUN 2`
}

// Run gives up a claim.
func (c *casesReleaseCmd) Run(a *app) error {
	return c.with(a, func(s *session) error {
		return s.Release(a.ctx, client.StepRef{RunID: c.RunID, StepIndex: c.Step, Iteration: c.Iteration}, c.Name)
	})
}

// claimedBy says who works on a case.
func claimedBy(p client.Pending) string {
	if p.ClaimedBy == nil {
		return "-"
	}
	return show.Line(*p.ClaimedBy, 40)
}
