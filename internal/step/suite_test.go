package step

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/sandbox"
)

// sample is what the shared suite needs to know of a type.
type sample struct {
	name   string
	valid  []string // configs as written, templates included
	wrong  []string // configs that the schema refuses
	broken []string // resolved configs that Run refuses with one of kinds
	run    string   // a resolved config that runs
}

// now is the instant at which the tests happen.
func now() time.Time { return time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC) }

func samples() []sample {
	return []sample{
		{
			name: "http_request",
			valid: []string{
				`{"url": "https://api.example.com/users/{{ input.id }}"}`,
				`{"method": "POST", "url": "{{ input.url }}", "query": {"page": 2, "tag": ["a", true], "none": null}, "headers": {"X-A": "b"}, "body": {"a": [1]}, "expect": [200, 404]}`,
				`{"method": "{{ input.method }}", "url": "https://a.example", "query": "{{ input.query }}", "headers": "{{ input.headers }}", "expect": "{{ input.expect }}"}`,
				`{"url": "https://a.example", "method": "PUT", "body": "a,b", "contentType": "text/csv", "expect": [200, "{{ input.also }}"]}`,
			},
			wrong: []string{`{}`, `{"url": 1}`, `{"url": "x", "method": "FETCH"}`, `{"url": "x", "timeout": 3}`, `{"url": "x", "expect": "200"}`,
				`{"url": "x", "expect": [2.5]}`, `{"url": "x", "headers": {"A": {"b": 1}}}`, `{"url": "x", "query": {"A": [[1]]}}`},
			broken: []string{`{}`, `{"url": ""}`, `{"url": "/users"}`, `{"url": "ftp://a.example/x"}`, `{"url": "https://"}`, `{"url": "http://[::1"}`, `{"url": 7}`,
				`{"url": "http://a.example", "method": "CONNECT"}`, `{"url": "http://a.example", "expect": ["x"]}`, `{"url": "http://a.example", "query": {"a": {"b": 1}}}`},
			run: `{"url": "http://a.example/"}`,
		},
		{
			name:  "transform",
			valid: []string{`{"value": null}`, `{"value": "{{ input.a }}"}`, `{"value": [{"a": {"$cel": "input.a + 1"}}, 2]}`},
			wrong: []string{`{}`, `{"value": 1, "values": 2}`},
			broken: []string{`{}`, `{"value": {"$cel": 3}}`, `{"value": {"$cel": null}}`, `{"value": [{"$cel": "1", "b": 2}]}`, `{"value": {"$cel": "1 +"}}`,
				`{"value": {"\u0024cel": "1 +"}}`, `{"value": "{{ input. }}"}`, `{"value": "{{ input.missing }}"}`, `{"value": {"$cel": "input.missing"}}`},
			run: `{"value": {"a": [1, {"$cel": "1 + 1"}]}}`,
		},
		{
			name: "conditional",
			valid: []string{`{"if": "input.a == 1", "then": [{"type": "wait"}]}`, `{"if": true, "then": [], "else": []}`, `{"if": "{{ input.a }}", "then": []}`,
				`{"cases": [{"when": "input.a > 1", "steps": []}, {"when": false, "steps": []}], "else": []}`},
			wrong: []string{`{}`, `{"if": "true"}`, `{"then": []}`, `{"if": 1, "then": []}`, `{"if": "true", "then": [], "cases": []}`, `{"cases": [{"steps": []}]}`,
				`{"cases": [{"when": "true"}]}`, `{"if": "true", "then": [3]}`, `{"if": "true", "then": [], "elsif": []}`},
			broken: []string{`{}`, `{"if": 3}`, `{"if": ""}`, `{"if": "1 +"}`, `{"if": "1 + 1"}`, `{"if": "input.missing"}`, `{"if": "{{ input.missing }}"}`, `{"if": "{{ run }}x"}`,
				`{"cases": []}`, `{"cases": [{}]}`, `{"cases": {}}`, `{"if": true, "cases": [{"when": true}]}`, `{"cases": [{"when": "nothing.x"}]}`},
			run: `{"if": "1 == 1"}`,
		},
		{
			name:  "parallel",
			valid: []string{`{"branches": [[]]}`, `{"branches": [[{"type": "wait"}, {"type": "wait"}], [{"type": "wait"}]]}`, `{"branches": [` + strings.Repeat(`[],`, 63) + `[]]}`},
			wrong: []string{`{}`, `{"branches": []}`, `{"branches": [{"type": "wait"}]}`, `{"branches": [["wait"]]}`, `{"branches": {"a": []}}`, `{"branches": "{{ input.a }}"}`,
				`{"branches": [[]], "limit": 3}`, `{"branches": [` + strings.Repeat(`[],`, 64) + `[]]}`},
			run: `{"branches": []}`, // its lists are taken out before it runs
		},
		{
			name:   "human_approval",
			valid:  []string{`{"message": "Pay {{ input.amount }}?"}`, `{"message": "Pay?", "form": {"type": "object"}, "deadline": "2d", "default": "refuse"}`},
			wrong:  []string{`{}`, `{"message": 1}`, `{"message": "x", "default": "maybe"}`, `{"message": "x", "deadline": "soon"}`, `{"message": "x", "who": "me"}`},
			broken: []string{`{}`, `{"message": ""}`, `{"message": "x", "deadline": "31d"}`, `{"message": "x", "form": {"type": 7}}`},
			run:    `{"message": "Pay?"}`,
		},
		{
			name:   "wait",
			valid:  []string{`{"for": "90s"}`, `{"for": "1d12h"}`, `{"for": "{{ input.pause }}"}`, `{"until": "2026-03-01T09:00:00Z"}`, `{"until": "{{ input.at }}"}`},
			wrong:  []string{`{}`, `{"for": "90s", "until": "2026-03-01T09:00:00Z"}`, `{"for": 90}`, `{"for": "soon"}`, `{"seconds": 4}`},
			broken: []string{`{}`, `{"for": "31d"}`, `{"for": "-3s"}`, `{"for": "1s2d"}`, `{"for": "999999999999d"}`, `{"until": "tomorrow"}`, `{"for": "1s", "until": "2026-03-01T09:00:00Z"}`, `{"for": 1}`},
			run:    `{"for": "1s"}`,
		},
		{
			name:   "mcp_call",
			valid:  []string{`{"server": "crm", "tool": "find", "params": {"id": "{{ input.id }}"}}`, `{"server": "crm", "tool": "list"}`},
			wrong:  []string{`{}`, `{"server": "crm"}`, `{"server": 1, "tool": "x"}`, `{"server": "crm", "tool": "x", "args": {}}`},
			broken: []string{`{}`, `{"server": "crm"}`, `{"tool": "x"}`, `{"server": "crm", "tool": "x", "params": [1]}`, `{"server": {}, "tool": "x"}`},
			run:    `{"server": "crm", "tool": "find"}`,
		},
		{
			name:   "code",
			valid:  []string{`{"code": "return { sum: input.a + steps.user.output.b };"}`, `{"code": "const t = ` + "`${input.a}`" + `; return t;"}`},
			wrong:  []string{`{}`, `{"code": 1}`, `{"code": "return 1", "language": "ts"}`},
			broken: []string{`{}`, `{"code": ""}`, `{"code": 7}`},
			run:    `{"code": "return { a: 1 };"}`,
		},
		{
			name: "agent",
			valid: []string{`{"vault": "orders", "agent": "desk", "payload": {"text": "Is {{ input.id }} late?"}}`,
				`{"vault": "v", "scope": "mail", "agent": "{{ input.agent }}", "eventType": "order.asked", "payload": {"a": 1}, "timeout": "2h", "conversation": "c"}`},
			wrong:  []string{`{}`, `{"vault": "v", "agent": "a"}`, `{"vault": 1, "agent": "a", "payload": {}}`, `{"vault": "v", "agent": "a", "payload": {"a": 1}, "timeout": "soon"}`, `{"vault": "v", "agent": "a", "payload": {"a": 1}, "who": 1}`},
			broken: []string{`{}`, `{"vault": "v"}`, `{"vault": "v", "agent": "a"}`, `{"vault": "v", "agent": "a", "payload": {}}`, `{"vault": "v", "agent": "a", "payload": "x"}`, `{"vault": "v", "agent": "a", "payload": {"a": 1}, "timeout": "31d"}`},
			run:    `{"vault": "v", "agent": "a", "payload": {"text": "hello"}}`,
		},
	}
}

// garbage is what no type takes.
func garbage() []string {
	return []string{``, `null`, `true`, `7`, `"x"`, `[]`, `[{}]`, `{`, `{}`, `{"__proto__": {"a": 1}}`, "\x00\xff", strings.Repeat(`[`, 20_000),
		`{"url": {"url": {}}, "value": {"$cel": []}, "if": [], "for": {}, "server": []}`}
}

// roundTrip is an outside world of one function.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func answering(status int, body string) *http.Client {
	return &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
	})}
}

// hanging waits for its context, as an outsider that never answers.
func hanging() Deps {
	return Deps{
		Vaults: &mailbox{hang: true},
		HTTP: &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		})},
		Sandbox: box(),
		Tools: toolFunc(func(ctx context.Context, _, _, _ string, _ json.RawMessage) (json.RawMessage, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}),
	}
}

type toolFunc func(ctx context.Context, workspace, server, tool string, params json.RawMessage) (json.RawMessage, error)

func (f toolFunc) Call(ctx context.Context, workspace, server, tool string, params json.RawMessage) (json.RawMessage, error) {
	return f(ctx, workspace, server, tool, params)
}

// box is a sandbox; all tests of this machine share its compiled engine.
func box() *sandbox.Sandbox {
	return sandbox.New(sandbox.Options{CacheDir: filepath.Join(os.TempDir(), "longstop-test-sandbox")})
}

func calm() Deps {
	return Deps{Vaults: &mailbox{}, HTTP: answering(200, `{}`), Sandbox: box(), Tools: toolFunc(func(context.Context, string, string, string, json.RawMessage) (json.RawMessage, error) {
		return json.RawMessage(`{}`), nil
	})}
}

func callOf(config string) flow.Call {
	return flow.Call{Workspace: "w", RunID: "run_1", StepIndex: 2, Config: json.RawMessage(config), Now: now(), MaxOutput: 1 << 20,
		IdempotencyKey: "run_1-2", Scope: map[string]any{"input": map[string]any{}, "steps": map[string]any{}}}
}

// failedAs gives err as the step error it must be.
func failedAs(t *testing.T, err error, kind flow.ErrorKind) *flow.StepError {
	t.Helper()
	var e *flow.StepError
	if !errors.As(err, &e) {
		t.Fatalf("got error %v, want a step error of kind %s", err, kind)
	}
	if e.Kind != kind {
		t.Fatalf("got kind %s (%s), want %s", e.Kind, e.Message, kind)
	}
	return e
}

func compile(t *testing.T, about flow.StepType) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(about.Config))
	if err != nil {
		t.Fatalf("%s: schema is not JSON: %v", about.Name, err)
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	if err := c.AddResource("config.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("config.json")
	if err != nil {
		t.Fatalf("%s: schema does not compile: %v\n%s", about.Name, err, about.Config)
	}
	return s
}

func TestEveryTypeHasASample(t *testing.T) {
	t.Parallel()
	var got, want []string
	for _, s := range samples() {
		want = append(want, s.name)
	}
	for _, about := range NewTable(Deps{}).Types() {
		got = append(got, about.Name)
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Fatalf("the table has %v, the suite %v", got, want)
	}
}

func TestSuite(t *testing.T) {
	t.Parallel()
	for _, s := range samples() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			t.Run("describes itself", func(t *testing.T) { t.Parallel(); suiteDescribes(t, s) })
			t.Run("schema", func(t *testing.T) { t.Parallel(); suiteSchema(t, s) })
			t.Run("refuses what is not its config", func(t *testing.T) { t.Parallel(); suiteRefuses(t, s) })
			t.Run("runs", func(t *testing.T) { t.Parallel(); suiteRuns(t, s) })
			t.Run("stops", func(t *testing.T) { t.Parallel(); suiteStops(t, s) })
		})
	}
}

func suiteDescribes(t *testing.T, s sample) {
	typ, ok := NewTable(Deps{}).Get(s.name)
	if !ok {
		t.Fatalf("the table does not have %s", s.name)
	}
	about := typ.Describe()
	if about.Name != s.name || about.Summary == "" {
		t.Fatalf("got name %q, summary %q; want %q and a summary", about.Name, about.Summary, s.name)
	}
	var schema struct {
		Properties map[string]struct{ Description string }
	}
	if err := json.Unmarshal(about.Config, &schema); err != nil {
		t.Fatal(err)
	}
	for name, member := range schema.Properties {
		if member.Description == "" {
			t.Errorf("config.%s has no description", name)
		}
	}
	for _, list := range [][]string{about.Mendable, about.Lazy, about.Nested} {
		for _, path := range list {
			name, _, _ := strings.Cut(path, ".")
			if _, known := schema.Properties[name]; !known {
				t.Errorf("%q is named and config has no such member", path)
			}
		}
	}
}

func suiteSchema(t *testing.T, s sample) {
	typ, _ := NewTable(Deps{}).Get(s.name)
	schema := compile(t, typ.Describe())
	check := func(config string) error {
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(config))
		if err != nil {
			t.Fatalf("%s: %v", config, err)
		}
		return schema.Validate(v)
	}
	for _, config := range s.valid {
		if err := check(config); err != nil {
			t.Errorf("%s is valid, got %v", config, err)
		}
	}
	for _, config := range s.wrong {
		if check(config) == nil {
			t.Errorf("%s is not valid, got no error", config)
		}
	}
}

func suiteRefuses(t *testing.T, s sample) {
	table := NewTable(calm())
	for _, config := range append(garbage(), s.broken...) {
		out, err := table.Run(t.Context(), s.name, callOf(config))
		var e *flow.StepError
		if !errors.As(err, &e) || e.Kind != flow.KindConfig && e.Kind != flow.KindTemplate {
			t.Errorf("%.80s: got %s, %v; want a refusal of the config", config, out.Value, err)
		}
	}
}

func suiteRuns(t *testing.T, s sample) {
	out, err := NewTable(calm()).Run(t.Context(), s.name, callOf(s.run))
	if err != nil {
		t.Fatal(err)
	}
	ways := 0
	for _, has := range []bool{out.Value != nil, out.Branch != "", out.Approval != nil, out.Await != nil, out.Ask != nil} {
		if has {
			ways++
		}
	}
	if ways != 1 || (!out.Until.IsZero() && out.Value == nil) {
		t.Fatalf("got %+v, want exactly one outcome", out)
	}
	if out.Value != nil && !json.Valid(out.Value) {
		t.Fatalf("got %q, want JSON", out.Value)
	}
}

func suiteStops(t *testing.T, s sample) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := NewTable(hanging()).Run(ctx, s.name, callOf(s.run))
	if e := failedAs(t, err, flow.KindTransient); !errors.Is(e, context.Canceled) {
		t.Fatalf("got %v, want a cause of %v", e.Err, context.Canceled)
	}
	ctx, cancel = context.WithTimeout(t.Context(), 0)
	defer cancel()
	_, err = NewTable(hanging()).Run(ctx, s.name, callOf(s.run))
	failedAs(t, err, flow.KindTimeout)
}

type broken struct{}

func (broken) Describe() flow.StepType { return flow.StepType{Name: "broken"} }
func (broken) Run(context.Context, flow.Call) (flow.Outcome, error) {
	panic("oh")
}

type strange struct{}

func (strange) Describe() flow.StepType { return flow.StepType{Name: "strange"} }
func (strange) Run(context.Context, flow.Call) (flow.Outcome, error) {
	return flow.Outcome{}, io.ErrClosedPipe
}

func TestTableKeepsItsPromises(t *testing.T) {
	t.Parallel()
	table := Table{types: []Type{broken{}, strange{}}}
	for _, typ := range table.types {
		table.about = append(table.about, typ.Describe())
	}
	_, err := table.Run(t.Context(), "broken", callOf(`{}`))
	failedAs(t, err, flow.KindInternal)
	_, err = table.Run(t.Context(), "strange", callOf(`{}`))
	if e := failedAs(t, err, flow.KindInternal); !errors.Is(e, io.ErrClosedPipe) {
		t.Errorf("got cause %v, want %v", e.Err, io.ErrClosedPipe)
	}
	_, err = table.Run(t.Context(), "nothing", callOf(`{}`))
	failedAs(t, err, flow.KindConfig)

	c := callOf(`{"server": "crm", "tool": "find"}`)
	c.MaxOutput = 1
	_, err = NewTable(calm()).Run(t.Context(), "mcp_call", c)
	if e := failedAs(t, err, flow.KindTooLarge); !strings.Contains(e.Message, "1 bytes") {
		t.Errorf("got %q, want the limit named", e.Message)
	}
}
