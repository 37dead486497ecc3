package flow_test

import (
	"encoding/json"
	"testing"

	"github.com/longstop-dev/longstop/internal/flow"
)

// TestReadableJSON: what readers would understand differently is made one
// thing; all else stays letter by letter.
func TestReadableJSON(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		`{"b": 1.50, "a":[true,null,"\u00e9"]}`:       `{"b": 1.50, "a":[true,null,"\u00e9"]}`,
		`{"b":1,"a":2,"b":3}`:                         `{"a":2,"b":3}`,
		`[1e400,-1e999,1e308]`:                        `["1e400","-1e999",1e308]`,
		`{"n":12345678901234567890,"n\u0000":1}`:      "{\"n\":12345678901234567890,\"n\uFFFD\":1}",
		`"a\u0000b\ud800c"`:                           "\"a\uFFFDb\uFFFDc\"",
		"{\"x\":\"a\xffb<\"}":                         "{\"x\":\"a\uFFFDb<\"}",
		`{"deep":{"deep":[{"twice":1,"twice":[2]}]}}`: `{"deep":{"deep":[{"twice":[2]}]}}`,
	} {
		got := flow.ReadableJSON(json.RawMessage(raw))
		if string(got) != want {
			t.Errorf("%s: got %s, want %s", raw, got, want)
		}
		if why := flow.StrictJSON(got); why != "" {
			t.Errorf("%s: %s is not strict: %s", raw, got, why)
		}
	}
}

func TestMetadataIsReadByItsNames(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string][2]string{
		`{"conversation":"a","correlation":{"id":1}}`:                    {"a", `{"correlation":{"id":1}}`},
		`{"Conversation":"b","CORRELATION":2}`:                           {"", ""},
		`{"conversation":"a","Conversation":"b","correlation":"","x":1}`: {"a", `{"correlation":""}`},
		`{"conversation":null}`:                                          {"", ""},
		`{"conversation":7}`:                                             {"", ""}, // refused when it is appended
		``:                                                               {"", ""},
	} {
		e := flow.VaultEvent{Metadata: json.RawMessage(raw)}
		if got := [2]string{e.Conversation(), string(e.Echo())}; got != want {
			t.Errorf("%s: got %q, want %q", raw, got, want)
		}
	}
}
