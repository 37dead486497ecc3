package access

import (
	"context"
	"strconv"
	"time"

	"github.com/longstop-dev/longstop/internal/flow"
)

// AuditIn narrows the audit record.
type AuditIn struct {
	Person string `query:"person" doc:"Only what this person did, by id."`
	Op     string `query:"op" doc:"Only this operation, such as runs.start, or keys. for all of keys."`
	Target string `query:"target" doc:"Only what was done to this, such as run/ID, or setting/ for all settings."`
	From   string `query:"from" doc:"Only from this instant on, RFC 3339."`
	To     string `query:"to" doc:"Only before this instant, RFC 3339."`
	Order  string `query:"order" enum:"newest,oldest" default:"newest" doc:"Which come first. Verifying needs oldest."`
	Limit  int    `query:"limit" minimum:"1" maximum:"500" default:"50" doc:"Items on a page."`
	After  string `query:"after" doc:"The cursor that the page before gave as next."`
}

// AuditList reads the audit record of the workspace. It answers invalid for a
// filter that cannot be.
func (s *Service) AuditList(ctx context.Context, by flow.Caller, in *AuditIn) (*List[flow.Audit], error) {
	f := flow.AuditFilter{Workspace: by.Workspace, Author: in.Person, Op: in.Op, Target: in.Target, Oldest: in.Order == "oldest", Limit: 51}
	if in.Limit > 0 {
		f.Limit = min(in.Limit, 500) + 1
	}
	var err error
	if f.From, err = instant("from", in.From); err != nil {
		return nil, err
	}
	if f.To, err = instant("to", in.To); err != nil {
		return nil, err
	}
	if in.After != "" {
		if f.After, err = strconv.ParseInt(in.After, 10, 64); err != nil || f.After < 1 {
			return nil, flow.Errorf(flow.CodeInvalid, "this is no cursor").At("after").Right("what the page before gave as next")
		}
	}
	rows, err := s.c.Audit.Audit(ctx, f)
	if err != nil {
		return nil, err
	}
	out := &List[flow.Audit]{Items: rows}
	if len(rows) == f.Limit {
		out.Items = rows[:f.Limit-1]
		out.Next = strconv.FormatInt(out.Items[f.Limit-2].Seq, 10)
	}
	if out.Items == nil {
		out.Items = []flow.Audit{}
	}
	return out, nil
}

func instant(field, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil || t.Year() < 1970 || t.Year() > 9999 {
		return t, flow.Errorf(flow.CodeInvalid, "this is no instant").At(field).Right("RFC 3339, such as 2026-01-31T23:59:00Z")
	}
	return t, nil
}

// AuditHead gives where the workspace's audit record ends.
func (s *Service) AuditHead(ctx context.Context, by flow.Caller, _ *None) (*flow.AuditHead, error) {
	h, err := s.c.Audit.AuditHead(ctx, by.Workspace)
	if err != nil {
		return nil, err
	}
	return &h, nil
}
