// Command longstop runs workflows whose steps may fail, and lets the agents
// you already run be the first to mend a failed step.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/longstop-dev/longstop/internal/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := cli.Main(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}
