package api_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/longstop-dev/longstop/internal/flow"
)

type document struct {
	OpenAPI string
	Info    struct{ Title, Version string }
	Servers []struct{ URL string }
	Paths   map[string]map[string]struct {
		OperationID string
		Security    []map[string][]string
		Parameters  []struct{ Name, In string }
		RequestBody *struct {
			Required bool
			Content  map[string]json.RawMessage
		}
		Responses map[string]struct {
			Headers map[string]json.RawMessage
			Content map[string]struct{ Schema json.RawMessage }
		}
	}
	Components struct {
		Schemas         map[string]json.RawMessage
		SecuritySchemes map[string]struct{ Type, Scheme string }
	}
}

func readDocument(t *testing.T, b *bed) (document, string) {
	t.Helper()
	a := b.do("GET", "/openapi.json", "", "", "Authorization", "")
	var d document
	if err := json.Unmarshal([]byte(a.body), &d); err != nil || a.status != 200 {
		t.Fatalf("openapi.json: got %d, %v", a.status, err)
	}
	return d, a.body
}

func TestOpenAPIIsWhole(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	d, text := readDocument(t, b)
	if !strings.HasPrefix(d.OpenAPI, "3.1") || d.Info.Version != "1.2.3" || len(d.Servers) != 1 || d.Servers[0].URL != "https://stop.example" {
		t.Errorf("got %s, version %s, servers %v; want 3.1, 1.2.3 and the public URL", d.OpenAPI, d.Info.Version, d.Servers)
	}
	if s := d.Components.SecuritySchemes["bearer"]; s.Type != "http" || s.Scheme != "bearer" {
		t.Errorf("security scheme: got %+v, want http bearer", s)
	}
	seen := 0
	for _, op := range b.api.Operations() {
		o, ok := d.Paths[op.Path][strings.ToLower(op.Method)]
		if !ok || o.OperationID != op.Name {
			t.Errorf("%s: not described at %s %s (got %q)", op.Name, op.Method, op.Path, o.OperationID)
			continue
		}
		seen++
		if len(o.Security) != 1 || o.Security[0]["bearer"] == nil {
			t.Errorf("%s: got security %v, want bearer", op.Name, o.Security)
		}
		for _, status := range []string{"401", "403", "500"} {
			if r := o.Responses[status]; !strings.Contains(string(r.Content["application/problem+json"].Schema), "/Error") {
				t.Errorf("%s: %s is not described as an Error", op.Name, status)
			}
		}
		if _, located := o.Responses["201"].Headers["Location"]; located != slices.Contains([]string{"workflows.create", "runs.start", "runs.rerun", "mcp-servers.create", "people.add", "vaults.create", "events.append", "connections.create", "agents.push"}, o.OperationID) {
			t.Errorf("%s: Location described: %t", op.Name, located)
		}
		if strings.Count(op.Path, "{") > 0 && len(o.Parameters) == 0 {
			t.Errorf("%s: no parameters", op.Name)
		}
	}
	described := 0
	for _, methods := range d.Paths {
		described += len(methods)
	}
	if want := seen + 3; described != want { // and what is open: two of health and the keys
		t.Errorf("described: got %d operations, want %d", described, want)
	}
	for rest := text; ; {
		_, after, ok := strings.Cut(rest, `"#/components/schemas/`)
		if !ok {
			break
		}
		name, more, _ := strings.Cut(after, `"`)
		if d.Components.Schemas[name] == nil {
			t.Errorf("schema %s is referred to and not there", name)
		}
		rest = more
	}
	if strings.Contains(text, "ErrorModel") || strings.Contains(text, "$schema") {
		t.Error("huma's own error or $schema is in the document")
	}
}

func TestOpenAPISaysWhatIsSo(t *testing.T) {
	t.Parallel()
	d, _ := readDocument(t, newBed(t))
	for name, wants := range map[string][]string{
		"Error":              {`"detail"`, `"fix"`, string(flow.CodeRateLimited), `"errors"`},
		"StepView":           {`"type":["string","null"]`, `"skipped"`},
		"RunView":            {`"cancelled"`},
		"GateAnswer":         {`"additionalProperties":false`, `"approve"`},
		"ListRunView":        {`"items":{"items":{"$ref"`},
		"PutSettingInBody":   {`"required":["value"]`},
		"CreateServerInBody": {`"id"`, `"headers"`},
	} {
		for _, want := range wants {
			if got := string(d.Components.Schemas[name]); !strings.Contains(got, want) {
				t.Errorf("%s: got %s, want %s in it", name, got, want)
			}
		}
	}
	if got := string(d.Components.Schemas["RunView"]); strings.Contains(got, "additionalProperties") {
		t.Errorf("an answer's schema is closed: %s", got)
	}
	start := d.Paths["/v1/workflows/{name}/runs"]["post"]
	if start.RequestBody == nil || start.RequestBody.Required {
		t.Error("runs.start: a body whose members are all optional is required")
	}
	if got := d.Paths["/v1/workflows"]["post"].RequestBody.Content; got["application/yaml"] == nil || got["application/json"] == nil {
		t.Errorf("workflows.create: got %v, want YAML and JSON", got)
	}
	events := d.Paths["/v1/runs/{id}/events"]["get"].Responses
	if _, ok := events["101"]; !ok {
		t.Error("runs.events: no WebSocket described")
	}
	if _, ok := events["200"].Content["text/event-stream"]; !ok {
		t.Error("runs.events: no text/event-stream described")
	}
}
