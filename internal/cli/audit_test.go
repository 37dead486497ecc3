package cli

import (
	"context"
	"database/sql"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/longstop-dev/longstop/internal/chain"
	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/server"
)

// record is an export of two rows.
func record(t *testing.T) (lines []string, head string) {
	t.Helper()
	previous := ""
	for i := range 2 {
		row := flow.Audit{Seq: int64(i + 1), At: time.Date(2026, 3, 1, 12, i, 0, 0, time.UTC), Workspace: "ws", Author: "ann", KeyID: "k", Op: "secrets.delete",
			Target: "secret/api", Outcome: "done", Details: json.RawMessage(`{"name":"api"}`)}
		text, err := chain.Canonical(row)
		if err != nil {
			t.Fatal(err)
		}
		row.Hash = chain.Link(previous, row.Seq, [][]byte{text})
		previous = row.Hash
		raw, err := json.Marshal(row)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, string(raw))
	}
	return lines, `{"head":{"seq":2,"hash":"` + previous + `"}}`
}

// An export that says something else than what was hashed is not whole,
// however it is written.
func TestAForgedExportIsNotWhole(t *testing.T) {
	t.Parallel()
	lines, head := record(t)
	if r, err := verifyExport(strings.NewReader(strings.Join(append(lines[:2:2], head), "\n")), ""); err != nil || !r.OK {
		t.Fatalf("the export itself: got %+v, %v", r, err)
	}
	swap := func(old, with string) []string {
		return []string{lines[0], strings.Replace(lines[1], old, with, 1), head}
	}
	for name, forged := range map[string][]string{
		"a second value on the line": {lines[0] + ` {"seq":9,"op":"runs.start","author":"bob"}`, lines[1], head},
		"words behind a row":         {lines[0] + ` and more`, lines[1], head},
		"a row beside a head":        {lines[0], lines[1], strings.Replace(head, "{", `{"seq":3,"op":"keys.create","author":"mallory",`, 1)},
		"a member in another case":   swap(`"op":"secrets.delete"`, `"op":"runs.get","OP":"secrets.delete"`),
		"a member twice":             swap(`"author":"ann"`, `"author":"bob","author":"ann"`),
		"only in another case":       swap(`"author":"ann"`, `"Author":"ann"`),
		"a member of details twice":  swap(`{"name":"api"}`, `{"name":"other","name":"api"}`),
		"no member of a row":         swap(`"author":"ann"`, `"author":"ann","reviewed":true`),
		"a name in other letters":    swap(`"author"`, `"\u0061uthor"`),
		"a member left out":          swap(`"keyId":"k",`, ``),
		"another number":             swap(`"seq":2`, `"seq":2.0`),
		"another time zone":          swap(`12:01:00Z`, `13:01:00+01:00`),
		"a head before the end":      {lines[0], strings.Replace(head, `"seq":2`, `"seq":1`, 1), lines[1], head},
		"a row after the head":       {lines[0], head, lines[1]},
	} {
		if r, err := verifyExport(strings.NewReader(strings.Join(forged, "\n")), ""); err == nil && r.OK {
			t.Errorf("%s: got whole, want broken or refused", name)
		}
	}
}

// What a hostile file holds does not reach the terminal as commands to it.
func TestABrokenRecordCannotDrawOnTheTerminal(t *testing.T) {
	t.Parallel()
	lines, head := record(t)
	var row flow.Audit
	if err := json.Unmarshal([]byte(lines[1]), &row); err != nil {
		t.Fatal(err)
	}
	row.Hash = "\x1b[2K\rwhole  " + row.Hash
	raw, err := json.Marshal(row)
	if err != nil {
		t.Fatal(err)
	}
	file := write(t, "audit.jsonl", lines[0]+"\n"+string(raw)+"\n"+head+"\n")
	code, out, _ := line(t, "", "audit", "verify", "--file", file)
	if code != exitFailed || strings.ContainsAny(out, "\x1b\r") {
		t.Errorf("got %d %q, want 1 and no control characters", code, out)
	}
}

// A record that is not there is not whole: a name that was mistyped, or a
// database that was emptied, must not pass.
func TestNoRecordIsNotWhole(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, err := server.Start(t.Context(), server.Config{DataDir: dir, Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	must(t, "settings", "set", "recovery.timeout_ms", "20000", "--data="+dir)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if err := s.Stop(ctx); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "longstop.db")
	holds(t, must(t, "audit", "verify", "--file", file), "whole")
	if code, out, errOut := line(t, "", "audit", "verify", "--file", file, "--workspace", "no-such"); code == exitOK {
		t.Errorf("a workspace that is not there: got %d %q %q, want a failure", code, out, errOut)
	}
	db, err := sql.Open("sqlite", file)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, q := range []string{"DELETE FROM audit", "DELETE FROM audit_heads"} {
		if _, err := db.Exec(q); err != nil {
			t.Logf("%s: %v", q, err)
		}
	}
	if code, out, errOut := line(t, "", "audit", "verify", "--file", file); code == exitOK {
		t.Errorf("an emptied record: got %d %q %q, want a failure", code, out, errOut)
	}
}

// An export of a record that grows meanwhile is whole: it must not accuse
// anybody.
func TestAnExportOfAGrowingRecordIsWhole(t *testing.T) {
	t.Parallel()
	dir, s := held(t)
	to, err := url.Parse(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(to)
	busy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/audit/head") { // somebody else is just changing something
			must(t, "settings", "set", "recovery.timeout_ms", "20000", "--data="+dir)
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(busy.Close)
	code, out, errOut := line(t, "", "audit", "export", "--endpoint="+busy.URL, "--key="+s.Key())
	if code != exitOK {
		t.Fatalf("export: got %d %s", code, errOut)
	}
	r, err := verifyExport(strings.NewReader(out), "")
	if err != nil || !r.OK {
		t.Errorf("got %+v %+v, %v, want it whole", r, r.Broken, err)
	}
}
