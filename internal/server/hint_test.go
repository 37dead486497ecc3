package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// hearing is an own agent that calls for a person until it is given a hint.
type hearing struct {
	mu    sync.Mutex
	hints []string
}

func (h *hearing) answer(input []byte) string {
	var in struct {
		Hint string `json:"human_hint"`
	}
	if err := json.Unmarshal(input, &in); err != nil {
		return `{}`
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.hints = append(h.hints, in.Hint)
	if in.Hint == "" {
		return `{"type":"needs_human","diagnosis":"no idea","suggestion":"say where it went"}`
	}
	return `{"type":"fixed_output","diagnosis":"as the hint says","output":{"id":7}}`
}

// TestAHintReachesTheAgent: a person's hint opens a new episode, in which the
// own agent is asked first again, over A2A and over MCP, and sees human_hint.
func TestAHintReachesTheAgent(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]func(t *testing.T, st *stop, h *hearing){
		"A2A": func(t *testing.T, st *stop, h *hearing) {
			st.set("recovery.a2a_agent_url", agent(t, func(w http.ResponseWriter, r *http.Request, id string, in map[string]any) {
				raw, _ := json.Marshal(in)
				says(h.answer(raw))(w, r, id, in)
			}).URL)
		},
		"MCP": func(t *testing.T, st *stop, h *hearing) {
			s := mcp.NewServer(&mcp.Implementation{Name: "byoa", Version: "1"}, nil)
			s.AddTool(&mcp.Tool{Name: "diagnose_step_failure", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: h.answer(r.Params.Arguments)}}}, nil
			})
			srv := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil))
			t.Cleanup(srv.Close)
			st.register("mine", srv.URL)
			st.set("recovery.mcp_server_id", "mine")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			st, h := begin(t), &hearing{}
			st.must("PUT", "/v1/secrets/api", map[string]any{"value": secretValue}, nil)
			st.set("recovery.builtin", "off")
			set(t, st, h)
			r := st.gated(st.run(fmt.Sprintf(moved, api(t).URL), nil))
			st.must("POST", "/v1/gates/"+r.Gates[0].ID+"/answer", map[string]any{"answer": "hint", "hint": "it is 7, and not " + secretValue}, nil)
			r = st.ended(r.ID)
			if r.Status != "succeeded" || r.source(0) != "byoa" || string(r.Output) != `{"id":7}` {
				t.Errorf("got %s by %s: %s (%s), want the agent's output", r.Status, r.source(0), r.Output, r.Error)
			}
			h.mu.Lock()
			defer h.mu.Unlock()
			if got := strings.Join(h.hints, "|"); got != "|it is 7, and not [secret:api]" {
				t.Errorf("the agent saw the hints %q, want none and then the person's, masked", got)
			}
		})
	}
}

// TestAThousandPollers has a thousand agents wait for the inbox: each is
// served, or told 429 and when to come again.
func TestAThousandPollers(t *testing.T) {
	t.Parallel()
	st := begin(t)
	const many, places = 1000, 512
	answers := make(chan polled, many)
	late := make(chan string, many)
	for range many {
		go func() {
			code, head, b := st.as(st.s.Key(), "GET", "/v1/recovery/pending?wait=50", nil)
			if code == http.StatusTooManyRequests {
				late <- head.Get("Retry-After")
			}
			answers <- polled{code, head.Get("ETag"), b}
		}()
	}
	for range many - places { // those that find no place are told at once
		if after := <-late; after == "" {
			t.Error("429 without Retry-After")
		}
	}
	r := inboxed(t, st)
	served := 0
	for range many {
		switch p := <-answers; {
		case p.code == http.StatusOK && strings.Contains(p.body, r.ID):
			served++
		case p.code != http.StatusTooManyRequests:
			t.Errorf("a poller: got %+v, want the run or 429", p)
		}
	}
	if served != places {
		t.Errorf("served: got %d, want %d", served, places)
	}
}
