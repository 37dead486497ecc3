package server_test

import (
	"database/sql"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver registers itself
	_ "modernc.org/sqlite"             // so does this one

	"github.com/longstop-dev/longstop/internal/server"
)

// sql runs a statement on the database past the server, and requires that it
// touched a row if it is an update.
func (st *stop) sql(statement string) {
	st.t.Helper()
	driver, name := "sqlite", "file:"+filepath.Join(st.dir, "longstop.db")+"?_pragma=busy_timeout(5000)"
	if st.db != "" {
		driver, name = "pgx", st.db
	}
	db, err := sql.Open(driver, name)
	if err != nil {
		st.t.Fatal(err)
	}
	defer db.Close()
	res, err := db.Exec(statement)
	if err != nil {
		st.t.Fatalf("%s: %v", statement, err)
	}
	if n, err := res.RowsAffected(); strings.HasPrefix(statement, "UPDATE") && (err != nil || n == 0) {
		st.t.Fatalf("%s: touched %d rows (%v)", statement, n, err)
	}
}

const approving = `
name: asked
steps:
  - {id: first, type: transform, title: Fetch user profile, config: {value: {n: "{{ input.n }}"}}}
  - {id: ok, type: human_approval, config: {message: "go on with {{ steps.first.output.n }}?"}}
  - {id: get, type: http_request, retry: {attempts: 1}, config: {url: "%s", headers: {X: "{{ secrets.%s }}"}}}
`

// damage is what is done to the rows of a run that waits at a gate, in the
// place of RUN, or to others; at is where that is seen.
type damage struct {
	statement string
	working   bool   // the run is at work when the server starts, and fails
	why       string // what the run's error says then, and else answering its gate
}

// TestDamagedRows damages a row of each table under a server that has stopped.
// It starts again; what needs the row fails and says why; everything else goes
// on.
func TestDamagedRows(t *testing.T) {
	onEach(t, func(t *testing.T, on func(*server.Config)) {
		up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"ok":true}`) }))
		t.Cleanup(up.Close)
		damages := map[string]damage{
			"none":                    {"", false, ""},
			"a run's input":           {`UPDATE runs SET input = '{"n":' WHERE id = 'RUN'`, false, "not JSON"},
			"a working run's input":   {`UPDATE runs SET input = '{"n":' WHERE id = 'RUN'`, true, "not JSON"},
			"a step's output":         {`UPDATE steps SET output = '[[[' WHERE run_id = 'RUN' AND idx = 0`, false, "not JSON"},
			"a working step's output": {`UPDATE steps SET output = '[[[' WHERE run_id = 'RUN' AND idx = 0`, true, "not JSON"},
			"a step's progress":       {`UPDATE steps SET progress = 'x' WHERE run_id = 'RUN' AND idx = 1`, false, "step 1 of run"},
			"a working step's":        {`UPDATE steps SET progress = 'x' WHERE run_id = 'RUN' AND idx = 1`, true, "step 1 of run"},
			"a gate":                  {`UPDATE gates SET body = '{"id":' WHERE run_id = 'RUN'`, false, "gate"},
			"a step's status":         {`UPDATE steps SET status = 'banana' WHERE run_id = 'RUN' AND idx = 0`, false, ""},
			"a run's version":         {`UPDATE runs SET version_id = 'ver_none' WHERE id = 'RUN'`, false, "ver_none"},
			"a working run's version": {`UPDATE runs SET version_id = 'ver_none' WHERE id = 'RUN'`, true, "ver_none"},
			"events":                  {`UPDATE journal SET events = '[{' WHERE run_id = 'RUN' AND last_seq = (SELECT MIN(last_seq) FROM journal WHERE run_id = 'RUN')`, false, ""},
		}
		st := begin(t, on)
		for _, name := range []string{"api", "damaged", "unsealed"} {
			st.must("PUT", "/v1/secrets/"+name, map[string]any{"value": secretValue + name}, nil)
		}
		st.must("PUT", "/v1/mcp-servers/broken", map[string]any{"url": up.URL, "headers": map[string]string{"Authorization": "Bearer " + agentToken}}, nil)
		st.must("PUT", "/v1/mcp-servers/fine", map[string]any{"url": up.URL}, nil)
		other, _ := st.key("viewer")
		ids := map[string]string{}
		for name := range damages {
			r := st.gated(st.run(fmt.Sprintf(approving, up.URL, "api"), map[string]any{"n": 1}))
			ids[name] = r.ID
		}
		sealed := st.gated(st.run(fmt.Sprintf(approving, up.URL, "damaged"), map[string]any{"n": 1}))
		unsealed := st.gated(st.run(fmt.Sprintf(approving, up.URL, "unsealed"), map[string]any{"n": 1}))
		st.end()

		for name, d := range damages {
			if d.statement != "" {
				st.sql(strings.ReplaceAll(d.statement, "RUN", ids[name]))
			}
			if d.working {
				st.sql(`UPDATE runs SET status = 'running', wake_at = NULL WHERE id = '` + ids[name] + `'`)
			}
		}
		st.sql(`UPDATE secrets SET sealed = 'AQAA' WHERE name = 'damaged'`)
		st.sql(`UPDATE secrets SET sealed = 'not base64!' WHERE name = 'unsealed'`)
		st.sql(`UPDATE mcp_servers SET command = '[', sealed = 'xx' WHERE id = 'broken'`)
		st.sql(`UPDATE api_keys SET hash = '?' WHERE name = 'viewer'`)

		again := begin(t, on, func(c *server.Config) { c.DataDir = st.dir })
		for name, d := range damages {
			t.Run(name, func(t *testing.T) {
				again.t = t
				again.damaged(ids[name], d)
			})
		}
		again.t = t
		for _, r := range []runView{sealed, unsealed} {
			again.answer(r.Gates[0].ID, 200, "")
			again.gatedTwice(r.ID)
			if got := again.get(r.ID); got.Status != "waiting" || !strings.Contains(got.Steps[2].Error, "there is no secret") {
				t.Errorf("a run whose secret is damaged: got %s with %q, want a person called", got.Status, got.Steps[2].Error)
			}
		}
		again.says("/v1/secrets", "cannot be read: store it again", `"name":"api"`)
		again.says("/v1/mcp-servers", "register it again", `"id":"fine"`)
		again.says("/v1/gates?limit=500", "damaged and cannot be read", sealed.ID)
		if code, _, _ := again.as(other, "GET", "/v1/me", nil); code != 401 {
			t.Errorf("a key whose row is damaged: got %d, want 401", code)
		}
		again.leaks(secretValue, agentToken)
	})
}

// damaged looks at a run after one of its rows was damaged, answers its gate,
// and cancels it.
func (st *stop) damaged(id string, d damage) {
	st.t.Helper()
	if d.working {
		r := st.get(id)
		if r = st.ended(id); r.Status != "failed" || !strings.Contains(r.Error, "the run cannot go on") || !strings.Contains(r.Error, d.why) {
			st.t.Errorf("got %s with %q, want it failed with %q", r.Status, r.Error, d.why)
		}
		return
	}
	var gates struct {
		Items []struct{ ID, Status string }
	}
	st.must("GET", "/v1/gates?runId="+id, nil, &gates)
	if len(gates.Items) != 1 {
		st.t.Fatalf("gates: got %+v, want one", gates)
	}
	if d.why == "" {
		st.answer(gates.Items[0].ID, 200, "")
		if strings.Contains(d.statement, "UPDATE journal") {
			if code, b := st.call("GET", "/v1/runs/"+id+"/events", nil, nil); code != 503 || !strings.Contains(b, "the events of run") {
				st.t.Errorf("events: got %d %s, want 503 that says which", code, b)
			}
			return
		}
		if r := st.ended(id); r.Status != "succeeded" {
			st.t.Errorf("got %s with %q, want succeeded", r.Status, r.Error)
		}
		return
	}
	st.answer(gates.Items[0].ID, 0, d.why)
	st.must("POST", "/v1/runs/"+id+"/cancel", map[string]any{}, nil)
	if r := st.get(id); r.Status != "cancelled" {
		st.t.Errorf("cancelled: got %s", r.Status)
	}
}

// answer approves a gate; code 0 is any refusal.
func (st *stop) answer(gate string, code int, why string) {
	st.t.Helper()
	got, b := st.call("POST", "/v1/gates/"+gate+"/answer", map[string]any{"answer": "approve"}, nil)
	if code != 0 && got != code || code == 0 && got < 400 || !strings.Contains(b, why) || strings.Contains(b, "something went wrong") {
		st.t.Errorf("answer: got %d %s, want %d with %q", got, b, code, why)
	}
}

// gatedTwice waits until a run has come to its second gate.
func (st *stop) gatedTwice(id string) {
	st.t.Helper()
	n := 0
	st.follow(id, func(e event) bool {
		if e.Type == "gate:opened" {
			n++
		}
		return n == 2
	})
}

// says requires that an answer is a success with all of these in it.
func (st *stop) says(path string, parts ...string) {
	st.t.Helper()
	code, b := st.call("GET", path, nil, nil)
	for _, part := range parts {
		if code != 200 || !strings.Contains(b, part) {
			st.t.Errorf("%s: got %d %.500s, want %q in it", path, code, b, part)
		}
	}
}

// TestADamagedDefinition is apart, since all runs of a version share its row.
func TestADamagedDefinition(t *testing.T) {
	onEach(t, func(t *testing.T, on func(*server.Config)) {
		up := api(t)
		st := begin(t, on)
		st.must("PUT", "/v1/secrets/api", map[string]any{"value": secretValue}, nil)
		r := st.gated(st.run(fmt.Sprintf(approving, up.URL, "api"), map[string]any{"n": 1}))
		c := st.gated(st.run(fmt.Sprintf(plainStep, up.URL), map[string]any{}))
		st.end()
		st.sql(`UPDATE workflow_versions SET definition = '{"steps":[' WHERE workflow = 'asked'`)
		st.sql(`UPDATE cases SET body = '{' WHERE run_id = '` + c.ID + `'`)
		st.sql(`UPDATE runs SET status = 'running', wake_at = NULL WHERE id = '` + r.ID + `'`)
		again := begin(t, on, func(c *server.Config) { c.DataDir = st.dir })
		if r = again.ended(r.ID); r.Status != "failed" || !strings.Contains(r.Error, "its row is damaged") {
			t.Errorf("got %s with %q, want it failed and told why", r.Status, r.Error)
		}
		again.says("/v1/cases", "damaged and cannot be read")
		if code, b := again.call("POST", "/v1/gates/"+c.Gates[0].ID+"/answer", map[string]any{"answer": "edit", "modifications": map[string]any{}}, nil); code != 503 || !strings.Contains(b, "case") {
			t.Errorf("an answer to a damaged case: got %d %s, want 503 that names it", code, b)
		}
		again.leaks(secretValue)
	})
}

// TestASettingThatIsNotRight has a value in the database that no version
// writes: runs that do not need it go on, and those that do say which it is.
func TestASettingThatIsNotRight(t *testing.T) {
	onEach(t, func(t *testing.T, on func(*server.Config)) {
		up := api(t)
		st := begin(t, on)
		st.must("PUT", "/v1/secrets/api", map[string]any{"value": secretValue}, nil)
		st.set("recovery.timeout_ms", 2000)
		st.end()
		st.sql(`UPDATE settings SET value = 'banana', sealed = '!', meta = '{' WHERE key = 'recovery.timeout_ms'`)
		again := begin(t, on, func(c *server.Config) { c.DataDir = st.dir })
		if r := again.ended(again.run(fmt.Sprintf(plainStep, up.URL+"/v2/x"), map[string]any{})); r.Status != "succeeded" {
			t.Errorf("a run that needs no recovery: got %s with %q", r.Status, r.Error)
		}
		r, _ := again.outcome(again.run(fmt.Sprintf(plainStep, up.URL+"/v1/x"), map[string]any{}))
		if r.Status != "waiting" || !strings.Contains(r.Steps[0].Message, "recovery.timeout_ms") {
			t.Errorf("a run that needs it: got %s with %q, want a person called and told the setting's name", r.Status, r.Steps[0].Message)
		}
		again.set("recovery.timeout_ms", 3000)
		if r := again.ended(again.run(fmt.Sprintf(plainStep, up.URL+"/v1/x"), map[string]any{})); r.Status != "succeeded" {
			t.Errorf("after it was set again: got %s with %q", r.Status, r.Error)
		}
		again.leaks(secretValue)
	})
}
