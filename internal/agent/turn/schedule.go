package turn

import (
	"container/heap"
	"context"
	"time"

	"github.com/longstop-dev/longstop/internal/flow"
)

// entry is a Job with a turn that is not done. It stands in the heap, or in a
// lane, or somebody works at it.
type entry struct {
	job  string
	turn flow.Turn // without an id: still to be read
	more bool      // another turn of the Job was appended meanwhile

	due   time.Time
	index int  // in the heap; -1 outside
	busy  bool // in a lane or worked at

	fails     int             // of the database, in a row
	unwritten *flow.TurnWrite // what the database has not taken yet

	connection string                  // of a message that is being sent
	giveUp     context.CancelCauseFunc // which ends it
	flaps      int                     // answers to polls that could not be used, in a row
}

// polls reports whether what the entry has to do next is a poll.
func (e *entry) polls() bool { return e.turn.Status == flow.TurnWaiting }

// loop starts what is due, until the driver stops.
func (d *Driver) loop() {
	defer d.loops.Done()
	for {
		d.mu.Lock()
		if d.stopped {
			d.mu.Unlock()
			return
		}
		now := d.c.Clock.Now()
		for len(d.due) > 0 && !d.due[0].due.After(now) {
			d.admit(d.due.take())
		}
		var timer <-chan time.Time // of nothing, while nothing waits
		stop := func() {}
		if len(d.due) > 0 {
			timer, stop = d.c.Clock.After(d.due[0].due.Sub(now))
			if !d.due[0].due.After(d.c.Clock.Now()) { // the clock was moved before the timer stood
				d.mu.Unlock()
				stop()
				continue
			}
		}
		d.mu.Unlock()
		select {
		case <-timer:
		case <-d.poke:
		}
		stop()
	}
}

// admit starts an entry, or has it wait in its lane. The lock is held.
func (d *Driver) admit(e *entry) {
	e.busy = true
	l := d.lane(e)
	if l.enter(e) {
		d.start(e, l)
	}
}

func (d *Driver) lane(e *entry) *lanes {
	if e.polls() {
		return d.polls
	}
	return d.sends
}

// start works at an entry that has a place in its lane. The lock is held.
func (d *Driver) start(e *entry, l *lanes) {
	d.work.Add(1)
	go func() {
		defer d.work.Done()
		key := laneKey(e)
		next, done := d.step(e)
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.rest != nil {
			defer d.rest()
		}
		for _, other := range l.leave(key) {
			if d.stopped {
				break // it is taken up at the next start
			}
			d.start(other, l)
		}
		e.busy = false
		switch {
		case !done:
			e.due = next
		case e.more:
			e.more, e.due = false, time.Time{}
			e.turn = flow.Turn{Job: e.job, Workspace: e.turn.Workspace, Agent: e.turn.Agent}
		default:
			delete(d.jobs, e.job)
			return
		}
		d.due.put(e)
		if e.index == 0 {
			d.wake()
		}
	}()
}

// heapOf is the entries that wait, the earliest first.
type heapOf []*entry

func (h heapOf) Len() int           { return len(h) }
func (h heapOf) Less(i, j int) bool { return h[i].due.Before(h[j].due) }
func (h heapOf) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

// Push belongs to [heap.Interface].
func (h *heapOf) Push(x any) {
	e := x.(*entry)
	e.index = len(*h)
	*h = append(*h, e)
}

// Pop belongs to [heap.Interface].
func (h *heapOf) Pop() any {
	last := len(*h) - 1
	e := (*h)[last]
	(*h)[last] = nil
	*h, e.index = (*h)[:last], -1
	return e
}

func (h *heapOf) put(e *entry)                { heap.Push(h, e) }
func (h *heapOf) take() *entry                { return heap.Pop(h).(*entry) }
func (h *heapOf) move(e *entry, to time.Time) { e.due = to; heap.Fix(h, e.index) }
