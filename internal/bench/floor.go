package bench

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"slices"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/ident"
	"github.com/longstop-dev/longstop/internal/server"
	"github.com/longstop-dev/longstop/internal/store"
)

// recording is what one run of the workflow wrote: the statements of each of
// its transactions, as the store gave them to the driver.
type recording struct {
	id     string
	groups [][]store.Statement
}

// record runs the workflow once on a server of its own and keeps what it wrote.
func (b *bed) record(ctx context.Context, p place, source, workflow string) (*recording, error) {
	var mu sync.Mutex
	var all [][]store.Statement
	r, err := b.rig(ctx, p, func(c *server.Config) {
		c.Trace = func(s []store.Statement) {
			mu.Lock()
			defer mu.Unlock()
			all = append(all, s)
		}
	})
	if err != nil {
		return nil, err
	}
	defer r.stop()
	if err := r.publish(ctx, source); err != nil {
		return nil, err
	}
	id, err := r.begin(ctx, workflow, nil)
	if err != nil {
		return nil, err
	}
	if err := r.server.Engine().Settled(ctx, id); err != nil {
		return nil, err
	}
	mu.Lock()
	defer mu.Unlock()
	rec := &recording{id: id}
	for _, group := range all { // one run alone: each transaction is one change
		group = slices.DeleteFunc(group, func(s store.Statement) bool { return !slices.Contains(s.Args, any(id)) })
		if len(group) > 0 {
			rec.groups = append(rec.groups, group)
		}
	}
	if len(rec.groups) < 2 {
		return nil, flow.Errorf(flow.CodeInternal, "a run wrote %d transactions, which cannot be", len(rec.groups))
	}
	return rec, nil
}

// size tells how much is written for a run.
func (r *recording) size() string {
	statements, bytes := 0, 0
	for _, g := range r.groups {
		for _, s := range g {
			statements++
			for _, a := range s.Args {
				if text, ok := a.(string); ok {
					bytes += len(text)
				} else {
					bytes += 8
				}
			}
		}
	}
	return fmt.Sprintf("%d transactions, %d statements, %d bytes of values a run", len(r.groups), statements, bytes)
}

// as gives the arguments of a group with another run's id in place of the
// recorded one.
func (r *recording) as(group int, id string) [][]any {
	out := make([][]any, len(r.groups[group]))
	for i, s := range r.groups[group] {
		out[i] = slices.Clone(s.Args)
		for j, a := range s.Args {
			if text, ok := a.(string); ok && text == r.id {
				out[i][j] = id
			}
		}
	}
	return out
}

// floor writes recorded runs and does nothing else: callers that wait for
// their commit, and one goroutine that commits whatever waits. It is what
// there is to reach.
type floor struct {
	rec   *recording
	work  chan *piece
	ended chan struct{}
	most  int // pieces that share a transaction
	write func([]*piece) error
	close func()
}

// piece is one transaction's worth of one run.
type piece struct {
	statements []store.Statement
	args       [][]any
	done       chan error
}

// floor opens the database that a server has made and closed.
func (b *bed) floor(ctx context.Context, p place, rec *recording) (*floor, error) {
	f := &floor{rec: rec, work: make(chan *piece, 4096), ended: make(chan struct{}), most: 512}
	var err error
	if p.url != "" {
		err = f.postgres(ctx, p.url)
	} else {
		err = f.sqlite(ctx, p.options().Path)
	}
	if err != nil {
		return nil, err
	}
	go f.loop()
	return f, nil
}

func (f *floor) stop() {
	close(f.work)
	<-f.ended
	f.close()
}

func (f *floor) loop() {
	defer close(f.ended)
	var batch []*piece
	for first := range f.work {
		batch = append(batch[:0], first)
	more:
		for len(batch) < f.most {
			select {
			case p, ok := <-f.work:
				if !ok {
					break more
				}
				batch = append(batch, p)
			default:
				break more
			}
		}
		err := f.write(batch)
		for _, p := range batch {
			p.done <- err
		}
	}
}

// whole writes one run, waiting for each of its transactions as a run has to.
func (f *floor) whole(context.Context) error {
	id := ident.New("run")
	done := make(chan error, 1)
	for i := range f.rec.groups {
		f.work <- &piece{statements: f.rec.groups[i], args: f.rec.as(i, id), done: done}
		if err := <-done; err != nil {
			return err
		}
	}
	return nil
}

// begin writes the first transaction of a run.
func (f *floor) begin() error {
	done := make(chan error, 1)
	f.work <- &piece{statements: f.rec.groups[0], args: f.rec.as(0, ident.New("run")), done: done}
	return <-done
}

// sqlite writes with the store's driver and settings, every statement
// prepared.
func (f *floor) sqlite(ctx context.Context, path string) error {
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: path}).EscapedPath()+
		"?_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=foreign_keys(1)&_pragma=cache_size(-16000)&_pragma=temp_store(memory)")
	if err != nil {
		return err
	}
	conn, err := db.Conn(ctx)
	if err != nil {
		db.Close()
		return err
	}
	prepared := map[string]*sql.Stmt{}
	exec := func(q string, args ...any) error {
		st := prepared[q]
		if st == nil {
			var err error
			if st, err = conn.PrepareContext(context.Background(), q); err != nil {
				return err
			}
			prepared[q] = st
		}
		_, err := st.ExecContext(context.Background(), args...)
		return err
	}
	f.close = func() {
		for _, st := range prepared {
			st.Close()
		}
		conn.Close()
		db.Close()
	}
	f.write = func(batch []*piece) error {
		if err := exec(`BEGIN IMMEDIATE`); err != nil {
			return err
		}
		for _, p := range batch {
			for i, s := range p.statements {
				if err := exec(s.SQL, p.args[i]...); err != nil {
					_ = exec(`ROLLBACK`)
					return err
				}
			}
		}
		return exec(`COMMIT`)
	}
	return nil
}

// postgres writes each batch in one message, which is one transaction: one
// wait for the server, and one sync.
func (f *floor) postgres(ctx context.Context, rawURL string) error {
	conn, err := pgx.Connect(ctx, rawURL)
	if err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, `SELECT set_config('enable_seqscan', 'off', false), set_config('jit', 'off', false)`); err != nil {
		conn.Close(ctx)
		return err
	}
	f.close = func() { conn.Close(context.Background()) }
	f.write = func(batch []*piece) error {
		var queue pgx.Batch
		for _, p := range batch {
			for i, s := range p.statements {
				queue.Queue(s.SQL, p.args[i]...)
			}
		}
		return conn.SendBatch(context.Background(), &queue).Close()
	}
	return nil
}
