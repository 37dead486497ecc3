package vault

import (
	"context"
	"strconv"
	"time"

	"github.com/longstop-dev/longstop/internal/flow"
)

// EventsIn narrows a vault's events, oldest first.
type EventsIn struct {
	ID          string `path:"id" doc:"The vault's id or name."`
	After       int64  `query:"after" minimum:"0" doc:"Only those with a higher sequence number."`
	Scope       string `query:"scope"`
	Type        string `query:"type"`
	Correlation string `query:"correlation" doc:"metadata.correlation: a text as it is, anything else as JSON."`
	Parent      string `query:"parent" doc:"Only those that name this event as a parent."`
	Limit       int    `query:"limit" minimum:"1" maximum:"1000" default:"100"`
}

// EventIn names an event.
type EventIn struct {
	ID    string `path:"id" doc:"The vault's id or name."`
	Event string `path:"event"`
}

// ListEvents lists a vault's events; not_found for the vault.
func (s *Service) ListEvents(ctx context.Context, by flow.Caller, in *EventsIn) (*List[flow.VaultEvent], error) {
	v, err := s.c.Vaults.Vault(ctx, by.Workspace, in.ID)
	if err != nil {
		return nil, err
	}
	s.sweep()
	limit := pageSize(in.Limit)
	rows, err := s.c.Events.VaultEvents(ctx, flow.EventFilter{Vault: v.ID, After: in.After, Scope: in.Scope, Type: in.Type,
		Correlation: in.Correlation, Parent: in.Parent, Limit: limit + 1})
	if err != nil {
		return nil, err
	}
	size := 0
	for i := range rows {
		size += rows[i].Size()
	}
	out := &List[flow.VaultEvent]{Items: rows[:min(len(rows), limit)]}
	if len(rows) > limit || size > flow.MaxEventPage {
		out.Next = strconv.FormatInt(out.Items[len(out.Items)-1].Seq, 10)
	}
	if out.Items == nil {
		out.Items = []flow.VaultEvent{}
	}
	return out, nil
}

// GetEvent gives an event; not_found.
func (s *Service) GetEvent(ctx context.Context, by flow.Caller, in *EventIn) (*flow.VaultEvent, error) {
	v, err := s.c.Vaults.Vault(ctx, by.Workspace, in.ID)
	if err != nil {
		return nil, err
	}
	e, err := s.c.Events.VaultEvent(ctx, by.Workspace, v.ID, in.Event)
	return &e, err
}

// sweepEvery is how often events past their retention are looked for, while
// vaults are used at all.
const sweepEvery = time.Hour

// sweep removes events past their retention now and then, beside whoever reads
// or appends.
func (s *Service) sweep() {
	now, last := s.c.Clock.Now().UnixMicro(), s.swept.Load()
	if now >= last && now-last < sweepEvery.Microseconds() || !s.swept.CompareAndSwap(last, now) {
		return
	}
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_, _ = s.Tidy(ctx) // what is left is looked at in an hour
	}()
}

// Tidy removes events past their retention, and says how many.
func (s *Service) Tidy(ctx context.Context) (int64, error) {
	const batch = 1000
	return s.c.Events.Forget(ctx, s.c.Clock.Now().UnixMicro(), batch)
}
