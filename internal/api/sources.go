package api

import (
	"context"
	"net/http"

	"github.com/longstop-dev/longstop/internal/engine"
	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/vault"
)

// runEvents are a run's events; the last is the run's end.
type runEvents struct {
	runs Runs
	by   flow.Caller
	id   string
}

// ofRun gives the source of a request for a run's events.
func ofRun(runs Runs) func(*http.Request, flow.Caller) followed {
	return func(r *http.Request, by flow.Caller) followed {
		if runs == nil {
			return nil
		}
		return runEvents{runs, by, r.PathValue("id")}
	}
}

func (s runEvents) page(ctx context.Context, after int64, limit int) ([]record, bool, error) {
	p, err := s.runs.ListEvents(ctx, s.by, &engine.RecordsIn{ID: s.id, After: after, Limit: limit})
	if err != nil {
		return nil, false, err
	}
	out := make([]record, 0, len(p.Items))
	for _, e := range p.Items {
		out = append(out, record{seq: e.Seq, body: e, last: isEnd(e.Type)})
	}
	return out, p.Next != "", nil
}

func isEnd(kind string) bool {
	return kind == flow.EventRunSucceeded || kind == flow.EventRunFailed || kind == flow.EventRunCancelled
}

func (s runEvents) watch() (<-chan struct{}, func()) { return s.runs.Watch(s.id) }

// over tells whether a run of which nothing was sent has nothing more to send.
func (s runEvents) over(ctx context.Context, after int64) (bool, error) {
	v, err := s.runs.GetRun(ctx, s.by, &engine.RunIn{ID: s.id})
	if err != nil {
		return false, err
	}
	return v.Status.Finished() && v.Seq <= after, nil
}

func (runEvents) op() string { return "runs.events" }

// vaultEvents are a vault's events, which never end.
type vaultEvents struct {
	vaults Vaults
	by     flow.Caller
	in     vault.EventsIn
}

// ofVault gives the source of a request for a vault's events, narrowed as a
// page would be.
func ofVault(vaults Vaults) func(*http.Request, flow.Caller) followed {
	return func(r *http.Request, by flow.Caller) followed {
		if vaults == nil {
			return nil
		}
		q, id := r.URL.Query(), r.PathValue("id")
		if v, err := vaults.Get(r.Context(), by, &vault.In{ID: id}); err == nil { // the page says what is wrong
			id = v.ID
		}
		return vaultEvents{vaults, by, vault.EventsIn{ID: id, Scope: q.Get("scope"), Type: q.Get("type"),
			Correlation: q.Get("correlation"), Parent: q.Get("parent")}}
	}
}

func (s vaultEvents) page(ctx context.Context, after int64, limit int) ([]record, bool, error) {
	in := s.in
	in.After, in.Limit = after, limit
	p, err := s.vaults.ListEvents(ctx, s.by, &in)
	if err != nil {
		return nil, false, err
	}
	out := make([]record, 0, len(p.Items))
	for _, e := range p.Items {
		out = append(out, record{seq: e.Seq, body: e})
	}
	return out, p.Next != "", nil
}

func (s vaultEvents) watch() (<-chan struct{}, func()) {
	return s.vaults.Watch(s.in.ID)
}

func (vaultEvents) over(context.Context, int64) (bool, error) { return false, nil }

func (vaultEvents) op() string { return "events.list" }
