package e2e

import (
	"database/sql"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // to look at what a killed process left
	_ "modernc.org/sqlite"             // there too

	"github.com/longstop-dev/longstop/internal/pgtest"
)

const threeCalls = `
name: three
steps:
  - {type: http_request, config: {method: POST, url: "%[1]s/0", body: {run: "{{ run.id }}"}}}
  - {type: http_request, config: {method: POST, url: "%[1]s/1", body: {run: "{{ run.id }}"}}}
  - {type: http_request, config: {method: POST, url: "%[1]s/2", body: {run: "{{ run.id }}"}}}
`

// upstream counts what it is asked, by idempotency key.
type upstream struct {
	*httptest.Server
	mu   sync.Mutex
	seen map[string]int
	hold time.Duration
	some chan struct{} // signalled with every request
}

func newUpstream(t *testing.T, hold time.Duration) *upstream {
	u := &upstream{seen: map[string]int{}, hold: hold, some: make(chan struct{}, 1<<16)}
	u.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		u.mu.Lock()
		u.seen[r.Header.Get("Idempotency-Key")]++
		u.mu.Unlock()
		u.some <- struct{}{}
		select {
		case <-time.After(u.hold):
		case <-r.Context().Done():
		}
		fmt.Fprint(w, `{"ok":true}`)
	}))
	t.Cleanup(u.Close)
	return u
}

func (u *upstream) counts() map[string]int {
	u.mu.Lock()
	defer u.mu.Unlock()
	out := map[string]int{}
	for k, n := range u.seen {
		out[k] = n
	}
	return out
}

// reached waits until a request whose idempotency key ends so has been made.
func (u *upstream) reached(t *testing.T, suffix string) {
	t.Helper()
	late := time.After(30 * time.Second)
	for {
		for k := range u.counts() {
			if strings.HasSuffix(k, suffix) {
				return
			}
		}
		select {
		case <-u.some:
		case <-late:
			t.Fatalf("no request with a key that ends in %q came within 30 s", suffix)
		}
	}
}

func (p *process) startMany(t *testing.T, n int) []string {
	t.Helper()
	ids := make([]string, n)
	var wg sync.WaitGroup
	gate := make(chan struct{}, 32)
	for i := range ids {
		wg.Go(func() {
			gate <- struct{}{}
			defer func() { <-gate }()
			ids[i] = p.start("three", map[string]any{"i": i})
		})
	}
	wg.Wait()
	return ids
}

// place is where a server keeps what it must not forget.
type place struct {
	dir string // its data folder
	url string // of a PostgreSQL database, instead of a file in the folder
}

// onEach runs a test on SQLite and on PostgreSQL.
func onEach(t *testing.T, test func(t *testing.T, at place)) {
	t.Parallel()
	t.Run("SQLite", func(t *testing.T) { t.Parallel(); test(t, place{dir: t.TempDir()}) })
	t.Run("PostgreSQL", func(t *testing.T) { t.Parallel(); test(t, place{dir: t.TempDir(), url: pgtest.URL(t)}) })
}

// serve starts the binary there.
func (at place) serve(t *testing.T) *process {
	t.Helper()
	if at.url == "" {
		return serve(t, at.dir)
	}
	key := filepath.Join(at.dir, "master")
	if err := os.WriteFile(key, []byte(strings.Repeat("0123456789abcdef", 4)), 0o600); err != nil {
		t.Fatal(err)
	}
	return serve(t, at.dir, "--database-url", at.url, "--master-key-file", key)
}

// open opens the database of a process that has ended.
func (at place) open() (*sql.DB, error) {
	if at.url == "" {
		return sql.Open("sqlite", "file:"+filepath.Join(at.dir, "longstop.db"))
	}
	return sql.Open("pgx", at.url)
}

// checkpointed reads which steps a dead process had recorded as done.
func checkpointed(t *testing.T, at place) map[string]bool {
	t.Helper()
	db, err := at.open()
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	rows, err := db.Query(`SELECT run_id, idx FROM steps WHERE status = 'succeeded'`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	out := map[string]bool{}
	for rows.Next() {
		var run string
		var idx int
		if err := rows.Scan(&run, &idx); err != nil {
			t.Fatal(err)
		}
		out[fmt.Sprintf("%s-%d", run, idx)] = true
	}
	return out
}

func TestKillWith500RunsInFlight(t *testing.T) { onEach(t, killWith500) }

func killWith500(t *testing.T, at place) {
	up := newUpstream(t, 150*time.Millisecond)
	p := at.serve(t)
	p.define(fmt.Sprintf(threeCalls, up.URL))
	ids := p.startMany(t, 500)
	up.reached(t, "-1") // a second step begins after its first is checkpointed, so the kill meets some
	p.kill()
	done := checkpointed(t, at)
	before := up.counts()

	p = at.serve(t)
	for _, id := range ids {
		if r := p.finished(id); r.Status != "succeeded" {
			t.Errorf("run %s: got %s (%s)", id, r.Status, r.Error)
		}
	}
	after := up.counts()
	if len(done) == 0 || len(done) == 3*len(ids) {
		t.Fatalf("the kill met %d checkpointed steps of %d: nothing was in flight", len(done), 3*len(ids))
	}
	for k := range done {
		if after[k] != before[k] {
			t.Errorf("checkpointed step %s was executed again", k)
		}
	}
	for _, id := range ids {
		for i := range 3 {
			if k := fmt.Sprintf("%s-%d", id, i); after[k] == 0 {
				t.Errorf("step %s was never executed", k)
			}
		}
	}
}

func TestTerminateDuringCommits(t *testing.T) { onEach(t, terminate) }

func terminate(t *testing.T, at place) {
	up := newUpstream(t, time.Millisecond)
	p := at.serve(t)
	p.define(fmt.Sprintf(threeCalls, up.URL))
	ids := p.startMany(t, 200)
	p.signal(syscall.SIGTERM)
	if err := p.exit(); err != nil {
		t.Fatalf("exit after SIGTERM: got %v, want 0; %s", err, p.out)
	}
	done := checkpointed(t, at)
	before := up.counts()
	p = at.serve(t)
	for _, id := range ids {
		if r := p.finished(id); r.Status != "succeeded" {
			t.Errorf("run %s: got %s (%s)", id, r.Status, r.Error)
		}
	}
	for k := range done {
		if n := up.counts()[k]; n != before[k] {
			t.Errorf("checkpointed step %s was executed again", k)
		}
	}
	for k, n := range before { // a graceful stop lets what executes finish
		if n > 1 {
			t.Errorf("step %s was executed %d times before the stop", k, n)
		}
	}
}

func TestASecondProcessOnOneFolderNamesTheHolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := serve(t, dir)
	second := exec.Command(binary(), "serve", "--listen", "127.0.0.1:0", "--data", dir)
	second.Env = environ()
	out, err := second.CombinedOutput()
	if err == nil {
		t.Fatalf("a second process started: %s", out)
	}
	if want := fmt.Sprintf("process %d", p.cmd.Process.Pid); !strings.Contains(string(out), want) {
		t.Errorf("message does not name the holder: got %q, want something with %q", out, want)
	}
	var me struct{ Role string }
	p.call("GET", "/v1/me", nil, &me)
	if me.Role != "owner" {
		t.Errorf("the holder after that: got role %q, want owner", me.Role)
	}
}
