package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/longstop-dev/longstop/internal/flow"
)

// TestAFullDatabase has no more room for a while: SQLite's own limit of pages,
// and for PostgreSQL an error as it answers where the disk is full. The write
// says that it may be taken later, nothing of it is kept, and then it is taken.
func TestAFullDatabase(t *testing.T) {
	onEach(t, func(t *testing.T, db Options) {
		s := open(t, db)
		r := create(t, s, "run_1")
		fill, free := full(t, s, db)
		fill()
		r.Version, r.Seq, r.Owner = 2, 2, "late"
		c := flow.Change{Run: r, Steps: []flow.StepInstance{{Status: flow.StepSucceeded, Output: json.RawMessage(`"` + strings.Repeat("x", 1<<20) + `"`)}}}
		err := s.Apply(t.Context(), c)
		wantCode(t, "a write", err, flow.CodeUnavailable)
		if !errors.Is(err, flow.ErrLater) {
			t.Errorf("a write: got %v, want one that may be taken later", err)
		}
		if got := must(s.Run(t.Context(), "ws", r.ID)); got.Version != 1 || got.Owner != "n" {
			t.Errorf("afterwards: got version %d of %q, want nothing of the write", got.Version, got.Owner)
		}
		if steps := must(s.Steps(t.Context(), r.ID)); len(steps) != 0 {
			t.Errorf("steps: got %d, want none", len(steps))
		}
		free()
		if err := s.Apply(t.Context(), c); err != nil {
			t.Fatalf("the same write, with room: %v", err)
		}
		if steps := must(s.Steps(t.Context(), r.ID)); len(steps) != 1 {
			t.Errorf("steps: got %d, want 1", len(steps))
		}
	})
}

// full gives what takes a database's room away, and what gives it back.
func full(t *testing.T, s *Store, db Options) (fill, free func()) {
	ctx := context.Background()
	if db.URL == "" {
		set := func(pages string) {
			if _, err := s.db.(*sqlite).conn.ExecContext(ctx, `PRAGMA max_page_count = `+pages); err != nil {
				t.Fatal(err)
			}
		}
		return func() { set("1") }, func() { set("1000000") } // never below what there is
	}
	exec := func(statement string) func() {
		return func() {
			if _, err := outsider(t, db.URL).Exec(ctx, statement); err != nil {
				t.Fatal(err)
			}
		}
	}
	exec(`CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS
		$$ BEGIN RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = 'disk_full'; END $$`)()
	return exec(`CREATE TRIGGER full_disk BEFORE INSERT ON steps EXECUTE FUNCTION full_disk()`), exec(`DROP TRIGGER full_disk ON steps`)
}

// TestWhatPasses sorts failures of the database.
func TestWhatPasses(t *testing.T) {
	onEach(t, func(t *testing.T, db Options) {
		s := open(t, db)
		err := s.write(t.Context(), func(ctx context.Context, tx tx) error {
			_, err := tx.exec(ctx, `INSERT INTO runs (id) VALUES ('half')`)
			return err
		})
		if err == nil || errors.Is(err, flow.ErrLater) {
			t.Errorf("a write that is wrong: got %v, want an error that does not pass", err)
		}
	})
}

// TestWhatPostgreSQLSaysPasses: the transaction was undone, and the same may be
// taken later.
func TestWhatPostgreSQLSaysPasses(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]bool{"53100": true, "40001": true, "55P03": true, "57014": true, "25006": true, "23505": false, "42601": false} {
		if got := passing(fmt.Errorf("wrapped: %w", &pgconn.PgError{Code: code})); got != want {
			t.Errorf("%s passes: %t, want %t", code, got, want)
		}
	}
}
