package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/longstop-dev/longstop/internal/flow"
)

const (
	holdClass = 0x10c6570 // of our advisory locks; the second half is the schema's
	holdCheck = 10 * time.Second
	// A process that was just killed may be gone a moment later.
	holdTries = 5
	holdPause = 100 * time.Millisecond
)

var errLost = flow.Errorf(flow.CodeUnavailable, "the lock on the database is lost: nothing is written any more").
	Right("start this server again; its lock's connection broke, and another process may hold the database by now")

// hold is the advisory lock by which one process has a database to itself, on
// a connection of its own: it is held as long as that connection lives.
type hold struct {
	conn *pgx.Conn
	pid  uint32
	gone chan struct{} // closed when the lock is lost
	stop context.CancelFunc
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
	h := &hold{conn: conn, pid: conn.PgConn().PID(), gone: make(chan struct{}), done: make(chan struct{})}
	if err := h.take(ctx); err != nil {
		conn.Close(context.WithoutCancel(ctx))
		return nil, err
	}
	watched, stop := context.WithCancel(context.Background())
	h.stop = stop
	go h.watch(watched)
	return h, nil
}

func (h *hold) take(ctx context.Context) error {
	// The server too must notice soon that this machine is gone.
	_, err := h.conn.Exec(ctx, `SELECT set_config('tcp_keepalives_idle', '10', false), set_config('tcp_keepalives_interval', '5', false),
		set_config('tcp_keepalives_count', '3', false)`)
	if err != nil {
		return err
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

// watch waits for the end of the lock's connection. One that is silently cut
// is found by asking now and then.
func (h *hold) watch(ctx context.Context) {
	defer close(h.done)
	for {
		wait, cancel := context.WithTimeout(ctx, holdCheck)
		_, err := h.conn.WaitForNotification(wait)
		cancel()
		if ctx.Err() != nil {
			return
		}
		if errors.Is(err, context.DeadlineExceeded) && h.alive(ctx) {
			continue
		}
		if err == nil { // nobody notifies us; whoever does does no harm
			continue
		}
		if ctx.Err() == nil {
			close(h.gone)
		}
		return
	}
}

// alive asks whether the session is still the one that took the lock, which a
// pooler between us may have changed.
func (h *hold) alive(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, holdCheck)
	defer cancel()
	var pid uint32
	err := h.conn.QueryRow(ctx, `SELECT pg_backend_pid()`).Scan(&pid)
	return err == nil && pid == h.pid
}

// release gives the lock back.
func (h *hold) release() {
	h.stop()
	<-h.done
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = h.conn.Close(ctx)
}
