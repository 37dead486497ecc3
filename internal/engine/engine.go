// Package engine drives runs: it decides which step is next, has it executed,
// records what became of it as one [flow.Change], and parks what has to wait.
//
// A run is driven by one goroutine at a time and by none while it waits. What
// stands in the database decides: every Change is versioned, so that of two
// who would move a run on, one wins and the other is told that it is stale.
package engine

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"time"

	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/secret"
	"github.com/longstop-dev/longstop/internal/watch"
)

// Runs is where runs are kept.
type Runs interface {
	Apply(ctx context.Context, c flow.Change) error
	Run(ctx context.Context, workspace, id string) (flow.Run, error)
	Runs(ctx context.Context, f flow.RunFilter) ([]flow.Run, error)
	Steps(ctx context.Context, runID string) ([]flow.StepInstance, error)
	// Reruns lists the runs that were started again from one.
	Reruns(ctx context.Context, workspace, id string, limit int) ([]string, error)
	Unfinished(ctx context.Context) ([]string, error)
}

// Records are what a run leaves behind.
type Records interface {
	Events(ctx context.Context, runID string, after int64, limit int) ([]flow.Event, error)
	Logs(ctx context.Context, runID string, after int64, limit int) ([]flow.Log, error)
	Gate(ctx context.Context, workspace, id string) (flow.Gate, error)
	Gates(ctx context.Context, workspace, runID, status, after string, limit int) ([]flow.Gate, error)
	Case(ctx context.Context, workspace, id string) (flow.Case, error)
	// Once reads what the key of a creation has made after an instant.
	Once(ctx context.Context, workspace, key string, after time.Time) (flow.Once, error)
}

// Inbox is where cases wait for agents.
type Inbox interface {
	// Inbox lists the open gates of kind needs_agent, oldest first, with the
	// claims that hold at now.
	Inbox(ctx context.Context, workspace, after string, limit int, now time.Time) ([]flow.Gate, error)
	// ClaimGate answers conflict if somebody else holds the gate, or if it is
	// not open.
	ClaimGate(ctx context.Context, c flow.Claim, audit ...flow.Audit) error
	Claim(ctx context.Context, workspace, gateID string) (flow.Claim, error)
	ReleaseGate(ctx context.Context, c flow.Claim, audit ...flow.Audit) error
}

// Versions is where definitions are kept.
type Versions interface {
	// Publish and Keep answer conflict if the key of once, which may be nil, is
	// taken.
	Publish(ctx context.Context, v flow.WorkflowVersion, once *flow.Once, audit ...flow.Audit) (flow.WorkflowVersion, error)
	Keep(ctx context.Context, v flow.WorkflowVersion, once *flow.Once, audit ...flow.Audit) (flow.WorkflowVersion, error)
	// Point says which version new runs use; Unpublish that there are none.
	Point(ctx context.Context, w flow.Workflow, audit ...flow.Audit) error
	Unpublish(ctx context.Context, workspace, name string, audit ...flow.Audit) error
	// Numbered lists published versions with a number below before, 0 for all.
	Numbered(ctx context.Context, workspace, name string, before, limit int) ([]flow.WorkflowVersion, error)
	Version(ctx context.Context, workspace, id string) (flow.WorkflowVersion, error)
	Workflow(ctx context.Context, workspace, name string) (flow.Workflow, error)
	Workflows(ctx context.Context, workspace, after string, limit int) ([]flow.Workflow, error)
}

// StepTypes executes steps by the name of their type.
type StepTypes interface {
	Types() []flow.StepType
	// Check says what is wrong with a config as it was written.
	Check(stepType string, config json.RawMessage) []flow.Problem
	// Run makes one attempt. A failure is a *flow.StepError.
	Run(ctx context.Context, stepType string, c flow.Call) (flow.Outcome, error)
}

// Recovery decides what becomes of a failed step.
type Recovery interface {
	// Freeze makes the case that responders are shown. It asks no outsider.
	Freeze(ctx context.Context, f flow.Failure) (flow.Case, error)
	// Decide asks the responders in their order. It never errs: what goes
	// wrong becomes a verdict.
	Decide(ctx context.Context, f flow.Failure, c flow.Case) flow.Verdict
	// Answered turns a gate's answer into a verdict, or says what is wrong
	// with the answer.
	Answered(ctx context.Context, by flow.Caller, f flow.Failure, c flow.Case, g flow.Gate, a flow.GateAnswer) (flow.Verdict, error)
	// Expired says what follows when a gate's time is over.
	Expired(ctx context.Context, f flow.Failure, c flow.Case, g flow.Gate) flow.Verdict
}

// Workspaces knows what holds in a workspace.
type Workspaces interface {
	Masker(ctx context.Context, workspace string) (*secret.Masker, error)
	Values(ctx context.Context, workspace string) (map[string]string, error)
	Limits(ctx context.Context, workspace string) (flow.Limits, error)
	Gates(ctx context.Context, workspace string) (flow.GatePolicy, error)
	// CheckRecovery says what is wrong with a definition's recovery settings.
	CheckRecovery(layer map[string]string) []flow.Problem
}

// Dispatcher wakes parked runs when they are due.
type Dispatcher interface {
	Start(ctx context.Context, fire func(flow.Wakeup)) error
	Schedule(w flow.Wakeup)
	Stop()
}

// Config is what an engine is made of. All members but the last two are
// required.
type Config struct {
	Runs       Runs
	Records    Records
	Inbox      Inbox
	Versions   Versions
	Types      StepTypes
	Recovery   Recovery
	Workspaces Workspaces
	Dispatch   Dispatcher
	Clock      flow.Clock
	NewID      func(prefix string) string
	Jitter     func() float64 // in [0, 1), for back-offs
	Node       string         // this node's name, the owner of what it drives
	MaxActive  int            // runs driven at the same time; more are queued
	Log        *slog.Logger

	// Told, if set, is called when a Change with notices is committed; it must
	// not block. PublicURL is where people reach this server; "" leaves links
	// out of the notices.
	Told      func()
	PublicURL string
}

// Engine drives runs. Make it with [New], then [Engine.Start] it.
type Engine struct {
	Config
	defs  *definitions
	feed  *watch.Feed
	inbox *inbox
	early *early

	ctx    context.Context // ends what is executing when the engine is stopped
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu       sync.Mutex
	active   map[string]*driver
	busy     int   // places taken, at most MaxActive
	pending  []job // what waits for a place, oldest first
	draining bool
}

// New makes an engine that drives nothing until it is started.
func New(c Config) *Engine {
	e := &Engine{Config: c, feed: watch.NewFeed(), inbox: newInbox(), early: &early{tokens: map[string]struct{}{}}, active: map[string]*driver{}}
	e.defs = newDefinitions(c.Versions, c.Types.Types())
	e.ctx, e.cancel = context.WithCancel(context.Background())
	return e
}

// Start takes up every unfinished run and from then on wakes parked ones.
func (e *Engine) Start(ctx context.Context) error {
	ids, err := e.Runs.Unfinished(ctx)
	if err != nil {
		return err
	}
	if err := e.Dispatch.Start(ctx, e.wake); err != nil {
		return err
	}
	for _, id := range ids {
		e.take(job{runID: id})
	}
	return nil
}

// Stop lets every driver finish what it is executing until ctx ends, then
// interrupts the rest. What was not checkpointed is executed again by the
// next start.
func (e *Engine) Stop(ctx context.Context) {
	e.mu.Lock()
	e.draining, e.pending = true, nil
	e.mu.Unlock()
	e.Dispatch.Stop()
	ended := make(chan struct{})
	go func() { e.wg.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-ctx.Done():
		e.cancel()
		<-ended
	}
	e.cancel()
}

// Active gives the number of runs that are driven now.
func (e *Engine) Active() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.active)
}

// job is a run that somebody has to take up: one that is at work but driven by
// nobody, or one whose wake-up is due.
type job struct {
	runID string
	due   bool
	seq   int64 // of the wake-up
	tries int   // how often it could not be driven on
}

// wake takes up a parked run that is due. If other steps of it are at work,
// its driver is told.
func (e *Engine) wake(w flow.Wakeup) {
	j := job{runID: w.RunID, due: true, seq: w.Seq}
	d := e.driving(w.RunID)
	if d == nil {
		e.take(j)
		return
	}
	go func() { // which may be busy for a moment
		if d.nudge() != nil {
			e.take(j)
		}
	}()
}

// nudge has the driver look what is due. Its error says that the driver has
// ended and did not.
func (d *driver) nudge() error {
	return d.hand(context.Background(), delivery{do: func(c *change) error {
		c.woken = true
		return c.commit(d.ctx)
	}})
}

// take does a job now, or when there is room.
func (e *Engine) take(j job) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.enter() {
		if !e.draining {
			e.pending = append(e.pending, j)
		}
		return
	}
	go func() { defer e.leave(); e.do(j) }()
}

// enter takes a place among the runs that are driven; leave gives it back.
// The caller holds the lock.
func (e *Engine) enter() bool {
	if e.draining || e.busy >= e.MaxActive {
		return false
	}
	e.busy++
	e.wg.Add(1)
	return true
}

// leave gives a place back, to the job that has waited longest.
func (e *Engine) leave() {
	defer e.wg.Done()
	e.mu.Lock()
	e.busy--
	var j job
	more := len(e.pending) > 0 && !e.draining
	if more {
		j, e.pending = e.pending[0], e.pending[1:]
	}
	e.mu.Unlock()
	if more {
		e.take(j)
	}
}

// do claims the job's run, if it still needs that, and drives it.
func (e *Engine) do(j job) {
	run, err := e.Runs.Run(e.ctx, "", j.runID)
	if err != nil {
		e.stuck(j, flow.Run{ID: j.runID}, err)
		return
	}
	due := run.Status == flow.RunWaiting && run.WakeSeq == j.seq
	idle := run.Status == flow.RunQueued || run.Status == flow.RunRunning
	if (j.due && !due) || (!j.due && !idle) {
		return // answered, cancelled or woken meanwhile
	}
	d, err := e.load(e.ctx, run)
	if err != nil {
		e.stuck(j, run, err)
		return
	}
	if other := e.register(d); other != nil {
		d.cancel()
		if j.due && other.nudge() != nil {
			e.do(j) // it was just putting the run down
		}
		return
	}
	defer d.crew.Wait()
	defer e.unregister(d)
	if j.due {
		all, err := d.remind()
		if err != nil && flow.CodeOf(err) != flow.CodeStale { // else somebody was faster, with an answer perhaps
			e.stuck(j, run, err)
		}
		if all || err != nil {
			return
		}
	}
	c := d.begin()
	c.claim()
	if c.woken = j.due; j.due {
		c.event(flow.EventRunResumed, nil, nil)
	}
	switch err := c.commit(e.ctx); {
	case err == nil:
		d.loop()
	case flow.CodeOf(err) != flow.CodeStale:
		e.stuck(j, run, err)
	}
}

// register makes a driver known to those who have something for its run,
// before anything can happen that they would have to interrupt. Of a run there
// is one at a time: if there is another already, register does nothing and
// gives that.
func (e *Engine) register(d *driver) (other *driver) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if other = e.active[d.runID]; other == nil {
		e.active[d.runID] = d
	}
	return other
}

// unregister ends a driver.
func (e *Engine) unregister(d *driver) {
	d.cancel()
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.active, d.runID)
	close(d.ended)
}

func (e *Engine) stopping() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.draining
}

func null(raw json.RawMessage) json.RawMessage {
	if raw == nil {
		return json.RawMessage("null")
	}
	return raw
}
