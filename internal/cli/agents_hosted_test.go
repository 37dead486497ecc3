package cli

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/longstop-dev/longstop/agentkit"
	"github.com/longstop-dev/longstop/internal/client"
)

// deskServer is an agent hosted elsewhere: it answers, asks back, or fails.
func deskServer(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	url := "http://" + l.Addr().String()
	desk := agentkit.Desk{Name: "Order Desk", Description: "knows orders", Answer: func(_ context.Context, a agentkit.Ask) (agentkit.Reply, error) {
		switch a.Text {
		case "ask me":
			return agentkit.Reply{Text: "Which order?", Asks: true}, nil
		case "":
			return agentkit.Reply{}, errors.New("there is nothing to say")
		}
		return agentkit.Reply{Text: "heard " + a.Text, Data: map[string]any{"late": true}, Used: agentkit.Usage{InputTokens: 7, OutputTokens: 5}}, nil
	}}
	s := &http.Server{Handler: desk.Handler(url), ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = s.Serve(l) }()
	t.Cleanup(func() { _ = s.Close() })
	return url
}

// TestAnAgentFromTheCommandLine registers an agent, lets it into a vault, asks
// it and takes all that back, as a person does who reads what is printed.
func TestAnAgentFromTheCommandLine(t *testing.T) {
	t.Parallel()
	data := "--data=" + t.TempDir()
	do := func(want int, args ...string) string {
		t.Helper()
		code, out, errOut := line(t, "", append(args, data)...)
		if code != want {
			t.Fatalf("longstop %v: exit %d, want %d\n%s%s", args, code, want, out, errOut)
		}
		return out + errOut
	}
	s := unjson[client.AgentService](t, do(exitOK, "services", "create", "--json"))
	pushed := do(exitOK, "push", "--kind", "external", "--card", deskServer(t), "--bucket", s.Bucket, "--as-pubkey", s.PublicKey)
	id := s.PublicKey + ":order-desk"
	holds(t, pushed, "Order Desk 1.0.0", "agent id  "+id, "agents/order-desk/1.0.0/manifest.json in "+s.Bucket, `longstop agents try order-desk "hello"`)
	holds(t, do(exitOK, "agents", "show", "order-desk"), "Order Desk 1.0.0, external", "knows orders", "id        "+id, "idle      30m0s", "versions  1.0.0")

	holds(t, do(exitOK, "vaults", "create", "orders", "--scope", "mail"), "orders", "longstop connections create orders AGENT")
	holds(t, do(exitOK, "connections", "create", "orders", "order-desk", "--a2a-tokens", "20"), s.PublicKey[:8]+"…:order-desk", "default", "20", "active")
	holds(t, do(exitOK, "agents", "try", "order-desk", "hello", "--vault", "orders"), "heard hello", `{"late":true}`)
	holds(t, do(exitWaits, "agents", "try", "order-desk", "ask me", "--vault", "orders"), "Which order?", `it asks back; answer with: longstop agents try order-desk "..." --data`)
	holds(t, do(exitUsage, "agents", "try", "order-desk", ""), "text: the agent would be asked nothing")
	holds(t, do(exitFailed, "agents", "try", "nobody", "hello"), `there is no agent "nobody"`, "agents list")
	for payload, want := range map[string]string{`null`: "not an object", `[1]`: "not an object", `{"text":"a"}`: "it has a text already"} {
		holds(t, do(exitUsage, "agents", "try", "order-desk", "hello", "--payload", payload), "--payload: ", want)
		holds(t, do(exitUsage, "vaults", "append", "orders", "--type", "note", "--text", "hello", "--payload", payload), "--payload: ", want)
	}
	holds(t, do(exitOK, "vaults", "events", "orders"), "question.asked", "to order-desk", "agent.answered", "heard hello", "Which order?")

	con := unjson[client.List[client.Connection]](t, do(exitOK, "connections", "list", "--vault", "orders", "--json")).Items[0]
	holds(t, do(exitOK, "connections", "update", con.ID, "--a2a-tokens", "10", "--scope", "default,mail"), "default mail", "12", "10")
	holds(t, do(exitFailed, "agents", "try", "order-desk", "more", "--vault", "orders"), "ceiling_reached", "12 tokens", "a2aTokens")
	holds(t, do(exitOK, "connections", "list"), "orders", con.ID, "12")
	do(exitOK, "connections", "revoke", con.ID)
	holds(t, do(exitOK, "vaults", "show", "orders"), "default mail", "revoked")

	rotated := do(exitOK, "services", "rotate", s.PublicKey)
	holds(t, rotated, "public key", "moved", ":order-desk")
	if strings.Contains(rotated, s.PublicKey) {
		t.Errorf("the old key is still in use:\n%s", rotated)
	}
	holds(t, do(exitOK, "services", "list"), s.PublicKey, "rotated", "default")
	holds(t, do(exitFailed, "services", "rotate", s.PublicKey), "was rotated already")
	holds(t, do(exitOK, "agents", "remove", "order-desk"), "removed order-desk")
	if out := do(exitOK, "agents", "list"); strings.Contains(out, "order-desk") {
		t.Errorf("it was removed and is listed:\n%s", out)
	}
	holds(t, do(exitUsage, "vaults", "delete", "orders"), "--yes")
	holds(t, do(exitOK, "vaults", "delete", "orders", "--yes"), "orders")
}

// TestTryingAnAgentThatIsDown: a person sees each try that failed and when the
// next one comes, and can give up.
func TestTryingAnAgentThatIsDown(t *testing.T) {
	t.Parallel()
	data := "--data=" + t.TempDir()
	s := unjson[client.AgentService](t, must(t, "services", "create", "--json", data))
	must(t, "push", "--kind", "external", "--card", cardServer(t), "--bucket", s.Bucket, "--as-pubkey", s.PublicKey, data)
	ctx, giveUp := context.WithCancel(t.Context())
	defer giveUp()
	out, errOut := &bytes.Buffer{}, &watched{until: "try 1 of 3: ", then: giveUp}
	if code := Main(ctx, []string{"agents", "try", "order-desk", "hello", data}, strings.NewReader(""), out, errOut); code != exitInterrupted {
		t.Errorf("exit %d, want %d: %s%s", code, exitInterrupted, out, errOut)
	}
	holds(t, errOut.String(), "the agent's answer is not A2A", "; again in ")
}
