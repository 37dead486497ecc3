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
var migrationFiles embed.FS

// migrations are the files that make the schema, of every engine.
func migrations() (fs.FS, error) {
	files, err := fs.Sub(migrationFiles, "migrations")
	if err != nil {
		return nil, unavailable(err)
	}
	return files, nil
}

// migrate applies what the database lacks and reports whether that has changed
// a schema that may hold rows. It answers invalid if the database is ahead of
// this binary.
func migrate(ctx context.Context, dialect goose.Dialect, db *sql.DB, files fs.FS) (bool, error) {
	p, err := goose.NewProvider(dialect, db, files, goose.WithAllowOutofOrder(true))
	if err != nil {
		return false, unavailable(err)
	}
	has, err := p.GetDBVersion(ctx)
	if err != nil {
		return false, unavailable(err)
	}
	if sources := p.ListSources(); has > sources[len(sources)-1].Version {
		return false, flow.Errorf(flow.CodeInvalid, "the database has schema version %d and this binary knows %d", has, sources[len(sources)-1].Version).
			Right("use the newer binary that wrote it")
	}
	done, err := p.Up(ctx)
	if err != nil {
		return false, unavailable(err)
	}
	return has > 0 && len(done) > 0, nil
}
