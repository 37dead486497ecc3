package cli

import (
	"strings"

	"github.com/longstop-dev/longstop/internal/bench"
)

type benchCmd struct {
	Only        string `placeholder:"NAME" help:"One bench only, such as throughput, throughput/sqlite or growth."`
	Quick       bool   `help:"Smaller sizes, a minute or so; no verdict where the size is the bar's."`
	JSON        bool   `name:"json" help:"Print one JSON object a line: name, value, unit, bar, holds, floor."`
	DatabaseURL string `name:"database-url" env:"LONGSTOP_DATABASE_URL" placeholder:"URL" help:"A PostgreSQL database to measure too, in schemas that are made for it and dropped."`
	Dir         string `placeholder:"DIR" help:"Where the databases are made: the disk that is to be measured. Default the folder for temporary files."`
}

// Help is shown under --help.
func (benchCmd) Help() string {
	return `Examples:
  longstop bench --quick
  longstop bench --only throughput --dir /var/lib/longstop
  longstop bench --json | jq -r 'select(.holds == false) | .name'

Benches: ` + strings.Join(bench.Names(), ", ") + `.
Exits with 1 if a bar does not hold.`
}

// Run measures.
func (c *benchCmd) Run(a *app) error {
	collectSeldom() // as a server does, for its figures and for the floors
	ok, err := bench.Run(a.ctx, bench.Options{Out: a.out, Progress: a.err, JSON: c.JSON, Quick: c.Quick, Only: c.Only, DatabaseURL: c.DatabaseURL, Dir: c.Dir})
	if err == nil && !ok {
		err = status(exitFailed)
	}
	return err
}
