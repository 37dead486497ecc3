package a2a

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzReadAnswer: whatever comes back is read or refused, and an error is fit
// to log.
func FuzzReadAnswer(f *testing.F) {
	for _, s := range []string{
		`{"jsonrpc":"2.0","id":"1","result":{"message":{"parts":[{"type":"data","data":{"a":1}}]}}}`,
		`{"result":{"task":{"id":"t","status":{"state":3,"message":{"parts":[{"text":"x"}]}},"artifacts":[{"parts":[{"data":{}}],"metadata":{"usage":{"totalTokens":1}}}]}}}`,
		`{"error":{"code":"-32601","message":"m","details":[{"reason":"TASK_NOT_FOUND"}]}}`,
		"data: {\"parts\":[]}\n\n", "<html>", "", "\xef\xbb\xbf{}", strings.Repeat("[", 300), `{"content":[{"data":{"data":1}}]}`,
	} {
		f.Add(200, []byte(s))
		f.Add(500, []byte(s))
	}
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		r := &response{status: status, body: body, scrub: scrubber("token-4711")}
		result, _, err := r.payload(DefaultMaxDepth)
		var a *Answer
		if err == nil {
			a, err = ReadAnswer(result)
		}
		if err != nil {
			if s := err.Error(); len([]rune(s)) > maxErrorText || !utf8.ValidString(s) || strings.Contains(s, "token-4711") {
				t.Errorf("got %q, want a short valid text without the token", s)
			}
			return
		}
		if data := a.Data(); data != nil && !json.Valid(data) {
			t.Errorf("got data %q, want JSON", data)
		}
		if a.Usage.Count() < 0 || a.State == "" || !utf8.ValidString(a.Text()) {
			t.Errorf("got %+v, want a state, a usage of at least 0, and a valid text", a)
		}
	})
}

// FuzzParseCard: a card that is taken can be asked everything.
func FuzzParseCard(f *testing.F) {
	for _, s := range []string{
		`{"name":"n","url":"https://a"}`,
		`{"name":"n","supportedInterfaces":[{"url":"https://a","protocolBinding":"JSONRPC","protocolVersion":"1.0"}],"securityRequirements":[{"schemes":{"g":{"list":[]}}}],"securitySchemes":{"g":{"oauth2SecurityScheme":{}}}}`,
		`{"name":"n","protocolVersion":"0.3.0","url":"https://a","additionalInterfaces":[{"transport":"GRPC","url":"a:1"}],"security":[{"g":[]},{}],"securitySchemes":{"g":{"type":"http","scheme":"bearer"}}}`,
		`{"capabilities":{"extensions":[{"uri":"u","required":true}]}}`, "", "[]",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := ParseCard(b)
		if err != nil {
			return
		}
		if needs, err := c.NeedsToken(); needs && (err != nil || len(c.Alternatives) == 0) {
			t.Errorf("got a token needed with %v and %v", err, c.Alternatives)
		}
		if c.Validate() != nil {
			return
		}
		if c.Name == "" || !utf8.ValidString(c.Name+c.Description) {
			t.Errorf("got the name %q and the description %q, want valid ones", c.Name, c.Description)
		}
		target := Target{Purpose: ForRecovery, URL: "https://a.example", Card: c}
		for _, r := range routes(target) {
			if _, err := writeMessage(Out{Text: "t"}, r.Dialect, r.Tenant); err != nil || r.URL == "" {
				t.Errorf("%+v: %v, want a route that can be written for", r, err)
			}
		}
	})
}
