package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/longstop-dev/longstop/internal/pgtest"
	"github.com/longstop-dev/longstop/internal/server"
)

type observedView struct {
	State, Responder, Target, Verdict, Compared, Rejection string
	Accepted                                               bool
	Action                                                 json.RawMessage
}

// observedOf gives what is recorded of the run's first case once it is no
// longer pending.
func (st *stop) observedOf(run string) observedView {
	st.t.Helper()
	until := time.Now().Add(20 * time.Second)
	for {
		var l struct {
			Items []struct{ Observed *observedView }
		}
		st.must("GET", "/v1/cases?runId="+run, nil, &l)
		if o := l.Items[len(l.Items)-1].Observed; o == nil {
			st.t.Fatal("the case is not observed")
		} else if o.Verdict != "pending" {
			return *o
		}
		if time.Now().After(until) {
			st.t.Fatal("the observation stays pending")
		}
		// The answer is written apart from the run: there is no event to wait
		// for, and each look takes a round trip.
	}
}

// observing is a server that observes an agent whose answers the test lets
// out.
func observing(t *testing.T, change ...func(*server.Config)) (st *stop, asked chan string, let chan string) {
	t.Helper()
	asked, let = make(chan string, 10), make(chan string, 10)
	st = begin(t, change...)
	st.must("PUT", "/v1/secrets/api", map[string]any{"value": secretValue}, nil)
	a := agent(t, func(w http.ResponseWriter, r *http.Request, id string, in map[string]any) {
		asked <- id
		select {
		case answer := <-let:
			says(answer)(w, r, id, in)
		case <-r.Context().Done():
		}
	})
	st.set("recovery.a2a_agent_url", a.URL)
	st.set("recovery.mode", "observe")
	return st, asked, let
}

// TestAnObservedAgentDecidesNothing holds on both databases: the run ends
// while the agent is still being asked, and what it would have done is added to
// the case afterwards.
func TestAnObservedAgentDecidesNothing(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*testing.T, *server.Config){
		"sqlite": func(*testing.T, *server.Config) {},
		"postgres": func(t *testing.T, c *server.Config) {
			c.DatabaseURL, c.MasterKey = pgtest.URL(t), strings.Repeat("ab", 32)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			up := api(t)
			st, asked, let := observing(t, func(c *server.Config) { change(t, c) })
			id := st.run(fmt.Sprintf(moved, up.URL), map[string]any{})
			r := st.ended(id)
			m := r.Steps[0].Message
			if r.Status != "succeeded" || r.source(0) != "builtin" || !strings.Contains(m, "your agent (a2a) is observed and not waited for; the built-in (rules) answered") {
				t.Fatalf("got %s by %s: %s (%s)", r.Status, r.source(0), m, r.Error)
			}
			if got, want := <-asked, fmt.Sprintf("%q", "recovery-"+id+"-0"); got != want {
				t.Errorf("asked with the id %s, want %s", got, want)
			}
			let <- retryAt(up.URL + "/v2/users/42")
			if o := st.observedOf(id); o.State != "answered" || !o.Accepted || o.Verdict != "would_mend" || o.Compared != "same" || o.Responder != "a2a" || o.Target == "" {
				t.Errorf("the same as the rules': got %+v", o)
			}

			id = st.run(fmt.Sprintf(moved, up.URL), map[string]any{})
			let <- `{"type":"fixed_output","diagnosis":"d","output":{"name":"no id"}}`
			st.ended(id)
			if o := st.observedOf(id); o.Accepted || o.Verdict != "refused" || !strings.Contains(o.Rejection, "contract") {
				t.Errorf("against the contract: got %+v", o)
			}
			var sum struct {
				Cases  int
				Agents []struct{ WouldMend, Refused, Same, Cases int }
			}
			if st.must("GET", "/v1/cases/observed", nil, &sum); sum.Cases != 2 || len(sum.Agents) != 1 || sum.Agents[0].WouldMend != 1 || sum.Agents[0].Refused != 1 || sum.Agents[0].Same != 1 {
				t.Errorf("sum: got %+v", sum)
			}
			var l struct{ Items []struct{ ID string } }
			if st.must("GET", "/v1/cases?observed=true", nil, &l); len(l.Items) != 2 {
				t.Errorf("observed cases: got %d, want 2", len(l.Items))
			}
		})
	}
}

// TestARestartLosesAnObservation ends the server while the agent is asked:
// the run is not asked again, and the case says so.
func TestARestartLosesAnObservation(t *testing.T) {
	t.Parallel()
	st, asked, _ := observing(t)
	id := st.run(fmt.Sprintf(moved, api(t).URL), map[string]any{})
	st.ended(id)
	<-asked
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // no time to wait for answers
	if err := st.s.Stop(ctx); err != nil && !strings.Contains(err.Error(), "context canceled") {
		t.Fatalf("stop: %v", err)
	}
	var err error
	if st.s, err = server.Start(context.Background(), server.Config{DataDir: st.dir, Listen: "127.0.0.1:0", AllowPrivate: true}); err != nil {
		t.Fatal(err)
	}
	if o := st.observedOf(id); o.State != "lost" || o.Verdict != "lost" || !strings.Contains(o.Rejection, "the server ended before") {
		t.Errorf("got %+v, want it lost", o)
	}
}

// TestStoppingWaitsForAnObservation gives the agent the time that Stop has.
func TestStoppingWaitsForAnObservation(t *testing.T) {
	t.Parallel()
	st, asked, let := observing(t)
	id := st.run(fmt.Sprintf(moved, api(t).URL), map[string]any{})
	st.ended(id)
	<-asked
	stopped := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		stopped <- st.s.Stop(ctx)
	}()
	let <- `{"type":"needs_human","diagnosis":"d","suggestion":"s"}`
	if err := <-stopped; err != nil {
		t.Fatalf("stop: %v", err)
	}
	var err error
	if st.s, err = server.Start(context.Background(), server.Config{DataDir: st.dir, Listen: "127.0.0.1:0", AllowPrivate: true}); err != nil {
		t.Fatal(err)
	}
	if o := st.observedOf(id); o.State != "answered" || o.Verdict != "would_call" || o.Compared != "different" {
		t.Errorf("got %+v, want what it answered", o)
	}
}
