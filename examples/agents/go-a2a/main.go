// The recovery agent in Go over A2A:
//
//	go run ./examples/agents/go-a2a
//	longstop settings set recovery.a2a_agent_url http://127.0.0.1:9000
package main

import (
	"flag"
	"log"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/longstop-dev/longstop/examples/agents/firstaid"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:9000", "address to serve on")
	flag.Parse()
	l, err := net.Listen("tcp", *listen)
	if err != nil {
		log.Fatal(err)
	}
	agent := firstaid.Agent()
	agent.Token = os.Getenv("AGENT_TOKEN") // recovery.a2a_auth_token; empty lets everyone in
	url := "http://" + l.Addr().String()
	log.Printf("the agent serves at %s", url)
	server := &http.Server{Handler: agent.Handler(url), ReadHeaderTimeout: 10 * time.Second}
	log.Fatal(server.Serve(l))
}
