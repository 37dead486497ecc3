package store

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/longstop-dev/longstop/internal/flow"
)

const (
	holdClass = 0x10c6570   // of our advisory locks; the second half is the schema's
	holdCheck = time.Second // how often the connection is tried while nobody writes
	holdReply = 5 * time.Second
	// A process that was just killed may be gone a moment later.
	holdTries = 5
	holdPause = 100 * time.Millisecond
)

var errLost = flow.Errorf(flow.CodeUnavailable, "the lock on the database is lost: nothing is written any more").
	Right("start this server again; its lock's connection broke, and another process may hold the database by now")

// hold is the advisory lock by which one process has a database to itself. It
// is held as long as its connection lives, and that connection is the one
// that writes: PostgreSQL undoes what a session has not committed before it
// gives its lock away, so that no write of ours can follow one of the next
// holder's, however late we notice.
type hold struct {
	mu   sync.Mutex // of whoever uses conn
	conn *pgx.Conn
	pid  uint32
	gone chan struct{} // closed when the lock is lost
	once sync.Once     // for gone
	stop chan struct{}
	done chan struct{}
}

// processName is what this process is called among the database's sessions,
// so that others can name who holds the lock.
func processName() string {
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "unknown"
	}
	return fmt.Sprintf("longstop on %.30s, process %d", host, os.Getpid()) // PostgreSQL keeps 63 bytes
}

// takeHold takes the lock of the schema that the URL leads to. It answers
// conflict, naming the holder, if another process has it.
func takeHold(ctx context.Context, config *pgx.ConnConfig) (*hold, error) {
	conn, err := pgx.ConnectConfig(ctx, config.Copy())
	if err != nil {
		return nil, err
	}
	h := &hold{conn: conn, pid: conn.PgConn().PID(), gone: make(chan struct{}), stop: make(chan struct{}), done: make(chan struct{})}
	if err := h.take(ctx); err != nil {
		conn.Close(context.WithoutCancel(ctx))
		return nil, err
	}
	go h.watch()
	return h, nil
}

// planning has the server use the indexes, which all our statements have. A
// plan that it made while a table was small would otherwise stay a scan of
// all of it until statistics are gathered: 25 ms for a row of 200,000.
const planning = `SELECT set_config('enable_seqscan', 'off', false), set_config('jit', 'off', false)`

// holdSettings are the writing session's. The server too must notice soon that
// this machine is gone, and what it says is committed must be on its disk.
const holdSettings = planning + `,
	set_config('tcp_keepalives_idle', '10', false), set_config('tcp_keepalives_interval', '5', false),
	set_config('tcp_keepalives_count', '3', false),
	set_config('synchronous_commit', CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on' ELSE current_setting('synchronous_commit') END, false)`

func (h *hold) take(ctx context.Context) error {
	var encoding string
	if err := h.conn.QueryRow(ctx, `SHOW server_encoding`).Scan(&encoding); err != nil {
		return err
	}
	if encoding != "UTF8" {
		return flow.Errorf(flow.CodeInvalid, "the database is encoded in %s", encoding).At("--database-url").
			Right("make it with CREATE DATABASE name ENCODING 'UTF8' TEMPLATE template0")
	}
	if _, err := h.conn.Exec(ctx, holdSettings); err != nil {
		return err
	}
	var readOnly string
	if err := h.conn.QueryRow(ctx, `SHOW transaction_read_only`).Scan(&readOnly); err != nil {
		return err
	}
	if readOnly == "on" {
		return flow.Errorf(flow.CodeInvalid, "the database is read-only: a standby, or default_transaction_read_only is on").At("--database-url").
			Right("name one that this user may write")
	}
	for try := 1; ; try++ {
		var got bool
		err := h.conn.QueryRow(ctx, `SELECT pg_try_advisory_lock(CAST($1 AS INTEGER), hashtext(current_schema()))`, holdClass).Scan(&got)
		if err != nil || got {
			return err
		}
		if try == holdTries {
			return flow.Errorf(flow.CodeConflict, "the database is held by %s", h.holder(ctx)).At("--database-url").
				Right("stop that process, name another database, or talk to the server that runs")
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(holdPause):
		}
	}
}

// holder names the process that has the lock, as it has named itself.
func (h *hold) holder(ctx context.Context) string {
	var name string
	err := h.conn.QueryRow(ctx, `SELECT COALESCE(a.application_name, '') FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
		WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 2
		AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
		AND CAST(l.classid AS BIGINT) = $1 AND CAST(l.objid AS BIGINT) = CAST(hashtext(current_schema()) AS BIGINT) & 4294967295`,
		holdClass).Scan(&name)
	if err != nil || name == "" {
		return "another process"
	}
	return name
}

// watch tries the connection now and then while nobody writes; a write finds
// out by itself.
func (h *hold) watch() {
	defer close(h.done)
	tick := time.NewTicker(holdCheck)
	defer tick.Stop()
	for {
		select {
		case <-h.stop:
			return
		case <-tick.C:
		}
		if !h.mu.TryLock() {
			continue
		}
		if !h.alive() {
			h.drop()
		}
		h.leave()
	}
}

// alive asks whether the session is still the one that took the lock, which a
// pooler between us may have changed.
func (h *hold) alive() bool {
	ctx, cancel := context.WithTimeout(context.Background(), holdReply)
	defer cancel()
	var pid uint32
	err := h.conn.QueryRow(ctx, `SELECT pg_backend_pid()`).Scan(&pid)
	return err == nil && pid == h.pid
}

// enter gives the connection to a writer, until it leaves.
func (h *hold) enter() (*pgx.Conn, error) {
	h.mu.Lock()
	if h.conn.IsClosed() {
		h.leave()
		return nil, errLost
	}
	return h.conn, nil
}

func (h *hold) leave() {
	if h.conn.IsClosed() {
		h.once.Do(func() { close(h.gone) })
	}
	h.mu.Unlock()
}

// drop ends the session, and with it the lock. The caller has entered.
func (h *hold) drop() {
	ctx, cancel := context.WithTimeout(context.Background(), holdReply)
	defer cancel()
	_ = h.conn.Close(ctx)
}

// release gives the lock back.
func (h *hold) release() {
	close(h.stop)
	<-h.done
	h.mu.Lock()
	defer h.mu.Unlock()
	h.drop()
}
