package store

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/pgtest"
)

// cutter stands between a store and PostgreSQL, and cuts the connection over
// which a COMMIT goes once it is armed.
type cutter struct {
	mu    sync.Mutex
	armed bool
	sent  bool // the COMMIT still reaches the server
}

func (c *cutter) arm() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.armed = true
}

// listen gives the URL of the same database through the cutter.
func (c *cutter) listen(t *testing.T, direct string) string {
	t.Helper()
	u, err := url.Parse(direct)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	socket := filepath.Join(u.Query().Get("host"), ".s.PGSQL.5432")
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("unix", socket)
			if err != nil {
				client.Close()
				return
			}
			go c.forth(client, server)
			go func() { _, _ = io.Copy(client, server); client.Close(); server.Close() }()
		}
	}()
	return "postgres://postgres@" + l.Addr().String() + u.Path + "?sslmode=disable"
}

// forth carries what the client says to the server.
func (c *cutter) forth(client, server net.Conn) {
	defer client.Close()
	defer server.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := client.Read(buf)
		c.mu.Lock()
		cut := c.armed && bytes.Contains(bytes.ToLower(buf[:n]), []byte("commit"))
		c.mu.Unlock()
		if cut && !c.sent {
			return
		}
		if cut {
			client.Close() // before an answer can come
		}
		if _, werr := server.Write(buf[:n]); err != nil || werr != nil || cut {
			if cut {
				_, _ = io.Copy(io.Discard, server) // until the server has done it
			}
			return
		}
	}
}

// TestACutInTheMiddleOfACommit cuts the connection before the COMMIT has
// reached PostgreSQL, and after it has and nothing of its answer came back.
// Either way the writer is told that it is unavailable, nothing more is
// written, and the next process finds all of the write or nothing.
func TestACutInTheMiddleOfACommit(t *testing.T) {
	t.Parallel()
	for name, sent := range map[string]bool{"before": false, "after": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			direct := Options{URL: pgtest.URL(t)}
			c := &cutter{sent: sent}
			s := open(t, Options{URL: c.listen(t, direct.URL)})
			r := create(t, s, "run_1")
			r.Version, r.Seq, r.Owner = 2, 2, "late"
			change := flow.Change{Run: r, Steps: []flow.StepInstance{{Status: flow.StepSucceeded, Output: json.RawMessage(`1`)}}}
			c.arm()
			wantCode(t, "the write that is cut", s.Apply(t.Context(), change), flow.CodeUnavailable)
			<-s.Lost()
			wantCode(t, "the next write", s.Apply(t.Context(), change), flow.CodeUnavailable)
			next := open(t, direct)
			got, steps := must(next.Run(t.Context(), "ws", r.ID)), must(next.Steps(t.Context(), r.ID))
			if sent && (got.Version != 2 || len(steps) != 1) || !sent && (got.Version != 1 || len(steps) != 0) {
				t.Errorf("the next process finds version %d and %d steps, want all of the write: %v", got.Version, len(steps), sent)
			}
		})
	}
}

// TestADatabaseThatOnlyReads is one as a standby is.
func TestADatabaseThatOnlyReads(t *testing.T) {
	t.Parallel()
	db := Options{URL: pgtest.URL(t)}
	if err := must(Open(t.Context(), db)).Close(); err != nil {
		t.Fatal(err)
	}
	c := outsider(t, db.URL)
	if _, err := c.Exec(t.Context(), `ALTER DATABASE `+pgx.Identifier{c.Config().Database}.Sanitize()+` SET default_transaction_read_only = on`); err != nil {
		t.Fatal(err)
	}
	_, err := Open(t.Context(), db)
	wantCode(t, "open", err, flow.CodeInvalid)
	if err == nil || !strings.Contains(err.Error(), "read-only") {
		t.Errorf("got %v, want it to say that the database is read-only", err)
	}
}
