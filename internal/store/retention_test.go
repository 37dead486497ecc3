package store

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/longstop-dev/longstop/internal/flow"
)

func TestRetention(t *testing.T) {
	onEach(t, func(t *testing.T, db Options) {
		s, v, c := vaulted(t, db)
		other := flow.Vault{ID: "vault_2", Workspace: "ws", Name: "kept", Owner: "p", Scopes: []string{"default"}, CreatedAt: at()}
		if err := s.CreateVault(t.Context(), other); err != nil {
			t.Fatal(err)
		}
		kept := event("evt_kept")
		kept.Vault, kept.At = other.ID, at().Add(-1000*24*time.Hour)
		must(s.AppendEvent(t.Context(), flow.VaultAppend{Event: kept}))
		job := flow.Job{ID: "job_1", Workspace: "ws", Connection: c.ID, Vault: v.ID, Scope: "default", Idle: time.Hour, LastAt: at()}
		for i, age := range []time.Duration{5 * 24 * time.Hour, 4 * 24 * time.Hour, time.Hour, 4 * 24 * time.Hour} {
			e := event(fmt.Sprintf("evt_%d", i))
			e.At, e.Target = at().Add(-age), agentID
			if i > 0 {
				e.Parents = []string{fmt.Sprintf("evt_%d", i-1)}
			}
			status := flow.TurnDone
			if i == 1 {
				status = flow.TurnWaiting // its answer is still to come
			}
			must(s.AppendEvent(t.Context(), flow.VaultAppend{Event: e, Key: e.ID, Digest: "d", Route: func(flow.Routing) flow.Routed {
				return flow.Routed{Job: &job, Turn: &flow.Turn{ID: fmt.Sprintf("turn_%d", i), Workspace: "ws", Job: job.ID, Connection: c.ID, Vault: v.ID, Scope: "default",
					Agent: agentID, EventID: e.ID, Status: status, Version: 1, CreatedAt: e.At}}
			}}))
		}
		for _, want := range []int64{2, 0} { // in batches of one: one stays until its turn is done, one is fresh
			if got := must(s.Forget(t.Context(), at().UnixMicro(), 1)); got != want {
				t.Errorf("forgot %d, want %d", got, want)
			}
		}
		left := must(s.VaultEvents(t.Context(), flow.EventFilter{Vault: v.ID, Limit: 10}))
		if len(left) != 2 || left[0].ID != "evt_1" || left[1].ID != "evt_2" || left[1].Seq != 3 {
			t.Errorf("left: %+v", left)
		}
		if left = must(s.VaultEvents(t.Context(), flow.EventFilter{Vault: other.ID, Limit: 10})); len(left) != 1 {
			t.Errorf("left of a vault that keeps all: %+v", left)
		}
		var ids []string
		for _, turn := range must(s.Turns(t.Context(), "ws", job.ID, 10)) {
			ids = append(ids, turn.ID)
		}
		same(t, "turns", ids, []string{"turn_1", "turn_2"})
		if newest := must(s.Turns(t.Context(), "ws", job.ID, 2)); len(newest) != 2 || newest[0].ID != "turn_1" || newest[1].ID != "turn_2" {
			t.Errorf("the newest two: %+v", newest)
		}
		again := event("evt_again")
		must(s.AppendEvent(t.Context(), flow.VaultAppend{Event: again, Key: "evt_0", Digest: "other"})) // its key has gone, too
		if got := must(s.Forget(t.Context(), at().Add(10*24*time.Hour).UnixMicro(), 100)); got != 2 {
			t.Errorf("forgot %d of two vaults, want the 2 of one", got)
		}
		if _, err := s.Job(t.Context(), "ws", job.ID); err != nil {
			t.Errorf("a Job with a turn: %v, want it kept", err)
		}
	})
}

// TestRetentionWritesOnlyWhatIsOver: vaults with nothing to forget hold nobody
// up, and a vault's batches leave room for others' writes between them.
func TestRetentionWritesOnlyWhatIsOver(t *testing.T) {
	onEach(t, func(t *testing.T, db Options) {
		var commits atomic.Int64
		db.Trace = func([]Statement) { commits.Add(1) }
		s, _, _ := vaulted(t, db)
		for i := range 3 {
			e := event(fmt.Sprintf("evt_%d", i))
			e.At = at().Add(-time.Duration(5-i) * 24 * time.Hour)
			must(s.AppendEvent(t.Context(), flow.VaultAppend{Event: e}))
		}
		before := commits.Load()
		for _, c := range []struct{ days, gone, commits int64 }{{-2, 0, 0}, {2, 3, 3}, {4, 0, 0}} {
			gone := must(s.Forget(t.Context(), at().Add(time.Duration(c.days)*24*time.Hour).UnixMicro(), 1))
			after := commits.Load()
			if gone != c.gone || after-before != c.commits {
				t.Errorf("%d days later: forgot %d in %d commits, want %d in %d", c.days, gone, after-before, c.gone, c.commits)
			}
			before = after
		}
	})
}

// One event of a clock that was ahead does not keep all that follow it.
func TestRetentionBehindAnEventOfTheFuture(t *testing.T) {
	onEach(t, func(t *testing.T, db Options) {
		s, v, _ := vaulted(t, db)
		for i, ahead := range []time.Duration{4 * 365 * 24 * time.Hour, 0, time.Hour} {
			e := event(fmt.Sprintf("evt_%d", i))
			e.At = at().Add(ahead)
			must(s.AppendEvent(t.Context(), flow.VaultAppend{Event: e}))
		}
		if n := must(s.Forget(t.Context(), at().Add(30*24*time.Hour).UnixMicro(), 1000)); n != 2 {
			t.Errorf("forgot %d, want 2", n)
		}
		if left := must(s.VaultEvents(t.Context(), flow.EventFilter{Vault: v.ID, Limit: 10})); len(left) != 1 || left[0].ID != "evt_0" {
			t.Errorf("left: %+v", left)
		}
	})
}

// TestRetentionOfJobs: a Job goes when its events have gone and it has ended,
// however long it may idle.
func TestRetentionOfJobs(t *testing.T) {
	onEach(t, func(t *testing.T, db Options) {
		s, v, c := vaulted(t, db)
		const day = 24 * time.Hour
		for i, job := range []flow.Job{
			{ID: "job_over", Idle: time.Hour, LastAt: at().Add(-5 * day)},
			{ID: "job_idles", Idle: 30 * day, LastAt: at().Add(-5 * day)},
			{ID: "job_fresh", Idle: time.Hour, LastAt: at().Add(-2 * day)},
			{ID: "job_busy", Idle: time.Hour, LastAt: at().Add(-5 * day)},
		} {
			job.Workspace, job.Connection, job.Vault, job.Scope, job.Key = "ws", c.ID, v.ID, "default", job.ID
			e := event(fmt.Sprintf("evt_%d", i))
			e.At, e.Target = job.LastAt, agentID
			status := flow.TurnDone
			if job.ID == "job_busy" {
				status = flow.TurnWaiting
			}
			must(s.AppendEvent(t.Context(), flow.VaultAppend{Event: e, Route: func(flow.Routing) flow.Routed {
				return flow.Routed{Job: &job, Turn: &flow.Turn{ID: fmt.Sprintf("turn_%d", i), Workspace: "ws", Job: job.ID, Connection: c.ID, Vault: v.ID, Scope: "default",
					Agent: agentID, EventID: e.ID, Status: status, Version: 1, CreatedAt: e.At}}
			}}))
		}
		must(s.Forget(t.Context(), at().UnixMicro(), 1))
		for id, stays := range map[string]bool{"job_over": false, "job_idles": true, "job_fresh": true, "job_busy": true} {
			if _, err := s.Job(t.Context(), "ws", id); (err == nil) != stays {
				t.Errorf("%s: %v, want it there: %t", id, err, stays)
			}
		}
		must(s.Forget(t.Context(), at().Add(40*day).UnixMicro(), 1))
		for id, stays := range map[string]bool{"job_idles": false, "job_fresh": false, "job_busy": true} {
			if _, err := s.Job(t.Context(), "ws", id); (err == nil) != stays {
				t.Errorf("later, %s: %v, want it there: %t", id, err, stays)
			}
		}
	})
}
