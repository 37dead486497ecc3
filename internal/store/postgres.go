package store

import (
	"bytes"
	"context"
	"io"
	"io/fs"
	"path"
	"reflect"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"

	"github.com/longstop-dev/longstop/internal/flow"
)

// postgres is a PostgreSQL database: a few connections read, and the one that
// holds the lock that keeps other processes out writes.
type postgres struct {
	r    *pgxpool.Pool
	hold *hold
}

// openPostgres connects and takes the lock before anything is changed.
func openPostgres(ctx context.Context, url string) (database, error) {
	config, err := parseURL(url)
	if err != nil {
		return nil, err
	}
	hide := hider(config.ConnConfig.Password)
	h, err := takeHold(ctx, config.ConnConfig)
	if err != nil {
		return nil, unreachable(config.ConnConfig, hide(err))
	}
	config.AfterConnect = func(ctx context.Context, c *pgx.Conn) error {
		_, err := c.Exec(ctx, planning)
		return err
	}
	r, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		h.release()
		return nil, unreachable(config.ConnConfig, hide(err))
	}
	return &postgres{r: r, hold: h}, nil
}

// parseURL reads a URL, the environment that libpq reads too, and files that
// they name. Its error does not repeat the URL, nor the cause, which might.
func parseURL(url string) (*pgxpool.Config, error) {
	bad := flow.Errorf(flow.CodeInvalid, "the database URL cannot be read").At("--database-url").
		Right("postgres://user:password@host:5432/database?sslmode=verify-full, with %-escapes for what is special in the password")
	if !strings.HasPrefix(url, "postgres://") && !strings.HasPrefix(url, "postgresql://") {
		return nil, bad
	}
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, bad
	}
	config.ConnConfig.RuntimeParams["application_name"] = processName()
	return config, nil
}

// hider takes a password out of the text of errors.
func hider(password string) func(error) error {
	return func(err error) error {
		if err == nil || password == "" || !strings.Contains(err.Error(), password) {
			return err
		}
		return flow.Errorf(flow.CodeUnavailable, "%s", strings.ReplaceAll(err.Error(), password, "***"))
	}
}

// unreachable says which database cannot be used; an error that is made for
// people already stays as it is.
func unreachable(c *pgx.ConnConfig, err error) error {
	if code := flow.CodeOf(err); code == flow.CodeConflict || code == flow.CodeInvalid {
		return err
	}
	return flow.Errorf(flow.CodeUnavailable, "the PostgreSQL database %q on %s cannot be used", c.Database, c.Host).At("--database-url").
		Right("it must run, and let this user in").Because(err)
}

func (p *postgres) close() error {
	p.r.Close()
	p.hold.release()
	return nil
}

func (p *postgres) lost() <-chan struct{} { return p.hold.gone }

func (p *postgres) migrate(ctx context.Context) error {
	files, err := migrations()
	if err != nil {
		return err
	}
	db := stdlib.OpenDBFromPool(p.r)
	defer db.Close()
	changed, err := migrate(ctx, goose.DialectPostgres, db, bytewise{files})
	if err != nil || !changed {
		return err
	}
	if _, err := p.r.Exec(ctx, `ANALYZE`); err != nil {
		return unavailable(err)
	}
	return nil
}

// bytewise gives the migrations as PostgreSQL is to have them: text compared
// by its bytes as SQLite does, whatever the database's own collation. Lists
// are paged by ids and names, so that both must order them alike.
type bytewise struct{ fs.FS }

var textType = regexp.MustCompile(`\bTEXT\b`)

// Open opens a migration with every TEXT made TEXT COLLATE "C".
func (b bytewise) Open(name string) (fs.File, error) {
	f, err := b.FS.Open(name)
	if err != nil || path.Ext(name) != ".sql" {
		return f, err
	}
	text, err := io.ReadAll(f)
	if err != nil {
		f.Close()
		return nil, err
	}
	return changedFile{f, bytes.NewReader(textType.ReplaceAll(text, []byte(`TEXT COLLATE "C"`)))}, nil
}

// changedFile is a file with other content.
type changedFile struct {
	fs.File
	content io.Reader
}

// Read reads the other content.
func (f changedFile) Read(b []byte) (int, error) { return f.content.Read(b) }

func (p *postgres) query(ctx context.Context, q string, args ...any) (rows, error) {
	rs, err := p.r.Query(ctx, q, storable(args)...)
	return pgRows{rs}, err
}

func (p *postgres) queryRow(ctx context.Context, q string, args ...any) row {
	return p.r.QueryRow(ctx, q, storable(args)...)
}

// pgRows closes as the rows of database/sql do.
type pgRows struct{ pgx.Rows }

// Close ends the reading and gives the error that ended it before.
func (r pgRows) Close() error { r.Rows.Close(); return r.Err() }

// storable makes every text one that PostgreSQL takes, which refuses NUL and
// what is not UTF-8: an upstream's odd bytes must not keep a run from being
// written. SQLite takes them as they are.
func storable(args []any) []any {
	for i, a := range args {
		text, ok := a.(string)
		if !ok {
			v := reflect.ValueOf(a)
			if v.Kind() != reflect.String {
				continue
			}
			text = v.String()
		}
		if strings.IndexByte(text, 0) >= 0 || !utf8.ValidString(text) {
			args[i] = flow.PlainText(text)
		}
	}
	return args
}
