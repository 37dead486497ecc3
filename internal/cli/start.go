package cli

import (
	"strconv"

	"github.com/longstop-dev/longstop/internal/client"
)

type runsStartCmd struct {
	Workflow string `arg:"" help:"The name of a published workflow; longstop run takes a file."`
	Input    string `placeholder:"JSON" help:"The run's input: JSON, or @file."`
	Version  string `placeholder:"N" help:"A version by number or id, instead of the published one."`
	Key      string `name:"idempotency-key" placeholder:"KEY" help:"Sent again within 24 hours with the same input, this starts nothing more."`
	NoWait   bool   `help:"Exit with 3 when the run is parked at a gate."`
	Detach   bool   `help:"Do not follow the run."`
	connection
}

// Help is shown under --help.
func (runsStartCmd) Help() string {
	return `Examples:
  longstop runs start nightly-sync --input '{"userId": 42}'
  longstop runs start nightly-sync --version 3 --detach
  longstop runs start nightly-sync --idempotency-key "$(date +%F)"     once a day, however often it is sent`
}

// Run starts a run and follows it.
func (c *runsStartCmd) Run(a *app) error {
	input, err := a.jsonArg("--input", c.Input)
	if err != nil {
		return err
	}
	how := client.StartRun{Input: input, Key: c.Key}
	if n, err := strconv.Atoi(c.Version); err == nil && n > 0 {
		how.Version = n
	} else {
		how.VersionID = c.Version
	}
	return c.with(a, func(s *session) error {
		if err := lasts(s, c.Detach); err != nil {
			return err
		}
		r, err := s.StartRun(a.ctx, c.Workflow, how)
		if err != nil {
			return err
		}
		return c.begun(a, s, r, begun{detach: c.Detach, noWait: c.NoWait})
	})
}
