package engine

import (
	"context"
	"encoding/json"
	"time"

	"github.com/longstop-dev/longstop/internal/flow"
)

// change gathers one transition of a run; commit writes it. Until then the
// driver's own picture of the run is untouched, and afterwards it is the new
// one.
type change struct {
	d       *driver
	c       flow.Change
	now     time.Time
	console []string   // lines that the step printed, for its log
	woken   bool       // a wake-up has fired for it
	sent    bool       // the store was asked to write it
	asked   bool       // somebody waits for it: it is tried once
	once    *flow.Once // the key that the run it makes is remembered by, or nil
}

// begin starts a transition from where the run stands.
func (d *driver) begin() *change {
	run := d.run
	run.Version++
	return &change{d: d, c: flow.Change{Run: run}, now: d.e.Clock.Now()}
}

// claim makes the run this node's, whoever had it.
func (c *change) claim() {
	c.c.Claim = true
	c.c.Run.Epoch++
	c.c.Run.Owner = c.d.e.Node
	c.status(flow.RunRunning)
}

func (c *change) status(s flow.RunStatus) { c.c.Run.Status = s }

// wakeAt sets when the run is due; zero takes its wake-up away.
func (c *change) wakeAt(at time.Time) {
	if !c.c.Run.WakeAt.Equal(at) {
		c.c.Run.WakeAt = at
		c.c.Run.WakeSeq++
	}
}

// finish ends the run.
func (c *change) finish(s flow.RunStatus) {
	c.status(s)
	c.wakeAt(time.Time{})
	c.c.Run.Owner, c.c.Run.Current, c.c.Run.FinishedAt = "", "", c.now
}

func (c *change) step(inst flow.StepInstance) { c.c.Steps = append(c.c.Steps, inst) }
func (c *change) gate(g flow.Gate)            { c.c.Gates = append(c.c.Gates, g) }
func (c *change) kase(k flow.Case)            { c.c.Cases = append(c.c.Cases, k) }

// event adds an event; data is written as JSON and must be an object or nil.
func (c *change) event(kind string, key *flow.StepKey, data any) {
	c.c.Run.Seq++
	e := flow.Event{Seq: c.c.Run.Seq, Type: kind, At: c.now}
	if key != nil {
		e.StepIndex, e.Iteration = &key.Index, key.Iteration
	}
	if data != nil {
		e.Data, _ = json.Marshal(data) // our own structs, which marshal
	}
	c.c.Events = append(c.c.Events, e)
}

// log adds a row of the step log, under the event that was added last.
func (c *change) log(n *node, inst *flow.StepInstance, status string, fill func(*flow.Log)) {
	l := flow.Log{Seq: c.c.Run.Seq, At: c.now, StepIndex: n.Index, Iteration: inst.Iteration, StepID: n.ID, Type: n.Type, Title: n.Title,
		Attempt: inst.Attempts, Status: status, RecoverySource: inst.RecoverySource}
	fill(&l)
	c.c.Logs = append(c.c.Logs, l)
}

// commit writes the transition with what follows from it, makes it the
// driver's picture of the run, and tells the dispatcher and the watchers.
func (c *change) commit(ctx context.Context) error {
	d, e := c.d, c.d.e
	undo, err := d.lay(c.c.Steps)
	if err == nil && c.c.Run.Status == flow.RunRunning {
		err = c.stand()
	}
	if err == nil {
		c.tell(ctx) // once it is known whether the run ends with it
		err = c.remember()
	}
	if err == nil {
		c.sent = true
		err = e.record(ctx, d, c.c, c.asked)
	}
	if err != nil {
		undo()
		return err
	}
	had := d.run.WakeSeq
	d.run = c.c.Run
	if w, any := d.run.Wakeup(); d.run.WakeSeq != had || c.woken && any {
		e.Dispatch.Schedule(w)
	}
	e.feed.Moved(d.runID)
	if len(c.c.Notices) > 0 && e.Told != nil {
		e.Told()
	}
	for i := range c.c.Gates {
		if c.c.Gates[i].Kind == flow.GateNeedsAgent {
			e.inbox.changed(d.workspace)
			break
		}
	}
	return nil
}

// lay puts step instances into the driver's picture of the run; undo takes
// them out again.
func (d *driver) lay(steps []flow.StepInstance) (undo func(), err error) {
	had := make([]*flow.StepInstance, 0, len(steps))
	undo = func() {
		for i := len(had) - 1; i >= 0; i-- {
			if key := steps[i].StepKey; had[i] != nil {
				d.rows[key] = had[i]
			} else {
				delete(d.rows, key)
			}
		}
	}
	for i := range steps {
		s := steps[i]
		had = append(had, d.rows[s.StepKey])
		d.rows[s.StepKey] = &s
		if err := d.see(&s); err != nil {
			return undo, err
		}
	}
	return undo, nil
}

// stepData is the payload of step events.
type stepData struct {
	ID             string      `json:"id"`
	Type           string      `json:"type,omitempty"`
	Title          string      `json:"title,omitempty"`
	Attempt        int         `json:"attempt,omitempty"`
	DurationMS     float64     `json:"durationMs,omitempty"`
	RecoverySource flow.Source `json:"recovery_source"`
	Error          string      `json:"error,omitempty"`
	Message        string      `json:"message,omitempty"`
	Stopped        bool        `json:"stopped,omitempty"` // by the failure of a step in another branch
	DueAt          *time.Time  `json:"dueAt,omitempty"`
	CaseID         string      `json:"caseId,omitempty"`
	GateID         string      `json:"gateId,omitempty"`
}

type gateData struct {
	GateID     string        `json:"gateId"`
	Kind       flow.GateKind `json:"kind"`
	CaseID     string        `json:"caseId,omitempty"`
	ExpiresAt  *time.Time    `json:"expiresAt,omitempty"`
	Diagnosis  string        `json:"diagnosis,omitempty"`
	Suggestion string        `json:"suggestion,omitempty"`
	Message    string        `json:"message,omitempty"`
	Answer     string        `json:"answer,omitempty"`
	Hint       string        `json:"hint,omitempty"`
	Reason     string        `json:"reason,omitempty"`
	By         string        `json:"by,omitempty"`
	Reminder   int           `json:"reminder,omitempty"` // its number, from 1
	RemindAt   *time.Time    `json:"remindAt,omitempty"` // the next one
}

type runData struct {
	Workflow string          `json:"workflow,omitempty"`
	Output   json.RawMessage `json:"output,omitempty"`
	Error    string          `json:"error,omitempty"`
	By       string          `json:"by,omitempty"`
	Hint     string          `json:"hint,omitempty"`
	RerunOf  string          `json:"rerunOf,omitempty"`
	From     string          `json:"from,omitempty"`
	Carried  []string        `json:"carried,omitempty"`
	WakeAt   *time.Time      `json:"wakeAt,omitempty"`
}
