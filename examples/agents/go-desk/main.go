// An agent that a workflow asks, in Go over A2A: it answers with data, asks
// back where something is missing, and may want to know who asks.
//
//	go run ./examples/agents/go-desk
//	longstop push --kind external --card http://127.0.0.1:9010 --bucket BUCKET --as-pubkey PUBKEY
//	longstop agents try order-desk "Is order 7 late?"
//
// With -longstop URL it verifies the execution token of every request.
package main

import (
	"cmp"
	"context"
	"flag"
	"log"
	"net"
	"net/http"
	"regexp"
	"time"

	"github.com/longstop-dev/longstop/agentkit"
)

// answer looks an order up: put what your agent knows here.
func answer(_ context.Context, a agentkit.Ask) (agentkit.Reply, error) {
	order := regexp.MustCompile(`\d+`).FindString(a.Text + " " + string(a.Data))
	if order == "" {
		return agentkit.Reply{Text: "Which order?", Asks: true}, nil
	}
	late := order == "7"
	return agentkit.Reply{Text: "Order " + order + " was looked up.", Data: map[string]any{"order": order, "late": late},
		Used: agentkit.Usage{InputTokens: int64(len(a.Text)), OutputTokens: 12}}, nil
}

func main() {
	listen := flag.String("listen", "127.0.0.1:9010", "address to serve on")
	audience := flag.String("audience", "", "whom its tokens are for, if that is not the address: bridge:NAME behind a bridge")
	agent := flag.String("agent", "", "its id, <pubkey>:<alias>: the tokens of other agents are refused")
	longstop := flag.String("longstop", "", "URL of the Longstop server whose tokens are demanded; empty lets everyone in")
	flag.Parse()
	l, err := net.Listen("tcp", *listen)
	if err != nil {
		log.Fatal(err)
	}
	url := "http://" + l.Addr().String()
	desk := &agentkit.Desk{Name: "Order Desk", Description: "Knows which orders are late.", Answer: answer}
	if *longstop != "" {
		desk.Verify = &agentkit.Verifier{Issuer: *longstop, Audience: cmp.Or(*audience, url), Agent: *agent}
	}
	log.Printf("the agent serves at %s", url)
	server := &http.Server{Handler: desk.Handler(url), ReadHeaderTimeout: 10 * time.Second}
	log.Fatal(server.Serve(l))
}
