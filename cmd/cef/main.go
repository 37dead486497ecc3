// Command cef is longstop under the name that the external-agent specification
// gives it.
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
