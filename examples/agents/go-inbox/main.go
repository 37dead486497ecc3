// The recovery agent in Go that runs no server: it polls the inbox.
//
//	longstop settings set recovery.mode agent
//	longstop keys create first-aid --role agent
//	LONGSTOP_KEY=... go run ./examples/agents/go-inbox
package main

import (
	"context"
	"flag"
	"log"
	"os"
	"os/signal"
	"syscall"

	"github.com/longstop-dev/longstop/agentkit"
	"github.com/longstop-dev/longstop/examples/agents/firstaid"
)

func main() {
	endpoint := flag.String("endpoint", "http://127.0.0.1:8080", "the Longstop server")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := firstaid.Agent().WorkInbox(ctx, agentkit.Inbox{URL: *endpoint, Key: os.Getenv("LONGSTOP_KEY")}); err != nil {
		log.Fatal(err)
	}
}
