package server_test

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/longstop-dev/longstop/internal/pgtest"
	"github.com/longstop-dev/longstop/internal/server"
)

// onEach runs a test on SQLite and on PostgreSQL; on makes a server use the
// one whose turn it is, each time the same database.
func onEach(t *testing.T, test func(t *testing.T, on func(*server.Config))) {
	t.Parallel()
	t.Run("SQLite", func(t *testing.T) {
		t.Parallel()
		test(t, func(c *server.Config) { c.MasterKey = masterKey })
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		t.Parallel()
		db := pgtest.URL(t)
		test(t, func(c *server.Config) { c.DatabaseURL, c.MasterKey = db, masterKey })
	})
}

// forms are the ways in which a text may stand somewhere and still be read.
func forms(text string) []string {
	out := []string{text, url.QueryEscape(text), hex.EncodeToString([]byte(text)), strings.ToUpper(hex.EncodeToString([]byte(text)))}
	for shift := range 3 { // as part of something longer in base64, it stands at one of three places
		whole := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("_", shift) + text))
		from := []int{0, 2, 3}[shift]
		out = append(out, strings.TrimRight(whole[from:len(whole)-4], "="))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// everywhere lists the paths under which a workspace's runs and what came of
// them are shown.
func (st *stop) everywhere() []string {
	st.t.Helper()
	paths := []string{"/v1/cases?limit=500", "/v1/gates?limit=500", "/v1/settings", "/v1/secrets", "/v1/mcp-servers", "/v1/recovery/pending"}
	for after := ""; ; {
		var page struct {
			Items []struct{ ID string }
			Next  string
		}
		st.must("GET", "/v1/runs?limit=500&after="+after, nil, &page)
		for _, r := range page.Items {
			paths = append(paths, "/v1/runs/"+r.ID, "/v1/runs/"+r.ID+"/events", "/v1/runs/"+r.ID+"/logs")
		}
		if after = page.Next; after == "" {
			return paths
		}
	}
}

// leaks fails the test if a secret's value can be read anywhere: in an answer,
// the log, a file of the data folder, a row of the database. It also makes
// sure that it would be found.
func (st *stop) leaks(values ...string) {
	st.t.Helper()
	all := map[string]string{"log": st.log.String()}
	for _, path := range st.everywhere() {
		_, all[path] = st.call("GET", path, nil, nil)
	}
	for path, text := range st.files() {
		all[path] = text
	}
	if st.db != "" {
		for table, text := range rows(st.t, st.db) {
			all["table "+table] = text
		}
	}
	find := func(text string) (where []string) {
		for place, content := range all {
			if strings.Contains(content, text) {
				where = append(where, place)
			}
		}
		return where
	}
	for _, value := range values {
		for _, form := range forms(value) {
			if where := find(form); len(where) > 0 {
				st.t.Errorf("the secret stands as %q in %v", form, where)
			}
		}
	}
	if len(find("Fetch user profile")) < 2 {
		st.t.Error("the search for secrets does not find what is there")
	}
}

// rows gives every row of a PostgreSQL database as text, by table.
func rows(t *testing.T, db string) map[string]string {
	t.Helper()
	ctx := context.Background()
	c, err := pgx.Connect(ctx, db)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(ctx)
	rs, err := c.Query(ctx, `SELECT tablename FROM pg_tables WHERE schemaname = current_schema()`)
	if err != nil {
		t.Fatal(err)
	}
	tables, err := pgx.CollectRows(rs, pgx.RowTo[string])
	if err != nil || len(tables) < 10 {
		t.Fatalf("tables: got %v, %v", tables, err)
	}
	out := map[string]string{}
	for _, table := range tables {
		rs, err := c.Query(ctx, `SELECT CAST(r AS TEXT) FROM `+pgx.Identifier{table}.Sanitize()+` r`)
		if err != nil {
			t.Fatal(err)
		}
		lines, err := pgx.CollectRows(rs, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		out[table] = strings.Join(lines, "\n")
	}
	return out
}

// outcome is where a run has come to: its end, or a gate at which it waits.
func (st *stop) outcome(id string) (r runView, events []event) {
	st.t.Helper()
	events = st.follow(id, func(e event) bool { return e.Type == "gate:opened" })
	return st.get(id), events
}

// rejected gives why the agent's answer was passed over, as step:adapting says.
func rejected(t *testing.T, events []event) string {
	t.Helper()
	for _, e := range events {
		if e.Type != "step:adapting" {
			continue
		}
		var d struct {
			Attempted bool    `json:"byoa_attempted"`
			Timing    *int64  `json:"byoa_timing_ms"`
			Rejection *string `json:"byoa_rejection_reason"`
		}
		if err := json.Unmarshal(e.Data, &d); err != nil || len(e.Data) > 1024 {
			t.Fatalf("step:adapting: %v; got %d bytes, want at most 1024", err, len(e.Data))
		}
		if !d.Attempted || d.Timing == nil || d.Rejection == nil || *d.Rejection == "" {
			t.Fatalf("step:adapting: got %s, want an attempt with its time and why it was refused", e.Data)
		}
		return *d.Rejection
	}
	t.Fatalf("no step:adapting in %+v", events)
	return ""
}

// mended holds that a run went on to the built-in after its agent was passed
// over for a reason that says why.
func (st *stop) mended(t *testing.T, id, why string) {
	t.Helper()
	r, events := st.outcome(id)
	if r.Status != "succeeded" || r.source(0) != "builtin" {
		t.Fatalf("run: got %s by %s (%s / %s), want succeeded by builtin", r.Status, r.source(0), r.Error, r.Steps[0].Message)
	}
	if got := rejected(t, events); !strings.Contains(strings.ToLower(got), strings.ToLower(why)) {
		t.Errorf("rejection: got %q, want something with %q", got, why)
	}
}

// faulty is the input of a run whose agent is to fail in this way.
func faulty(name string) map[string]any { return map[string]any{"fault": name} }

// faultOf reads it out of what an agent was sent.
func faultOf(input map[string]any) string {
	in, _ := input["workflow_input"].(map[string]any)
	return fmt.Sprint(in["fault"])
}
