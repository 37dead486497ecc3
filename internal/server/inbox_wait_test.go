package server_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/flow/flowtest"
	"github.com/longstop-dev/longstop/internal/server"
)

// timed is a server whose clock the test moves.
func timed(t *testing.T) (*stop, *flowtest.Clock) {
	t.Helper()
	clock := flowtest.NewClock(time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC))
	return begin(t, func(c *server.Config) { c.Clock = clock }), clock
}

// again starts the server on the same data folder.
func (st *stop) again(clock flow.Clock) {
	st.t.Helper()
	st.end()
	var err error
	st.s, err = server.Start(context.Background(), server.Config{DataDir: st.dir, Listen: "127.0.0.1:0", AllowPrivate: true, Clock: clock,
		Log: slog.New(slog.NewJSONHandler(st.log, nil))})
	if err != nil {
		st.t.Fatalf("start again: %v", err)
	}
}

// spec: R-105
func TestTheInboxTimesOutIntoTheBuiltIn(t *testing.T) {
	t.Parallel()
	st, clock := timed(t)
	st.must("PUT", "/v1/secrets/api", map[string]any{"value": secretValue}, nil)
	yaml := strings.Replace(fmt.Sprintf(moved, api(t).URL), "steps:", "recovery: {mode: agent, agent_timeout: 30, max_attempts: 1}\nsteps:", 1)
	r := st.gated(st.run(yaml, nil))
	clock.Advance(29 * time.Second)
	if got := st.get(r.ID); got.Status != "waiting" {
		t.Fatalf("after 29 s: got %s, want waiting", got.Status)
	}
	clock.Advance(time.Second)
	// With max_attempts 1 this is recovery attempt 0 still: the next would be a person's.
	if r = st.ended(r.ID); r.Status != "succeeded" || r.source(0) != "builtin" || !strings.Contains(r.Steps[0].Message, "did not answer the case in the inbox within 30s") {
		t.Fatalf("got %s by %s: %q", r.Status, r.source(0), r.Steps[0].Message)
	}
	if got := eventTypes(st, r.ID); !strings.Contains(got, "gate:opened run:waiting run:resumed gate:expired step:adapting") {
		t.Errorf("events: got %s", got)
	}
	if a := st.adapting(r.ID); len(a) != 1 || !strings.Contains(a[0], "did not answer") || !strings.Contains(a[0], `"byoa_result_summary":null`) {
		t.Errorf("step:adapting: got %v, want one, with why the agent was passed over", a)
	}
	body := map[string]any{"type": "fixed_output", "diagnosis": "late", "output": map[string]any{"id": 1}}
	if code, b := st.call("POST", "/v1/recovery/"+r.ID+"/0/action", body, nil); code != http.StatusConflict || !strings.Contains(b, "retry_with_params by builtin") {
		t.Errorf("a late action: got %d %s, want 409 with what was applied", code, b)
	}
}

// spec: R-097 R-105
func TestTheInboxOutlivesTheProcess(t *testing.T) {
	t.Parallel()
	st, clock := timed(t)
	late := inboxed(t, st)
	st.set("recovery.agent_timeout", 3600)
	var open []runView
	for range 5 {
		open = append(open, inboxed(t, st))
	}
	st.end()
	clock.Advance(10 * time.Minute) // late's time is over while nobody is there
	st.again(clock)
	if r := st.ended(late.ID); r.Status != "succeeded" || r.source(0) != "builtin" {
		t.Errorf("due while down: got %s by %s, want the built-in", r.Status, r.source(0))
	}
	var l pending
	st.must("GET", "/v1/recovery/pending", nil, &l)
	if len(l.Items) != len(open) {
		t.Fatalf("pending after the restart: got %d, want %d", len(l.Items), len(open))
	}
	for i, item := range l.Items {
		if item.RunID != open[i].ID {
			t.Errorf("pending %d: got %s, want %s: oldest first", i, item.RunID, open[i].ID)
		}
		body := map[string]any{"type": "fixed_output", "diagnosis": "x", "output": map[string]any{"id": i}}
		st.must("POST", "/v1/recovery/"+item.RunID+"/0/action", body, nil)
		if r := st.ended(item.RunID); r.source(0) != "byoa" || string(r.Output) != fmt.Sprintf(`{"id":%d}`, i) {
			t.Errorf("%s: got %s by %s", item.RunID, r.Output, r.source(0))
		}
	}
}

// spec: R-027
func TestAHintPutsTheCaseIntoTheInboxAgain(t *testing.T) {
	t.Parallel()
	st, clock := timed(t)
	st.must("PUT", "/v1/settings/recovery.builtin", map[string]any{"value": "off"}, nil)
	r := inboxed(t, st)
	clock.Advance(5 * time.Minute)
	r = st.gatedBy(r.ID, "needs_human")
	st.must("POST", "/v1/gates/"+r.Gates[0].ID+"/answer", map[string]any{"answer": "hint", "hint": "ask v2"}, nil)
	r = st.gatedBy(r.ID, "needs_agent")
	var in struct {
		Hint string `json:"human_hint"`
	}
	if st.must("GET", "/v1/recovery/"+r.ID+"/0", nil, &in); in.Hint != "ask v2" {
		t.Errorf("human_hint: got %q, want the person's", in.Hint)
	}
}

// gatedBy waits until the run's open gate is of a kind.
func (st *stop) gatedBy(run, kind string) runView {
	st.t.Helper()
	var r runView
	st.follow(run, func(e event) bool {
		if e.Type != "gate:opened" || !strings.Contains(string(e.Data), `"kind":"`+kind+`"`) {
			return false
		}
		r = st.get(run)
		return len(r.Gates) == 1 && r.Gates[0].Kind == kind
	})
	if len(r.Gates) != 1 || r.Gates[0].Kind != kind {
		st.t.Fatalf("run %s: got gates %+v, want one of kind %s", run, r.Gates, kind)
	}
	return r
}

// polled is what came of a poll.
type polled struct {
	code int
	tag  string
	body string
}

// poll asks for the inbox in the background.
func (st *stop) poll(key, query, tag string) <-chan polled {
	out := make(chan polled, 1)
	go func() {
		code, h, b := st.as(key, "GET", "/v1/recovery/pending"+query, nil, "If-None-Match", tag)
		out <- polled{code, h.Get("ETag"), b}
	}()
	return out
}

func TestPollersWaitForAChange(t *testing.T) {
	t.Parallel()
	st, clock := timed(t)
	key := st.s.Key()
	first := <-st.poll(key, "", "")
	if first.code != 200 || first.tag == "" {
		t.Fatalf("an empty inbox: got %+v, want 200 and a tag", first)
	}
	if p := <-st.poll(key, "", first.tag); p.code != 304 || p.body != "" || p.tag != first.tag {
		t.Errorf("with its tag: got %+v, want 304 without a body", p)
	}
	over := st.poll(key, "?wait=30", first.tag)
	clock.AwaitWaiters(1)
	clock.Advance(30 * time.Second)
	if p := <-over; p.code != 304 {
		t.Errorf("after 30 s without a change: got %+v, want 304", p)
	}
	empty, tagged := st.poll(key, "?wait=30", ""), st.poll(key, "?wait=30", first.tag)
	clock.AwaitWaiters(2)
	r := inboxed(t, st)
	for name, c := range map[string]<-chan polled{"without a tag": empty, "with a tag": tagged} {
		if p := <-c; p.code != 200 || !strings.Contains(p.body, r.ID) {
			t.Errorf("%s: got %+v, want the run", name, p)
		}
	}
	now := <-st.poll(key, "?wait=30", "")
	if now.code != 200 || !strings.Contains(now.body, r.ID) || now.tag == first.tag {
		t.Errorf("where something waits already: got %+v, want it at once and another tag", now)
	}
	// The answer changes the page too.
	gone := st.poll(key, "?wait=30", now.tag)
	clock.AwaitWaiters(2) // the gate's time-out is one
	st.must("POST", "/v1/recovery/"+r.ID+"/0/action", map[string]any{"type": "fixed_output", "diagnosis": "x", "output": map[string]any{"id": 1}}, nil)
	if p := <-gone; p.code != 200 || strings.Contains(p.body, r.ID) {
		t.Errorf("after the answer: got %+v, want an empty page", p)
	}
}

func TestAKeyRevokedWhilePolling(t *testing.T) {
	t.Parallel()
	st, clock := timed(t)
	key, id := st.key("agent")
	c := st.poll(key, "?wait=30", "")
	clock.AwaitWaiters(1)
	st.must("DELETE", "/v1/keys/"+id, nil, nil)
	r := inboxed(t, st)
	if p := <-c; p.code != http.StatusUnauthorized || strings.Contains(p.body, r.ID) {
		t.Errorf("got %+v, want 401 and nothing of the inbox", p)
	}
}

func TestPollersAreLetGoWhenTheServerStops(t *testing.T) {
	t.Parallel()
	st, clock := timed(t)
	c := st.poll(st.s.Key(), "?wait=30", "")
	clock.AwaitWaiters(1)
	st.end()
	if p := <-c; p.code != 200 || !strings.Contains(p.body, `"items":[]`) {
		t.Errorf("got %+v, want the page as it is", p)
	}
}
