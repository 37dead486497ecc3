package store

import (
	"context"
	"database/sql"
	"embed"
	"io/fs"

	"github.com/pressly/goose/v3"

	"github.com/longstop-dev/longstop/internal/flow"
)

//go:embed migrations/*.sql
var migrations embed.FS

// migrateTo applies what is missing of files and gives how many that were. It
// answers invalid if the database was written by a newer version.
func migrateTo(ctx context.Context, dialect goose.Dialect, db *sql.DB, files fs.FS) (int, error) {
	p, err := goose.NewProvider(dialect, db, files)
	if err != nil {
		return 0, unavailable(err)
	}
	has, err := p.GetDBVersion(ctx)
	if err != nil {
		return 0, unavailable(err)
	}
	if sources := p.ListSources(); has > sources[len(sources)-1].Version {
		return 0, flow.Errorf(flow.CodeInvalid, "the database has schema version %d and this binary knows %d", has, sources[len(sources)-1].Version).
			Right("use the newer binary that wrote it")
	}
	done, err := p.Up(ctx)
	if err != nil {
		return 0, unavailable(err)
	}
	return len(done), nil
}
