package mcpclient

import (
	"encoding/json"
	"reflect"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Tool is what a server lists.
type Tool struct {
	Name         string          `json:"name"`
	Description  string          `json:"description,omitempty"`
	InputSchema  json.RawMessage `json:"inputSchema,omitempty"`
	OutputSchema json.RawMessage `json:"outputSchema,omitempty"`
}

func toolOf(t *mcp.Tool) Tool {
	return Tool{t.Name, t.Description, raw(t.InputSchema), raw(t.OutputSchema)}
}

func (t Tool) size() int64 {
	return int64(len(t.Name) + len(t.Description) + len(t.InputSchema) + len(t.OutputSchema))
}

// raw is a decoded JSON value as text, or nil.
func raw(v any) json.RawMessage {
	if v == nil {
		return nil
	}
	b, err := json.Marshal(v)
	if err != nil {
		return nil // cannot be: it was JSON
	}
	return b
}

// Result is what a tool answered.
type Result struct {
	Structured json.RawMessage // structured content, or nil
	Text       []string        // the text parts
	IsError    bool            // the tool says that it failed
}

// Value is the answer as one JSON value: structured content if there is any,
// else the text if it is JSON, else the only text part that is a JSON object
// or array, else the text as a JSON string; null if there is neither.
func (r Result) Value() json.RawMessage {
	if len(r.Structured) > 0 {
		return r.Structured
	}
	if len(r.Text) == 0 {
		return json.RawMessage("null")
	}
	whole := strings.TrimSpace(strings.Join(r.Text, "\n"))
	if json.Valid([]byte(whole)) {
		return json.RawMessage(whole)
	}
	var parts []string
	for _, t := range r.Text {
		if t = strings.TrimSpace(t); composite(t) && json.Valid([]byte(t)) {
			parts = append(parts, t)
		}
	}
	if len(parts) == 1 {
		return json.RawMessage(parts[0])
	}
	return raw(strings.Join(r.Text, "\n"))
}

// unknown reports whether a tool's failure is that there is no such tool, as
// the TypeScript and the Python SDK put it.
func (r Result) unknown(tool string) bool {
	return r.IsError && len(r.Text) == 1 &&
		(r.Text[0] == "MCP error -32602: Tool "+tool+" not found" || r.Text[0] == "Unknown tool: "+tool)
}

func composite(text string) bool { return strings.HasPrefix(text, "{") || strings.HasPrefix(text, "[") }

// resultOf reads what the SDK decoded. A tool's own account of its failure is
// masked, as every error is.
func resultOf(r *mcp.CallToolResult, l *link) (Result, error) {
	out := Result{IsError: r.IsError, Structured: raw(r.StructuredContent)}
	for _, c := range r.Content {
		t, ok := c.(*mcp.TextContent)
		if !ok {
			continue
		}
		text := t.Text
		if r.IsError {
			text = l.masked(text)
		}
		out.Text = append(out.Text, text)
	}
	// The value is what is read: texts that are shallow each may make a deep one.
	if new(nesting).exceeded(out.Structured) || (!r.IsError && new(nesting).exceeded(out.Value())) {
		return Result{}, fail(ErrTooDeep, nil, "at most %d levels are read", maxDepth)
	}
	if r.StructuredContent != nil {
		out.Structured = exact(r.StructuredContent, out)
	}
	return out, nil
}

// exact gives structured content with all digits of its numbers. The SDK reads
// them as floats; the same JSON in a text, which servers should add, has them.
func exact(decoded any, r Result) json.RawMessage {
	for _, t := range r.Text {
		var same any
		if json.Unmarshal([]byte(t), &same) == nil && reflect.DeepEqual(same, decoded) {
			return json.RawMessage(strings.TrimSpace(t))
		}
	}
	return r.Structured
}
