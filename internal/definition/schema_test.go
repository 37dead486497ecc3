package definition_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/longstop-dev/longstop/internal/definition"
	"github.com/longstop-dev/longstop/internal/flow"
)

func mustCompile(t testing.TB, src string) *definition.Schema {
	t.Helper()
	s, err := definition.CompileSchema(json.RawMessage(src))
	if err != nil {
		t.Fatalf("%s: %v", src, err)
	}
	return s
}

func TestCheckNamesFieldsAndNeverValues(t *testing.T) {
	t.Parallel()
	s := mustCompile(t, `{"type":"object","required":["id"],"additionalProperties":false,"properties":{
		"id":{"type":"integer","minimum":1},"kind":{"enum":["a","b",null]},"one":{"const":"x"},"tag":{"pattern":"^[a-z]+$"},
		"list":{"type":"array","maxItems":2,"uniqueItems":true,"items":{"anyOf":[{"type":"string"},{"type":"number"}]}},
		"obj":{"type":"object","minProperties":1,"properties":{"odd key":{"type":"boolean"}}},
		"or":{"anyOf":[{"required":["x"]},{"required":["y"]}]},"deep":{"oneOf":[{"type":"object","properties":{"k":{"maxLength":3}}},{"type":"null"}]}}}`)
	const secret = "hunter2hunter2"
	for _, c := range []struct{ value, want string }{
		{`{"id":1}`, ""},
		{`{}`, "id: id is missing ()"},
		{`"` + secret + `"`, ": is not an object (give an object)"},
		{`{"id":"` + secret + `"}`, "id: is not an integer (give an integer)"},
		{`{"id":0}`, "id: the number is out of range (at least 1)"},
		{`{"id":1.5}`, "id: is not an integer (give an integer)"},
		{`{"id":1,"kind":"` + secret + `"}`, "kind: is not one of the values that are allowed (one of a, b, null)"},
		{`{"id":1,"one":"` + secret + `"}`, "one: is not the one value that is allowed (x)"},
		{`{"id":1,"tag":"H` + secret + `"}`, "tag: does not have the form that is wanted (a text that matches ^[a-z]+$)"},
		{`{"id":1,"list":[1,"a",true]}`, "list: has 3 entries (at most 2)|list[2]: is not a text or a number (give a text or a number)"},
		{`{"id":1,"list":["` + secret + `","` + secret + `"]}`, "list: entries 0 and 1 are the same ()"},
		{`{"id":1,"obj":{}}`, "obj: has 0 members (at least 1: give one of odd key)"},
		{`{"id":1,"obj":{"odd key":"` + secret + `"}}`, `obj["odd key"]: is not true or false (give true or false)`},
		{`{"id":1,"or":{}}`, "or: x or y is missing (give one of them)"},
		{`{"id":1,"deep":{"k":"` + secret + `"}}`, "deep.k: has 14 characters (at most 3)"},
		{`{"id":1,"lst":[]}`, `lst: unknown member "lst" (did you mean list?)`},
		{`{"id":1e999999}`, "id: a number is out of range (at most 1.8e308, not nearer to 0 than 5e-324)"},
		{`{"id":1} x`, ": not valid JSON ()"},
		{``, ": not valid JSON ()"},
	} {
		var got []string
		for _, p := range s.Check(json.RawMessage(c.value)) {
			got = append(got, p.Field+": "+p.Message+" ("+p.Fix+")")
		}
		if g := strings.Join(got, "|"); g != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.value, g, c.want)
		} else if strings.Contains(g, secret) {
			t.Errorf("%s: got %s, which shows the value", c.value, g)
		}
	}
	if got := s.Check(map[string]any{"id": json.Number("7")}); got != nil {
		t.Errorf("decoded: got %+v, want nil", got)
	}
	if got := (*definition.Schema)(nil).Check(json.RawMessage(`1`)); got != nil {
		t.Errorf("no schema: got %+v, want nil", got)
	}
}

func TestSchemasReachNothingOutside(t *testing.T) {
	t.Parallel()
	for src, want := range map[string]string{
		`{"$ref":"file:///etc/hostname"}`:                     "leads out of the schema",
		`{"$ref":"http://127.0.0.1:9/x"}`:                     "leads out of the schema",
		`{"$ref":"schema.go"}`:                                "leads out of the schema",
		`{"$schema":"http://127.0.0.1:9/meta"}`:               "leads out of the schema",
		`{"$id":"file:///etc/","$ref":"hostname"}`:            "leads out of the schema",
		`{"properties":{"a":{"$dynamicRef":"http://x/y#z"}}}`: "leads out of the schema",
		`{"$ref":"#/$defs/none"}`:                             "leads nowhere",
		`{"type":"objekt"}`:                                   "did you mean object?",
		`{"minimum":1e400}`:                                   "out of range",
		`{`:                                                   "not valid JSON",
		`[]`:                                                  "is an object",
		`{"pattern":"("}`:                                     "no regular expression",
		`{"pattern":"((a{1000}){1000}){1000}"}`:               "no regular expression",
	} {
		_, err := definition.CompileSchema(json.RawMessage(src))
		var e *flow.Error
		if !errors.As(err, &e) || e.Code != flow.CodeInvalid || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want invalid with %q", src, err, want)
		}
	}
}

func TestSchemasWithinThemselves(t *testing.T) {
	t.Parallel()
	for src, value := range map[string]string{
		`{"$ref":"#/$defs/a","$defs":{"a":{"type":"integer"}}}`:                                                 `1`,
		`{"$id":"https://example.com/x","$ref":"#/$defs/a","$defs":{"a":{"type":"integer"}}}`:                   `1`,
		`{"$schema":"http://json-schema.org/draft-07/schema#","definitions":{"a":{}},"$ref":"#/definitions/a"}`: `1`,
		`{"type":"object","properties":{"next":{"$ref":"#"}}}`:                                                  `{"next":{"next":{}}}`,
		`true`: `1`,
	} {
		if got := mustCompile(t, src).Check(json.RawMessage(value)); got != nil {
			t.Errorf("%s: got %+v, want nil", src, got)
		}
	}
}

// TestSchemasThatWouldTakeForEver ends at all only because they are refused.
func TestSchemasThatWouldTakeForEver(t *testing.T) {
	t.Parallel()
	var defs strings.Builder
	for i := range 40 {
		fmt.Fprintf(&defs, `"d%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]},`, i, i+1, i+1)
	}
	doubling := `{"$ref":"#/$defs/d0","$defs":{` + defs.String() + `"d40":{}}}`
	if _, err := definition.CompileSchema(json.RawMessage(doubling)); err == nil || !strings.Contains(err.Error(), "too many alternatives") {
		t.Errorf("doubling references: got %v, want a refusal", err)
	}
	// What refers to itself on the same value is never satisfied.
	for _, src := range []string{`{"$ref":"#"}`, `{"allOf":[{"$ref":"#"},{"$ref":"#"}]}`, `{"$ref":"#/$defs/a","$defs":{"a":{"anyOf":[{"$ref":"#/$defs/b"}]},"b":{"$ref":"#/$defs/a"}}}`} {
		if got := mustCompile(t, src).Check(json.RawMessage(`{}`)); len(got) == 0 {
			t.Errorf("%s: got no problem, want one", src)
		}
	}
}

func TestPublishedSchemaAgreesWithParse(t *testing.T) {
	t.Parallel()
	published := mustCompile(t, string(definition.Published(types())))
	for src, good := range map[string]bool{
		`{"name":"x","steps":[{"type":"transform","config":{"value":1}}]}`:                                                          true,
		`{"name":"x","steps":[{"type":"wait","config":{"for":"1d12h"},"timeout":"1.5s","retry":{"attempts":2,"backoff":"250ms"}}]}`: true,
		`{"name":"x","recovery":{"mode":"sync","max_attempts":3},"steps":[{"type":"wait","config":{"for":"{{ input.x }}"}}]}`:       true,
		`{"name":"x","steps":[{"type":"conditional","config":{"if":"true","then":[{"type":"wait","config":{"for":"1s"}}]}}]}`:       true,
		`{"name":"x","steps":[{"type":"conditional","config":{"if":"true","then":[{"type":"wait","config":{"fro":"1s"}}]}}]}`:       false,
		`{"name":"x","steps":[{"type":"conditional","config":{"cases":[{"when":"true","steps":[{"type":"nope"}]}]}}]}`:              false,
		`{"name":"x","steps":[]}`:                                                                       false,
		`{"name":"x","steps":[{"type":"nope"}]}`:                                                        false,
		`{"name":"x","steps":[{"type":"http_request"}]}`:                                                false,
		`{"name":"x","step":[]}`:                                                                        false,
		`{"name":"x y","steps":[{"type":"wait","config":{"for":"1s"}}]}`:                                false,
		`{"name":"x","steps":[{"type":"wait","config":{"for":"1s"},"timeout":30}]}`:                     false,
		`{"name":"x","recovery":{"a2a_agent_url":"u"},"steps":[{"type":"wait","config":{"for":"1s"}}]}`: false,
	} {
		_, err := definition.Parse("x.json", []byte(src), types())
		if (err == nil) != good {
			t.Errorf("Parse %s: got %v, want good: %v", src, err, good)
		}
		if got := published.Check(json.RawMessage(src)); (len(got) == 0) != good {
			t.Errorf("published schema on %s: got %+v, want good: %v", src, got, good)
		}
	}
}
