package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/longstop-dev/longstop/internal/client"
	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/server"
)

type healthCmd struct {
	Endpoint string        `env:"LONGSTOP_ENDPOINT" placeholder:"URL" help:"The server to ask. Without it: the one that holds the data folder."`
	Data     string        `env:"LONGSTOP_DATA" default:"./.longstop" placeholder:"DIR" help:"The data folder."`
	Timeout  time.Duration `default:"5s" help:"How long to wait for the answer."`
}

// Help is shown under --help.
func (healthCmd) Help() string {
	return `Examples:
  longstop health
  longstop health --endpoint https://longstop.example.com

For supervisors that can only run a command, such as a container's health check. Needs no key.
Exits with 0 if server and database answer, else with 4.`
}

// Run asks a server whether it is ready. It starts none.
func (c *healthCmd) Run(a *app) error {
	url := c.Endpoint
	if url == "" {
		h, ok := server.FindHolder(c.Data)
		if !ok {
			return flow.Errorf(flow.CodeUnavailable, "no server holds the data folder %s", c.Data).Right("start longstop serve, or give --endpoint")
		}
		url = h.URL
	}
	ctx, cancel := context.WithTimeout(a.ctx, c.Timeout)
	defer cancel()
	if err := client.New(url, "", client.Options{}).Ready(ctx); err != nil {
		if a.ctx.Err() == nil && ctx.Err() != nil {
			return flow.Errorf(flow.CodeUnavailable, "the server at %s has not answered within %s", url, c.Timeout)
		}
		return err
	}
	fmt.Fprintln(a.out, "ok")
	return nil
}
