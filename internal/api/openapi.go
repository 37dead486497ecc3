package api

import (
	"encoding/json"
	"net/http"
	"reflect"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"
	"github.com/go-chi/chi/v5"

	"github.com/longstop-dev/longstop/internal/flow"
)

const securityScheme = "bearer"

// newHuma makes huma's side of the face: JSON only, no pages, no links put
// into bodies, errors of ours.
func newHuma(router chi.Router, c Config) huma.API {
	version := c.Version
	if version == "" {
		version = "dev"
	}
	schemas := huma.NewMapRegistry("#/components/schemas/", schemaName)
	schemas.RegisterTypeAlias(reflect.TypeFor[huma.ErrorModel](), reflect.TypeFor[Problem]())
	schemas.RegisterTypeAlias(reflect.TypeFor[flow.Source](), reflect.TypeFor[source]())
	schemas.RegisterTypeAlias(reflect.TypeFor[json.RawMessage](), reflect.TypeFor[anyJSON]())
	schemas.RegisterTypeAlias(reflect.TypeFor[flow.RunStatus](), reflect.TypeFor[runStatus]())
	schemas.RegisterTypeAlias(reflect.TypeFor[flow.StepStatus](), reflect.TypeFor[stepStatus]())
	schemas.RegisterTypeAlias(reflect.TypeFor[flow.GateStatus](), reflect.TypeFor[gateStatus]())
	schemas.RegisterTypeAlias(reflect.TypeFor[flow.GateKind](), reflect.TypeFor[gateKind]())
	doc := &huma.OpenAPI{
		OpenAPI: "3.1.0",
		Info: &huma.Info{Title: "Longstop", Version: version,
			Description: "Durable workflows whose failing steps are mended by your own agent. Lists answer {items, next}; errors are application/problem+json."},
		Components: &huma.Components{Schemas: schemas, SecuritySchemes: map[string]*huma.SecurityScheme{
			securityScheme: {Type: "http", Scheme: "bearer", Description: "An API key."},
		}},
	}
	if c.PublicURL != "" {
		doc.Servers = []*huma.Server{{URL: strings.TrimRight(c.PublicURL, "/")}}
	}
	format := huma.Format{Marshal: huma.DefaultJSONFormat.Marshal, Unmarshal: decode}
	cfg := huma.Config{OpenAPI: doc, DefaultFormat: "application/json",
		Formats:                      map[string]huma.Format{"application/json": format, "json": format},
		RejectUnknownQueryParameters: true,
	}
	cfg.Transformers = []huma.Transformer{func(ctx huma.Context, _ string, v any) (any, error) {
		if m, ok := v.(*huma.ErrorModel); ok {
			return ofHuma(schemas, ctx.Operation(), m), nil
		}
		return v, nil
	}}
	return humachi.New(router, cfg)
}

// schemaName names the schema of a type. Ours of errors is Error, because one
// thing that is wrong is a Problem.
func schemaName(t reflect.Type, hint string) string {
	if t == reflect.TypeFor[Problem]() || t == reflect.TypeFor[*Problem]() {
		return "Error"
	}
	return huma.DefaultSchemaNamer(t, hint)
}

// describe corrects what huma has written down about an operation.
func (a *API) describe(at route) {
	item := a.huma.OpenAPI().Paths[at.path]
	var op *huma.Operation
	switch at.method {
	case http.MethodGet:
		op = item.Get
	case http.MethodPost:
		op = item.Post
	case http.MethodPut:
		op = item.Put
	case http.MethodPatch:
		op = item.Patch
	case http.MethodDelete:
		op = item.Delete
	}
	if at.at == nil {
		for _, answer := range op.Responses {
			delete(answer.Headers, "Location")
		}
	}
	if at.patient {
		op.Responses["304"] = &huma.Response{Description: "The page is the one that If-None-Match names."}
	} else {
		for _, answer := range op.Responses {
			delete(answer.Headers, "ETag")
		}
	}
	if at.live {
		stream := &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeString, Description: "One message an event; the last has the type end."}}
		op.Responses["200"].Content["text/event-stream"] = stream
		op.Responses["101"] = &huma.Response{Description: "A WebSocket: one event a text message, closed with 1000 after the run's last event. " +
			"A browser sends its key as the subprotocol " + keyProtocol + "<key> beside " + eventProtocol + "."}
	}
	body := op.RequestBody
	if body == nil {
		return
	}
	if at.text {
		text := &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeString, Description: "A definition, in YAML or JSON."}}
		for _, kind := range []string{"application/yaml", "text/yaml", "text/plain"} {
			body.Content[kind] = text
		}
		body.Content["application/json"] = &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true}}
		return
	}
	// A body whose members may all be absent may be absent itself.
	body.Required = len(a.resolve(body.Content["application/json"].Schema).Required) > 0
}

func (a *API) resolve(s *huma.Schema) *huma.Schema {
	return resolve(a.huma.OpenAPI().Components.Schemas, s)
}

func resolve(schemas huma.Registry, s *huma.Schema) *huma.Schema {
	for s != nil && s.Ref != "" {
		s = schemas.SchemaFromRef(s.Ref)
	}
	return s
}

// possible lists the statuses with which an operation may refuse.
func possible(op flow.Op, at route, body bool) []int {
	out := []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusServiceUnavailable}
	if strings.Contains(at.path, "{") {
		out = append(out, http.StatusNotFound)
	}
	if body {
		out = append(out, http.StatusBadRequest, http.StatusRequestTimeout, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType)
	}
	if op.Changes {
		out = append(out, http.StatusConflict)
	}
	return append(out, http.StatusUnprocessableEntity)
}

// tagOf is the resource in an operation's name.
func tagOf(name string) string {
	resource, _, _ := strings.Cut(name, ".")
	return resource
}

func roleText(op flow.Op) string {
	if op.Agents {
		return string(op.Min) + ", agent"
	}
	return string(op.Min)
}

// serveOpenAPI serves the description of everything that is mounted.
func (a *API) serveOpenAPI() {
	a.loosen()
	text, err := json.Marshal(a.huma.OpenAPI())
	a.router.Get("/openapi.json", func(w http.ResponseWriter, _ *http.Request) {
		if err != nil {
			internal().write(w)
			return
		}
		w.Header().Set("Content-Type", "application/openapi+json")
		_, _ = w.Write(text)
	})
}
