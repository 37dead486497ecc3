package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/longstop-dev/longstop/internal/flow"
)

// lockKey names our lock among a database's advisory locks: "longstop".
const lockKey = 0x6c6f6e6773746f70

// errLost is what every write is told once the hold is lost.
var errLost = flow.Errorf(flow.CodeUnavailable, "this server has lost its connection to PostgreSQL and with it the right to write").
	Right("start it again; its runs go on from their checkpoints")

// holding is the connection that holds the database's advisory lock, until
// several nodes may work on one database. All writes go through this same
// connection: when the server ends its session, it undoes what the session
// has not committed before it gives the lock to another, so that no write of
// ours can come after one of the next holder's.
type holding struct {
	mu   sync.Mutex // whoever uses conn has it
	conn *pgx.Conn

	lost  chan struct{} // closed when the connection broke
	once  sync.Once
	stop  chan struct{}
	ended chan struct{}
}

const (
	watchEvery   = time.Second      // how often an idle connection is tried
	watchTimeout = 5 * time.Second  // for the answer
	writeTimeout = 60 * time.Second // for a whole transaction of a batch
)

// takeHold connects and takes the lock. It answers conflict, with the
// holder's name, if another process still has it after wait.
func takeHold(ctx context.Context, shared *pgx.ConnConfig, wait time.Duration) (*holding, error) {
	cfg := shared.Copy()
	cfg.RuntimeParams["application_name"] = holderName()
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return nil, err
	}
	if err := prepareHold(ctx, conn, wait); err != nil {
		conn.Close(context.WithoutCancel(ctx))
		return nil, err
	}
	h := &holding{conn: conn, lost: make(chan struct{}), stop: make(chan struct{}), ended: make(chan struct{})}
	go h.watch()
	return h, nil
}

// holderName says who we are, for whoever finds the lock taken: at most 63
// bytes, which is what PostgreSQL keeps.
func holderName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "an unnamed host"
	}
	return fmt.Sprintf("longstop on %.32s, process %d", host, os.Getpid())
}

func prepareHold(ctx context.Context, conn *pgx.Conn, wait time.Duration) error {
	var encoding string
	if err := conn.QueryRow(ctx, `SHOW server_encoding`).Scan(&encoding); err != nil {
		return err
	}
	if encoding != "UTF8" {
		return flow.Errorf(flow.CodeInvalid, "the PostgreSQL database is encoded as %s", encoding).Right("make it with CREATE DATABASE ... ENCODING 'UTF8'")
	}
	// The server must notice soon that this host is gone, and must not answer
	// before what it has committed is on disk.
	const settings = `SET tcp_keepalives_idle = 10; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 3;
		SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'; ` + planning
	if _, err := conn.Exec(ctx, settings, pgx.QueryExecModeSimpleProtocol); err != nil {
		return err
	}
	t, err := conn.Begin(ctx)
	if err != nil {
		return err
	}
	defer t.Rollback(context.WithoutCancel(ctx))
	if _, err := t.Exec(ctx, fmt.Sprintf(`SET LOCAL lock_timeout = %d`, max(wait.Milliseconds(), 1))); err != nil {
		return err
	}
	_, err = t.Exec(ctx, `SELECT pg_advisory_lock($1)`, int64(lockKey))
	var refused *pgconn.PgError
	if errors.As(err, &refused) && refused.Code == "55P03" { // lock_not_available
		if err := t.Rollback(ctx); err != nil {
			return err
		}
		return taken(ctx, conn)
	}
	if err != nil {
		return err
	}
	return t.Commit(ctx)
}

// taken is the refusal that names the holder.
func taken(ctx context.Context, conn *pgx.Conn) error {
	holder := "another process"
	err := conn.QueryRow(ctx, `SELECT a.application_name FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
		WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1 AND a.application_name <> '' AND a.datname = current_database()
		AND l.database = a.datid AND CAST(l.classid AS bigint) = $1 AND CAST(l.objid AS bigint) = $2`,
		int64(lockKey>>32), int64(lockKey&0xffffffff)).Scan(&holder)
	if err != nil && !noRows(err) {
		return err
	}
	return flow.Errorf(flow.CodeConflict, "the PostgreSQL database is in use by %s", holder).
		Right("one server at a time: stop that one, or give this one a database of its own")
}

// watch tries the connection while nobody writes; a write tells by itself.
func (h *holding) watch() {
	defer close(h.ended)
	tick := time.NewTicker(watchEvery)
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
		ctx, cancel := context.WithTimeout(context.Background(), watchTimeout)
		err := h.conn.Ping(ctx)
		cancel()
		if err != nil {
			h.lose()
		}
		h.mu.Unlock()
	}
}

// take gives the connection to one writer, until release.
func (h *holding) take() (*pgx.Conn, error) {
	select {
	case <-h.lost:
		return nil, errLost
	default:
	}
	h.mu.Lock()
	if h.conn.IsClosed() {
		h.lose()
		h.mu.Unlock()
		return nil, errLost
	}
	return h.conn, nil
}

func (h *holding) release() {
	if h.conn.IsClosed() {
		h.lose()
	}
	h.mu.Unlock()
}

// lose refuses all that comes. The caller has mu.
func (h *holding) lose() {
	h.once.Do(func() { close(h.lost) })
	h.drop()
}

// drop ends the session, and the lock with it.
func (h *holding) drop() {
	ctx, cancel := context.WithTimeout(context.Background(), watchTimeout)
	defer cancel()
	h.conn.Close(ctx)
}

func (h *holding) close() {
	close(h.stop)
	<-h.ended
	h.mu.Lock()
	defer h.mu.Unlock()
	h.drop()
}
