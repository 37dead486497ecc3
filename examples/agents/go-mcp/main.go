// The recovery agent in Go over MCP, as a command:
//
//	go build -o first-aid ./examples/agents/go-mcp
//	longstop mcp-servers add first-aid -- ./first-aid
//	longstop settings set recovery.mcp_server_id first-aid
package main

import (
	"context"
	"log"
	"os/signal"
	"syscall"

	"github.com/longstop-dev/longstop/examples/agents/firstaid"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := firstaid.Agent().Stdio(ctx); err != nil && ctx.Err() == nil {
		log.Fatal(err)
	}
}
