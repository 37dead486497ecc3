package server

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/longstop-dev/longstop/internal/a2a"
	"github.com/longstop-dev/longstop/internal/access"
	"github.com/longstop-dev/longstop/internal/agent/registry"
	"github.com/longstop-dev/longstop/internal/agent/token"
	"github.com/longstop-dev/longstop/internal/agent/turn"
	"github.com/longstop-dev/longstop/internal/api"
	"github.com/longstop-dev/longstop/internal/bridge"
	"github.com/longstop-dev/longstop/internal/bucket"
	"github.com/longstop-dev/longstop/internal/dispatch"
	"github.com/longstop-dev/longstop/internal/egress"
	"github.com/longstop-dev/longstop/internal/engine"
	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/ident"
	"github.com/longstop-dev/longstop/internal/mcp"
	"github.com/longstop-dev/longstop/internal/mcpclient"
	"github.com/longstop-dev/longstop/internal/notify"
	"github.com/longstop-dev/longstop/internal/recovery"
	"github.com/longstop-dev/longstop/internal/responder"
	"github.com/longstop-dev/longstop/internal/sandbox"
	"github.com/longstop-dev/longstop/internal/secret"
	"github.com/longstop-dev/longstop/internal/step"
	"github.com/longstop-dev/longstop/internal/store"
	"github.com/longstop-dev/longstop/internal/vault"
	"github.com/longstop-dev/longstop/internal/web"
)

// parts are what a server is made of, in the order in which they are made.
type parts struct {
	store    *store.Store
	pool     *mcpclient.Pool
	sandbox  *sandbox.Sandbox
	access   *access.Service
	agents   *responder.A2A
	model    *responder.Model
	desk     *recovery.Desk
	engine   *engine.Engine
	courier  *notify.Courier
	tools    *responder.Tools
	vaults   *vault.Service
	mint     *token.Mint
	turns    *turn.Driver
	registry *registry.Registry
	bridges  *bridge.Hub
	api      *api.API
	mcp      *mcp.Face
}

// build makes every part and joins them; nothing runs yet.
func build(ctx context.Context, c Config, f *folder) (*parts, error) {
	guard, err := egress.New(egress.Policy{AllowPrivate: c.AllowPrivate, Allow: c.EgressAllow})
	if err != nil {
		return nil, flow.Errorf(flow.CodeInvalid, "%v", err).At("--egress-allow")
	}
	keyring, err := openKeyring(c, f)
	if err != nil {
		return nil, err
	}
	p := &parts{}
	if p.store, err = store.Open(ctx, database(c, f)); err != nil {
		return nil, err
	}
	outside := guard.Client(egress.ClientOptions{})
	p.pool = mcpclient.New(mcpclient.Options{HTTP: outside, AllowStdio: c.AllowStdio})
	wire := &a2a.Client{HTTP: outside, Log: c.Log}
	p.agents = responder.NewA2A(wire, c.Clock, c.Log)
	p.model = responder.NewModel(outside, p.store, c.Clock, c.Log)
	p.access = access.New(access.Config{Tenants: p.store, Keys: p.store, People: p.store, Audit: p.store, Settings: p.store, Secrets: p.store, Servers: p.store, Versions: p.store,
		Keyring: keyring, Cards: cards{p.agents}, Egress: guard, Clock: c.Clock, NewID: ident.New, AllowStdio: c.AllowStdio})
	tools := responder.NewTools(p.access, p.pool, c.Clock)
	p.tools = tools
	p.sandbox = sandbox.New(sandbox.Options{CacheDir: f.cache()})
	p.vaults = vault.New(vault.Config{Vaults: p.store, Events: p.store, Connections: p.store, Jobs: p.store, Agents: p.store, People: p.store,
		Clock: c.Clock, NewID: ident.New})
	asked := &talks{vaults: p.vaults, store: p.store, maskers: p.access}
	types := step.NewTable(step.Deps{HTTP: outside, Tools: tools, Sandbox: p.sandbox, Vaults: asked})
	p.desk = recovery.New(recovery.Config{Settings: p.access, Secrets: p.access, Egress: guard, Tools: tools, Records: p.store, Observations: p.store,
		Trier:      responder.NewTrial(wire, tools),
		Sandbox:    p.sandbox,
		Responders: []recovery.Responder{p.agents, responder.NewMCP(tools), responder.NewRules(c.Clock), p.model},
		Types:      types.Types(), Clock: c.Clock, NewID: ident.New, Log: c.Log})
	p.courier = notify.New(notify.Config{Outbox: p.store, Targets: p.access, HTTP: outside, Clock: c.Clock, NewID: ident.New, Log: c.Log})
	p.engine = engine.New(engine.Config{Runs: p.store, Records: p.store, Inbox: p.store, Versions: p.store, Types: types, Recovery: p.desk, Workspaces: p.access,
		Dispatch: dispatch.NewLocal(c.Clock, p.store), Clock: c.Clock, NewID: ident.New, Jitter: rand.Float64,
		Node: ident.New("node"), MaxActive: c.MaxActive, Log: c.Log, Told: p.courier.Poke, PublicURL: c.links})
	p.vaults.Listen(arrivals{p.engine})
	p.mint = token.New(p.store, keyring, c.PublicURL, c.Clock, ident.New)
	p.bridges = bridge.NewHub(c.Clock)
	p.registry = registry.New(registry.Config{Agents: p.store, Services: p.store, People: p.store, Cards: agents{wire, p.access, p.bridges}, Guard: guard, Sealer: keyring, HTTP: outside,
		Buckets: bucket.Options{Dir: f.buckets(), Roots: c.BucketRoots, Env: os.Getenv}, Clock: c.Clock, NewID: ident.New})
	p.turns = turn.New(turn.Config{Store: p.store, Wire: agents{wire, p.access, p.bridges}, Tokens: p.mint, Feed: p.vaults, Secrets: p.access, Clock: c.Clock, NewID: ident.New, Jitter: rand.Float64, Log: c.Log})
	p.vaults.Listen(p.turns)
	p.api = p.face(c)
	return p, nil
}

// close ends what build made, the last first.
func (p *parts) close() error {
	if p.mcp != nil {
		p.mcp.Close()
	}
	if p.turns != nil {
		p.turns.Stop(context.Background())
	}
	if p.courier != nil {
		p.courier.Stop()
	}
	if p.agents != nil {
		p.agents.Close()
	}
	if p.model != nil {
		p.model.Close()
	}
	if p.pool != nil {
		p.pool.Close()
	}
	var err error
	if p.sandbox != nil {
		err = p.sandbox.Close(context.Background())
	}
	return errors.Join(err, p.store.Close())
}

// database says where the store is: in the data folder, or where it is told.
func database(c Config, f *folder) store.Options {
	if c.DatabaseURL != "" {
		return store.Options{URL: c.DatabaseURL, Trace: c.Trace}
	}
	return store.Options{Path: f.database(), Trace: c.Trace}
}

// openKeyring loads the master key. One is made only for a database that is
// new: a database whose key is lost must not get another. Where the data
// folder is not the database, it is not the place of its key either.
func openKeyring(c Config, f *folder) (*secret.Keyring, error) {
	if c.DatabaseURL != "" && c.MasterKey == "" && c.MasterKeyFile == "" {
		return nil, flow.Errorf(flow.CodeInvalid, "a PostgreSQL database needs a master key").At("--master-key-file").
			Right("set LONGSTOP_MASTER_KEY or --master-key-file to 32 bytes, such as `openssl rand -hex 32` prints; keep it: without it no secret opens")
	}
	_, err := os.Stat(f.database())
	master, err := secret.LoadMasterKey(c.MasterKey, c.MasterKeyFile, f.dir, errors.Is(err, os.ErrNotExist))
	if err != nil {
		return nil, err
	}
	return secret.NewKeyring(master)
}

// found makes the first person, workspace and key at the first start.
func (s *Server) found(ctx context.Context) (string, error) {
	key, created, err := s.parts.access.Bootstrap(ctx, access.Founding{Key: s.c.BootstrapKey})
	if err == nil && !created && s.c.OnlyEmpty {
		return "", flow.Errorf(flow.CodeConflict, "somebody has worked in this database already").At("--database-url").
			Right("name an empty one")
	}
	if err == nil && created {
		s.log.Info("first start", slog.String("data", filepath.Clean(s.c.DataDir)))
	}
	return key, err
}

// StepTypes describes the step types that this binary knows.
func StepTypes() []flow.StepType { return step.NewTable(step.Deps{}).Types() }

// Validate checks a definition without a server, just as a server would. Its
// error is invalid, with a problem for each thing that is wrong.
func Validate(name string, src []byte) (*flow.Definition, error) {
	return engine.CheckDefinition(name, src, step.NewTable(step.Deps{}), access.New(access.Config{}).CheckRecovery)
}

// face makes the handler of what the server shows outside.
func (p *parts) face(c Config) *api.API {
	rest := api.New(api.Config{Engine: p.engine, Notices: p.courier, Access: p.access, Recovery: p.desk, Vaults: p.vaults, Registry: p.registry, Bridges: p.bridges, Ready: p.store.Ping, JWKS: p.mint.Keys,
		Version: Version(), PublicURL: c.PublicURL, Log: c.Log})
	var ops []flow.Op
	for _, o := range rest.Operations() {
		ops = append(ops, o.Op)
	}
	p.mcp = mcp.New(mcp.Config{Ops: ops, Workflows: p.engine, Versions: p.engine, Runs: p.engine, Inbox: p.engine, Servers: p.access, Tools: p.tools, Secrets: p.access,
		Version: Version(), PublicURL: c.PublicURL, Log: c.Log})
	rest.Mount("/mcp", p.mcp)
	rest.Pages(web.Paths(), web.New(web.Config{Ops: ops, Runs: p.engine, Cases: p.desk, Keys: p.access, Secrets: p.access, Clock: c.Clock,
		Secure: strings.HasPrefix(c.PublicURL, "https://"), Log: c.Log}))
	return rest
}

// OpsOverMCP names the operations that are declared with the face mcp, and
// those that it offers.
func OpsOverMCP() (declared, offered []string) {
	p := &parts{access: access.New(access.Config{}), engine: &engine.Engine{}, desk: &recovery.Desk{}, courier: &notify.Courier{}, tools: &responder.Tools{}, store: &store.Store{}, vaults: &vault.Service{}, mint: &token.Mint{}, registry: &registry.Registry{}, bridges: &bridge.Hub{}}
	for _, o := range p.face(Config{}).Operations() {
		if slices.Contains(o.Faces, "mcp") {
			declared = append(declared, o.Name)
		}
	}
	return declared, p.mcp.Ops()
}

// Version is the binary's version, as the Go toolchain recorded it.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" || info.Main.Version == "(devel)" {
		return "dev"
	}
	return info.Main.Version
}
