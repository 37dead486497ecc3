package api

import (
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// These types stand in for types of other packages where huma cannot see from
// the Go type what its JSON may be.

// source is the schema of flow.Source, which is null where nobody mended.
type source struct{}

// Schema is a nullable enumeration.
func (source) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Nullable: true, Enum: []any{"byoa", "builtin", "human", nil},
		Description: "Who mended it; null if nobody did."}
}

// anyJSON is the schema of any JSON value.
type anyJSON struct{}

// Schema is the one that everything satisfies.
func (anyJSON) Schema(huma.Registry) *huma.Schema { return &huma.Schema{Description: "Any JSON."} }

type (
	runStatus  string
	stepStatus string
	gateStatus string
	gateKind   string
)

// Schema lists the statuses of a run.
func (runStatus) Schema(huma.Registry) *huma.Schema {
	return oneOf("queued", "running", "waiting", "succeeded", "failed", "cancelled")
}

// Schema lists the statuses of a step instance.
func (stepStatus) Schema(huma.Registry) *huma.Schema {
	return oneOf("pending", "running", "waiting", "succeeded", "failed", "skipped")
}

// Schema lists the statuses of a gate.
func (gateStatus) Schema(huma.Registry) *huma.Schema {
	return oneOf("open", "answered", "expired", "closed")
}

// Schema lists the kinds of gate.
func (gateKind) Schema(huma.Registry) *huma.Schema {
	return oneOf("needs_agent", "needs_human", "approval", "input_required")
}

func oneOf(values ...any) *huma.Schema { return &huma.Schema{Type: huma.TypeString, Enum: values} }

// loosen opens the schemas of answers, to which a later version may add
// members; those of requests stay closed. Lists are never null.
func (a *API) loosen() {
	schemas := a.huma.OpenAPI().Components.Schemas
	asked := map[string]bool{}
	for _, item := range a.huma.OpenAPI().Paths {
		for _, op := range []*huma.Operation{item.Get, item.Post, item.Put, item.Patch, item.Delete} {
			if op != nil && op.RequestBody != nil {
				for _, kind := range op.RequestBody.Content {
					reach(schemas, kind.Schema, asked)
				}
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(schemas.Map())) {
		s := schemas.Map()[name]
		if !asked[name] && s.AdditionalProperties == false {
			s.AdditionalProperties = nil
		}
		if items := s.Properties["items"]; items != nil && strings.HasPrefix(name, "List") {
			items.Nullable = false
		}
	}
}

// reach marks the names of all schemas that s refers to.
func reach(schemas huma.Registry, s *huma.Schema, marked map[string]bool) {
	if s == nil {
		return
	}
	if s.Ref != "" {
		name := s.Ref[strings.LastIndex(s.Ref, "/")+1:]
		if marked[name] {
			return
		}
		marked[name] = true
		s = schemas.Map()[name]
	}
	reach(schemas, s.Items, marked)
	for _, p := range s.Properties {
		reach(schemas, p, marked)
	}
}

// describeOpen writes down what is served to everybody.
func (a *API) describeOpen(path, name, summary string, errors ...int) {
	op := &huma.Operation{OperationID: name, Summary: summary, Method: http.MethodGet, Path: path, Tags: []string{"server"},
		Responses: map[string]*huma.Response{"200": {Description: "OK"}}}
	for _, status := range errors {
		op.Responses[strconv.Itoa(status)] = &huma.Response{Description: http.StatusText(status), Content: map[string]*huma.MediaType{
			"application/problem+json": {Schema: &huma.Schema{Ref: "#/components/schemas/Error"}}}}
	}
	a.huma.OpenAPI().AddOperation(op)
}
