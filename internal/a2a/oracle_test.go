package a2a

import (
	"encoding/json"
	"strings"
	"testing"

	pb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"google.golang.org/protobuf/encoding/protojson"
)

// outs are messages of every feature, and with everything that strict readers
// dislike in JSON.
func outs() map[string]Out {
	return map[string]Out{
		"text":   {MessageID: "m", Text: "hi <b>&</b>"},
		"data":   {MessageID: "m", Data: json.RawMessage(`{"a":[1,null,{"b":2.5}]}`)},
		"scalar": {MessageID: "m", Data: json.RawMessage(` [1,2] `)},
		"all of it": {ID: "1", MessageID: "m", ContextID: "c", Text: "t", Data: json.RawMessage(`{}`), ReturnImmediately: true,
			AcceptedOutputModes: []string{"text/plain"}, Metadata: map[string]any{"vaultId": "v", "onBehalfOf": "", "n": 1, "deep": map[string]any{"x": nil}}},
		"modes only":       {MessageID: "m", Text: "t", AcceptedOutputModes: []string{"application/json"}},
		"broken UTF-8":     {MessageID: "m", ContextID: "c\xff", Text: "a\xff", Data: json.RawMessage("{\"k\xff\":\"v\xff\"}"), Metadata: map[string]any{"a": "b\xff"}},
		"half a surrogate": {MessageID: "m", Data: json.RawMessage(`{"a":"\ud800"}`)},
		"a member twice":   {MessageID: "m", Data: json.RawMessage(`{"a":1,"a":2}`)},
		"beyond a double":  {MessageID: "m", Data: json.RawMessage(`{"a":1e999,"b":-1e999}`)},
	}
}

// TestStrictOracle: a strict protocol buffer reader takes all that is written
// in dialect 1.0, and finds in it what was meant.
func TestStrictOracle(t *testing.T) {
	t.Parallel()
	for name, out := range outs() {
		for _, tenant := range []string{"", "acme"} {
			params, err := writeMessage(out, V1, tenant)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			var got pb.SendMessageRequest
			if err := (protojson.UnmarshalOptions{}).Unmarshal(params, &got); err != nil {
				t.Errorf("%s: a strict reader refuses %s: %v", name, params, err)
				continue
			}
			m := got.GetMessage()
			parts := 0
			if out.Text != "" {
				parts++
			}
			if out.Data != nil {
				parts++
			}
			if m.GetRole() != pb.Role_ROLE_USER || m.GetMessageId() != "m" || got.GetTenant() != tenant || len(m.GetParts()) != parts ||
				m.GetTaskId() != "" || got.GetConfiguration().GetReturnImmediately() != out.ReturnImmediately {
				t.Errorf("%s: got %v, want what was given", name, &got)
			}
		}
	}
	for _, params := range []string{`{"id":"t"}`, `{"id":"t","tenant":"acme"}`} {
		if err := protojson.Unmarshal([]byte(params), &pb.GetTaskRequest{}); err != nil {
			t.Errorf("GetTask %s: %v", params, err)
		}
		if err := protojson.Unmarshal([]byte(params), &pb.CancelTaskRequest{}); err != nil {
			t.Errorf("CancelTask %s: %v", params, err)
		}
	}
}

// TestOracleIsStrict: the recovery dialect is refused, or the test above
// would prove nothing.
func TestOracleIsStrict(t *testing.T) {
	t.Parallel()
	params, err := writeMessage(Out{MessageID: "m", Text: "t"}, Recovery, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := protojson.Unmarshal(params, &pb.SendMessageRequest{}); err == nil {
		t.Errorf("got %s accepted, want it refused for its type", params)
	}
}

func TestWriteDialects(t *testing.T) {
	t.Parallel()
	full := Out{MessageID: "m", ContextID: "c", Text: "t", Data: json.RawMessage(`{"a": 1}`), ReturnImmediately: true,
		AcceptedOutputModes: []string{"text/plain"}, Metadata: map[string]any{"taskId": "x"}}
	bare := Out{MessageID: "m", Data: json.RawMessage(`{"a":12345678901234567890}`)}
	for name, tc := range map[string]struct {
		out     Out
		dialect Dialect
		want    string
	}{
		"1.0":      {full, V1, `{"message":{"messageId":"m","role":"ROLE_USER","contextId":"c","parts":[{"text":"t"},{"data":{"a":1}}],"metadata":{"taskId":"x"}},"configuration":{"returnImmediately":true,"acceptedOutputModes":["text/plain"]},"tenant":"acme"}`},
		"0.3":      {full, V03, `{"message":{"kind":"message","messageId":"m","role":"user","contextId":"c","parts":[{"kind":"text","text":"t"},{"kind":"data","data":{"a":1}}],"metadata":{"taskId":"x"}},"configuration":{"blocking":false,"acceptedOutputModes":["text/plain"]}}`},
		"recovery": {bare, Recovery, `{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"type":"data","data":{"a":12345678901234567890}}]},"tenant":"acme"}`},
		"bare 0.3": {bare, V03, `{"message":{"kind":"message","messageId":"m","role":"user","parts":[{"kind":"data","data":{"a":12345678901234567890}}]}}`},
		"0.3 takes objects only": {Out{MessageID: "m", Data: json.RawMessage(`[1]`)}, V03,
			`{"message":{"kind":"message","messageId":"m","role":"user","parts":[{"kind":"data","data":{"value":[1]}}]}}`},
	} {
		got, err := writeMessage(tc.out, tc.dialect, "acme")
		if err != nil || string(got) != tc.want {
			t.Errorf("%s:\ngot  %s, %v\nwant %s", name, got, err, tc.want)
		}
	}
}

func TestWriteRefuses(t *testing.T) {
	t.Parallel()
	for name, out := range map[string]Out{
		"nothing":      {MessageID: "m", Data: json.RawMessage("null")},
		"not JSON":     {MessageID: "m", Data: json.RawMessage("{")},
		"two values":   {MessageID: "m", Data: json.RawMessage("{} {}")},
		"bad metadata": {MessageID: "m", Text: "t", Metadata: map[string]any{"f": func() {}}},
	} {
		if got, err := writeMessage(out, V1, ""); err == nil || !strings.HasPrefix(err.Error(), ErrMessage.Error()) {
			t.Errorf("%s: got %s, %v, want %v", name, got, err, ErrMessage)
		}
	}
}
