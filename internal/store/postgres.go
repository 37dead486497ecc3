package store

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net/url"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"

	"github.com/longstop-dev/longstop/internal/flow"
)

// postgres is a database of PostgreSQL: a pool reads, and the one connection
// that holds the database's lock writes. pgx prepares each statement once per
// connection.
type postgres struct {
	pool *pgxpool.Pool
	hold *holding
}

// openPostgres connects and takes the database for this process.
func openPostgres(ctx context.Context, o Options) (*postgres, error) {
	cfg, err := parseURL(o.URL)
	if err != nil {
		return nil, err
	}
	where := cfg.ConnConfig.Database + " on " + cfg.ConnConfig.Host
	wait := o.lockWait
	if wait == 0 {
		wait = lockWait
	}
	hold, err := takeHold(ctx, cfg.ConnConfig, wait)
	if err == nil {
		cfg.ConnConfig.RuntimeParams["application_name"] = "longstop reader"
		cfg.AfterConnect = func(ctx context.Context, c *pgx.Conn) error {
			_, err := c.Exec(ctx, "SET default_transaction_read_only = on; "+planning)
			return err
		}
		var pool *pgxpool.Pool
		if pool, err = pgxpool.NewWithConfig(ctx, cfg); err == nil {
			return &postgres{pool: pool, hold: hold}, nil
		}
		hold.close()
	}
	var told *flow.Error
	if errors.As(err, &told) {
		return nil, told
	}
	return nil, flow.Errorf(flow.CodeUnavailable, "the PostgreSQL database %s cannot be used", where).
		Right("it must run, and the URL's user must be allowed to make tables in it").Because(scrubbed(err, o.URL))
}

// planning keeps PostgreSQL to the indexes. All our statements have one, and
// a plan that was made while a table was empty must not stay a scan of it.
const planning = "SET enable_seqscan = off; SET jit = off"

// parseURL reads the URL; pgx adds what PGHOST and its like say.
func parseURL(text string) (*pgxpool.Config, error) {
	// No cause: where the text is no URL, what is its password cannot be told.
	wrong := flow.Errorf(flow.CodeInvalid, "the database URL cannot be read").
		Right("postgres://USER:PASSWORD@HOST:PORT/NAME, with %40 %2F %3A %23 %3F for @ / : # ? in the password")
	u, err := url.Parse(text)
	if err != nil || (u.Scheme != "postgres" && u.Scheme != "postgresql") {
		return nil, wrong
	}
	cfg, err := pgxpool.ParseConfig(text)
	if err != nil {
		return nil, wrong.Because(scrubbed(err, text))
	}
	return cfg, nil
}

// scrubbed is an error's text without the URL and its passwords.
func scrubbed(err error, text string) error {
	said := strings.ReplaceAll(err.Error(), text, "URL")
	if u, parseErr := url.Parse(text); parseErr == nil {
		hide := []string{u.Query().Get("password"), u.Query().Get("sslpassword")}
		if p, ok := u.User.Password(); ok {
			_, escaped, _ := strings.Cut(u.User.String(), ":")
			hide = append(hide, p, escaped)
		}
		for _, secret := range hide {
			if secret != "" {
				said = strings.ReplaceAll(said, secret, "xxxxx")
			}
		}
	}
	return errors.New(said)
}

func (p *postgres) close() error {
	p.hold.close()
	p.pool.Close()
	return nil
}

func (p *postgres) lost() <-chan struct{} { return p.hold.lost }

func (p *postgres) migrate(ctx context.Context) error {
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return err
	}
	cfg := p.pool.Config().ConnConfig
	cfg.RuntimeParams["application_name"] = "longstop migration"
	db := stdlib.OpenDB(*cfg)
	defer db.Close()
	done, err := migrateTo(ctx, goose.DialectPostgres, db, collated{files})
	if err != nil || done == 0 {
		return err
	}
	if _, err := db.ExecContext(ctx, `ANALYZE`); err != nil {
		return unavailable(err)
	}
	return nil
}

// collated gives the migrations in PostgreSQL's words: text that sorts by its
// bytes, as SQLite's does, whatever language the database was made for. Lists
// go on after an id or a name and would lose entries otherwise.
type collated struct{ fs.FS }

var textColumn = regexp.MustCompile(`\bTEXT\b`)

// Open opens a file or folder.
func (c collated) Open(name string) (fs.File, error) {
	f, err := c.FS.Open(name)
	if err != nil || !strings.HasSuffix(name, ".sql") {
		return f, err
	}
	text, err := io.ReadAll(f)
	if err != nil {
		f.Close()
		return nil, err
	}
	return collatedFile{f, strings.NewReader(textColumn.ReplaceAllString(string(text), `TEXT COLLATE "C"`))}, nil
}

type collatedFile struct {
	fs.File
	text io.Reader
}

// Read reads the changed text.
func (f collatedFile) Read(p []byte) (int, error) { return f.text.Read(p) }

func (p *postgres) query(ctx context.Context, q string, args ...any) (rows, error) {
	rs, err := p.pool.Query(ctx, q, storable(args)...)
	return pgRows{rs}, err
}

func (p *postgres) queryRow(ctx context.Context, q string, args ...any) row {
	return p.pool.QueryRow(ctx, q, storable(args)...)
}

type pgRows struct{ pgx.Rows }

// Close ends the reading.
func (r pgRows) Close() error {
	r.Rows.Close()
	return nil
}

// storable makes texts such that PostgreSQL takes them: what an outsider sent
// may hold a NUL or broken UTF-8, for which no run shall stand still.
func storable(args []any) []any {
	for i, a := range args {
		if s, ok := a.(string); ok && (strings.IndexByte(s, 0) >= 0 || !utf8.ValidString(s)) {
			args[i] = strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
		}
	}
	return args
}

// lockWait is how long a process waits for the database's holder to end: a
// server that was killed and is started again finds its own remains.
const lockWait = 3 * time.Second
