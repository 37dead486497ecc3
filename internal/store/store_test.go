package store

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/pgtest"
)

// onEach runs a test on each database, on an empty one of its own.
func onEach(t *testing.T, test func(t *testing.T, db Options)) {
	t.Parallel()
	for name, empty := range map[string]func(*testing.T) Options{
		"sqlite":   func(t *testing.T) Options { return Options{Path: filepath.Join(t.TempDir(), "t.db")} },
		"postgres": func(t *testing.T) Options { return Options{URL: pgtest.URL(t)} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, empty(t))
		})
	}
}

// open opens a test's database until the test ends.
func open(t *testing.T, db Options) *Store {
	t.Helper()
	s, err := Open(t.Context(), db)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

func at() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC) }

func newRun(id string) flow.Run {
	return flow.Run{ID: id, Workspace: "ws", Workflow: "w", VersionID: "v", Status: flow.RunRunning, Version: 1, Owner: "n", Epoch: 1,
		Seq: 1, Input: json.RawMessage(`{"a":1}`), Author: "p", CreatedAt: at()}
}

func create(t *testing.T, s *Store, id string) flow.Run {
	t.Helper()
	r := newRun(id)
	c := flow.Change{Run: r, Events: []flow.Event{{Seq: 1, Type: flow.EventRunStarted, At: at()}}}
	if err := s.Apply(t.Context(), c); err != nil {
		t.Fatalf("create %s: %v", id, err)
	}
	return r
}

func TestApplyKeepsEveryMember(t *testing.T) {
	onEach(t, func(t *testing.T, db Options) {
		s := open(t, db)
		r := create(t, s, "run_1")
		due := at().Add(time.Hour)
		r.Version, r.Seq, r.Status, r.Current, r.WakeAt, r.WakeSeq = 2, 3, flow.RunWaiting, "1", due, 7
		step := flow.StepInstance{StepKey: flow.StepKey{Index: 1, Iteration: "2.0"}, Status: flow.StepWaiting, Output: json.RawMessage(`null`),
			Error: "HTTP 500: Internal Server Error", RecoverySource: flow.SourceBYOA, Message: "m", Attempts: 3, StartedAt: at(), FinishedAt: due,
			Progress: flow.Progress{Phase: flow.PhaseGated, Round: 1, Mods: json.RawMessage(`{"url":"u"}`), GateID: "gate_1"}}
		gate := flow.Gate{ID: "gate_1", Workspace: "ws", RunID: r.ID, Kind: flow.GateNeedsHuman, Status: flow.GateOpen, OpenedAt: at(), ExpiresAt: due}
		kase := flow.Case{ID: "case_1", Workspace: "ws", RunID: r.ID, OpenedAt: at(), Input: flow.RecoveryInput{SchemaVersion: 1}}
		err := s.Apply(t.Context(), flow.Change{Run: r, Steps: []flow.StepInstance{step}, Gates: []flow.Gate{gate}, Cases: []flow.Case{kase},
			Events: []flow.Event{{Seq: 2, Type: flow.EventStepAdapting, At: at()}, {Seq: 3, Type: flow.EventGateOpened, At: at()}},
			Logs:   []flow.Log{{Seq: 2, At: at(), StepIndex: 1, RecoverySource: flow.SourceBYOA}}})
		if err != nil {
			t.Fatalf("apply: %v", err)
		}
		same(t, "run", must(s.Run(t.Context(), "ws", r.ID)), r)
		same(t, "steps", must(s.Steps(t.Context(), r.ID)), []flow.StepInstance{step})
		same(t, "gate", must(s.Gate(t.Context(), "ws", "gate_1")), gate)
		same(t, "case", must(s.Case(t.Context(), "ws", "case_1")), kase)
		same(t, "wakeups", must(s.Wakeups(t.Context())), []flow.Wakeup{{RunID: r.ID, Seq: 7, At: due}})
		if got := must(s.Events(t.Context(), r.ID, 1, 10)); len(got) != 2 || got[0].Seq != 2 {
			t.Errorf("events after 1: got %+v, want 2 and 3", got)
		}
		if got := must(s.Logs(t.Context(), r.ID, 0, 10)); len(got) != 1 || got[0].RecoverySource != flow.SourceBYOA {
			t.Errorf("logs: got %+v", got)
		}
	})
}

func TestNothingCrossesWorkspaces(t *testing.T) {
	onEach(t, func(t *testing.T, db Options) {
		s := open(t, db)
		create(t, s, "run_1")
		if _, err := s.Run(t.Context(), "other", "run_1"); flow.CodeOf(err) != flow.CodeNotFound {
			t.Errorf("run of another workspace: got %v, want not_found", err)
		}
		if got := must(s.Runs(t.Context(), flow.RunFilter{Workspace: "other", Limit: 10})); len(got) != 0 {
			t.Errorf("runs of another workspace: got %v", got)
		}
	})
}

func TestAStaleChangeWritesNothing(t *testing.T) {
	onEach(t, func(t *testing.T, db Options) {
		s := open(t, db)
		r := create(t, s, "run_1")
		for name, spoil := range map[string]func(*flow.Run){
			"version": func(r *flow.Run) { r.Version = 3 },
			"epoch":   func(r *flow.Run) { r.Version, r.Epoch = 2, 9 },
			"absent":  func(r *flow.Run) { r.ID, r.Version = "run_2", 2 },
		} {
			c := r
			c.Seq = 2
			spoil(&c)
			err := s.Apply(t.Context(), flow.Change{Run: c, Events: []flow.Event{{Seq: 2, Type: "run:x"}},
				Steps: []flow.StepInstance{{Status: flow.StepRunning}}})
			if flow.CodeOf(err) != flow.CodeStale {
				t.Errorf("%s: got %v, want stale", name, err)
			}
		}
		if got := must(s.Steps(t.Context(), r.ID)); len(got) != 0 {
			t.Errorf("steps of refused changes: got %v", got)
		}
		if got := must(s.Events(t.Context(), r.ID, 1, 10)); len(got) != 0 {
			t.Errorf("events of refused changes: got %v", got)
		}
	})
}

func TestOneOfTwoChangesWins(t *testing.T) {
	onEach(t, func(t *testing.T, db Options) {
		s := open(t, db)
		for i := range 50 {
			r := create(t, s, fmt.Sprintf("run_%d", i))
			r.Version, r.Seq = 2, 2
			errs := make(chan error, 8)
			var wg sync.WaitGroup
			for range cap(errs) {
				wg.Go(func() {
					errs <- s.Apply(context.Background(), flow.Change{Run: r, Events: []flow.Event{{Seq: 2, Type: "run:x"}}})
				})
			}
			wg.Wait()
			close(errs)
			won := 0
			for err := range errs {
				if err == nil {
					won++
				} else if flow.CodeOf(err) != flow.CodeStale {
					t.Errorf("loser: got %v, want stale", err)
				}
			}
			if won != 1 {
				t.Fatalf("winners: got %d, want 1", won)
			}
		}
	})
}

func TestAClaimRefusesTheOldEpoch(t *testing.T) {
	onEach(t, func(t *testing.T, db Options) {
		s := open(t, db)
		r := create(t, s, "run_1")
		claim := r
		claim.Version, claim.Epoch, claim.Owner = 2, 2, "other"
		if err := s.Apply(t.Context(), flow.Change{Run: claim, Claim: true}); err != nil {
			t.Fatalf("claim: %v", err)
		}
		r.Version = 3
		if err := s.Apply(t.Context(), flow.Change{Run: r}); flow.CodeOf(err) != flow.CodeStale {
			t.Errorf("old owner: got %v, want stale", err)
		}
	})
}

func TestAFaultyWriteDoesNotHarmItsNeighbours(t *testing.T) {
	onEach(t, func(t *testing.T, db Options) {
		s := open(t, db)
		var wg sync.WaitGroup
		errs := make([]error, 64)
		for i := range errs {
			wg.Go(func() {
				if i%8 == 3 {
					errs[i] = s.write(context.Background(), func(ctx context.Context, t tx) error {
						_, err := t.exec(ctx, `INSERT INTO runs (id) VALUES ('half')`) // misses NOT NULL columns
						return err
					})
					return
				}
				r := newRun(fmt.Sprintf("run_%02d", i))
				if i%8 == 5 {
					r.Version = 2 // of a run that is not there: refused
				}
				errs[i] = s.Apply(context.Background(), flow.Change{Run: r, Steps: []flow.StepInstance{{Status: flow.StepRunning}}})
			})
		}
		wg.Wait()
		for i, err := range errs {
			want := map[int]flow.Code{3: flow.CodeUnavailable, 5: flow.CodeStale}[i%8]
			wantCode(t, fmt.Sprintf("write %d", i), err, want)
			if left := must(s.Steps(t.Context(), fmt.Sprintf("run_%02d", i))); (len(left) == 1) != (err == nil) {
				t.Errorf("write %d: got %v and %d steps", i, err, len(left))
			}
		}
		if got := must(s.Runs(t.Context(), flow.RunFilter{Workspace: "ws", Limit: 100})); len(got) != 48 {
			t.Errorf("runs: got %d, want 48", len(got))
		}
	})
}

// TestStaleChangesAmongOthersInOneBatch has every second change lose to the
// one before it, in one transaction, with events that are there already.
func TestStaleChangesAmongOthersInOneBatch(t *testing.T) {
	onEach(t, func(t *testing.T, db Options) {
		s := open(t, db)
		const runs = 20
		changes := make([]flow.Change, 0, 2*runs)
		for i := range runs {
			r := create(t, s, fmt.Sprintf("run_%02d", i))
			r.Version, r.Seq = 2, 2
			c := flow.Change{Run: r, Events: []flow.Event{{Seq: 2, Type: flow.EventRunWaiting, At: at()}},
				Steps: []flow.StepInstance{{Status: flow.StepRunning}}}
			changes = append(changes, c, c)
		}
		busy, release := make(chan struct{}), make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() { // keeps the committer busy until all others wait
			err := s.write(context.Background(), func(context.Context, tx) error { close(busy); <-release; return nil })
			if err != nil {
				t.Errorf("the first: %v", err)
			}
		})
		<-busy
		errs := make([]error, len(changes))
		for i := range changes {
			wg.Go(func() { errs[i] = s.Apply(context.Background(), changes[i]) })
		}
		for deadline := time.Now().Add(20 * time.Second); len(s.ops) < len(changes) && time.Now().Before(deadline); {
			runtime.Gosched()
		}
		close(release)
		wg.Wait()
		for i := 0; i < len(errs); i += 2 {
			one, two := flow.CodeOf(errs[i]), flow.CodeOf(errs[i+1])
			if one > two {
				one, two = two, one
			}
			if one != "" || two != flow.CodeStale {
				t.Errorf("run %d: got %q and %q (%v, %v), want one to win and one to be stale", i/2, one, two, errs[i], errs[i+1])
			}
			id := changes[i].Run.ID
			if got := must(s.Events(t.Context(), id, 0, 10)); len(got) != 2 {
				t.Errorf("%s: got %d events, want 2", id, len(got))
			}
		}
	})
}

func TestWritesAfterCloseAreRefused(t *testing.T) {
	onEach(t, func(t *testing.T, db Options) {
		s, err := Open(t.Context(), db)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if err := s.Apply(t.Context(), flow.Change{Run: newRun("run_1")}); flow.CodeOf(err) != flow.CodeUnavailable {
			t.Errorf("got %v, want unavailable", err)
		}
	})
}

func TestANewerSchemaIsRefused(t *testing.T) {
	onEach(t, func(t *testing.T, db Options) {
		s, err := Open(t.Context(), db)
		if err != nil {
			t.Fatal(err)
		}
		err = s.write(t.Context(), func(ctx context.Context, t tx) error {
			_, err := t.exec(ctx, `INSERT INTO goose_db_version (version_id, is_applied) VALUES (9999, true)`)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		s.Close()
		if _, err := Open(t.Context(), db); flow.CodeOf(err) != flow.CodeInvalid {
			t.Errorf("got %v, want invalid", err)
		}
	})
}

func TestWorkflowVersions(t *testing.T) {
	onEach(t, func(t *testing.T, db Options) {
		s := open(t, db)
		seedWorkspace(t, s)
		v := flow.WorkflowVersion{ID: "ver_1", Workspace: "ws", Workflow: "w", Digest: "d1", Source: "src", Definition: json.RawMessage(`{}`), Author: "p", CreatedAt: at()}
		kept := must(s.Keep(t.Context(), v, nil))
		v.ID = "ver_2"
		if again := must(s.Keep(t.Context(), v, nil)); again.ID != kept.ID {
			t.Errorf("kept again: got %s, want %s", again.ID, kept.ID)
		}
		one := must(s.Publish(t.Context(), v, nil))
		v.ID = "ver_3"
		if same := must(s.Publish(t.Context(), v, nil)); same.ID != "ver_2" || same.Number != 1 {
			t.Errorf("same content: got %s number %d, want ver_2 number 1", same.ID, same.Number)
		}
		v.Digest = "d2"
		two := must(s.Publish(t.Context(), v, nil))
		if one.Number != 1 || two.Number != 2 {
			t.Errorf("numbers: got %d %d, want 1 2", one.Number, two.Number)
		}
		if w := must(s.Workflow(t.Context(), "ws", "w")); w.VersionID != "ver_3" || w.Number != 2 {
			t.Errorf("workflow: got %+v", w)
		}
		same(t, "version", must(s.Version(t.Context(), "ws", "ver_3")), two)
		if got := must(s.Workflows(t.Context(), "ws", "", 10)); len(got) != 1 {
			t.Errorf("workflows: got %+v", got)
		}
	})
}

func seedWorkspace(t *testing.T, s *Store) {
	t.Helper()
	err := s.write(t.Context(), func(ctx context.Context, t tx) error {
		_, err := t.exec(ctx, `INSERT INTO workspaces (id, name, created_at) VALUES ('ws', 'main', 0)`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func same(t *testing.T, what string, got, want any) {
	t.Helper()
	g, _ := json.Marshal(got)
	w, _ := json.Marshal(want)
	if string(g) != string(w) {
		t.Errorf("%s:\n got %s\nwant %s", what, g, w)
	}
}

// TestTheFileIsItsOwnersAlone: also in a folder that others may read.
func TestTheFileIsItsOwnersAlone(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "t.db")
	s := open(t, Options{Path: path})
	create(t, s, "run_1")
	for _, suffix := range []string{"", "-wal", "-shm"} {
		info, err := os.Stat(path + suffix)
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != 0o600 {
			t.Errorf("t.db%s: mode %o, want 600", suffix, got)
		}
	}
}
