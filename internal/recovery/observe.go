package recovery

import (
	"context"
	"net/url"
	"runtime/debug"
	"sync"
	"time"

	"github.com/longstop-dev/longstop/internal/flow"
)

// What may be asked beside the runs, in this process. More is not asked, and
// the case says so.
const (
	maxObserving    = 32
	maxWaiting      = 256
	maxWaitingBytes = 64 << 20
	recordTimeout   = 10 * time.Second
)

// Observations keeps what own agents would have done.
type Observations interface {
	// PutObservation keeps what became of an observation. One that is final
	// already stays, unless it was lost.
	PutObservation(ctx context.Context, workspace, caseID string, o flow.Observation) error
	// LoseObservations marks every observation lost that has no answer yet.
	LoseObservations(ctx context.Context) (int64, error)
	// ObservedCases lists a workspace's observed cases, newest first.
	ObservedCases(ctx context.Context, workspace, before string, limit int) ([]flow.Case, error)
	// StepStatus gives how a step instance stands; "" if it has not begun.
	StepStatus(ctx context.Context, runID string, key flow.StepKey) (flow.StepStatus, error)
}

// observer asks own agents beside the runs. No run waits for it.
type observer struct {
	d      *Desk
	ctx    context.Context // ends what is asked when the desk stops
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu      sync.Mutex
	asking  int
	waiting []observation
	bytes   int64 // held by those that wait
	stopped bool
}

// observation is a case that is to be put before the own agent.
type observation struct {
	s    *sitting
	own  Responder // nil: there is none any more
	size int64
}

func newObserver(d *Desk) *observer {
	o := &observer{d: d}
	o.ctx, o.cancel = context.WithCancel(context.Background())
	return o
}

// observed is the observation with which a case begins, or nil: the own agent
// has the first attempt of an episode, and here a look at it.
func (d *Desk) observed(ctx context.Context, f flow.Failure) *flow.Observation {
	if f.Instance.Progress.Round != 0 {
		return nil
	}
	settings, err := d.c.Settings.Recovery(ctx, f.Run.Workspace, layers(f)...)
	if err != nil || settings.Mode != modeObserve {
		return nil // what is wrong with the settings, deciding will say
	}
	own := d.own(settings)
	if own == nil {
		return nil
	}
	return &flow.Observation{State: flow.ObservationAsked,
		Asked: flow.Asked{Responder: own.Name(), Target: targetOf(settings), Source: flow.SourceBYOA, At: d.c.Clock.Now()}}
}

// targetOf is the own agent as it is shown: its URL without a query, or its
// server's id.
func targetOf(settings flow.RecoverySettings) string {
	u, err := url.Parse(settings.A2AAgentURL)
	if settings.A2AAgentURL == "" || err != nil {
		return settings.MCPServerID
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return u.String()
}

// observe has the own agent asked beside the run if the case was frozen for
// that and no answer is known yet: also after a restart, when the run's
// decision is made again.
func (s *sitting) observe() {
	k := s.kase.Observed
	if k == nil || k.State != flow.ObservationAsked && k.State != flow.ObservationLost {
		return
	}
	s.beside = "your agent (" + k.Responder + ") is observed and not waited for"
	aside := *s
	aside.kase.Asked = nil
	aside.failure.Left = max(s.failure.Left, s.settings.Timeout) // the run's clock is not its clock
	s.d.observer.begin(observation{s: &aside, own: s.own(), size: weight(s.failure)})
}

// weight is about what a failure holds in memory.
func weight(f flow.Failure) int64 {
	n := int64(len(f.Run.Input) + len(f.Config))
	for _, p := range f.Prior {
		n += int64(len(p.Output))
	}
	return n
}

// begin asks now, or when there is room.
func (o *observer) begin(x observation) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.stopped: // the row says that it was asked; stopping marks it lost
	case o.asking < maxObserving:
		o.asking++
		o.wg.Go(func() { o.work(x) })
	case len(o.waiting) < maxWaiting && o.bytes+x.size <= maxWaitingBytes:
		o.waiting = append(o.waiting, x)
		o.bytes += x.size
	default:
		o.wg.Go(func() {
			o.record(x, flow.Observation{State: flow.ObservationSkipped, Asked: x.s.part("the agent was not asked: too many cases were being observed")})
		})
	}
}

// work asks about x, and then about what waits.
func (o *observer) work(x observation) {
	for {
		o.ask(x)
		o.mu.Lock()
		if len(o.waiting) == 0 || o.stopped {
			o.asking--
			o.mu.Unlock()
			return
		}
		x, o.waiting = o.waiting[0], o.waiting[1:]
		o.bytes -= x.size
		o.mu.Unlock()
	}
}

// ask puts one case before the own agent and keeps what it would have done,
// checked as if it were applied. What an agent answers does not take the
// process along: no run waits here that could fail instead.
func (o *observer) ask(x observation) {
	defer func() {
		if p := recover(); p != nil {
			o.d.c.Log.Error("observing an agent panicked", "case", x.s.kase.ID, "stack", string(debug.Stack()))
			o.record(x, flow.Observation{State: flow.ObservationFailed, Asked: x.s.part("its answer cannot be read")})
		}
	}()
	if x.own == nil {
		o.record(x, flow.Observation{State: flow.ObservationFailed, Asked: x.s.part("no agent is set any more")})
		return
	}
	_, _ = x.s.consult(o.ctx, x.own, flow.SourceBYOA) // what came of it stands in the case
	if o.ctx.Err() != nil {
		return // the desk stops, and marks it lost
	}
	got := flow.Observation{State: flow.ObservationAnswered, Asked: x.s.kase.Asked[0]}
	if got.Action == nil {
		got.State = flow.ObservationFailed
	}
	o.record(x, got)
}

// part is the own agent's part in a case about which it was not asked.
func (s *sitting) part(why string) flow.Asked {
	out := s.kase.Observed.Asked
	out.Rejection = why
	return out
}

func (o *observer) record(x observation, got flow.Observation) {
	ctx, cancel := context.WithTimeout(context.Background(), recordTimeout)
	defer cancel()
	if err := o.d.c.Observations.PutObservation(ctx, x.s.failure.Run.Workspace, x.s.kase.ID, got); err != nil {
		o.d.c.Log.Error("what an observed agent would have done cannot be recorded", "case", x.s.kase.ID, "error", err)
	}
}

// Start marks what an earlier process was asking about as lost. It is called
// before any run is driven: a run whose decision is made again asks again.
func (d *Desk) Start(ctx context.Context) error {
	n, err := d.c.Observations.LoseObservations(ctx)
	if err == nil && n > 0 {
		d.c.Log.Warn("the server ended before observed agents had answered", "cases", n)
	}
	return err
}

// Stop waits until ctx ends for the answers of observed agents that are being
// asked. Those that have not come by then, and those that wait to be asked, are
// recorded as lost. It is called when no run is driven any more.
func (d *Desk) Stop(ctx context.Context) {
	o := d.observer
	o.mu.Lock()
	o.stopped, o.waiting, o.bytes = true, nil, 0
	o.mu.Unlock()
	ended := make(chan struct{})
	go func() { o.wg.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-ctx.Done():
		o.cancel()
		<-ended
	}
	o.cancel()
	quick, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	if _, err := d.c.Observations.LoseObservations(quick); err != nil {
		d.c.Log.Warn("observations without an answer are marked lost by the next start", "error", err)
	}
}
