package engine

import (
	"context"
	"encoding/json"
	"net/url"
	"strings"
	"time"

	"github.com/longstop-dev/longstop/internal/flow"
)

// notice is what is told outside of an event: small, and masked as the event
// is.
type notice struct {
	Type      string     `json:"type"`
	Timestamp time.Time  `json:"timestamp"`
	Data      noticeData `json:"data"`
}

type noticeData struct {
	Workspace  string            `json:"workspace"`
	RunID      string            `json:"runId"`
	Workflow   string            `json:"workflow"`
	StepIndex  *int              `json:"stepIndex,omitempty"`
	Iteration  string            `json:"iteration,omitempty"`
	Title      string            `json:"title,omitempty"`
	GateID     string            `json:"gateId,omitempty"`
	Kind       flow.GateKind     `json:"kind,omitempty"`
	CaseID     string            `json:"caseId,omitempty"`
	Message    string            `json:"message,omitempty"`
	Diagnosis  string            `json:"diagnosis,omitempty"`
	Suggestion string            `json:"suggestion,omitempty"`
	Error      string            `json:"error,omitempty"`
	ExpiresAt  *time.Time        `json:"expiresAt,omitempty"`
	Reminder   int               `json:"reminder,omitempty"`
	Links      map[string]string `json:"links,omitempty"`
}

// maxTold bounds each text in a notice, in bytes.
const maxTold = 500

// tell adds to c the notices of its events, if the workspace wants any.
func (c *change) tell(ctx context.Context) {
	d := c.d
	c.c.Notices = nil
	var told []flow.Event
	for _, ev := range c.c.Events {
		switch ev.Type {
		case flow.EventGateOpened, flow.EventGateReminded, flow.EventRunFailed:
			told = append(told, ev)
		}
	}
	if len(told) == 0 {
		return
	}
	policy, err := d.e.Workspaces.Gates(ctx, d.run.Workspace)
	if err != nil { // the run has to go on all the same
		d.e.Log.Error("the workspace's settings cannot be read: nobody is notified", "run", d.run.ID, "error", err)
	}
	if !policy.Notify {
		return
	}
	for _, ev := range told {
		n := notice{Type: ev.Type, Timestamp: c.now, Data: d.told(c, ev)}
		body, _ := json.Marshal(n) // our own structs, which marshal
		c.c.Notices = append(c.c.Notices, flow.Notice{ID: d.e.NewID("msg"), Workspace: d.run.Workspace, RunID: d.run.ID, Type: ev.Type, Body: body,
			State: flow.NoticeWaiting, CreatedAt: c.now, DueAt: c.now})
	}
}

// told is what is told of an event.
func (d *driver) told(c *change, ev flow.Event) noticeData {
	out := noticeData{Workspace: d.run.Workspace, RunID: d.run.ID, Workflow: d.run.Workflow, StepIndex: ev.StepIndex, Iteration: ev.Iteration}
	var g gateData
	if ev.StepIndex != nil && json.Unmarshal(ev.Data, &g) == nil {
		out.GateID, out.Kind, out.CaseID, out.ExpiresAt, out.Reminder = g.GateID, g.Kind, g.CaseID, g.ExpiresAt, g.Reminder
		out.Message, out.Diagnosis, out.Suggestion = cut(g.Message, maxTold), cut(g.Diagnosis, maxTold), cut(g.Suggestion, maxTold)
	}
	for i := range c.c.Gates {
		if gate := &c.c.Gates[i]; gate.ID == out.GateID {
			out.Title, out.Error = cut(gate.Title, maxTold), cut(gate.Error, maxTold)
		}
	}
	if ev.Type == flow.EventRunFailed {
		out.Error = cut(c.c.Run.Error, maxTold)
	}
	if base := strings.TrimSuffix(d.e.PublicURL, "/"); base != "" {
		out.Links = map[string]string{"page": base + "/runs/" + url.PathEscape(d.run.ID), "run": base + "/v1/runs/" + url.PathEscape(d.run.ID)}
		if out.GateID != "" {
			out.Links["gate"] = base + "/v1/gates/" + url.PathEscape(out.GateID)
		}
	}
	return out
}
