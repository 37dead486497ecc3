package recovery

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/longstop-dev/longstop/internal/flow"
)

func (b *bed) freeze(f flow.Failure) flow.Case {
	b.t.Helper()
	k, err := b.desk().Freeze(b.t.Context(), f)
	if err != nil {
		b.t.Fatalf("freeze: %v", err)
	}
	raw, err := json.Marshal(k.Input)
	if err != nil {
		b.t.Fatal(err)
	}
	if err := validates(b.t, compile(b.t, inputSchema), string(raw)); err != nil {
		b.t.Errorf("the published schema refuses what is frozen: %v\n%s", err, raw)
	}
	return k
}

// spec: R-016 R-017 R-018 R-019 R-021 R-022 R-025 R-027 R-066 R-109
func TestFreeze(t *testing.T) {
	t.Parallel()
	b, f := newBed(t), httpFailure()
	f.Instance.Iteration, f.Instance.Progress = "3", flow.Progress{Episode: 1, Round: 1, Hint: "use sk-live-0123456789"}
	k := b.freeze(f)
	same(t, "input", k.Input, `{"schema_version":1,
		"step":{"type":"http_request","title":"Fetch user","intent":"get the profile","index":2,"config":{"method":"GET","url":"https://api.example.com/users/42",
			"headers":{"Authorization":"Bearer [secret:api]","X-Plain":"1"},"query":{"page":"7","size":10},"body":{"who":"Ada","kind":"a","list":["42","b"]}}},
		"error":"HTTP 404: Not Found\nno [secret:api] here",
		"prior_outputs":{"0":"{\"token\":\"abc\"}"},
		"workflow_input":{"id":42,"note":"[secret:api]"},
		"resolved_request":{"url":"https://api.example.com/users/42?page=7&size=10","body":{"who":"Ada","kind":"a","list":["42","b"]}},
		"human_hint":"use [secret:api]"}`)
	if k.ID != "case_1" || k.Workspace != "ws" || k.RunID != "run_1" || k.Workflow != "w" || k.StepIndex != 2 || k.Iteration != "3" || k.Episode != 1 ||
		k.Attempt != 1 || !k.OpenedAt.Equal(b.clock.Now()) || k.ClosedAt != nil || k.Asked == nil {
		t.Errorf("case = %+v", k)
	}
	if all, _ := json.Marshal(k); strings.Contains(string(all), "sk-live") {
		t.Errorf("the case holds the secret: %s", all)
	}
}

func TestFreezeOfATemplateError(t *testing.T) {
	t.Parallel()
	f := httpFailure()
	f.Config, f.Failed = nil, flow.Failed{Error: "input.id is missing", Kind: flow.KindTemplate}
	k := newBed(t).freeze(f)
	if !strings.Contains(string(k.Input.Step.Config), "{{ input.id }}") || k.Input.ResolvedRequest != nil || k.Response != nil {
		t.Errorf("input = %+v, want the config as it was written and no request", k.Input)
	}
	f.Step.Config, f.Run.Input = nil, nil
	if k = newBed(t).freeze(f); string(k.Input.Step.Config) != "{}" || string(k.Input.WorkflowInput) != "null" {
		t.Errorf("config %s, input %s, want {} and null", k.Input.Step.Config, k.Input.WorkflowInput)
	}
}

// spec: R-025 R-028
func TestFreezeOfOtherSteps(t *testing.T) {
	t.Parallel()
	f := httpFailure()
	f.Step.Type, f.Config = "transform", json.RawMessage(`{"value":1}`)
	raw, _ := json.Marshal(newBed(t).freeze(f).Input)
	for _, name := range []string{"resolved_request", "catalog_action", "human_hint"} {
		if strings.Contains(string(raw), name) {
			t.Errorf("%s is there: %s", name, raw)
		}
	}
	f.Step.Type, f.Config = "http_request", json.RawMessage(`{"url":"https://a.example/?x=1&y=2","query":{"x":["a b","c"],"z":null}}`)
	raw, _ = json.Marshal(newBed(t).freeze(f).Input.ResolvedRequest)
	same(t, "resolved request", json.RawMessage(raw), `{"url":"https://a.example/?y=2&x=a+b&x=c","body":null}`)
}

// spec: R-020
func TestSummaries(t *testing.T) {
	t.Parallel()
	m := newBed(t)
	masker, _ := m.Masker(t.Context(), "ws")
	whole := `"` + strings.Repeat("x", 498) + `"`
	if got := summary(json.RawMessage(whole), masker); got != whole {
		t.Errorf("500 characters were changed: %q", got)
	}
	for name, output := range map[string]string{
		"ascii": `"` + strings.Repeat("x", 499) + `"`, "wide": `"` + strings.Repeat("😀", 900) + `"`, "huge": `"` + strings.Repeat("é", 5<<20) + `"`,
		"secret over the cut": `"` + strings.Repeat("x", 490) + `sk-live-0123456789"`,
	} {
		got := summary(json.RawMessage(output), masker)
		if n := utf8.RuneCountInString(got); n != maxPrior || !strings.HasSuffix(got, "…") || !utf8.ValidString(got) {
			t.Errorf("%s: %d characters, ending in %q, want 500 and the mark", name, n, got[len(got)-10:])
		}
		if strings.Contains(got, "sk-l") {
			t.Errorf("%s: half a secret came through: %q", name, got)
		}
	}
	if got := summary(nil, masker); got != "null" {
		t.Errorf("no output: %q", got)
	}
}

func TestResponseIsBounded(t *testing.T) {
	t.Parallel()
	f := httpFailure()
	f.Failed.Response.Body = strings.Repeat("é", 60_000)
	k := newBed(t).freeze(f)
	if n := len(k.Response.Body); n > maxResponse || n < maxResponse-4 || !utf8.ValidString(k.Response.Body) {
		t.Errorf("kept %d bytes, want at most %d on a character", n, maxResponse)
	}
	if k.Response.Header["X"] != "[secret:api]" {
		t.Errorf("header = %q, want it masked", k.Response.Header["X"])
	}
}

func TestResolvedRequestIsMasked(t *testing.T) {
	t.Parallel()
	f := httpFailure()
	f.Config = json.RawMessage(`{"url":"https://a.example/sk-live-0123456789","query":{"k":"sk-live-0123456789"},"body":"x sk-live-0123456789"}`)
	raw, _ := json.Marshal(newBed(t).freeze(f).Input)
	if strings.Contains(string(raw), "sk-live") || strings.Count(string(raw), "[secret:api]") != 8 {
		t.Errorf("input = %s, want every secret masked", raw)
	}
}
