package store

import (
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/longstop-dev/longstop/internal/flow"
)

// inboxGate stores a run that waits in the inbox.
func inboxGate(t *testing.T, s *Store, n int) (flow.Run, flow.Gate) {
	t.Helper()
	r := create(t, s, fmt.Sprintf("run_%d", n))
	g := flow.Gate{ID: fmt.Sprintf("gate_%d", n), Workspace: "ws", RunID: r.ID, Kind: flow.GateNeedsAgent, Status: flow.GateOpen, OpenedAt: at(), ExpiresAt: at().Add(time.Hour)}
	r.Version, r.Status = 2, flow.RunWaiting
	if err := s.Apply(t.Context(), flow.Change{Run: r, Gates: []flow.Gate{g}}); err != nil {
		t.Fatal(err)
	}
	return r, g
}

func TestClaims(t *testing.T) {
	onEach(t, func(t *testing.T, db Options) {
		s := open(t, db)
		r, g := inboxGate(t, s, 1)
		mine := flow.Claim{GateID: g.ID, Workspace: "ws", Holder: "key_1", Name: "a", ClaimedAt: at(), ExpiresAt: at().Add(time.Minute)}
		same(t, "no claim", must(s.Claim(t.Context(), "ws", g.ID)), flow.Claim{})
		wantCode(t, "claim", s.ClaimGate(t.Context(), mine), "")
		later := func(c flow.Claim, by time.Duration) flow.Claim {
			c.ClaimedAt, c.ExpiresAt = c.ClaimedAt.Add(by), c.ExpiresAt.Add(by)
			return c
		}
		other, namesake := mine, mine
		other.Holder, namesake.Name = "key_2", "b"
		wantCode(t, "another key's", s.ClaimGate(t.Context(), later(other, 30*time.Second)), flow.CodeConflict)
		wantCode(t, "another name's", s.ClaimGate(t.Context(), later(namesake, 30*time.Second)), flow.CodeConflict)
		stranger := other
		stranger.Workspace = "ws2"
		wantCode(t, "another workspace's", s.ClaimGate(t.Context(), later(stranger, time.Hour)), flow.CodeConflict)
		wantCode(t, "prolonged", s.ClaimGate(t.Context(), later(mine, 30*time.Second)), "")
		longer := mine
		longer.ExpiresAt = at().Add(90 * time.Second)
		same(t, "prolonged", must(s.Claim(t.Context(), "ws", g.ID)), longer)
		page := must(s.Inbox(t.Context(), "ws", "", 10, at().Add(89*time.Second)))
		if len(page) != 1 || page[0].Claim == nil || *page[0].Claim != longer {
			t.Errorf("inbox: got %+v, want the claim", page)
		}
		if page = must(s.Inbox(t.Context(), "ws", "", 10, at().Add(90*time.Second))); len(page) != 1 || page[0].Claim != nil {
			t.Errorf("inbox after the claim: got %+v, want none", page)
		}
		taken := later(other, 90*time.Second)
		wantCode(t, "after it has ended", s.ClaimGate(t.Context(), taken), "")
		wantCode(t, "release of what is another's now", s.ReleaseGate(t.Context(), mine), "")
		same(t, "it stays", must(s.Claim(t.Context(), "ws", g.ID)), taken)
		wantCode(t, "release", s.ReleaseGate(t.Context(), taken), "")
		same(t, "released", must(s.Claim(t.Context(), "ws", g.ID)), flow.Claim{})

		wantCode(t, "claim again", s.ClaimGate(t.Context(), mine), "")
		r.Version, g.Status = 3, flow.GateAnswered
		if err := s.Apply(t.Context(), flow.Change{Run: r, Gates: []flow.Gate{g}}); err != nil {
			t.Fatal(err)
		}
		same(t, "gone with its gate", must(s.Claim(t.Context(), "ws", g.ID)), flow.Claim{})
		wantCode(t, "a closed gate", s.ClaimGate(t.Context(), later(mine, time.Hour)), flow.CodeConflict)
	})
}

func TestOfTwoClaimsOneWins(t *testing.T) {
	onEach(t, func(t *testing.T, db Options) {
		s := open(t, db)
		for n := range 20 {
			_, g := inboxGate(t, s, n)
			var won atomic.Int64
			var wg sync.WaitGroup
			for i := range 8 {
				wg.Go(func() {
					err := s.ClaimGate(t.Context(), flow.Claim{GateID: g.ID, Workspace: "ws", Holder: fmt.Sprintf("key_%d", i), ClaimedAt: at(), ExpiresAt: at().Add(time.Minute)})
					switch flow.CodeOf(err) {
					case "":
						won.Add(1)
					case flow.CodeConflict:
					default:
						t.Errorf("claim: got %v", err)
					}
				})
			}
			wg.Wait()
			if won.Load() != 1 {
				t.Errorf("round %d: %d won, want 1", n, won.Load())
			}
		}
	})
}

func TestTheOutbox(t *testing.T) {
	onEach(t, func(t *testing.T, db Options) {
		s := open(t, db)
		r := create(t, s, "run_1")
		note := func(n int, workspace string, due time.Time) flow.Notice {
			return flow.Notice{ID: fmt.Sprintf("msg_%d", n), Workspace: workspace, RunID: "run_1", Type: flow.EventGateOpened, Body: []byte(`{"a":1}`),
				State: flow.NoticeWaiting, CreatedAt: at(), DueAt: due}
		}
		list := []flow.Notice{note(1, "ws", at()), note(2, "ws", at().Add(time.Second)), note(3, "ws2", at()), note(4, "ws", at().Add(time.Hour))}
		r.Version = 5
		wantCode(t, "a stale change", s.Apply(t.Context(), flow.Change{Run: r, Notices: list}), flow.CodeStale)
		same(t, "nothing of it is written", len(must(s.Notices(t.Context(), "ws", "", 10))), 0)
		r.Version = 2
		if err := s.Apply(t.Context(), flow.Change{Run: r, Notices: list}); err != nil {
			t.Fatal(err)
		}
		now := at().Add(time.Minute)
		same(t, "workspaces due", len(must(s.NoticesDue(t.Context(), now))), 2)
		same(t, "of ws", must(s.NoticesOf(t.Context(), "ws", now, 10)), list[:2])
		same(t, "at most one", must(s.NoticesOf(t.Context(), "ws", now, 1)), list[:1])
		same(t, "next", must(s.NextNotice(t.Context(), now)), at().Add(time.Hour))
		same(t, "no next", must(s.NextNotice(t.Context(), at().Add(time.Hour))), time.Time{})
		done := list[0]
		done.State, done.Tries, done.Status, done.DueAt, done.SettledAt = flow.NoticeSent, 1, 204, time.Time{}, now
		again := list[1]
		again.Tries, again.Error, again.DueAt = 1, "HTTP 500: Internal Server Error", now.Add(time.Minute)
		for _, n := range []flow.Notice{done, again} {
			wantCode(t, "settle", s.SettleNotice(t.Context(), n), "")
		}
		same(t, "nothing due", len(must(s.NoticesOf(t.Context(), "ws", now, 10))), 0)
		same(t, "newest first", must(s.Notices(t.Context(), "ws", "", 10)), []flow.Notice{list[3], again, done})
		same(t, "a page", must(s.Notices(t.Context(), "ws", "msg_4", 1)), []flow.Notice{again})
		wantCode(t, "sweep", s.SweepNotices(t.Context(), now.Add(time.Second)), "")
		same(t, "swept", must(s.Notices(t.Context(), "ws", "", 10)), []flow.Notice{list[3], again})
	})
}

// TestARunsGatesAreFoundByTheRun: among the thousands of a workspace, a run's
// gates and cases are found without walking the others.
func TestARunsGatesAreFoundByTheRun(t *testing.T) {
	t.Parallel()
	s := open(t, Options{Path: filepath.Join(t.TempDir(), "t.db")})
	walks := func(what, index, q string, args []any) {
		rs, err := s.db.query(t.Context(), `EXPLAIN QUERY PLAN `+q, args...)
		plan, err := collect(rs, err, func(r row) (text string, err error) {
			var id, parent, unused int64
			return text, r.Scan(&id, &parent, &unused, &text)
		})
		if err != nil || len(plan) == 0 || !strings.Contains(plan[0], index) || strings.Contains(strings.Join(plan, "\n"), "TEMP B-TREE") {
			t.Errorf("%s: got the plan %q, %v, want one by %s", what, plan, err, index)
		}
	}
	q, args := gatesQuery("ws", "run_1", "open", "", 10)
	walks("gates", "gates_of_run (run_id=? AND workspace_id=? AND id>?)", q, args)
	q, args = casesQuery("ws", "run_1", "", 10)
	walks("cases", "cases_of_run (run_id=? AND workspace_id=? AND id<?)", q, args)
}
