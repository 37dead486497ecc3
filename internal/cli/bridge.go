package cli

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/longstop-dev/longstop/internal/bridge"
	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/show"
)

type bridgeCmd struct {
	Name string `required:"" placeholder:"NAME" help:"What the bridge is called: push --card bridge:NAME."`
	To   string `required:"" placeholder:"URL" help:"Where the agent serves on this side. Calls go there, and nowhere else."`
	connection
}

// Help is shown under --help.
func (bridgeCmd) Help() string {
	return `Example:
  longstop bridge --name desk --to http://127.0.0.1:9010 --endpoint https://longstop.example.com

Runs beside an agent that has no public address, dials out, and carries calls to it until
Ctrl-C. A connection that is lost is made again; turns that are under way go on. Then:
  longstop push --kind external --card bridge:desk --bucket BUCKET --as-pubkey PUBKEY`
}

// Run holds a bridge.
func (c *bridgeCmd) Run(a *app) error {
	return c.with(a, func(s *session) error {
		if s.embedded {
			return flow.Errorf(flow.CodeInvalid, "there is no server to hold a bridge to").At("--endpoint").Right("name one, or start longstop dev in this folder")
		}
		side := bridge.Side{Server: s.BaseURL(), Key: s.Key(), Name: c.Name, To: c.To, Clock: flow.SystemClock{}, Jitter: rand.Float64,
			Told: func(connected bool, err error, again time.Duration) {
				if connected {
					fmt.Fprintf(a.out, "connected: %s carries to %s\n", a.ink.Bold("bridge:"+c.Name), c.To)
					return
				}
				fmt.Fprintf(a.err, "lost (%s); again in %s\n", show.Line(err.Error(), 200), again.Round(time.Millisecond))
			}}
		return side.Run(a.ctx)
	})
}
