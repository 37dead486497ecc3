package store

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/longstop-dev/longstop/internal/flow"
)

// TestAListOfRunsLooksAtFew has 20,000 runs, of which few are anything but
// succeeded and few are of another workflow, and asks the database how it
// would find them.
func TestAListOfRunsLooksAtFew(t *testing.T) {
	onEach(t, func(t *testing.T, db Options) {
		s := open(t, db)
		fill(t, s, 20_000)
		for _, c := range []struct {
			workflow, status, index string
			want                    int
		}{
			{"", "", "runs_", 20_000},
			{"", "failed", "runs_unusual", 20},
			{"", "waiting", "runs_unusual", 20},
			{"", "cancelled", "runs_unusual", 0},
			{"", "running", "runs_at_work", 20},
			{"rare", "", "runs_of_workflow", 2},
			{"none", "", "runs_of_workflow", 0},
			{"rare", "failed", "runs_", 2}, // of either it looks at 20 at most
			{"", "succeeded", "runs_", 19_940},
		} {
			f := flow.RunFilter{Workspace: "ws", Workflow: c.workflow, Status: c.status, Limit: 50}
			name := "workflow " + c.workflow + " status " + c.status
			if plan := explain(t, s, f); !strings.Contains(plan, c.index) || strings.Contains(plan, "Seq Scan") || strings.Contains(plan, "B-TREE") {
				t.Errorf("%s: got the plan\n%swant one that uses %s and sorts nothing", name, plan, c.index)
			}
			var ids []string
			for { // all pages
				page := must(s.Runs(t.Context(), f))
				for _, r := range page {
					if c.status != "" && string(r.Status) != c.status || c.workflow != "" && r.Workflow != c.workflow || r.Workspace != "ws" {
						t.Fatalf("%s: got run %+v", name, r)
					}
					ids = append(ids, r.ID)
				}
				if len(page) < f.Limit {
					break
				}
				f.Before = ids[len(ids)-1]
			}
			if len(ids) != c.want || !slices.IsSortedFunc(ids, func(a, b string) int { return strings.Compare(b, a) }) {
				t.Errorf("%s: got %d runs, want %d, newest first", name, len(ids), c.want)
			}
		}
	})
}

// fill stores runs that have succeeded, but for 20 each that have failed, wait
// or run; two of the failed ones are of the workflow "rare".
func fill(t *testing.T, s *Store, n int) {
	t.Helper()
	w, err := s.db.begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, err = w.exec(t.Context(), `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < CAST($1 AS BIGINT))
		INSERT INTO runs (id, workspace_id, workflow, version_id, status, version, owner, epoch, seq, current, input, error, author, created_at, wake_seq)
		SELECT 'run_' || CAST(1000000 + i AS TEXT), 'ws', CASE WHEN i % 10000 = 0 THEN 'rare' ELSE 'w' END, 'v',
			CASE i % 1000 WHEN 0 THEN 'failed' WHEN 1 THEN 'waiting' WHEN 2 THEN 'running' ELSE 'succeeded' END,
			1, '', 1, 1, '', '{}', '', 'p', i, 0 FROM n`, n)
	if err == nil {
		err = w.commit(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := s.db.(*postgres); ok { // as its own vacuum does from time to time
		err := s.write(t.Context(), func(ctx context.Context, t tx) error { _, err := t.exec(ctx, `ANALYZE runs`); return err })
		if err != nil {
			t.Fatal(err)
		}
	}
}

// explain gives the plan of a list's query, a step a line.
func explain(t *testing.T, s *Store, f flow.RunFilter) string {
	t.Helper()
	q, args := listRuns(f)
	how := "EXPLAIN "
	if _, ok := s.db.(*sqlite); ok {
		how = "EXPLAIN QUERY PLAN "
	}
	rs, err := s.db.query(t.Context(), how+q, args...)
	lines, err := collect(rs, err, func(r row) (line string, err error) {
		if how == "EXPLAIN " {
			return line, r.Scan(&line)
		}
		var id, parent, unused int
		return line, r.Scan(&id, &parent, &unused, &line)
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(lines, "\n") + "\n"
}
