package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/longstop-dev/longstop/internal/demo"
	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/server"
)

// stopTime is how long a stopping server lets steps finish.
const stopTime = 10 * time.Second

// serving is what serve and dev share.
type serving struct {
	DatabaseURL      string   `name:"database-url" env:"LONGSTOP_DATABASE_URL" placeholder:"URL" help:"A PostgreSQL database, instead of DATA/longstop.db: postgres://user:password@host/database. Needs a master key. On the command line others on this machine can read its password: prefer LONGSTOP_DATABASE_URL."`
	MasterKeyFile    string   `env:"LONGSTOP_MASTER_KEY_FILE" placeholder:"FILE" help:"The master key for secrets at rest: 32 bytes, hex or base64. Else LONGSTOP_MASTER_KEY, else DATA/master.key, made at the first start."`
	BootstrapKeyFile string   `env:"LONGSTOP_BOOTSTRAP_KEY_FILE" placeholder:"FILE" help:"The first owner's key, instead of one that is made and printed. Else LONGSTOP_BOOTSTRAP_KEY."`
	PublicURL        string   `env:"LONGSTOP_PUBLIC_URL" placeholder:"URL" help:"How outsiders reach this server."`
	EgressAllow      []string `env:"LONGSTOP_EGRESS_ALLOW" placeholder:"PLACE" help:"A place that outbound calls may reach although it is not public: CIDR or host[:port]. Repeatable."`
	BucketRoot       []string `env:"LONGSTOP_BUCKET_ROOT" placeholder:"PLACE" help:"A folder, or s3://NAME/PREFIX?endpoint=URL&region=REGION, below which workspaces may have buckets. Repeatable. Without any, buckets are folders of the data folder."`
	ReadyJSON        bool     `env:"LONGSTOP_READY_JSON" help:"Print one line of JSON when ready: url, and on the first start key."`
	LogFormat        string   `env:"LONGSTOP_LOG_FORMAT" enum:"text,json" default:"text" help:"text or json, on standard error."`
	LogLevel         string   `env:"LONGSTOP_LOG_LEVEL" enum:"debug,info,warn,error" default:"info" help:"debug, info, warn or error."`
	MaxActive        int      `env:"LONGSTOP_MAX_ACTIVE" default:"512" help:"Runs driven at the same time."`
}

type serveCmd struct {
	Listen       string `env:"LONGSTOP_LISTEN" default:"127.0.0.1:8080" placeholder:"ADDR" help:"host:port; port 0 takes a free one."`
	Data         string `env:"LONGSTOP_DATA" default:"./.longstop" placeholder:"DIR" help:"The data folder: database and keys."`
	AllowPrivate bool   `name:"allow-private-egress" env:"LONGSTOP_ALLOW_PRIVATE_EGRESS" help:"Let outbound calls reach private and loopback addresses, over http too. Metadata addresses stay refused."`
	serving
}

// Help is shown under --help.
func (serveCmd) Help() string {
	return `Examples:
  longstop serve --data /var/lib/longstop --listen 127.0.0.1:8080
  longstop serve --ready-json --listen 127.0.0.1:0 --data "$(mktemp -d)"
  LONGSTOP_DATABASE_URL=postgres://longstop:PASSWORD@db.internal/longstop \
    longstop serve --master-key-file /etc/longstop/master.key`
}

// Run serves until it is told to stop.
func (c *serveCmd) Run(a *app) error {
	return c.serve(a, server.Config{DataDir: c.Data, Listen: c.Listen, AllowPrivate: c.AllowPrivate}, func(*server.Server) {})
}

type devCmd struct {
	Listen string `env:"LONGSTOP_LISTEN" default:"127.0.0.1:8080" placeholder:"ADDR" help:"host:port; port 0 takes a free one."`
	Data   string `env:"LONGSTOP_DATA" default:"./.longstop" placeholder:"DIR" help:"The data folder."`
	serving
}

// Help is shown under --help.
func (devCmd) Help() string {
	return `Examples:
  longstop dev
  longstop dev --listen 127.0.0.1:9090 --data /tmp/longstop

Like serve, with outbound calls to this machine and to private networks allowed, and MCP
servers over stdio. Commands run in the same folder find this server by themselves.`
}

// Run serves for development.
func (c *devCmd) Run(a *app) error {
	config := server.Config{DataDir: c.Data, Listen: c.Listen, AllowPrivate: true, AllowStdio: true}
	return c.serve(a, config, func(s *server.Server) {
		if c.ReadyJSON {
			return
		}
		fmt.Fprintf(a.out, `
%s, in another terminal and in this folder:
  longstop init                                  write workflow.yaml, with a step that fails
  longstop run workflow.yaml --input '{"userId": 42}'
  longstop agents test https://your-agent        would your agent's answer be taken?
  longstop settings set recovery.a2a_agent_url https://your-agent
or, from anywhere that has the key:
  curl -X PUT %s/v1/settings/recovery.a2a_agent_url \
    -H "Authorization: Bearer $LONGSTOP_KEY" -d '{"value": "https://your-agent"}'
`, a.ink.Bold("Next"), s.URL())
	})
}

// serve starts a server, says how to reach it, and stops it when it is told to.
func (c serving) serve(a *app, config server.Config, then func(*server.Server)) error {
	collectSeldom()
	config.MasterKey, config.MasterKeyFile = os.Getenv("LONGSTOP_MASTER_KEY"), c.MasterKeyFile
	config.DatabaseURL = c.DatabaseURL
	config.PublicURL, config.EgressAllow, config.MaxActive = c.PublicURL, c.EgressAllow, c.MaxActive
	config.BucketRoots = c.BucketRoot
	config.Log = c.logger(a.err)
	var err error
	if config.BootstrapKey, err = c.bootstrapKey(a.ctx); err != nil {
		return err
	}
	s, err := server.Start(a.ctx, config)
	if err != nil {
		return err
	}
	c.announce(a, s)
	then(s)
	failed := s.Wait(a.ctx)
	return c.stop(a, s, failed)
}

// stop lets steps finish; a second signal ends that at once.
func (c serving) stop(a *app, s *server.Server, failed error) error {
	ctx, release := stopping(a.ctx)
	defer release()
	if !c.ReadyJSON {
		fmt.Fprintln(a.out, "stopping; again to stop at once")
	}
	if err := s.Stop(ctx); err != nil {
		return err
	}
	if failed != nil {
		return flow.Errorf(flow.CodeUnavailable, "the server has stopped by itself").Because(failed)
	}
	return nil
}

// stopping bounds how long a server may take to stop: it ends at the next
// signal, and after stopTime in any case.
func stopping(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
	ctx, release := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	return ctx, func() { release(); cancel() }
}

func (c serving) logger(w io.Writer) *slog.Logger {
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.LogLevel)); err != nil {
		level = slog.LevelInfo
	}
	o := &slog.HandlerOptions{Level: level}
	if c.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(w, o))
	}
	return slog.New(slog.NewTextHandler(w, o))
}

func (c serving) bootstrapKey(ctx context.Context) (string, error) {
	if c.BootstrapKeyFile == "" {
		return os.Getenv("LONGSTOP_BOOTSTRAP_KEY"), nil
	}
	b, err := readFile(ctx, c.BootstrapKeyFile, maxSmall)
	if err != nil {
		return "", flow.Errorf(flow.CodeInvalid, "%s cannot be read", c.BootstrapKeyFile).At("--bootstrap-key-file").Because(err)
	}
	return strings.TrimSpace(string(b)), nil
}

// announce says that the server is ready: to a machine in one line, to a
// person in a few.
func (c serving) announce(a *app, s *server.Server) {
	if c.ReadyJSON {
		b, err := json.Marshal(struct {
			URL string `json:"url"`
			Key string `json:"key,omitempty"`
		}{s.URL(), s.FirstKey()})
		if err == nil {
			fmt.Fprintf(a.out, "%s\n", b)
		}
		return
	}
	fmt.Fprintf(a.out, "longstop %s serves on %s\n", server.Version(), a.ink.Bold(s.URL()))
	if key := s.FirstKey(); key != "" {
		fmt.Fprintf(a.out, "the owner's key, shown this once:\n  export LONGSTOP_KEY=%s\n", key)
	} else {
		fmt.Fprintln(a.out, a.ink.Faint("no key at hand? in another terminal: longstop keys create NAME --role owner --data "+s.DataDir()))
	}
	for _, w := range s.Warnings() {
		fmt.Fprintln(a.out, a.ink.Warn("warning: "+w))
	}
}

type demoCmd struct {
	Keep        bool   `help:"Leave the server up afterwards."`
	JSON        bool   `name:"json" help:"Print JSON: what was expected and what happened."`
	DatabaseURL string `name:"database-url" placeholder:"URL" help:"Play on a PostgreSQL database, which must be empty, instead of a file that is removed afterwards."`
}

// Help is shown under --help.
func (demoCmd) Help() string {
	return `Examples:
  longstop demo
  longstop demo --keep
  longstop demo --json | jq .ok

Exits with 0 only if every run ended as expected.`
}

// Run plays the demo.
func (c *demoCmd) Run(a *app) error {
	ok, err := demo.Run(a.ctx, demo.Options{Out: a.out, Keep: c.Keep, JSON: c.JSON, DatabaseURL: c.DatabaseURL})
	if err == nil && !ok {
		err = status(exitFailed)
	}
	return err
}

type versionCmd struct{}

// Help is shown under --help.
func (versionCmd) Help() string {
	return `Example:
  longstop version`
}

// Run prints the version.
func (versionCmd) Run(a *app) error {
	fmt.Fprintln(a.out, "longstop", server.Version())
	return nil
}
