package a2a

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
)

// read is what the client does with a body: find the result, read the answer.
func read(body string) (*Answer, error) {
	r := &response{status: 200, body: []byte(body), scrub: plain}
	result, _, err := r.payload(DefaultMaxDepth)
	if err != nil {
		return nil, err
	}
	return ReadAnswer(result)
}

// spec: R-074 R-086 A-060
func TestReadAnswer(t *testing.T) {
	t.Parallel()
	const msg = `{"messageId":"m","role":"ROLE_AGENT","contextId":"c","parts":[{"text":"a"},{"data":{"x":1}}]}`
	const task = `{"id":"t","contextId":"c","status":{"state":"TASK_STATE_COMPLETED"},"artifacts":[{"parts":[{"text":"a"},{"data":{"x":1}}]}]}`
	type want struct {
		id, text, data string
		state          State
	}
	message, done := want{text: "a", data: `{"x":1}`, state: StateCompleted}, want{id: "t", text: "a", data: `{"x":1}`, state: StateCompleted}
	for name, tc := range map[string]struct {
		body string
		want want
	}{
		"result.message":         {`{"jsonrpc":"2.0","id":"1","result":{"message":` + msg + `}}`, message},
		"result.task":            {`{"jsonrpc":"2.0","id":"1","result":{"task":` + task + `}}`, done},
		"bare message":           {`{"jsonrpc":"2.0","id":"1","result":` + msg + `}`, message},
		"bare task":              {`{"jsonrpc":"2.0","id":"1","result":` + task + `}`, done},
		"rest message":           {`{"message":` + msg + `}`, message},
		"rest task":              {task, done},
		"task beside null":       {`{"result":{"message":null,"task":` + task + `},"error":null}`, done},
		"numeric id":             {`{"id":7,"result":` + msg + `}`, message},
		"null id":                {`{"id":null,"result":` + msg + `}`, message},
		"0.3 message":            {`{"result":{"kind":"message","role":"agent","contextId":"c","parts":[{"kind":"text","text":"a"},{"kind":"data","data":{"x":1}}]}}`, message},
		"recovery spelling":      {`{"result":{"message":{"parts":[{"type":"text","text":"a"},{"type":"data","data":{"x":1}}]}}}`, message},
		"kind contradicts":       {`{"result":{"kind":"message","parts":[{"kind":"text","text":"a"},{"kind":"text","data":{"x":1}}]}}`, message},
		"born as gRPC":           {`{"message":{"content":[{"text":"a"},{"data":{"data":{"x":1}}}]}}`, message},
		"byte order mark":        {"\xef\xbb\xbf \n" + task, done},
		"one event":              {"data: {\"result\":" + task + "}\n\n", done},
		"event of several lines": {"id: 1\nevent: message\r\ndata: {\"result\":\r\ndata:" + task + "}\r\n\r\ndata: {}\n", done},
		"unreadable parts":       {`{"parts":[1,null,[],{},{"kind":"hologram"},{"text":7},{"data":null},{"text":"a"},{"data":{"x":1}}]}`, message},
		"history is no answer":   {`{"id":"t","status":{"state":"completed"},"history":[` + msg + `]}`, want{id: "t", state: StateCompleted}},
		"artifacts come first": {`{"id":"t","status":{"state":"completed","message":{"parts":[{"text":"done"},{"data":{"y":2}}]}},"artifacts":[7,{"parts":[{"text":"a"}]},{"parts":[{"data":{"x":1}}]}]}`,
			done},
		"status message only": {`{"id":"t","status":{"state":"completed","message":{"parts":[{"text":"a"},{"data":{"x":1}}]}}}`, done},
		"a question":          {`{"id":"t","status":{"state":"input-required","message":{"parts":[{"text":"which?"}]}},"artifacts":[{"parts":[{"text":"draft"}]}]}`, want{id: "t", text: "which?", state: StateInputRequired}},
		"status update":       {`{"id":"t","status":{"state":"TASK_STATE_FAILED","update":{"content":[{"text":"why"}]}}}`, want{id: "t", text: "why", state: StateFailed}},
		"status in the data":  {`{"parts":[{"data":{"status":{"state":"failed"}}}]}`, want{data: `{"status":{"state":"failed"}}`, state: StateCompleted}},
		"status is a word":    {`{"id":"t","status":"completed"}`, want{id: "t", state: StateCompleted}},
		"no state":            {`{"id":"t","status":{},"artifacts":[{"parts":[{"data":{"x":1}}]}]}`, want{id: "t", data: `{"x":1}`, state: StateUnknown}},
		"data that is a list": {`{"parts":[{"data":[1]}]}`, want{data: `[1]`, state: StateCompleted}},
		"data false":          {`{"parts":[{"data":false}]}`, want{data: `false`, state: StateCompleted}},
		"no parts":            {`{"result":{"kind":"message","parts":[]}}`, want{state: StateCompleted}},
	} {
		a, err := read(tc.body)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := (want{a.ID, a.Text(), string(a.Data()), a.State}); got != tc.want {
			t.Errorf("%s: got %+v, want %+v", name, got, tc.want)
		}
		if a.Task != (tc.want.id != "") {
			t.Errorf("%s: got a task: %t", name, a.Task)
		}
	}
}

func TestReadAnswerRefuses(t *testing.T) {
	t.Parallel()
	for _, body := range []string{`{"result":[]}`, `{"result":"x"}`, `{"result":{}}`, `{}`, `{"result":{"message":{}}}`, `{"result":{"parts":"x"}}`,
		`{"result":{"id":"` + strings.Repeat("x", maxID+1) + `","status":{"state":"working"}}}`, `{"result":{"id":"t","contextId":"a\u0000b","status":{"state":"working"}}}`,
		`{"result":{"contextId":"` + strings.Repeat("x", maxID+1) + `","parts":[]}}`,
		`{"result":null,"jsonrpc":"2.0"}`, "data: \n\n", "event: x\n\n", ":"} {
		if a, err := read(body); !errors.Is(err, ErrShape) {
			t.Errorf("%s: got %+v, %v, want %v", body, a, err, ErrShape)
		}
	}
}

// TestAnswersOfManyValues: a value of two bytes costs a hundred to read, so
// that there is a bound on them; a text may be as long as an answer.
func TestAnswersOfManyValues(t *testing.T) {
	t.Parallel()
	working := func(artifacts string) string {
		return `{"result":{"id":"t","status":{"state":"working"},"artifacts":[` + artifacts + `]}}`
	}
	for name, c := range map[string]struct {
		body string
		err  error
	}{
		"numbers as parts": {working(`{"parts":[` + strings.Repeat("7,", maxValues+1) + `7]}`), ErrTooLarge},
		"tiny data":        {working(`{"parts":[` + strings.Repeat(`{"data":1},`, maxValues+1) + `7]}`), ErrTooLarge},
		"many, and fit":    {working(`{"parts":[` + strings.Repeat("7,", maxValues/2) + `7]}`), nil},
		"commas in a text": {working(`{"parts":[{"text":"` + strings.Repeat(`,\"`, maxValues) + `"}]}`), nil},
	} {
		if a, err := read(c.body); !errors.Is(err, c.err) || c.err == nil && (err != nil || a.ID != "t") {
			t.Errorf("%s: got %v, want %v", name, err, c.err)
		}
	}
	if _, err := ParseCard([]byte(`{"name":"n","x":[` + strings.Repeat("7,", maxValues+1) + `7]}`)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a card: %v", err)
	}
	for _, nothing := range []string{`""`, `false`, `{}`, `0`, `[]`, `null`} {
		if a, err := read(`{"error":` + nothing + `,"result":{"id":"t","status":{"state":"completed"}}}`); err != nil || a.State != StateCompleted {
			t.Errorf("error %s beside a result: %+v, %v", nothing, a, err)
		}
	}
}

func TestStates(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]State{
		`"TASK_STATE_COMPLETED"`: StateCompleted, `"completed"`: StateCompleted, `" Completed "`: StateCompleted,
		`"task-state-working"`: StateWorking, `"input-required"`: StateInputRequired, `"TASK_STATE_AUTH_REQUIRED"`: StateAuthRequired,
		`"cancelled"`: StateCanceled, `"TASK_STATE_CANCELLED"`: StateCanceled, `"canceled"`: StateCanceled,
		`0`: StateUnknown, `1`: StateSubmitted, `2`: StateWorking, `3`: StateCompleted, `4`: StateFailed, `5`: StateCanceled,
		`6`: StateInputRequired, `7`: StateRejected, `8`: StateAuthRequired, `9`: StateUnknown, `-1`: StateUnknown, `3.5`: StateUnknown, `1e300`: StateUnknown,
		`"done"`: StateUnknown, `""`: StateUnknown, `null`: StateUnknown, ``: StateUnknown, `{}`: StateUnknown, `"unspecified"`: StateUnknown, `"unknown"`: StateUnknown,
	} {
		got := readState(json.RawMessage(raw))
		if got != want {
			t.Errorf("%s: got %s, want %s", raw, got, want)
		}
		if got == StateUnknown && (got.Terminal() || got.Paused()) {
			t.Errorf("%s: an unknown state ends nothing", raw)
		}
	}
}

func TestUsage(t *testing.T) {
	t.Parallel()
	in := func(metadata string) string {
		return `{"id":"t","status":{"state":"completed"},"metadata":` + metadata + `}`
	}
	for name, tc := range map[string]struct {
		body  string
		want  Usage
		count int64
	}{
		"none":           {in(`{}`), Usage{}, 0},
		"plain":          {in(`{"usage":{"inputTokens":3,"outputTokens":4,"totalTokens":9}}`), Usage{3, 4, 9}, 9},
		"no total":       {in(`{"usage":{"input_tokens":3,"output_tokens":4}}`), Usage{3, 4, 0}, 7},
		"prefixed":       {in(`{"https://x.example/ext/usage":{"prompt_tokens":3,"completion_tokens":"4","total_tokens":7}}`), Usage{3, 4, 7}, 7},
		"adk":            {in(`{"adk_usage_metadata":{"promptTokenCount":3,"candidatesTokenCount":4,"totalTokenCount":7}}`), Usage{3, 4, 7}, 7},
		"nonsense":       {in(`{"usage":{"inputTokens":-3,"outputTokens":"NaN","totalTokens":{}}}`), Usage{}, 0},
		"no end":         {in(`{"usage":{"inputTokens":1e300,"outputTokens":1e999,"totalTokens":"Infinity"}}`), Usage{1 << 53, 1 << 53, 0}, 1 << 54},
		"in parts":       {in(`{"usage":{"totalTokens":1500.2}}`), Usage{Total: 1501}, 1501},
		"not an object":  {in(`{"usage":7}`), Usage{}, 0},
		"status message": {`{"id":"t","status":{"state":"completed","message":{"parts":[],"metadata":{"usage":{"totalTokens":5}}}}}`, Usage{Total: 5}, 5},
		"largest counts": {`{"id":"t","status":{"state":"completed"},"metadata":{"usage":{"totalTokens":5}},"artifacts":[{"metadata":{"usage":{"totalTokens":6}}}]}`, Usage{Total: 6}, 6},
		"message":        {`{"parts":[],"metadata":{"usage":{"totalTokens":5}}}`, Usage{Total: 5}, 5},
	} {
		a, err := read(tc.body)
		if err != nil || a.Usage != tc.want || a.Usage.Count() != tc.count {
			t.Errorf("%s: got %+v, %v, want %+v", name, a, err, tc.want)
		}
	}
}

func TestPlain(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"a\r\n\tb\x00c":     "a bc",
		"\u202eevil\u2066":  "evil",
		"bad \xff\xfe byte": "bad � byte",
		"éééééééééééé":      "ééééééééé…",
	} {
		if got := plain(in, 10); got != want {
			t.Errorf("plain(%q): got %q, want %q", in, got, want)
		}
	}
	if got, want := scrubber(`a"b/<c>`)(`x a"b/<c> y a\"b/\u003cc\u003e`, 100), "x [token] y [token]"; got != want {
		t.Errorf("scrubber: got %q, want %q", got, want)
	}
}

// TestRESTErrors: the errors of the HTTP+JSON binding become JSON-RPC codes.
func TestRESTErrors(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		status int
		body   string
		want   error
	}{
		"reason":        {404, `{"error":{"code":404,"status":"NOT_FOUND","message":"m","details":[{"reason":"TASK_NOT_FOUND"}]}}`, &RPCError{Code: -32001, Status: 404, Message: "m"}},
		"version":       {400, `{"error":{"code":400,"message":"m","details":[7,{"reason":"VERSION_NOT_SUPPORTED"}]}}`, &RPCError{Code: -32009, Status: 400, Message: "m"}},
		"bad request":   {400, `{"error":{"code":400,"message":"m"}}`, &RPCError{Code: -32602, Status: 400, Message: "m"}},
		"unavailable":   {503, `{"error":{"code":503,"message":"m"}}`, &StatusError{Status: 503, Text: "m"}},
		"words":         {403, `{"error":"no"}`, &StatusError{Status: 403, Text: "no"}},
		"plain text":    {404, "nope", &StatusError{Status: 404, Text: "nope"}},
		"problem+json":  {422, `{"title":"t","detail":"d"}`, &StatusError{Status: 422, Text: "d"}},
		"result in 500": {500, `{"result":{"parts":[]}}`, &StatusError{Status: 500}},
	} {
		r := &response{status: tc.status, body: []byte(tc.body), scrub: plain}
		if _, _, err := r.payload(DefaultMaxDepth); !reflect.DeepEqual(err, tc.want) {
			t.Errorf("%s: got %#v, want %#v", name, err, tc.want)
		}
	}
}
