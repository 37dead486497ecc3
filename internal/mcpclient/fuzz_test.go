package mcpclient

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// answers are results of tools/call as servers give them: the SDKs' for
// TypeScript, Python and Go, and servers of people who wrote their own.
func answers() []string {
	return []string{
		`{"content":[{"type":"text","text":"{\"type\":\"retry_with_params\",\"diagnosis\":\"v1 is gone\",\"modifications\":{\"httpRequest\":{\"url\":\"https://api.example.com/v2/users/42\"}}}"}]}`,
		`{"content":[{"type":"text","text":"{\"rows\":17}"}],"structuredContent":{"rows":17},"isError":false}`,
		`{"structuredContent":{"id":9007199254740993,"price":1e400},"content":[{"type":"text","text":"{\"id\":9007199254740993}"}]}`,
		`{"content":[{"type":"text","text":"MCP error -32602: Tool diagnose_step_failure not found"}],"isError":true}`,
		`{"content":[{"type":"text","text":"Error executing tool: Bearer token-4711 was refused"}],"isError":true,"_meta":{"x":1}}`,
		`{"content":[{"type":"text","text":"Here is what I found:"},{"type":"text","text":"[{\"a\":1}]","annotations":{"audience":["user"],"priority":0.5}}]}`,
		`{"content":[{"type":"image","data":"aGk=","mimeType":"image/png"},{"type":"audio","data":"aGk=","mimeType":"audio/wav"}]}`,
		`{"content":[{"type":"resource_link","uri":"file:///x","name":"x"},{"type":"resource","resource":{"uri":"file:///x","text":"y"}}]}`,
		`{"content":[],"structuredContent":null}`, `{}`, `null`, `[]`, `{"content":[null]}`, `{"content":[{"type":"text"}]}`,
		"{\"content\":[{\"type\":\"text\",\"text\":\"\xff\\ud800 {\"}]}",
		`{"content":[{"type":"text","text":"` + strings.Repeat("[", 150) + `"},{"type":"text","text":"` + strings.Repeat("[", 150) + strings.Repeat("]", 300) + `"}]}`,
	}
}

// read takes a result as it comes off the wire, through the SDK.
func read(t *testing.T, body []byte) (Result, error) {
	t.Helper()
	var r mcp.CallToolResult
	if err := json.Unmarshal(body, &r); err != nil {
		return Result{}, err
	}
	return resultOf(&r, newLink(1<<20, map[string]string{"Authorization": "Bearer token-4711"}))
}

// FuzzAnswer: whatever a tool answers is refused or is one JSON value that is
// not nested too deep; what it says of its own failure does not show the
// token.
func FuzzAnswer(f *testing.F) {
	for _, s := range answers() {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		r, err := read(t, body)
		if err != nil {
			return
		}
		v := r.Value()
		if !json.Valid(v) {
			t.Fatalf("%s gives %q, want JSON", body, v)
		}
		if !r.IsError && new(nesting).exceeded(v) {
			t.Fatalf("%s gives a value of more than %d levels", body, maxDepth)
		}
		if r.IsError && strings.Contains(strings.Join(r.Text, "\n"), "token-4711") {
			t.Fatalf("%s shows the token: %q", body, r.Text)
		}
		r.unknown("x")
	})
}

// TestDepthCountsAcrossTexts joins two texts that are only together too deep.
func TestDepthCountsAcrossTexts(t *testing.T) {
	t.Parallel()
	for halves, want := range map[int]error{50: nil, 150: ErrTooDeep} {
		body, err := json.Marshal(map[string]any{"content": []map[string]string{
			{"type": "text", "text": strings.Repeat("[", halves)},
			{"type": "text", "text": strings.Repeat("[", halves) + strings.Repeat("]", 2*halves)},
		}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := read(t, body); !errors.Is(err, want) {
			t.Errorf("twice %d levels: got %v, want %v", halves, err, want)
		}
	}
}
