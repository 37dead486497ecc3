package conform

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/mcpclient"
	"github.com/longstop-dev/longstop/internal/sandbox"
)

// Agent is whom to try: exactly one of URL, MCP, Command and Inbox.
type Agent struct {
	URL     string   // of an A2A agent or of its card
	Token   string   // a bearer token for URL or MCP
	MCP     string   // the URL of an MCP server
	Command []string // an MCP server over stdio
	Inbox   *Inbox   // one that polls
}

// String names it.
func (a Agent) String() string {
	switch {
	case a.URL != "":
		return withoutQuery(a.URL)
	case a.MCP != "":
		return "mcp:" + withoutQuery(a.MCP)
	case len(a.Command) > 0:
		return a.Command[0]
	}
	return TransportInbox
}

// Options shape a trial. HTTP and Types are required.
type Options struct {
	HTTP    *http.Client    // its Transport reaches the agent
	Types   []flow.StepType // what may be changed of a step of each type
	Timeout time.Duration   // for one answer; 0 is 15 s, the default of recovery.timeout_ms
	Only    []string        // cases by name; none for all
	Cache   string          // a folder for the compiled sandbox; "" for none
	Each    func(transport string, r Result, done, of int)
}

// Run tries an agent with every case over every transport that it has. It
// answers unavailable if the agent cannot be found, and invalid if it is no
// recovery agent, or for a case that there is none of.
func Run(ctx context.Context, agent Agent, o Options) (*Report, error) {
	if o.Timeout <= 0 {
		o.Timeout = 15 * time.Second
	}
	if o.Each == nil {
		o.Each = func(string, Result, int, int) {}
	}
	all, err := chosen(o.Only)
	if err != nil {
		return nil, err
	}
	box := sandbox.New(sandbox.Options{CacheDir: o.Cache})
	defer box.Close(context.WithoutCancel(ctx))
	r := &Report{Agent: agent.String()}
	if agent.Inbox != nil {
		t, err := agent.Inbox.run(ctx, all, newJudge(o.Types, box, o.Timeout, nil), o.Each)
		r.Transports = []Transport{t}
		r.finish()
		return r, err
	}
	ways, done, err := r.find(ctx, agent, o)
	if err != nil {
		return nil, err
	}
	defer done()
	for _, w := range ways {
		t := Transport{Name: w.name, Skipped: w.skipped, Results: []Result{}}
		if w.skipped == "" {
			j := newJudge(o.Types, box, o.Timeout, w.ask)
			for i, c := range all {
				if ctx.Err() != nil {
					return nil, ctx.Err()
				}
				result := j.try(ctx, c)
				t.Results = append(t.Results, result)
				o.Each(w.name, result, i+1, len(all))
			}
		}
		r.Transports = append(r.Transports, t)
	}
	r.finish()
	return r, nil
}

// maxFind is how long an agent may take to be found: that is no answer.
const maxFind = 30 * time.Second

// find looks for the agent; done lets go of it.
func (r *Report) find(ctx context.Context, agent Agent, o Options) (ways []way, done func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, maxFind)
	defer cancel()
	if agent.URL != "" {
		r.Name, ways, err = a2aWays(ctx, o.HTTP, agent)
		return ways, func() {}, err
	}
	pool := mcpclient.New(mcpclient.Options{HTTP: o.HTTP, AllowStdio: true})
	srv := mcpclient.Server{ID: "under-test", URL: agent.MCP, Command: agent.Command}
	if len(agent.Command) > 0 {
		srv.Transport = "stdio"
	}
	if agent.Token != "" {
		srv.Headers = map[string]string{"Authorization": "Bearer " + agent.Token}
	}
	w, err := mcpWay(ctx, pool, srv)
	if err != nil {
		pool.Close()
		return nil, nil, err
	}
	return []way{w}, pool.Close, nil
}

// chosen are the cases of some names.
func chosen(names []string) ([]Case, error) {
	all := Cases()
	if len(names) == 0 {
		return all, nil
	}
	var out []Case
	for _, name := range names {
		found := false
		for _, c := range all {
			if c.Name == name {
				out, found = append(out, c), true
			}
		}
		if !found {
			var known []string
			for _, c := range all {
				known = append(known, c.Name)
			}
			return nil, flow.Errorf(flow.CodeInvalid, "there is no case %q", name).At("--only").
				Right(fmt.Sprintf("one of %s", strings.Join(known, ", ")))
		}
	}
	return out, nil
}
