package mcpclient_test

import (
	"encoding/json"
	"testing"

	"github.com/longstop-dev/longstop/internal/mcpclient"
)

func TestValue(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		result mcpclient.Result
		want   string
	}{
		"nothing":             {mcpclient.Result{}, `null`},
		"structured first":    {mcpclient.Result{Structured: json.RawMessage(`{"a":1}`), Text: []string{`{"b":2}`}}, `{"a":1}`},
		"JSON":                {mcpclient.Result{Text: []string{" {\"a\":1}\n"}}, `{"a":1}`},
		"a number":            {mcpclient.Result{Text: []string{"42"}}, `42`},
		"words":               {mcpclient.Result{Text: []string{"all is well"}}, `"all is well"`},
		"empty":               {mcpclient.Result{Text: []string{""}}, `""`},
		"JSON among words":    {mcpclient.Result{Text: []string{"Here it is:", `{"a":1}`}}, `{"a":1}`},
		"two JSON parts":      {mcpclient.Result{Text: []string{`{"a":1}`, `{"b":2}`}}, `"{\"a\":1}\n{\"b\":2}"`},
		"JSON over two parts": {mcpclient.Result{Text: []string{`{"a":`, `1}`}}, "{\"a\":\n1}"},
	} {
		if got := string(c.result.Value()); got != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
	}
}
