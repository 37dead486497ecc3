package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/longstop-dev/longstop/internal/client"
	"github.com/longstop-dev/longstop/internal/engine"
	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/server"
	"github.com/longstop-dev/longstop/internal/store"
)

// place is where a database is: a folder for SQLite, with a URL in a schema of
// its own for PostgreSQL.
type place struct {
	dir string
	url string
}

// name says which database it is, as rows do.
func (p place) name() string {
	if p.url != "" {
		return "postgres"
	}
	return "sqlite"
}

func (p place) options() store.Options {
	if p.url != "" {
		return store.Options{URL: p.url}
	}
	return store.Options{Path: filepath.Join(p.dir, "longstop.db")}
}

// folder makes an empty place for an SQLite database.
func (b *bed) folder() (place, error) {
	b.made++
	dir := filepath.Join(b.dir, fmt.Sprintf("%02d", b.made))
	return place{dir: dir}, os.Mkdir(dir, 0o700)
}

// schema makes an empty place in the PostgreSQL database.
func (b *bed) schema(ctx context.Context) (place, error) {
	p, err := b.folder()
	if err != nil {
		return p, err
	}
	u, err := url.Parse(b.DatabaseURL)
	if err != nil {
		return p, flow.Errorf(flow.CodeInvalid, "the database URL cannot be read").At("--database-url")
	}
	name := fmt.Sprintf("longstop_bench_%d_%d", os.Getpid(), b.made)
	if err := b.statement(ctx, "CREATE SCHEMA "+name); err != nil {
		return p, err
	}
	b.drops = append(b.drops, func() {
		// A bench that was interrupted cleans up too.
		if err := b.statement(context.WithoutCancel(ctx), "DROP SCHEMA "+name+" CASCADE"); err != nil {
			b.say("the schema %s is left behind: %v", name, err)
		}
	})
	q := u.Query()
	q.Set("search_path", name)
	u.RawQuery = q.Encode()
	p.url = u.String()
	return p, nil
}

// statement runs one statement on the PostgreSQL database.
func (b *bed) statement(ctx context.Context, q string) error {
	c, err := pgx.Connect(ctx, b.DatabaseURL)
	if err != nil {
		return flow.Errorf(flow.CodeUnavailable, "the PostgreSQL database cannot be used").At("--database-url").Because(err)
	}
	defer c.Close(context.WithoutCancel(ctx))
	_, err = c.Exec(ctx, q)
	return err
}

// rig is a server in this process and a workflow on it.
type rig struct {
	server *server.Server
	client *client.Client
	by     flow.Caller
}

// rig starts a server that may drive twice as many runs as are in flight, so
// that none has to queue.
func (b *bed) rig(ctx context.Context, p place, change func(*server.Config)) (*rig, error) {
	c := server.Config{DataDir: p.dir, DatabaseURL: p.url, Listen: "127.0.0.1:0", AllowPrivate: true, MaxActive: 2048}
	if p.url != "" {
		c.MasterKey = strings.Repeat("5b", 32) // nobody keeps these databases
	}
	if change != nil {
		change(&c)
	}
	s, err := server.Start(ctx, c)
	if err != nil {
		return nil, err
	}
	r := &rig{server: s, client: client.New(s.URL(), s.Key(), client.Options{})}
	me, err := r.client.Me(ctx)
	if err != nil {
		r.stop()
		return nil, err
	}
	r.by = flow.Caller{Workspace: me.Workspace, Person: me.Person, KeyID: me.KeyID, Role: me.Role}
	return r, nil
}

// stop ends the server. What its runs do is not waited for long.
func (r *rig) stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return r.server.Stop(ctx)
}

// publish makes a workflow.
func (r *rig) publish(ctx context.Context, source string) error {
	_, err := r.client.CreateWorkflow(ctx, client.Definition{Source: []byte(source), Filename: "bench.yaml"})
	return err
}

// begin starts a run without a network between.
func (r *rig) begin(ctx context.Context, workflow string, input json.RawMessage) (string, error) {
	in := &engine.StartRunIn{Name: workflow}
	in.Body.Input = input
	v, err := r.server.Engine().StartRun(ctx, r.by, in)
	if err != nil {
		return "", err
	}
	return v.ID, nil
}

// whole starts a run and waits until it is over, or parked.
func (r *rig) whole(ctx context.Context, workflow string) error {
	id, err := r.begin(ctx, workflow, nil)
	if err != nil {
		return err
	}
	return r.server.Engine().Settled(ctx, id)
}

// count counts the runs of a workflow by what is stored of them.
func (r *rig) count(ctx context.Context, workflow string, status flow.RunStatus) (int, error) {
	n := 0
	in := &engine.ListRunsIn{Page: engine.Page{Limit: 500}, Workflow: workflow, Status: string(status)}
	for {
		page, err := r.server.Engine().ListRuns(ctx, r.by, in)
		if err != nil {
			return 0, err
		}
		n += len(page.Items)
		if page.Next == "" {
			return n, nil
		}
		in.After = page.Next
	}
}
