package server_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

const modelKey = "mk-0123456789-secret"

// chatAPI is an OpenAI-compatible API of the test's own making. It keeps what
// it was sent; each call is answered by the next body, of which the last stays.
type chatAPI struct {
	*httptest.Server
	mu     sync.Mutex
	status int
	bodies []string
	prompt []string
	keys   []string
}

func newChatAPI(t *testing.T, bodies ...string) *chatAPI {
	t.Helper()
	c := &chatAPI{status: http.StatusOK, bodies: bodies}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.prompt, c.keys = append(c.prompt, string(b)), append(c.keys, r.Header.Get("Authorization"))
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(c.status)
		io.WriteString(w, c.bodies[0])
		if len(c.bodies) > 1 {
			c.bodies = c.bodies[1:]
		}
	}))
	t.Cleanup(c.Close)
	return c
}

func (c *chatAPI) seen() (prompts, keys []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string(nil), c.prompt...), append([]string(nil), c.keys...)
}

// says is a completion with an answer of these members.
func completionOf(members map[string]string) string {
	answer := map[string]string{"type": "", "diagnosis": "the endpoint moved", "output_json": "", "modifications_json": "", "code": "", "tool_server": "", "tool_name": "", "tool_params_json": "", "suggestion": ""}
	for k, v := range members {
		answer[k] = v
	}
	text, _ := json.Marshal(answer)
	quoted, _ := json.Marshal(string(text))
	return `{"choices":[{"message":{"role":"assistant","reasoning_content":"let me think of NEVERSHOWN","content":` + string(quoted) + `},"finish_reason":"stop"}],"usage":{"prompt_tokens":900,"completion_tokens":100,"total_tokens":1000}}`
}

// withModel is a server whose built-in is the model behind the API.
func withModel(t *testing.T, c *chatAPI) *stop {
	t.Helper()
	st := begin(t)
	st.must("PUT", "/v1/secrets/api", map[string]any{"value": secretValue}, nil)
	st.set("model.url", c.URL+"/v1")
	st.set("model.name", "tiny-1")
	st.set("model.key", modelKey)
	st.set("recovery.builtin", "model")
	return st
}

type caseView struct {
	ID, Outcome string
	Asked       []struct {
		Responder, Source, Target, Rejection string
		Accepted                             bool
		Notes                                []string
		Usage                                *struct{ TotalTokens int64 }
	}
}

func (st *stop) cases(run string) []caseView {
	st.t.Helper()
	var l struct{ Items []caseView }
	st.must("GET", "/v1/cases?runId="+run, nil, &l)
	return l.Items
}

func TestTheModelMends(t *testing.T) {
	t.Parallel()
	up := api(t)
	c := newChatAPI(t, completionOf(map[string]string{"type": "retry_with_params", "modifications_json": `{"httpRequest":{"url":"` + up.URL + `/v2/users/42"}}`}))
	st := withModel(t, c)
	id := st.run(fmt.Sprintf(moved, up.URL), map[string]any{"access_token": "oauth-token-value"})
	r := st.ended(id)
	if r.Status != "succeeded" || r.source(0) != "builtin" || !strings.Contains(r.Steps[0].Message, "the built-in (model) answered retry_with_params: the endpoint moved") {
		t.Fatalf("got %s by %s (%s / %s)", r.Status, r.source(0), r.Error, r.Steps[0].Message)
	}
	k := st.cases(id)[0]
	if len(k.Asked) != 1 || k.Asked[0].Responder != "model" || k.Asked[0].Target != c.URL+"/v1" || k.Asked[0].Usage == nil || k.Asked[0].Usage.TotalTokens != 1000 {
		t.Errorf("case: got %+v, want the model's part with what it used", k)
	}
	prompts, keys := c.seen()
	if len(prompts) != 1 || keys[0] != "Bearer "+modelKey || !strings.Contains(prompts[0], "[secret:api]") {
		t.Errorf("asked %d times with %q", len(prompts), keys)
	}
	for _, never := range []string{secretValue, modelKey, "oauth-token-value"} {
		if strings.Contains(prompts[0], never) {
			t.Errorf("the model was shown %s", never)
		}
	}
	var usage struct {
		Items []struct {
			Calls, TotalTokens int64
		}
	}
	if st.must("GET", "/v1/model/usage", nil, &usage); len(usage.Items) != 1 || usage.Items[0].Calls != 1 || usage.Items[0].TotalTokens != 1000 {
		t.Errorf("usage: got %+v, want 1000 tokens in one call", usage)
	}
	for _, never := range []string{modelKey, "NEVERSHOWN"} {
		if where := st.holds(never, "/v1/runs/"+id, "/v1/runs/"+id+"/events", "/v1/runs/"+id+"/logs", "/v1/cases", "/v1/settings"); len(where) > 0 {
			t.Errorf("%s stands in %v", never, where)
		}
	}
}

// TestTheGuardHoldsForTheModel has it name a place that is never called; told
// so, it calls for a person.
func TestTheGuardHoldsForTheModel(t *testing.T) {
	t.Parallel()
	c := newChatAPI(t, completionOf(map[string]string{"type": "retry_with_params", "modifications_json": `{"httpRequest":{"url":"http://169.254.169.254/latest"}}`}),
		completionOf(map[string]string{"type": "needs_human", "suggestion": "ask the owner of the API"}))
	st := withModel(t, c)
	r := st.gated(st.run(fmt.Sprintf(moved, api(t).URL), map[string]any{}))
	if g := r.Gates[0]; g.Builtin == nil || g.Builtin.Suggestion != "ask the owner of the API" {
		t.Errorf("gate: got %+v, want the model's words", g)
	}
	if prompts, _ := c.seen(); len(prompts) != 2 || !strings.Contains(prompts[1], "metadata addresses are never called") {
		t.Errorf("asked %d times; the second time it was not told why", len(prompts))
	}
	k := st.cases(r.ID)[0]
	if len(k.Asked) != 1 || k.Asked[0].Usage.TotalTokens != 2000 || len(k.Asked[0].Notes) != 2 || !strings.Contains(k.Asked[0].Notes[1], "asked again") {
		t.Errorf("case: got %+v, want both answers' tokens and a note", k)
	}
}

// TestTheRulesAnswerWhereTheModelCannot holds for an endpoint that fails, an
// answer that the guard refuses twice, and a spent budget.
func TestTheRulesAnswerWhereTheModelCannot(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		status int
		body   string
		why    string
		calls  int
	}{
		"401":     {401, `{"error":{"message":"no such key: ` + modelKey + `"}}`, "HTTP 401 Unauthorized: no such key: [model.key] (check model.key)", 1},
		"rubbish": {200, `certainly!`, "no chat completion", 1},
		"refused": {200, completionOf(map[string]string{"type": "fixed_output", "output_json": `{"name":"no id"}`}), "output contract", 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newChatAPI(t, tc.body)
			c.status = tc.status
			st := withModel(t, c)
			id := st.run(fmt.Sprintf(moved, api(t).URL), map[string]any{})
			r := st.ended(id)
			m := r.Steps[0].Message
			if r.Status != "succeeded" || r.source(0) != "builtin" || !strings.Contains(m, "the built-in model gave no usable answer") ||
				!strings.Contains(m, tc.why) || !strings.Contains(m, "the built-in (rules) answered") {
				t.Fatalf("got %s by %s: %s (%s), want the rules, and %q", r.Status, r.source(0), m, r.Error, tc.why)
			}
			if k := st.cases(id)[0]; len(k.Asked) != 2 || k.Asked[0].Accepted || k.Asked[1].Responder != "rules" || !k.Asked[1].Accepted {
				t.Errorf("case: got %+v, want the model's part and then the rules'", k)
			}
			if prompts, _ := c.seen(); len(prompts) != tc.calls {
				t.Errorf("asked %d times, want %d", len(prompts), tc.calls)
			}
			if where := st.holds(modelKey, "/v1/runs/"+id, "/v1/cases", "/v1/runs/"+id+"/events"); len(where) > 0 {
				t.Errorf("the key stands in %v", where)
			}
		})
	}
	t.Run("spent", func(t *testing.T) {
		t.Parallel()
		up := api(t)
		c := newChatAPI(t, completionOf(map[string]string{"type": "retry_with_params", "modifications_json": `{"httpRequest":{"url":"` + up.URL + `/v2/users/42"}}`}))
		st := withModel(t, c)
		st.set("model.daily_tokens", 1000)
		for i, want := range []string{"the built-in (model) answered", "model.daily_tokens is spent: 1000 of 1000"} {
			r := st.ended(st.run(fmt.Sprintf(moved, up.URL), map[string]any{}))
			if r.Status != "succeeded" || !strings.Contains(r.Steps[0].Message, want) {
				t.Errorf("run %d: got %s: %s, want %q", i, r.Status, r.Steps[0].Message, want)
			}
		}
		if prompts, _ := c.seen(); len(prompts) != 1 {
			t.Errorf("asked %d times, want 1", len(prompts))
		}
	})
}
