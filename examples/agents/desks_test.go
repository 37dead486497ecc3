package agents_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/longstop-dev/longstop/internal/client"
	"github.com/longstop-dev/longstop/internal/flow"
)

// engages registers an agent, which is begun with its id and gives its URL, and
// lets it into a vault named orders.
func (b *bed) engages(begin func(id string) string) {
	b.t.Helper()
	ctx := b.t.Context()
	s, err := b.c.CreateAgentService(ctx, client.NewAgentService{})
	if err != nil {
		b.t.Fatal(err)
	}
	p, err := b.c.PushAgent(ctx, client.Push{Kind: "external", Card: begin(s.PublicKey + ":order-desk"), Bucket: s.Bucket, AsPubkey: s.PublicKey, Alias: "order-desk"})
	if err != nil {
		b.t.Fatal(err)
	}
	if _, err := b.c.CreateVault(ctx, client.NewVault{Name: "orders"}); err != nil {
		b.t.Fatal(err)
	}
	if _, err := b.c.Connect(ctx, "orders", client.NewConnection{Agent: p.AgentID}); err != nil {
		b.t.Fatal(err)
	}
}

// asks runs examples/workflows/ask-an-agent.yaml; what is asked back is
// answered with reply.
func (b *bed) asks(question, reply string) *client.Run {
	b.t.Helper()
	source, err := os.ReadFile("../workflows/ask-an-agent.yaml")
	if err != nil {
		b.t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(b.t.Context(), time.Minute)
	defer stop()
	if _, err := b.c.CreateWorkflow(ctx, client.Definition{Source: source}); err != nil {
		b.t.Fatal(err)
	}
	input, err := json.Marshal(map[string]string{"question": question})
	if err != nil {
		b.t.Fatal(err)
	}
	run, err := b.c.StartRun(ctx, "ask-an-agent", client.StartRun{Input: input})
	if err != nil {
		b.t.Fatal(err)
	}
	err = b.c.Follow(ctx, run.ID, 0, func(e flow.Event) error {
		if e.Type != flow.EventGateOpened {
			return nil
		}
		gates, err := b.c.Gates(ctx, client.GateFilter{Status: "open", RunID: run.ID})
		if err != nil || len(gates.Items) != 1 || gates.Items[0].Kind != flow.GateInputRequired || !strings.Contains(string(gates.Items[0].Proposal), "Which order?") {
			b.t.Errorf("gates: %+v, %v", gates, err)
			return context.Canceled
		}
		said, err := json.Marshal(reply)
		if err != nil {
			return err
		}
		_, err = b.c.AnswerGate(ctx, gates.Items[0].ID, flow.GateAnswer{Answer: "output", Output: said})
		return err
	})
	if err != nil {
		b.t.Fatal(err)
	}
	if run, err = b.c.Run(ctx, run.ID); err != nil {
		b.t.Fatal(err)
	}
	return run
}

// serves has a desk answer workflows: at once, and after it has asked back.
func (b *bed) serves() {
	b.t.Helper()
	for question, reply := range map[string]string{"Is order 7 late?": "", "Is it late?": "Order 7"} {
		if run := b.asks(question, reply); run.Status != flow.RunSucceeded || string(run.Output) != `{"late":true,"order":"7"}` {
			b.t.Errorf("%s: %s with %s (%s)", question, run.Status, run.Output, run.Error)
		}
	}
}

func TestGoDesk(t *testing.T) {
	t.Parallel()
	desk := build(t, "go-desk")
	b := newBed(t)
	b.engages(func(string) string { return command(t, address, nil, desk, "-listen", "127.0.0.1:0") })
	b.serves()
	guarded := newBed(t)
	guarded.engages(func(id string) string {
		return command(t, address, nil, desk, "-listen", "127.0.0.1:0", "-longstop", guarded.srv.URL(), "-agent", id)
	})
	guarded.serves()
}

func TestTypeScriptDesk(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("typescript/node_modules"); err != nil {
		t.Fatal("the packages are not installed: run ./test, or npm ci in examples/agents/typescript")
	}
	compile := exec.Command("node_modules/.bin/tsc", "--outDir", "dist/desk") // a folder of its own: the other test writes dist
	compile.Dir = "typescript"
	if said, err := compile.CombinedOutput(); err != nil {
		t.Fatalf("tsc: %v\n%s", err, said)
	}
	b := newBed(t)
	b.engages(func(id string) string {
		return command(t, address, []string{"PORT=0", "LONGSTOP=" + b.srv.URL(), "AGENT=" + id}, "node", "typescript/dist/desk/desk.js")
	})
	b.serves()
}
