// Package api is the REST face: the operations of the services under /v1, the
// live events of a run over WebSocket and SSE, OpenAPI 3.1 and problem+json. A
// handler is decode, call, encode; what every call needs is done once, in
// mount.go.
package api

import (
	"context"
	"log/slog"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"
	"github.com/go-chi/chi/v5"

	"github.com/longstop-dev/longstop/internal/access"
	"github.com/longstop-dev/longstop/internal/engine"
	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/recovery"
)

// The bounds of a request's body, in bytes.
const (
	maxDefinition = 1 << 20
	maxBody       = 12 << 20 // a gate may be answered with an output, which limits.output_bytes bounds
)

// Config is what the face stands before. All members are required.
type Config struct {
	Engine    *engine.Engine
	Access    *access.Service
	Recovery  *recovery.Desk
	Ready     func(context.Context) error // whether the database answers
	Version   string
	PublicURL string
	Log       *slog.Logger
}

// face is the API while it is put together.
type face struct {
	Config
	huma huma.API
	ops  []flow.Op
	fail *failures
}

// New makes the handler of the whole API.
func New(c Config) http.Handler {
	h, _ := assemble(c)
	return h
}

// Ops describes every operation of the REST face.
func Ops(c Config) []flow.Op {
	_, f := assemble(c)
	return f.ops
}

func assemble(c Config) (http.Handler, *face) {
	router := chi.NewRouter()
	f := &face{Config: c, fail: newFailures()}
	f.huma = humachi.New(router, f.document())
	f.workflows()
	f.runs()
	f.gates()
	f.cases()
	f.settings()
	f.servers()
	f.secrets()
	f.keys()
	router.NotFound(func(w http.ResponseWriter, r *http.Request) {
		write(w, r, flow.Errorf(flow.CodeNotFound, "there is nothing at this path").Right("see /openapi.json for what there is"))
	})
	router.MethodNotAllowed(func(w http.ResponseWriter, r *http.Request) {
		p := problemOf(flow.Errorf(flow.CodeInvalid, "%s is not possible here", r.Method).Right("see /openapi.json for what is"))
		p.Status, p.Title = http.StatusMethodNotAllowed, http.StatusText(http.StatusMethodNotAllowed)
		p.write(w)
	})
	router.Get("/healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok\n")) })
	router.Get("/readyz", f.ready)
	return f.around(f.live(router)), f
}

// document is the OpenAPI document's frame and huma's settings.
func (f *face) document() huma.Config {
	c := huma.DefaultConfig("Longstop", f.Version)
	c.Info.Description = "Workflows whose steps may fail, mended inside the live run by your own agent."
	c.OpenAPIPath, c.DocsPath, c.SchemasPath, c.CreateHooks = "/openapi", "", "", nil
	if f.PublicURL != "" {
		c.Servers = []*huma.Server{{URL: f.PublicURL}}
	}
	c.Components.SecuritySchemes = map[string]*huma.SecurityScheme{"key": {Type: "http", Scheme: "bearer", Description: "An API key."}}
	json := huma.DefaultJSONFormat
	c.Formats = map[string]huma.Format{"application/json": json, "json": json,
		// What `curl -d` says of JSON.
		"application/x-www-form-urlencoded": {Unmarshal: json.Unmarshal}}
	c.Transformers = append(c.Transformers, plainProblem)
	return c
}

func (f *face) ready(w http.ResponseWriter, r *http.Request) {
	if err := f.Ready(r.Context()); err != nil {
		write(w, r, err)
		return
	}
	_, _ = w.Write([]byte("ready\n"))
}
