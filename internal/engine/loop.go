package engine

import (
	"context"
	"errors"

	"github.com/longstop-dev/longstop/internal/flow"
)

// MaxAtWork is how many steps of one run execute at the same time; more
// branches than that take turns.
const MaxAtWork = 16

// act adds what has been decided to a change, and commits it. It is carried
// out by the run's driver, on the run as it stands then.
type act func(c *change) error

// delivery is something for a driver to record.
type delivery struct {
	do    act                // nil if the worker was interrupted: nothing is known then
	key   flow.StepKey       // of the worker's step instance
	row   *flow.StepInstance // its checkpoint when the worker began
	done  chan<- error       // of mail: tells the sender what became of it
	asked bool               // of mail: a caller waits, and is told rather than kept waiting
}

// loop moves the run on until it is parked or finished, until somebody else
// has it, or until the engine stops.
func (d *driver) loop() {
	var err error
	for err == nil && d.run.Status == flow.RunRunning && d.caller.Load() == nil {
		v, ok := d.await()
		if !ok {
			break
		}
		err = d.record(v)
	}
	for _, v := range d.kept { // whoever sent them looks again
		v.done <- flow.Errorf(flow.CodeStale, "run %s has just been put down", d.runID)
	}
	d.kept = nil
	if by := d.caller.Load(); by != nil && d.run.Status == flow.RunRunning {
		err = d.abort(*by)
	}
	switch {
	case err == nil:
	case flow.CodeOf(err) == flow.CodeStale:
		d.e.Log.Info("run was taken over", "run", d.runID)
	case d.ctx.Err() != nil: // the engine stops: the next start takes it up
	default:
		d.e.stuck(job{runID: d.runID}, d.run, err)
	}
}

// await begins what the last change has begin, and waits for the next thing to
// record. There is none when the run is interrupted, or when the engine stops
// and all that was executing has ended.
func (d *driver) await() (delivery, bool) {
	next := d.next
	d.next = nil
	if d.e.stopping() {
		next = nil
	}
	if d.alone && len(next) == 1 { // nobody has anything to say meanwhile
		do := d.worker(next[0]).work()
		return delivery{do: do, key: next[0].key(), row: next[0].inst}, do != nil
	}
	for _, t := range next {
		d.begins(t)
	}
	if len(d.kept) > 0 {
		v := d.kept[0]
		d.kept = d.kept[1:]
		return v, true
	}
	if len(d.busy) == 0 {
		return delivery{}, false
	}
	select {
	case v := <-d.found:
		delete(d.busy, v.key)
		return v, v.do != nil
	case v := <-d.mail:
		return v, true
	case <-d.ctx.Done():
		return delivery{}, false
	}
}

// begins has a worker of its own do the task.
func (d *driver) begins(t task) {
	if d.busy == nil {
		d.busy, d.found = map[flow.StepKey]struct{}{}, make(chan delivery, MaxAtWork)
	}
	v := delivery{key: t.key(), row: t.inst}
	d.busy[v.key] = struct{}{}
	w := d.worker(t)
	d.crew.Go(func() {
		v.do = w.work()
		d.found <- v
	})
}

// record carries out what was delivered.
func (d *driver) record(v delivery) error {
	c := d.begin()
	if v.done != nil {
		c.asked = v.asked
		err := v.do(c)
		v.done <- err
		if !c.sent || v.asked && errors.Is(err, flow.ErrLater) {
			d.next, d.alone = nil, false // it was refused, and the run stands where it stood
			return nil
		}
		return err
	}
	if d.rows[v.key] != v.row { // a gate was answered while its end was being looked at
		return c.commit(d.ctx)
	}
	return v.do(c)
}

// stop has the driver end the run as cancelled as soon as it can.
func (d *driver) stop(by flow.Caller) {
	d.caller.CompareAndSwap(nil, &by)
	d.cancel()
}

// hand gives the driver something to record beside what its workers find out.
// It answers stale if the driver ended before it took it: what is stored
// decides then.
func (d *driver) hand(ctx context.Context, v delivery) error {
	done := make(chan error, 1)
	v.done = done
	select {
	case d.mail <- v:
		return <-done
	case <-d.ended:
		return flow.Errorf(flow.CodeStale, "run %s has just been put down", d.runID)
	case <-ctx.Done():
		return ctx.Err()
	}
}
