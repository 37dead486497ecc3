package server_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2asrv"
	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/longstop-dev/longstop/internal/bridge"
	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/nettest"
)

// desk is an agent on a2a-go that demands an execution token and verifies it
// with the keys that the server publishes.
type desk struct {
	t     *testing.T
	url   string
	wait  chan struct{} // what "slow" waits for
	began chan struct{} // "slow" has begun

	mu       sync.Mutex
	server   string           // where the keys are
	audience string           // whom tokens are for; "" for the URL
	claims   []map[string]any // of every request
	refused  int
	contexts []string
}

// Execute answers by what it is told.
func (d *desk) Execute(ctx context.Context, ec *a2asrv.ExecutorContext) iter.Seq2[sdk.Event, error] {
	return func(yield func(sdk.Event, error) bool) {
		var text string
		for _, p := range ec.Message.Parts {
			if p.Text() != "" {
				text = p.Text()
			}
		}
		d.mu.Lock()
		d.contexts = append(d.contexts, ec.Message.ContextID)
		d.mu.Unlock()
		say := func(state sdk.TaskState, text string) bool {
			return yield(sdk.NewStatusUpdateEvent(ec, state, sdk.NewMessageForTask(sdk.MessageRoleAgent, ec, sdk.NewTextPart(text))), nil)
		}
		if !yield(sdk.NewSubmittedTask(ec, ec.Message), nil) || !say(sdk.TaskStateWorking, "looking it up") {
			return
		}
		switch text {
		case "ask me":
			say(sdk.TaskStateInputRequired, "Which city?")
			return
		case "slow":
			select {
			case d.began <- struct{}{}:
			default:
			}
			select {
			case <-ctx.Done():
				return
			case <-d.wait:
			}
		}
		if yield(sdk.NewArtifactEvent(ec, sdk.NewTextPart("here"), sdk.NewDataPart(map[string]any{"said": text, "late": true})), nil) {
			say(sdk.TaskStateCompleted, "done")
		}
	}
}

// Cancel stops a task.
func (d *desk) Cancel(_ context.Context, ec *a2asrv.ExecutorContext) iter.Seq2[sdk.Event, error] {
	return func(yield func(sdk.Event, error) bool) {
		yield(sdk.NewStatusUpdateEvent(ec, sdk.TaskStateCanceled, nil), nil)
	}
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	d := &desk{t: t, wait: make(chan struct{}), began: make(chan struct{}, 1)}
	mux := http.NewServeMux()
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	d.url = srv.URL
	rpc := a2asrv.NewJSONRPCHandler(a2asrv.NewHandler(d))
	mux.HandleFunc("/rpc", func(w http.ResponseWriter, r *http.Request) {
		if err := d.verify(r); err != nil {
			d.mu.Lock()
			d.refused++
			d.mu.Unlock()
			http.Error(w, err.Error(), http.StatusUnauthorized)
			return
		}
		rpc.ServeHTTP(w, r)
	})
	mux.Handle(a2asrv.WellKnownAgentCardPath, a2asrv.NewStaticAgentCardHandler(&sdk.AgentCard{Name: "Order Desk", Description: "knows orders", Version: "1.0.0",
		SupportedInterfaces: []*sdk.AgentInterface{sdk.NewAgentInterface(srv.URL+"/rpc", sdk.TransportProtocolJSONRPC)},
		DefaultInputModes:   []string{"text/plain"}, DefaultOutputModes: []string{"text/plain"},
		SecuritySchemes:      sdk.NamedSecuritySchemes{"token": sdk.HTTPAuthSecurityScheme{Scheme: "bearer", BearerFormat: "JWT"}},
		SecurityRequirements: sdk.SecurityRequirementsOptions{{"token": {}}}}))
	return d
}

// verify checks a request's token as the documentation tells.
func (d *desk) verify(r *http.Request) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	resp, err := nettest.Client().Get(d.server + "/.well-known/jwks.json")
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	var set jose.JSONWebKeySet
	if err := json.NewDecoder(resp.Body).Decode(&set); err != nil {
		return err
	}
	text, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		return fmt.Errorf("there is no token")
	}
	token, err := jwt.ParseSigned(text, []jose.SignatureAlgorithm{jose.EdDSA})
	if err != nil {
		return err
	}
	var standard jwt.Claims
	all := map[string]any{}
	if err := token.Claims(&set, &standard, &all); err != nil {
		return err
	}
	d.claims = append(d.claims, all)
	return standard.Validate(jwt.Expected{Issuer: d.server, AnyAudience: jwt.Audience{cmp.Or(d.audience, d.url)}, Time: time.Now()})
}

// employ registers the agent and lets it into a vault named orders.
func (st *stop) employ(d *desk, connect bool) (agent string) {
	st.t.Helper()
	return st.employAt(d, d.url, connect)
}

// employAt is employ for an agent whose card is elsewhere.
func (st *stop) employAt(d *desk, card string, connect bool) (agent string) {
	st.t.Helper()
	d.mu.Lock()
	d.server = st.s.URL()
	d.mu.Unlock()
	var s struct{ PublicKey, Bucket string }
	st.must("POST", "/v1/agent-services", map[string]any{}, &s)
	var a struct{ AgentID string }
	st.must("POST", "/v1/agents", map[string]any{"kind": "external", "card": card, "bucket": s.Bucket, "asPubkey": s.PublicKey}, &a)
	st.must("POST", "/v1/vaults", map[string]any{"name": "orders"}, nil)
	if connect {
		st.must("POST", "/v1/vaults/orders/connections", map[string]any{"agentId": a.AgentID}, nil)
	}
	return a.AgentID
}

const askDesk = `
name: ask
input: {type: object}
recovery: {mode: sync, builtin: "off"}
steps:
  - id: ask
    type: agent
    config: {vault: orders, agent: %s, payload: {text: "{{ input.text }}", order: 7}}
    output: {type: object, required: [said]}
output: "{{ steps.ask.output }}"
`

// events reads those of a vault.
func (st *stop) vaultEvents(kind string) []flow.VaultEvent {
	st.t.Helper()
	var l struct{ Items []flow.VaultEvent }
	st.must("GET", "/v1/vaults/orders/events?type="+kind, nil, &l)
	return l.Items
}

// TestAgentStep: a workflow asks an agent that somebody else runs.
//
// spec: A-004
// spec: A-005
// spec: A-006
// spec: A-035
// spec: A-046
// spec: A-069
// spec: A-070
// spec: A-072
// spec: A-075
// spec: A-076
func TestAgentStep(t *testing.T) {
	t.Parallel()
	st, d := begin(t), newDesk(t)
	id := st.employ(d, true)
	r := st.ended(st.run(fmt.Sprintf(askDesk, id), map[string]any{"text": "Is it late?"}))
	if r.Status != "succeeded" || string(r.Output) != `{"late":true,"said":"Is it late?"}` || r.Steps[0].Attempts != 1 {
		t.Fatalf("run: %+v", r)
	}
	asked, answered := st.vaultEvents("workflow.asked"), st.vaultEvents("agent.answered")
	if len(asked) != 1 || asked[0].Target != id || string(asked[0].Payload) != `{"order":7,"text":"Is it late?"}` || asked[0].Author.Kind != flow.AuthorRun || asked[0].Author.ID != r.ID {
		t.Errorf("asked: %+v", asked)
	}
	if len(answered) != 1 || strings.Join(answered[0].Parents, "") != asked[0].ID || !strings.Contains(string(asked[0].Metadata), r.ID) {
		t.Errorf("answered: %+v", answered)
	}
	var me struct{ PublicKey string }
	st.must("GET", "/v1/people/"+st.whoami(), nil, &me)
	d.mu.Lock()
	defer d.mu.Unlock()
	seen := map[string]bool{}
	for _, c := range d.claims {
		seen[c["jti"].(string)] = true
		if c["agent"] != id || c["vault"] != asked[0].Vault || c["scope"] != "default" || c["on_behalf_of"] != me.PublicKey || c["job"] == "" || c["task"] == "" || c["aud"] != d.url {
			t.Errorf("claims: %v", c)
		}
	}
	if d.refused != 0 || len(d.claims) == 0 || len(seen) != len(d.claims) {
		t.Errorf("%d requests with %d tokens, %d refused", len(d.claims), len(seen), d.refused)
	}
}

func (st *stop) whoami() string {
	st.t.Helper()
	var me struct{ Person string }
	st.must("GET", "/v1/me", nil, &me)
	return me.Person
}

// TestOnlyItsOwnAnswerEndsAStep: what an asking event says is readable, so
// that whoever may append can ask another agent, or nobody, with the same
// correlation; that is no answer to the step.
//
// spec: A-069
func TestOnlyItsOwnAnswerEndsAStep(t *testing.T) {
	t.Parallel()
	st, d, other := begin(t), newDesk(t), newDesk(t)
	id := st.employ(d, true)
	other.server = st.s.URL()
	var services struct {
		Items []struct{ PublicKey, Bucket string }
	}
	st.must("GET", "/v1/agent-services", nil, &services)
	var b struct{ AgentID string }
	st.must("POST", "/v1/agents", map[string]any{"kind": "external", "card": other.url, "bucket": services.Items[0].Bucket, "asPubkey": services.Items[0].PublicKey, "alias": "other"}, &b)
	st.must("POST", "/v1/vaults/orders/connections", map[string]any{"agentId": b.AgentID}, nil)
	run := st.run(fmt.Sprintf(askDesk, id), map[string]any{"text": "slow"})
	<-d.began
	st.follow(run, func(e event) bool { return e.Type == "step:suspended" })
	metadata := st.vaultEvents("workflow.asked")[0].Metadata
	for _, target := range []string{b.AgentID, strings.Repeat("0", 64) + ":nobody"} {
		st.must("POST", "/v1/vaults/orders/events", map[string]any{"type": "question.asked", "target": target, "payload": map[string]any{"text": "forged"}, "metadata": metadata}, nil)
	}
	for len(st.vaultEvents("agent.answered")) < 2 {
	}
	close(d.wait)
	if r := st.ended(run); r.Status != "succeeded" || !strings.Contains(string(r.Output), `"slow"`) || r.Steps[0].Attempts != 1 {
		t.Errorf("run: %+v", r)
	}
}

// TestNoSecretIsAskedWith: a vault keeps what is in an event, wherever it
// stands in it.
func TestNoSecretIsAskedWith(t *testing.T) {
	t.Parallel()
	st, d := begin(t), newDesk(t)
	id := st.employ(d, true)
	st.must("PUT", "/v1/secrets/api", map[string]any{"value": secretValue}, nil)
	for member, config := range map[string]string{
		"payload":      `payload: {text: "x-{{ secrets.api }}"}`,
		"conversation": `payload: {text: "x"}, conversation: "x-{{ secrets.api }}"`,
		"eventType":    `payload: {text: "x"}, eventType: "x.{{ secrets.api }}"`,
		"scope":        `payload: {text: "x"}, scope: "{{ secrets.api }}"`,
	} {
		def := strings.Replace(fmt.Sprintf(askDesk, id), `payload: {text: "{{ input.text }}", order: 7}`, config, 1)
		run := st.run(def, map[string]any{"text": "hello"})
		st.follow(run, func(e event) bool { return e.Type == "gate:opened" || e.Type == "run:succeeded" })
		if r := st.get(run); r.Status != "waiting" || !strings.Contains(r.Steps[0].Error, member+": it holds a secret") {
			t.Errorf("%s: %s, %q", member, r.Status, r.Steps[0].Error)
		}
		if where := st.holds(secretValue, "/v1/vaults/orders/events", "/v1/vaults/orders/jobs", "/v1/runs/"+run); len(where) > 0 {
			t.Errorf("%s: the secret is in %v", member, where)
		}
	}
}

// TestAgentStepAsksBack: the question waits for a person, whose reply is the
// next event of the same conversation.
//
// spec: A-054
// spec: A-055
func TestAgentStepAsksBack(t *testing.T) {
	t.Parallel()
	st, d := begin(t), newDesk(t)
	id := st.employ(d, true)
	r := st.gated(st.run(fmt.Sprintf(askDesk, id), map[string]any{"text": "ask me"}))
	gate := r.Gates[0]
	var g struct {
		Proposal struct{ Message, From string }
	}
	st.must("GET", "/v1/gates/"+gate.ID, nil, &g)
	if gate.Kind != "input_required" || g.Proposal.Message != "Which city?" || g.Proposal.From != id {
		t.Fatalf("gate: %+v %+v", gate, g)
	}
	for _, bad := range []map[string]any{{"answer": "approve"}, {"answer": "output"}, {"answer": "output", "output": 7}, {"answer": "output", "output": map[string]any{}}, {"answer": "skip"}} {
		if code, body := st.call("POST", "/v1/gates/"+gate.ID+"/answer", bad, nil); code != http.StatusUnprocessableEntity {
			t.Errorf("%v: got %d %s, want 422", bad, code, body)
		}
	}
	st.must("POST", "/v1/gates/"+gate.ID+"/answer", map[string]any{"answer": "output", "output": "Berlin"}, nil)
	r = st.ended(r.ID)
	if r.Status != "succeeded" || string(r.Output) != `{"late":true,"said":"Berlin"}` {
		t.Fatalf("run: %+v", r)
	}
	answered, asked := st.vaultEvents("agent.answered"), st.vaultEvents("workflow.asked")
	if len(asked) != 2 || len(answered) != 2 || strings.Join(asked[1].Parents, "") != answered[0].ID || string(asked[1].Payload) != `{"text":"Berlin"}` {
		t.Errorf("asked %+v, answered %+v", asked, answered)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.contexts) != 2 || d.contexts[0] != "" && d.contexts[0] == d.contexts[1] || d.contexts[1] == "" {
		t.Errorf("contexts: %q, want the first turn's in the second", d.contexts)
	}
}

// TestAgentStepFails: what an agent cannot do goes to recovery like any other
// failure, and the case says what was asked.
func TestAgentStepFails(t *testing.T) {
	t.Parallel()
	st, d := begin(t), newDesk(t)
	id := st.employ(d, false)
	r := st.gated(st.run(fmt.Sprintf(askDesk, id), map[string]any{"text": "hello"}))
	if r.Gates[0].Kind != "needs_human" || !strings.Contains(r.Steps[0].Error, "not_connected") || r.Steps[0].Attempts != 1 {
		t.Fatalf("run: %+v", r)
	}
	st.must("POST", "/v1/vaults/orders/connections", map[string]any{"agentId": id}, nil)
	st.must("POST", "/v1/gates/"+r.Gates[0].ID+"/answer", map[string]any{"answer": "edit", "modifications": map[string]any{}}, nil)
	if r = st.ended(r.ID); r.Status != "succeeded" || r.source(0) != "human" {
		t.Errorf("after the agent was let in: %+v", r)
	}
	st.must("PUT", "/v1/secrets/api", map[string]any{"value": secretValue}, nil)
	leak := st.gated(st.run(strings.Replace(fmt.Sprintf(askDesk, id), "order: 7", `key: "{{ secrets.api }}"`, 1), map[string]any{"text": "hello"}))
	if !strings.Contains(leak.Steps[0].Error, "secret") || len(st.vaultEvents("workflow.asked")) != 2 {
		t.Errorf("a secret in the payload: %+v", leak)
	}
	if where := st.holds(secretValue, "/v1/vaults/orders/events", "/v1/runs/"+leak.ID); len(where) > 0 {
		t.Errorf("the secret is in %v", where)
	}
}

// TestCardsMustBeSigned where the workspace says so: at the push, and at every
// call.
func TestCardsMustBeSigned(t *testing.T) {
	t.Parallel()
	st, d := begin(t), newDesk(t)
	id := st.employ(d, true)
	if code, body := st.call("PUT", "/v1/settings/agents.card_keys", map[string]any{"value": "no keys"}, nil); code != http.StatusUnprocessableEntity {
		t.Errorf("no keys: got %d %s", code, body)
	}
	key := map[string]any{"keys": []any{map[string]any{"kty": "OKP", "crv": "Ed25519", "kid": "k", "x": "P3-DanYQhhv0ihzS8JopK-4WAkAn5dbgSnP61OZxfgE"}}}
	st.set("agents.card_keys", key)
	st.set("agents.card_signatures", "require")
	r := st.gated(st.run(fmt.Sprintf(askDesk, id), map[string]any{"text": "hello"}))
	if !strings.Contains(r.Steps[0].Error, "card_invalid") || !strings.Contains(r.Steps[0].Error, "not signed") {
		t.Errorf("run: %+v", r)
	}
	var s struct {
		Items []struct{ PublicKey, Bucket string }
	}
	st.must("GET", "/v1/agent-services", nil, &s)
	code, body := st.call("POST", "/v1/agents", map[string]any{"kind": "external", "card": d.url, "bucket": s.Items[0].Bucket, "asPubkey": s.Items[0].PublicKey}, nil)
	if code != http.StatusUnprocessableEntity || !strings.Contains(body, "not signed") {
		t.Errorf("push: got %d %s", code, body)
	}
	st.set("agents.card_signatures", "if-present")
	if r := st.ended(st.run(fmt.Sprintf(askDesk, id), map[string]any{"text": "hello"})); r.Status != "succeeded" {
		t.Errorf("if-present: %+v", r)
	}
}

// TestAgentStepOverARestart: a run that waits for an agent costs nothing, and
// goes on when the server is back.
func TestAgentStepOverARestart(t *testing.T) {
	t.Parallel()
	st, d := begin(t), newDesk(t)
	id := st.employ(d, true)
	first := st.run(fmt.Sprintf(askDesk, id), map[string]any{"text": "slow"})
	cancelled := st.run(fmt.Sprintf(askDesk, id), map[string]any{"text": "slow"})
	<-d.began
	st.follow(first, func(e event) bool { return e.Type == "step:suspended" })
	st.follow(cancelled, func(e event) bool { return e.Type == "step:suspended" })
	st.must("POST", "/v1/runs/"+cancelled+"/cancel", nil, nil)
	if r := st.ended(cancelled); r.Status != "cancelled" {
		t.Errorf("cancelled: %+v", r)
	}
	st.again(flow.SystemClock{})
	d.mu.Lock()
	d.server = st.s.URL()
	d.mu.Unlock()
	close(d.wait)
	if r := st.ended(first); r.Status != "succeeded" || r.Steps[0].Attempts != 1 {
		t.Errorf("after the restart: %+v", r)
	}
	if n := len(st.vaultEvents("workflow.asked")); n != 2 {
		t.Errorf("asked %d times, want once for each run", n)
	}
}

// bridged holds a bridge to the desk until stop is called.
func (st *stop) bridged(d *desk) (stop func()) {
	st.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	connected, ended := make(chan struct{}, 16), make(chan error, 1)
	side := bridge.Side{Server: st.s.URL(), Key: st.s.Key(), Name: "desk", To: d.url, Clock: flow.SystemClock{}, Jitter: func() float64 { return 0 },
		Told: func(up bool, _ error, _ time.Duration) {
			if up {
				connected <- struct{}{}
			}
		}}
	go func() { ended <- side.Run(ctx) }()
	select {
	case <-connected:
	case err := <-ended:
		st.t.Fatal(err)
	}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for { // the server takes it just after
		var l struct{ Items []struct{ Card string } }
		if st.must("GET", "/v1/bridges", nil, &l); len(l.Items) == 1 {
			return func() { cancel(); <-ended }
		}
		<-tick.C
	}
}

// TestAnAgentBehindABridge: no address is known of it, its tokens are for the
// bridge, and a turn that is under way when the connection is lost is rejoined.
func TestAnAgentBehindABridge(t *testing.T) {
	t.Parallel()
	st, d := begin(t), newDesk(t)
	d.audience = "bridge:desk"
	gone := st.bridged(d)
	id := st.employAt(d, "bridge:desk", true)
	var a struct{ Card string }
	if st.must("GET", "/v1/agents/"+id, nil, &a); a.Card != "bridge:desk" {
		t.Errorf("card: %s", a.Card)
	}
	if r := st.ended(st.run(fmt.Sprintf(askDesk, id), map[string]any{"text": "hello"})); r.Status != "succeeded" || !strings.Contains(string(r.Output), "hello") {
		t.Fatalf("run: %+v", r)
	}
	slow := st.run(fmt.Sprintf(askDesk, id), map[string]any{"text": "slow"})
	<-d.began
	gone()
	close(d.wait)
	gone = st.bridged(d)
	defer func() { gone() }()
	if r := st.ended(slow); r.Status != "succeeded" || r.Steps[0].Attempts != 1 {
		t.Errorf("over a bridge that was away: %+v", r)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.refused != 0 || len(d.contexts) > 3 {
		t.Errorf("%d refused, %d messages", d.refused, len(d.contexts))
	}
}
