package store

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/pgtest"
)

// outsider is a connection to a test's database that is not the store's.
func outsider(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	c, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(context.Background()) })
	return c
}

func TestASecondProcessIsRefused(t *testing.T) {
	t.Parallel()
	db := Options{URL: pgtest.URL(t)}
	s, err := Open(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	_, err = Open(t.Context(), db)
	wantCode(t, "the second", err, flow.CodeConflict)
	host, _ := os.Hostname()
	if want := fmt.Sprintf("%.30s, process %d", host, os.Getpid()); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want it to name %q", err, want)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	open(t, db) // the lock is given back
}

func TestTwoDatabasesHaveALockEach(t *testing.T) {
	t.Parallel()
	open(t, Options{URL: pgtest.URL(t)})
	open(t, Options{URL: pgtest.URL(t)})
}

func TestTwoSchemasHaveALockEach(t *testing.T) {
	t.Parallel()
	one := pgtest.URL(t)
	if _, err := outsider(t, one).Exec(t.Context(), `CREATE SCHEMA other`); err != nil {
		t.Fatal(err)
	}
	a, b := open(t, Options{URL: one}), open(t, Options{URL: one + "&search_path=other"})
	create(t, a, "run_1")
	if got := must(b.Runs(t.Context(), flow.RunFilter{Workspace: "ws", Limit: 10})); len(got) != 0 {
		t.Errorf("runs of the other schema: got %v, want none", got)
	}
}

// TestALostLockEndsTheWriting ends the session that holds the lock, and has
// another process take over.
func TestALostLockEndsTheWriting(t *testing.T) {
	t.Parallel()
	db := Options{URL: pgtest.URL(t)}
	s := open(t, db)
	r := create(t, s, "run_1")
	_, err := outsider(t, db.URL).Exec(t.Context(), `SELECT pg_terminate_backend($1)`, int64(s.db.(*postgres).hold.pid))
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-s.Lost():
	case <-time.After(20 * time.Second):
		t.Fatal("the loss was not seen")
	}
	other := open(t, db)
	r.Version = 2
	err = s.Apply(t.Context(), flow.Change{Run: r})
	wantCode(t, "a write", err, flow.CodeUnavailable)
	if err == nil || !strings.Contains(err.Error(), "the lock on the database is lost") {
		t.Errorf("a write: got %v, want it to say that the lock is lost", err)
	}
	wantCode(t, "ping", s.Ping(t.Context()), flow.CodeUnavailable)
	if err := other.Apply(t.Context(), flow.Change{Run: r}); err != nil {
		t.Errorf("the new holder's write: %v", err)
	}
}

// TestNoWriteFollowsTheNextHolder ends the lock's session in the middle of a
// write. Another process takes over before the write goes on.
func TestNoWriteFollowsTheNextHolder(t *testing.T) {
	t.Parallel()
	db := Options{URL: pgtest.URL(t)}
	s := open(t, db)
	r := create(t, s, "run_1")
	r.Version, r.Owner = 2, "late"
	killer := outsider(t, db.URL)
	var other *Store
	err := s.write(t.Context(), func(ctx context.Context, tx tx) error {
		if _, err := tx.exec(ctx, `UPDATE runs SET owner = 'late' WHERE id = 'run_1'`); err != nil {
			return err
		}
		if _, err := killer.Exec(ctx, `SELECT pg_terminate_backend($1)`, int64(s.db.(*postgres).hold.pid)); err != nil {
			return err
		}
		other = open(t, db)
		return nil
	})
	wantCode(t, "the write that was cut", err, flow.CodeUnavailable)
	wantCode(t, "the next write", s.Apply(t.Context(), flow.Change{Run: r}), flow.CodeUnavailable)
	select {
	case <-s.Lost():
	case <-time.After(20 * time.Second):
		t.Error("the loss was not seen")
	}
	if got := must(other.Run(t.Context(), "ws", r.ID)); got.Owner != "n" || got.Version != 1 {
		t.Errorf("the next holder reads owner %q, version %d; want n, 1", got.Owner, got.Version)
	}
}

// TestReadersComeBack ends every session but the lock's.
func TestReadersComeBack(t *testing.T) {
	t.Parallel()
	db := Options{URL: pgtest.URL(t)}
	s := open(t, db)
	r := create(t, s, "run_1")
	must(s.Run(t.Context(), "ws", r.ID)) // so that there is a reader
	_, err := outsider(t, db.URL).Exec(t.Context(), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
		WHERE datname = current_database() AND pid NOT IN ($1, pg_backend_pid())`, int64(s.db.(*postgres).hold.pid))
	if err != nil {
		t.Fatal(err)
	}
	r.Version = 2
	if err := s.Apply(t.Context(), flow.Change{Run: r}); err != nil {
		t.Errorf("a write: %v", err)
	}
	if _, err := s.Run(t.Context(), "ws", r.ID); err != nil { // this one may have met a dead connection
		wantCode(t, "the first read", err, flow.CodeUnavailable)
		if _, err = s.Run(t.Context(), "ws", r.ID); err != nil {
			t.Errorf("the second read: %v", err)
		}
	}
}

func TestThePasswordIsInNoError(t *testing.T) {
	t.Parallel()
	const password = "hunter2-s3cr3t"
	for name, u := range map[string]string{
		"nobody there":   "postgres://me:" + password + "@127.0.0.1:1/db",
		"no such option": "postgres://me:" + password + "@127.0.0.1:1/db?sslmode=" + password,
		"broken port":    "postgres://me:" + password + "@127.0.0.1:x" + password + "/db",
		"broken escape":  "postgres://me:" + password + "%zz@127.0.0.1:1/db",
		"in the query":   "postgres://me@127.0.0.1:1/db?password=" + password,
		"not PostgreSQL": "mysql://me:" + password + "@127.0.0.1:1/db",
		"no URL":         "host=127.0.0.1 port=1 password=" + password,
		"no database":    "postgres://postgres:" + password + "@/none?host=" + url.QueryEscape(hostOf(t, pgtest.URL(t))),
	} {
		_, err := Open(t.Context(), Options{URL: u})
		if err == nil {
			t.Errorf("%s: opened", name)
		}
		for e := err; e != nil; {
			if strings.Contains(fmt.Sprintf("%v %+v %q", e, e, e), password) {
				t.Errorf("%s: the error holds the password: %v", name, e)
			}
			u, ok := e.(interface{ Unwrap() error })
			if !ok {
				break
			}
			e = u.Unwrap()
		}
		if code := flow.CodeOf(err); code != flow.CodeInvalid && code != flow.CodeUnavailable {
			t.Errorf("%s: got %s, want invalid or unavailable", name, code)
		}
	}
}

func hostOf(t *testing.T, u string) string {
	t.Helper()
	c, err := pgx.ParseConfig(u)
	if err != nil {
		t.Fatal(err)
	}
	return c.Host
}

// TestTextIsOrderedByBytes uses ids and names that a language orders in
// another way: the tests' cluster has one.
func TestTextIsOrderedByBytes(t *testing.T) {
	onEach(t, func(t *testing.T, db Options) {
		s := open(t, db)
		for _, id := range []string{"run_a", "run_B", "run_C", "run_~"} {
			create(t, s, id)
		}
		var ids []string
		for _, r := range must(s.Runs(t.Context(), flow.RunFilter{Workspace: "ws", Limit: 10})) {
			ids = append(ids, r.ID)
		}
		same(t, "runs, newest first", ids, []string{"run_~", "run_a", "run_C", "run_B"})
		same(t, "unfinished", must(s.Unfinished(t.Context())), []string{"run_B", "run_C", "run_a", "run_~"})
	})
}

// TestOddBytesAreWritten has what an upstream may say that is no text.
func TestOddBytesAreWritten(t *testing.T) {
	onEach(t, func(t *testing.T, db Options) {
		s := open(t, db)
		r := create(t, s, "run_1")
		r.Version, r.Status, r.Error = 2, flow.RunFailed, "HTTP 500: a\x00b\xffc"
		step := flow.StepInstance{Status: flow.StepFailed, Error: r.Error, Output: json.RawMessage("\"\xfe\"")}
		if err := s.Apply(t.Context(), flow.Change{Run: r, Steps: []flow.StepInstance{step}}); err != nil {
			t.Fatalf("apply: %v", err)
		}
		if got := must(s.Run(t.Context(), "ws", r.ID)); got.Status != flow.RunFailed || !strings.HasPrefix(got.Error, "HTTP 500: a") {
			t.Errorf("got %s %q, want it failed with what the upstream said", got.Status, got.Error)
		}
	})
}

func TestNoRows(t *testing.T) {
	onEach(t, func(t *testing.T, db Options) {
		s := open(t, db)
		var n int64
		err := s.db.queryRow(t.Context(), `SELECT created_at FROM runs WHERE id = $1`, "none").Scan(&n)
		if !noRows(err) {
			t.Errorf("read: got %v, want no rows", err)
		}
		err = s.write(t.Context(), func(ctx context.Context, tx tx) error {
			if err := tx.queryRow(ctx, `SELECT created_at FROM runs WHERE id = $1`, "none").Scan(&n); !noRows(err) {
				t.Errorf("in a transaction: got %v, want no rows", err)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
}
