package recovery

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/longstop-dev/longstop/internal/flow"
)

// compile compiles one of the published schemas.
func compile(t *testing.T, raw string) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("schema.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// golden are the five actions as the recovery specification shows them.
func golden() []string {
	return []string{
		`{"type":"fixed_output","diagnosis":"Rate limited. Returning cached profile from prior run context.","output":{"id":42,"name":"Alice"}}`,
		`{"type":"retry_with_params","diagnosis":"Wrong endpoint version. Correcting to v2.","modifications":{"httpRequest":{"url":"https://api.example.com/v2/users/42"}}}`,
		`{"type":"code_fix","diagnosis":"Response shape changed. Transforming to expected format.","code":"return { id: input.userId, name: input.fullName };"}`,
		`{"type":"retry_with_tool","diagnosis":"Primary tool unavailable. Using fallback.","toolCall":{"server":"my-mcp-server-id","tool":"get_user_fallback","params":{"userId":42}}}`,
		`{"type":"needs_human","diagnosis":"Authentication expired and cannot be refreshed automatically.","suggestion":"Re-authorize the API connection in Settings → Connectors."}`,
	}
}

func validates(t *testing.T, s *jsonschema.Schema, raw string) error {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(raw))
	if err != nil {
		return err
	}
	return s.Validate(v)
}

// spec: R-029
func TestGoldenExamplesAreValid(t *testing.T) {
	t.Parallel()
	action, input := compile(t, actionSchema), compile(t, inputSchema)
	for _, raw := range golden() {
		if err := validates(t, action, raw); err != nil {
			t.Errorf("the schema refuses %s: %v", raw, err)
		}
		a, notes, r := ParseAction([]byte(raw), flow.DefaultLimits())
		if r != nil || len(notes) > 0 {
			t.Errorf("ParseAction(%s) = %v, %v, want it clean", raw, notes, r)
		}
		back, err := json.Marshal(a)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := canonical(t, back), canonical(t, []byte(raw)); got != want {
			t.Errorf("read and written again: got %s, want %s", got, want)
		}
	}
	if err := validates(t, input, sampleInput); err != nil {
		t.Errorf("the schema refuses the sample: %v", err)
	}
	if in := Sample(); in.Step.Index != 2 || in.Error != "HTTP 429: Too Many Requests" || in.PriorOutputs["1"] != `{ "userId": 42 }` {
		t.Errorf("sample = %+v, want the specification's", in)
	}
}

func canonical(t *testing.T, raw []byte) string {
	t.Helper()
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// spec: R-015
func TestSchemaDocument(t *testing.T) {
	t.Parallel()
	raw, err := json.Marshal(Schema())
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Tool          string
		SchemaVersion int `json:"schema_version"`
		Input, Output struct {
			Schema string `json:"$schema"`
			Title  string
			Type   string
		}
	}
	if err := json.Unmarshal(raw, &doc); err != nil {
		t.Fatal(err)
	}
	if doc.Tool != "diagnose_step_failure" || doc.SchemaVersion != 1 || doc.Input.Title != "RecoveryToolInput" || doc.Output.Title != "RecoveryAction" ||
		doc.Output.Type != "object" || !strings.Contains(doc.Input.Schema, "2020-12") {
		t.Errorf("schema document = %+v", doc)
	}
}

// rejections are answers that must be refused, and a part of why. schema says
// whether the published schema refuses them too: it knows nothing of bytes.
func rejections() []struct{ name, raw, want string } {
	deep := strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000)
	return []struct{ name, raw, want string }{
		{"empty", ``, "the answer is empty"},
		{"blank", " \n ", "the answer is empty"},
		{"not JSON", `I would retry this.`, "the answer is not JSON"},
		{"HTML", `<!doctype html><html>502</html>`, "HTML or XML page"},
		{"text", `"<html>502</html>"`, "the answer is text, not an action"},
		{"cut off", `{"type":"fixed_output","diagnosis":"x","output":{"id"`, "not JSON: unexpected end"},
		{"two values", `{"type":"needs_human","diagnosis":"x","suggestion":"y"} {}`, "not JSON"},
		{"array", `[{"type":"needs_human","diagnosis":"x","suggestion":"y"}]`, "exactly one action"},
		{"null", `null`, "the answer is null"},
		{"number", `42`, "the answer is a number"},
		{"NaN", `{"type":"fixed_output","diagnosis":"x","output":NaN}`, "not JSON"},
		{"huge number", `{"type":"fixed_output","diagnosis":"x","output":{"a":[1,1e999]}}`, `output.a[1]: the number "1e999" is out of range`},
		{"long number", `{"type":"fixed_output","diagnosis":"x","output":` + strings.Repeat("9", 5000) + `}`, "a number of 5000 characters"},
		{"not UTF-8", "{\"type\":\"fixed_output\",\"diagnosis\":\"\xff\",\"output\":1}", "not UTF-8"},
		{"10,000 levels", `{"type":"fixed_output","diagnosis":"x","output":` + deep + `}`, "nested more than 200 levels deep"},
		{"never closed", strings.Repeat(`{"a":`, 500_000), "nested more than 200 levels deep"},
		{"20 MB", `{"type":"fixed_output","diagnosis":"x","output":"` + strings.Repeat("x", 20<<20) + `"}`, "at most 4194304, the limit of limits.answer_bytes"},
		{"no type", `{"diagnosis":"x","output":1}`, "type: is missing (one of fixed_output, retry_with_params"},
		{"unknown type", `{"type":"foo","diagnosis":"x"}`, `type: must be one of fixed_output, retry_with_params, code_fix, retry_with_tool, needs_human, got "foo"`},
		{"type in capitals", `{"type":"Fixed_Output","diagnosis":"x","output":1}`, "must be one of"},
		{"member in capitals", `{"Type":"fixed_output","diagnosis":"x","output":1}`, "type: is missing"},
		{"type no string", `{"type":["fixed_output"],"diagnosis":"x","output":1}`, "type: must be a string, got an array"},
		{"type twice", `{"type":"needs_human","type":"fixed_output","diagnosis":"x","output":1,"suggestion":"y"}`, "type: stands there twice"},
		{"no diagnosis", `{"type":"fixed_output","output":1}`, "diagnosis: is missing"},
		{"diagnosis no string", `{"type":"fixed_output","diagnosis":{},"output":1}`, "diagnosis: must be a string, got an object"},
		{"no output", `{"type":"fixed_output","diagnosis":"x"}`, "output: is missing (fixed_output needs it)"},
		{"no modifications", `{"type":"retry_with_params","diagnosis":"x"}`, "modifications: is missing"},
		{"modifications null", `{"type":"retry_with_params","diagnosis":"x","modifications":null}`, "modifications: must be an object, got null"},
		{"modifications array", `{"type":"retry_with_params","diagnosis":"x","modifications":[]}`, "modifications: must be an object, got an array"},
		{"no code", `{"type":"code_fix","diagnosis":"x"}`, "code: is missing"},
		{"code no string", `{"type":"code_fix","diagnosis":"x","code":1}`, "code: must be a string, got a number"},
		{"no tool call", `{"type":"retry_with_tool","diagnosis":"x"}`, "toolCall: is missing"},
		{"tool call no object", `{"type":"retry_with_tool","diagnosis":"x","toolCall":"x"}`, "toolCall: must be an object, got a string"},
		{"no server", `{"type":"retry_with_tool","diagnosis":"x","toolCall":{"tool":"t"}}`, "toolCall.server: is missing"},
		{"empty tool", `{"type":"retry_with_tool","diagnosis":"x","toolCall":{"server":"s","tool":""}}`, "toolCall.tool: is empty"},
		{"params no object", `{"type":"retry_with_tool","diagnosis":"x","toolCall":{"server":"s","tool":"t","params":[1]}}`, "toolCall.params: must be an object"},
		{"more in the tool call", `{"type":"retry_with_tool","diagnosis":"x","toolCall":{"server":"s","tool":"t","url":"u"}}`, "toolCall.url: is no member of a tool call"},
		{"no suggestion", `{"type":"needs_human","diagnosis":"x"}`, "suggestion: is missing"},
		{"suggestion no string", `{"type":"needs_human","diagnosis":"x","suggestion":false}`, "suggestion: must be a string, got a boolean"},
	}
}

// spec: R-007 R-029 R-030
func TestParseActionRejects(t *testing.T) {
	t.Parallel()
	for _, c := range rejections() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			began := time.Now()
			_, _, r := ParseAction([]byte(c.raw), flow.DefaultLimits())
			if r == nil || !strings.Contains(r.Error(), c.want) {
				t.Fatalf("got %v, want a rejection with %q", r, c.want)
			}
			if n := len([]rune(r.Error())); n > 400 {
				t.Errorf("the text has %d characters, want at most 400", n)
			}
			if took := time.Since(began); took > 5*time.Second {
				t.Errorf("took %s", took)
			}
		})
	}
}

// spec: R-015
func TestSchemaAndParserAgree(t *testing.T) {
	t.Parallel()
	schema := compile(t, actionSchema)
	ours := map[string]bool{ // what no schema can say
		"type twice": true, "huge number": true, "long number": true, "not UTF-8": true, "10,000 levels": true, "never closed": true, "20 MB": true,
	}
	for _, c := range rejections() {
		if ours[c.name] || !json.Valid([]byte(c.raw)) {
			continue
		}
		if validates(t, schema, c.raw) == nil {
			t.Errorf("%s: the schema accepts what the parser refuses: %s", c.name, c.raw)
		}
	}
	for _, raw := range append(golden(), lenient()...) {
		if err := validates(t, schema, raw); err != nil {
			t.Errorf("the schema refuses what the parser accepts: %s: %v", raw, err)
		}
	}
}

// lenient are answers that are accepted though they hold more than they need.
func lenient() []string {
	return []string{
		`{"type":"fixed_output","diagnosis":"x","output":null}`,
		`{"type":"fixed_output","diagnosis":"x","output":1,"confidence":0.9,"code":"return 1"}`,
		`{"type":"retry_with_params","diagnosis":"","modifications":{}}`,
		`{"type":"retry_with_tool","diagnosis":"x","toolCall":{"server":"s","tool":"t"}}`,
		`{"type":"retry_with_params","diagnosis":"x","modifications":{"headers":{"A":null,"B":["1",2,true]},"body":null,"timeout":1000}}`,
	}
}

func TestParseActionIsLenient(t *testing.T) {
	t.Parallel()
	for _, raw := range lenient() {
		if _, _, r := ParseAction([]byte(raw), flow.DefaultLimits()); r != nil {
			t.Errorf("ParseAction(%s): %v", raw, r)
		}
	}
	a, notes, r := ParseAction([]byte(lenient()[1]), flow.DefaultLimits())
	if r != nil || len(notes) != 1 || notes[0] != "ignored: code, confidence" || string(a.Output) != "1" {
		t.Errorf("got %+v, %q, %v, want code and confidence ignored", a, notes, r)
	}
	a, _, _ = ParseAction([]byte(lenient()[0]), flow.DefaultLimits())
	if string(a.Output) != "null" {
		t.Errorf("output = %q, want null, which is a value", a.Output)
	}
	long := `{"type":"needs_human","diagnosis":"` + strings.Repeat("é", 5000) + `","suggestion":"y"}`
	a, notes, r = ParseAction([]byte(long), flow.DefaultLimits())
	if r != nil || len([]rune(a.Diagnosis)) != maxDiagnosis || len(notes) != 1 {
		t.Errorf("a long diagnosis: %d characters, notes %q, %v", len([]rune(a.Diagnosis)), notes, r)
	}
}

func TestCut(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		s    string
		n    int
		want string
	}{{"abc", 3, "abc"}, {"abcd", 3, "ab…"}, {"äöüß", 3, "äö…"}, {strings.Repeat("😀", 50), 4, "😀😀😀…"}, {"a\xffb", 9, "a\uFFFDb"}, {"", 1, ""},
		{strings.Repeat("x", 100), 10, "xxxxxxxxx…"}} {
		if got := cut(c.s, c.n); got != c.want {
			t.Errorf("cut(%q, %d) = %q, want %q", c.s, c.n, got, c.want)
		}
	}
}

func FuzzParseAction(f *testing.F) {
	for _, raw := range append(golden(), lenient()...) {
		f.Add([]byte(raw))
	}
	for _, c := range rejections() {
		if len(c.raw) < 1000 {
			f.Add([]byte(c.raw))
		}
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		a, _, r := ParseAction(raw, flow.DefaultLimits())
		if r != nil {
			if r.Error() == "" {
				t.Error("a rejection without words")
			}
			return
		}
		back, err := json.Marshal(a)
		if err != nil {
			t.Fatalf("an accepted action cannot be written: %v", err)
		}
		if _, _, r := ParseAction(back, flow.Limits{}); r != nil {
			t.Fatalf("%s was accepted, but not when written again as %s: %v", raw, back, r)
		}
	})
}
