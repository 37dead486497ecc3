// Package server builds Longstop out of its parts, starts them in order and
// stops them in the reverse order. It is the only package that knows them all.
package server

import (
	"log/slog"

	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/store"
)

// Config says how a server is to run. The zero value of a member means its
// default.
type Config struct {
	DataDir       string                  // the folder of the database and the keys; made if missing
	DatabaseURL   string                  // of a PostgreSQL database, instead of DataDir/longstop.db; needs a master key
	OnlyEmpty     bool                    // refuse a database in which somebody has worked already
	Listen        string                  // host:port; port 0 takes a free one. Default 127.0.0.1:8080
	MasterKey     string                  // the value of LONGSTOP_MASTER_KEY
	MasterKeyFile string                  // a file with the master key
	BootstrapKey  string                  // the first owner's key, instead of a generated one
	PublicURL     string                  // how outsiders reach this server; default the address it listens on
	EgressAllow   []string                // places that outbound calls may reach: CIDR or host[:port]
	AllowPrivate  bool                    // opens private and loopback addresses to outbound calls
	AllowStdio    bool                    // MCP servers that are commands on this machine
	BucketRoots   []string                // folders, and s3:// URLs, below which workspaces may have buckets
	MaxActive     int                     // runs driven at the same time; default 512
	Trace         func([]store.Statement) // what is committed, for those who measure; see store.Options
	Clock         flow.Clock
	Log           *slog.Logger

	links string // PublicURL as it was given: what is told outside links there
}

func (c Config) withDefaults() Config {
	if c.Listen == "" {
		c.Listen = "127.0.0.1:8080"
	}
	if c.MaxActive <= 0 {
		c.MaxActive = 512
	}
	if c.Clock == nil {
		c.Clock = flow.SystemClock{}
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}
