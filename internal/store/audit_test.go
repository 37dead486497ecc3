package store

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/longstop-dev/longstop/internal/chain"
	"github.com/longstop-dev/longstop/internal/flow"
)

// verified checks the record of a workspace.
func verified(t *testing.T, s *Store, workspace string) chain.Report {
	t.Helper()
	r, err := chain.Verify("",
		func(after int64) ([]flow.Audit, error) {
			return s.Audit(t.Context(), flow.AuditFilter{Workspace: workspace, Oldest: true, After: after, Limit: 7})
		},
		func() (flow.AuditHead, error) { return s.AuditHead(t.Context(), workspace) })
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func did(workspace, op, target string) flow.Audit {
	return flow.Caller{Workspace: workspace, Person: "p", KeyID: "key_1"}.Did(op, target, at(), map[string]any{"x": "é\u2028"})
}

// starts begins many runs of two workspaces at once, a third of which are
// refused.
func starts(t *testing.T, s *Store, n int) {
	t.Helper()
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			r := newRun(fmt.Sprintf("run_%03d", i))
			if r.Workspace = "ws"; i%2 == 1 {
				r.Workspace = "ws2"
			}
			c := flow.Change{Run: r, Audit: []flow.Audit{did(r.Workspace, "runs.start", "run/"+r.ID)}}
			if i%3 == 2 {
				c.Run.Version = 5 // of a run that is not there
			}
			if err := s.Apply(context.Background(), c); (err != nil) != (i%3 == 2) {
				t.Errorf("run %d: %v", i, err)
			}
		})
	}
	wg.Wait()
}

func TestAuditRowsAreChained(t *testing.T) {
	onEach(t, func(t *testing.T, db Options) {
		s, err := Open(t.Context(), db)
		if err != nil {
			t.Fatal(err)
		}
		starts(t, s, 60)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = open(t, db) // which knows no heads
		if err := s.PutSecret(t.Context(), flow.Secret{Workspace: "ws", Name: "n"}, did("ws", "secrets.put", "secret/n")); flow.CodeOf(err) != flow.CodeUnavailable {
			t.Errorf("a secret of no workspace: got %v, want unavailable", err)
		}
		for workspace, want := range map[string]int64{"ws": 20, "ws2": 20} {
			if r := verified(t, s, workspace); !r.OK || r.Rows != want || r.Head.Seq != want {
				t.Errorf("%s: got %+v (%+v), want %d rows, none of a refused change", workspace, r, r.Broken, want)
			}
		}
	})
}

func TestAuditFilters(t *testing.T) {
	onEach(t, func(t *testing.T, db Options) {
		s, w, p, k := founded(t, db)
		for i, op := range []string{"keys.create", "keys.revoke", "keysmith.x", "runs.start"} {
			a := did("ws", op, fmt.Sprintf("key/%d", i))
			if err := s.RenameWorkspace(t.Context(), w.ID, "n", a); err != nil {
				t.Fatal(err)
			}
		}
		_, _ = p, k
		for name, tc := range map[string]struct {
			f    flow.AuditFilter
			want []int64
		}{
			"newest":         {flow.AuditFilter{}, []int64{4, 3, 2, 1}},
			"a page":         {flow.AuditFilter{Limit: 2, After: 4}, []int64{3, 2}},
			"oldest":         {flow.AuditFilter{Oldest: true, After: 1}, []int64{2, 3, 4}},
			"an op":          {flow.AuditFilter{Op: "keys.revoke"}, []int64{2}},
			"ops":            {flow.AuditFilter{Op: "keys."}, []int64{2, 1}},
			"a target":       {flow.AuditFilter{Target: "key/3"}, []int64{4}},
			"targets":        {flow.AuditFilter{Target: "key/"}, []int64{4, 3, 2, 1}},
			"somebody":       {flow.AuditFilter{Author: "p"}, []int64{4, 3, 2, 1}},
			"nobody":         {flow.AuditFilter{Author: "q"}, nil},
			"from":           {flow.AuditFilter{From: at()}, []int64{4, 3, 2, 1}},
			"to":             {flow.AuditFilter{To: at()}, nil},
			"another's rows": {flow.AuditFilter{Workspace: "ws2"}, nil},
		} {
			if tc.f.Workspace == "" {
				tc.f.Workspace = "ws"
			}
			if tc.f.Limit == 0 {
				tc.f.Limit = 10
			}
			var got []int64
			for _, a := range must(s.Audit(t.Context(), tc.f)) {
				got = append(got, a.Seq)
			}
			same(t, name, got, tc.want)
		}
	})
}

// TestAuditTamperedWithInTheDatabase is what somebody does who can write it.
func TestAuditTamperedWithInTheDatabase(t *testing.T) {
	for name, tc := range map[string]struct {
		sql   string
		first int64
	}{
		"edited":      {`UPDATE audit SET author = 'q' WHERE seq = 3`, 3},
		"deleted":     {`DELETE FROM audit WHERE seq = 3`, 3},
		"cut":         {`DELETE FROM audit WHERE seq > 3`, 4},
		"all deleted": {`DELETE FROM audit`, 1},
		"head gone":   {`DELETE FROM audit_heads`, 1},
		"head back":   {`UPDATE audit_heads SET seq = 3, hash = (SELECT a.hash FROM audit a WHERE a.workspace_id = audit_heads.workspace_id AND a.seq = 3)`, 4},
		"moved":       {`UPDATE audit SET seq = CASE seq WHEN 3 THEN 4 ELSE 3 END + 100 WHERE seq IN (3, 4)`, 3},
	} {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(t *testing.T, db Options) {
				s, w, _, _ := founded(t, db)
				for i := range 5 {
					if err := s.RenameWorkspace(t.Context(), w.ID, "n", did("ws", "workspaces.put", fmt.Sprint(i))); err != nil {
						t.Fatal(err)
					}
				}
				if r := verified(t, s, "ws"); !r.OK || r.Rows != 5 {
					t.Fatalf("before: got %+v (%+v)", r, r.Broken)
				}
				if err := s.write(t.Context(), func(ctx context.Context, x tx) error { _, err := x.exec(ctx, tc.sql); return err }); err != nil {
					t.Fatal(err)
				}
				if r := verified(t, s, "ws"); r.OK || r.Broken.First != tc.first {
					t.Errorf("got %+v (%+v), want a break at %d", r, r.Broken, tc.first)
				}
			})
		})
	}
}

func TestRecordsAreReadBesideTheirServer(t *testing.T) {
	onEach(t, func(t *testing.T, db Options) {
		s, w, _, _ := founded(t, db)
		if err := s.RenameWorkspace(t.Context(), w.ID, "n", did("ws", "workspaces.put", "workspace/ws")); err != nil {
			t.Fatal(err)
		}
		r, err := OpenRecords(t.Context(), db)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		same(t, "workspaces", must(r.Workspaces(t.Context())), []string{"ws"})
		same(t, "rows", must(r.Read(t.Context(), flow.AuditFilter{Workspace: "ws", Limit: 5})), must(s.Audit(t.Context(), flow.AuditFilter{Workspace: "ws", Limit: 5})))
		same(t, "head", must(r.Head(t.Context(), "ws")), must(s.AuditHead(t.Context(), "ws")))
	})
}

// TestARecordInAnythingButTables: a file of whoever sent it may compute what
// it shows, without an end and another each time.
func TestARecordInAnythingButTables(t *testing.T) {
	t.Parallel()
	tables := []string{`CREATE TABLE workspaces (id TEXT)`, `CREATE TABLE audit_heads (workspace_id TEXT, seq BIGINT, hash TEXT)`}
	for name, of := range map[string]string{
		"a view without an end": `CREATE VIEW audit AS WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT 'ws' AS workspace_id, x AS seq FROM c`,
		"computed columns":      `CREATE TABLE audit (workspace_id TEXT, seq BIGINT, hash TEXT GENERATED ALWAYS AS (hex(seq)) VIRTUAL)`,
		"computed, in short":    `CREATE TABLE audit (workspace_id TEXT, seq BIGINT, hash TEXT AS (hex(seq)))`,
		"a virtual table":       `CREATE VIRTUAL TABLE audit USING fts5(workspace_id, seq, hash)`,
		"nothing":               `SELECT 1`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "sent.db")
			db, err := sql.Open("sqlite", file)
			if err != nil {
				t.Fatal(err)
			}
			for _, q := range append(slices.Clone(tables), of) {
				if _, err := db.Exec(q); err != nil {
					t.Fatalf("%s: %v", q, err)
				}
			}
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			if _, err := OpenRecords(t.Context(), Options{Path: file}); flow.CodeOf(err) != flow.CodeInvalid {
				t.Errorf("got %v, want it refused", err)
			}
		})
	}
}
