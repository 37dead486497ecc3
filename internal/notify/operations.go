package notify

import (
	"context"
	"encoding/json"
	"time"

	"github.com/longstop-dev/longstop/internal/flow"
)

// NoticesIn asks for a page of notices, newest first.
type NoticesIn struct {
	Limit int    `query:"limit" minimum:"1" maximum:"500" default:"50" doc:"Items on a page."`
	After string `query:"after" doc:"The cursor that the page before gave as next."`
}

// NoticeView is a notice as it is shown.
type NoticeView struct {
	ID        string           `json:"id" doc:"The webhook-id: the same for every try."`
	Type      string           `json:"type"`
	RunID     string           `json:"runId,omitempty"`
	State     flow.NoticeState `json:"state" enum:"waiting,sent,given_up"`
	Tries     int              `json:"tries"`
	Status    int              `json:"status,omitempty" doc:"The HTTP status of the last try."`
	Error     string           `json:"error,omitempty" doc:"What was wrong with the last try."`
	CreatedAt time.Time        `json:"createdAt"`
	DueAt     *time.Time       `json:"dueAt,omitempty" doc:"When it is tried next."`
	SettledAt *time.Time       `json:"settledAt,omitempty" doc:"When it was sent or given up."`
	Body      json.RawMessage  `json:"body" doc:"What is sent."`
}

// NoticesOut is a page of notices.
type NoticesOut struct {
	Items []NoticeView `json:"items"`
	Next  string       `json:"next" doc:"Cursor of the next page; empty at the end."`
}

// TestView says what became of a test notice.
type TestView struct {
	Delivered  bool    `json:"delivered"`
	Status     int     `json:"status,omitempty" doc:"What the receiver answered."`
	Error      string  `json:"error,omitempty"`
	ID         string  `json:"id" doc:"The webhook-id that was sent."`
	DurationMS float64 `json:"durationMs"`
}

// NoticesList lists the workspace's notices and what has become of them.
// Settled ones are kept for a week.
func (c *Courier) NoticesList(ctx context.Context, by flow.Caller, in *NoticesIn) (*NoticesOut, error) {
	limit := in.Limit
	if limit <= 0 {
		limit = 50
	}
	rows, err := c.c.Outbox.Notices(ctx, by.Workspace, in.After, limit+1)
	if err != nil {
		return nil, err
	}
	out := &NoticesOut{Items: []NoticeView{}}
	for i, n := range rows {
		if i == limit {
			out.Next = rows[i-1].ID
			break
		}
		out.Items = append(out.Items, NoticeView{ID: n.ID, Type: n.Type, RunID: n.RunID, State: n.State, Tries: n.Tries, Status: n.Status, Error: n.Error,
			CreatedAt: n.CreatedAt, DueAt: optional(n.DueAt), SettledAt: optional(n.SettledAt), Body: n.Body})
	}
	return out, nil
}

// NoticesTest sends a notice of the type test at once, once, and says what
// came of it. It answers invalid if there is nowhere to send it.
func (c *Courier) NoticesTest(ctx context.Context, by flow.Caller, _ *struct{}) (*TestView, error) {
	to, err := c.c.Targets.NoticeTarget(ctx, by.Workspace)
	if err != nil {
		return nil, err
	}
	switch {
	case to.URL == "":
		return nil, flow.Errorf(flow.CodeInvalid, "there is no receiver").At("notify.url").Right("set notify.url to an https URL")
	case len(to.Secret) == 0:
		return nil, flow.Errorf(flow.CodeInvalid, "there is no secret to sign with").At("notify.secret").Right("set notify.secret to " + SecretForm)
	}
	now := c.c.Clock.Now()
	n := flow.Notice{ID: c.c.NewID("msg"), Workspace: by.Workspace, Type: "test"}
	n.Body, err = json.Marshal(map[string]any{"type": n.Type, "timestamp": now, "data": map[string]string{"workspace": by.Workspace, "by": by.Person}})
	if err != nil {
		return nil, flow.Errorf(flow.CodeInternal, "a notice cannot be written as JSON").Because(err)
	}
	t := c.send(ctx, to, n)
	return &TestView{Delivered: t.wrong == "", Status: t.status, Error: t.wrong, ID: n.ID,
		DurationMS: float64(c.c.Clock.Now().Sub(now).Microseconds()) / 1000}, nil
}

func optional(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
