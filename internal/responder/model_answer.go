package responder

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/longstop-dev/longstop/internal/flow"
)

const (
	maxTokens = 10_000_000 // of one call: an endpoint that reports more is not believed
	maxShown  = 8 << 10    // of an answer that is shown to the model again
	maxBraces = 20         // places in a prose answer at which JSON is looked for
)

// saying is what a model has said.
type saying struct {
	text  string
	cut   bool        // it ran into a limit
	usage *flow.Usage // nil if the endpoint does not say
}

// shown is the text as it stands in the conversation.
func (s saying) shown() string {
	text := strings.TrimSpace(withoutThoughts(s.text))
	if text == "" {
		return "(nothing)"
	}
	return strings.ToValidUTF8(text[:min(len(text), maxShown)], "")
}

// completion is a chat completion, or a piece of one.
type completion struct {
	Choices []struct {
		Message *spoken `json:"message"`
		Delta   *spoken `json:"delta"`
		Finish  string  `json:"finish_reason"`
	} `json:"choices"`
	Usage *usage          `json:"usage"`
	Error json.RawMessage `json:"error"`
}

// spoken is a message of the model's. Its reasoning is not read.
type spoken struct {
	Content  json.RawMessage `json:"content"` // a text, or a list of parts
	Refusal  string          `json:"refusal"`
	Tools    []toolUse       `json:"tool_calls"`
	Function *calledFunction `json:"function_call"`
}

type toolUse struct {
	Index    int            `json:"index"`
	Function calledFunction `json:"function"`
}

type calledFunction struct {
	Arguments json.RawMessage `json:"arguments"` // JSON in a text, or an object
}

// usage is a report in one of two spellings.
type usage struct {
	Prompt     int64 `json:"prompt_tokens"`
	Completion int64 `json:"completion_tokens"`
	Input      int64 `json:"input_tokens"`
	Output     int64 `json:"output_tokens"`
	Total      int64 `json:"total_tokens"`
}

// tokens is the report as it is counted; nil if it says nothing.
func (u *usage) tokens() *flow.Usage {
	if u == nil {
		return nil
	}
	bound := func(n int64) int64 { return min(max(n, 0), maxTokens) }
	out := flow.Usage{Input: bound(max(u.Prompt, u.Input)), Output: bound(max(u.Completion, u.Output))}
	if out.Total = max(bound(u.Total), out.Input+out.Output); out.Total == 0 {
		return nil
	}
	return &out
}

// saying reads a success. Some endpoints stream although nobody asked for it.
func (r *reply) saying() (saying, error) {
	body := bytes.TrimSpace(bytes.TrimPrefix(r.body, []byte("\xef\xbb\xbf")))
	pieces := [][]byte{body}
	stream := strings.HasPrefix(r.header.Get("Content-Type"), "text/event-stream") || bytes.HasPrefix(body, []byte("data:")) || bytes.HasPrefix(body, []byte(":"))
	if stream {
		pieces = events(body)
	}
	var h hearing
	for _, piece := range pieces {
		var c completion
		if err := json.Unmarshal(piece, &c); err != nil {
			return saying{usage: h.usage}, failure(flow.AskInvalid, "the model's endpoint answered "+notACompletion(body), nil)
		}
		if len(c.Error) > 0 && string(c.Error) != "null" {
			return saying{usage: h.usage}, failure(flow.AskUnreachable, "the model's endpoint answered an error: "+short(errorText(piece), 200), nil)
		}
		h.hear(c)
	}
	return h.said(stream)
}

func notACompletion(body []byte) string {
	switch {
	case len(body) == 0:
		return "nothing"
	case body[0] == '<':
		return "a page, not a chat completion (check model.url)"
	}
	return "something that is no chat completion"
}

// events gives the data of a stream's events.
func events(body []byte) [][]byte {
	var out [][]byte
	for line := range bytes.Lines(body) {
		data, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte("data:"))
		if data = bytes.TrimSpace(data); ok && len(data) > 0 && string(data) != "[DONE]" {
			out = append(out, data)
		}
	}
	return out
}

// hearing puts together what comes in pieces. Only the first choice and the
// first tool call count.
type hearing struct {
	content, arguments, refusal strings.Builder
	finish                      string
	spoken                      bool
	usage                       *flow.Usage
}

func (h *hearing) hear(c completion) {
	if u := c.Usage.tokens(); u != nil {
		h.usage = u
	}
	if len(c.Choices) == 0 {
		return
	}
	choice := c.Choices[0]
	if choice.Finish != "" {
		h.finish = choice.Finish
	}
	for _, m := range []*spoken{choice.Message, choice.Delta} {
		if m == nil {
			continue
		}
		h.spoken = true
		h.content.WriteString(contentOf(m.Content))
		h.refusal.WriteString(m.Refusal)
		if m.Function != nil {
			h.arguments.WriteString(argumentsOf(m.Function.Arguments))
		}
		for _, t := range m.Tools {
			if t.Index == 0 {
				h.arguments.WriteString(argumentsOf(t.Function.Arguments))
				if choice.Message != nil {
					break // whole calls carry no index: the first is the one
				}
			}
		}
	}
}

func (h *hearing) said(stream bool) (saying, error) {
	s := saying{text: h.content.String(), usage: h.usage, cut: h.finish == "length"}
	if strings.TrimSpace(withoutThoughts(s.text)) == "" {
		s.text = h.arguments.String()
	}
	switch {
	case !h.spoken:
		return s, failure(flow.AskInvalid, "the model's endpoint answered a completion without a message", nil)
	case strings.TrimSpace(h.refusal.String()) != "":
		return s, failure(flow.AskInvalid, "the model refused: "+short(h.refusal.String(), 200), nil)
	case h.finish == "content_filter":
		return s, failure(flow.AskInvalid, "the endpoint's content filter stopped the model's answer", nil)
	case stream && h.finish == "":
		s.cut = true // it broke off
	}
	return s, nil
}

// contentOf reads a text, or the texts of a list of parts.
func contentOf(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	var parts []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	if json.Unmarshal(raw, &parts) != nil {
		if len(raw) > 0 && raw[0] == '{' {
			return string(raw) // an object instead of its text
		}
		return ""
	}
	var all strings.Builder
	for _, p := range parts {
		if p.Type == "text" || p.Type == "output_text" {
			all.WriteString(p.Text)
		}
	}
	return all.String()
}

func argumentsOf(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	return string(raw)
}

// withoutThoughts leaves out what some models think aloud before they answer.
func withoutThoughts(text string) string {
	if strings.HasPrefix(strings.TrimSpace(text), "{") {
		return text // the answer itself may speak of such marks
	}
	for _, tag := range []string{"think", "thinking", "thought", "reasoning"} {
		open, end := "<"+tag+">", "</"+tag+">"
		var kept strings.Builder // one pass: there may be millions of such marks
		for {
			before, rest, found := strings.Cut(text, open)
			kept.WriteString(before)
			if text = ""; !found {
				break
			}
			_, text, _ = strings.Cut(rest, end)
		}
		text = kept.String()
		if _, after, ok := strings.Cut(text, end); ok { // some templates open it themselves
			text = after
		}
	}
	return text
}

// modelAnswer is the shape that a model answers in: what may be any JSON comes as
// a text, because strict schemas know no "any".
type modelAnswer struct {
	Type          string          `json:"type"`
	Diagnosis     string          `json:"diagnosis"`
	OutputJSON    string          `json:"output_json"`
	ModsJSON      string          `json:"modifications_json"`
	Code          string          `json:"code"`
	Server        string          `json:"tool_server"`
	Tool          string          `json:"tool_name"`
	ParamsJSON    string          `json:"tool_params_json"`
	Suggestion    string          `json:"suggestion"`
	Output        json.RawMessage `json:"output"`        // of one that answers the action itself
	Modifications json.RawMessage `json:"modifications"` // likewise
	ToolCall      json.RawMessage `json:"toolCall"`      // likewise
}

// actionOf makes a recovery action of what the model has said, or says what is
// wrong with it.
func actionOf(text string) (action json.RawMessage, problem string) {
	raw := object(withoutThoughts(text))
	if raw == nil {
		return nil, "it is not a JSON object"
	}
	var a modelAnswer
	if err := json.Unmarshal(raw, &a); err != nil {
		return nil, "it does not have the shape that was asked for: " + short(err.Error(), 150)
	}
	out := map[string]any{"type": a.Type, "diagnosis": a.Diagnosis}
	switch flow.ActionType(a.Type) {
	case flow.ActionFixedOutput:
		out["output"], problem = embedded("output_json", a.OutputJSON, a.Output)
	case flow.ActionRetryWithParams:
		if strings.TrimSpace(a.ModsJSON) == "" && len(a.Modifications) == 0 {
			a.ModsJSON = "{}" // as it is
		}
		out["modifications"], problem = embedded("modifications_json", a.ModsJSON, a.Modifications)
	case flow.ActionCodeFix:
		out["code"] = a.Code
	case flow.ActionRetryWithTool:
		out["toolCall"], problem = toolCallOf(a)
	case flow.ActionNeedsHuman:
		out["suggestion"] = a.Suggestion
	default:
		return nil, "its type is " + quote(a.Type) + " and must be one of fixed_output, retry_with_params, code_fix, retry_with_tool, needs_human"
	}
	if problem != "" {
		return nil, problem
	}
	action, err := json.Marshal(out)
	if err != nil {
		return nil, "it cannot be written as JSON"
	}
	return action, ""
}

func quote(s string) string { return `"` + short(s, 60) + `"` }

// embedded reads JSON that came as a text; plain is what stands in its place
// where the model answered the action itself.
func embedded(name, text string, plain json.RawMessage) (json.RawMessage, string) {
	if strings.TrimSpace(text) == "" {
		if len(plain) > 0 {
			return plain, ""
		}
		return nil, name + " is empty"
	}
	if !json.Valid([]byte(text)) {
		return nil, name + " is not JSON: " + quote(text)
	}
	return json.RawMessage(text), ""
}

func toolCallOf(a modelAnswer) (any, string) {
	if len(a.ToolCall) > 0 && a.Server == "" {
		return a.ToolCall, ""
	}
	if strings.TrimSpace(a.ParamsJSON) == "" {
		a.ParamsJSON = "{}"
	}
	params, problem := embedded("tool_params_json", a.ParamsJSON, nil)
	return flow.ToolCall{Server: a.Server, Tool: a.Tool, Params: params}, problem
}

// object finds the JSON object in an answer: the whole of it, inside a code
// fence, or after some words.
func object(text string) json.RawMessage {
	rest := text
	for range maxBraces {
		i := strings.IndexByte(rest, '{')
		if i < 0 {
			return nil
		}
		rest = rest[i:]
		var raw json.RawMessage
		if json.NewDecoder(strings.NewReader(rest)).Decode(&raw) == nil {
			return raw
		}
		rest = rest[1:]
	}
	return nil
}
