package secret

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
)

const (
	plainSecret = "tok_live_8fK2mQ"
	oddSecret   = `pa"ss/w<o>rd é&+ \x`
)

func oddMasker() *Masker {
	return NewMasker(map[string]string{"api": plainSecret, "odd": oddSecret}, nil)
}

func TestTextMasksEveryForm(t *testing.T) {
	t.Parallel()
	m := oddMasker()
	goJSON, _ := json.Marshal(oddSecret)
	tests := map[string]string{
		"as it is":             oddSecret,
		"JSON":                 `pa\"ss/w<o>rd é&+ \\x`,
		"JSON as Go writes it": strings.Trim(string(goJSON), `"`),
		"JSON as Python does":  `pa\"ss/w<o>rd \u00e9&+ \\x`,
		"JSON as PHP does":     `pa\"ss\/w<o>rd \u00e9&+ \\x`,
		"upper case escapes":   `pa\"ss/w<o>rd \u00E9&+ \\x`,
		"query":                url.QueryEscape(oddSecret),
		"path":                 url.PathEscape(oddSecret),
		"JavaScript's":         strings.ReplaceAll(url.QueryEscape(oddSecret), "+", "%20"),
		"lower case percent":   lowerHex(url.QueryEscape(oddSecret)),
		"HTML":                 "pa&#34;ss/w&lt;o&gt;rd é&amp;+ \\x",
		"base64":               base64.StdEncoding.EncodeToString([]byte(oddSecret)),
		"hexadecimal":          hex.EncodeToString([]byte(oddSecret)),
		"HEXADECIMAL":          strings.ToUpper(hex.EncodeToString([]byte(oddSecret))),
		"base64 for URLs":      base64.RawURLEncoding.EncodeToString([]byte(oddSecret)),
	}
	for name, form := range tests {
		if got, want := m.Text("before "+form+" after"), "before [secret:odd] after"; got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

func TestTextMasksInsideBase64(t *testing.T) {
	t.Parallel()
	m := oddMasker()
	for _, user := range []string{"", "u", "us", "use", "user"} {
		in := base64.StdEncoding.EncodeToString([]byte(user + ":" + plainSecret + "tail"))
		got := m.Text("Basic " + in)
		if !strings.Contains(got, "[secret:api]") {
			t.Errorf("user %q: got %q, want the secret masked", user, got)
		}
	}
}

func TestTextLeavesOtherTextAlone(t *testing.T) {
	t.Parallel()
	m := oddMasker()
	for _, s := range []string{"", "short", "tok_live_8fK2m", "tok_live_8fk2mq", strings.Repeat("tok_", 1000)} {
		if got := m.Text(s); got != s {
			t.Errorf("Text(%q) = %q, want it unchanged", s, got)
		}
	}
}

func TestTextWhereSecretsOverlap(t *testing.T) {
	t.Parallel()
	m := NewMasker(map[string]string{"short": "abcdefgh", "long": "abcdefghijkl", "tail": "ghijklmnop"}, nil)
	tests := map[string]string{
		"abcdefgh":                 "[secret:short]",
		"abcdefghijkl":             "[secret:long]",
		"xabcdefghxabcdefghijklx":  "x[secret:short]x[secret:long]x",
		"abcdefghijklmnop!":        "[secret:long]!", // no tail of the third is left
		"abcdefghabcdefgh":         "[secret:short][secret:short]",
		"ghijklmnop":               "[secret:tail]",
		"abcdefghijk":              "[secret:short]ijk",
		"..abcdefghijklghijklmnop": "..[secret:long][secret:tail]",
	}
	for in, want := range tests {
		if got := m.Text(in); got != want {
			t.Errorf("Text(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestMaskerWithoutSecretsGivesItsInput(t *testing.T) {
	t.Parallel()
	raw := json.RawMessage(`{"a":"b", "c": 12345678}`)
	for name, m := range map[string]*Masker{"nil": nil, "none": NewMasker(nil, nil), "too short": NewMasker(map[string]string{"a": "1234567"}, nil)} {
		if got := m.JSON(raw); &got[0] != &raw[0] {
			t.Errorf("%s: JSON copied its input", name)
		}
		if got := m.Text("1234567"); got != "1234567" {
			t.Errorf("%s: Text = %q, want it unchanged", name, got)
		}
		if got, used := m.Unmask(json.RawMessage(`"[secret:a]"`)); used != nil || string(got) != `"[secret:a]"` {
			t.Errorf("%s: Unmask = %s, %v; want it unchanged", name, got, used)
		}
	}
}

func TestJSONMasks(t *testing.T) {
	t.Parallel()
	m := NewMasker(map[string]string{"api": plainSecret, "pin": "12345678", "neg": "-1234.5678", "odd": oddSecret}, nil)
	nested, _ := json.Marshal(map[string]string{"p": oddSecret})
	text, _ := json.Marshal(string(nested))
	tests := map[string]string{
		`{"a":"x tok_live_8fK2mQ y"}`:                  `{"a":"x [secret:api] y"}`,
		`{"tok_live_8fK2mQ": [1, 2.50]}`:               `{"[secret:api]": [1, 2.50]}`,
		`{"a":"\u0074ok_live_8fK2mQ"}`:                 `{"a":"[secret:api]"}`,
		`{"a":"\ntok_live_8fK2mQ\"<\ud83d"}`:           "{\"a\":\"\\n[secret:api]\\\"<\ufffd\"}",
		`[12345678, 123456789, -1234.5678]`:            `["[secret:pin]", 123456789, "[secret:neg]"]`,
		`{"n":12345678,"s":"no. 12345678"}`:            `{"n":"[secret:pin]","s":"no. [secret:pin]"}`,
		`"tok_live_8fK2mQ"`:                            `"[secret:api]"`,
		`12345678`:                                     `"[secret:pin]"`,
		`{"body":` + string(text) + `}`:                `{"body":"{\"p\":\"[secret:odd]\"}"}`,
		` { "same" : [ true , null , "\\u0041\/" ] } `: ` { "same" : [ true , null , "\\u0041\/" ] } `,
		`not JSON tok_live_8fK2mQ "`:                   `"not JSON [secret:api] \""`,
	}
	for in, want := range tests {
		got := m.JSON(json.RawMessage(in))
		if string(got) != want {
			t.Errorf("JSON(%s)\n got %s\nwant %s", in, got, want)
		}
		if !json.Valid(got) {
			t.Errorf("JSON(%s) = %s, which is not valid", in, got)
		}
	}
}

func TestUnmaskPutsBackExactMasksOnly(t *testing.T) {
	t.Parallel()
	m := NewMasker(map[string]string{"api": plainSecret, "odd": oddSecret}, map[string]string{"recovery.a2a_auth_token": "hidden-token-1"})
	in := `{"h":{"Authorization":"Bearer [secret:api]"},"[secret:odd]":["[secret:api][secret:odd]"],
		"no":["[secret:none]","[secret:recovery.a2a_auth_token]","[secret: api]","[SECRET:api]","[secret:]"]}`
	got, used := m.Unmask(json.RawMessage(in))
	if want := []string{"api", "odd"}; !slices.Equal(used, want) {
		t.Errorf("used %v, want %v", used, want)
	}
	var v struct {
		H  map[string]string
		No []string
	}
	if err := json.Unmarshal(got, &v); err != nil {
		t.Fatalf("the result %s: %v", got, err)
	}
	if want := "Bearer " + plainSecret; v.H["Authorization"] != want {
		t.Errorf("got %q, want %q", v.H["Authorization"], want)
	}
	if want := []string{"[secret:none]", "[secret:recovery.a2a_auth_token]", "[secret: api]", "[SECRET:api]", "[secret:]"}; !slices.Equal(v.No, want) {
		t.Errorf("got %q, want %q", v.No, want)
	}
	if back := m.JSON(got); string(back) != in {
		t.Errorf("masked again:\n got %s\nwant %s", back, in)
	}
	if m.Text("x hidden-token-1") != "x [secret:recovery.a2a_auth_token]" {
		t.Errorf("got %q, want the hidden value masked", m.Text("x hidden-token-1"))
	}
}

func TestOneValueUnderTwoNames(t *testing.T) {
	t.Parallel()
	m := NewMasker(map[string]string{"b": plainSecret, "a": plainSecret}, map[string]string{"mcp.x": plainSecret})
	if got, want := m.Text(plainSecret), "[secret:a]"; got != want {
		t.Fatalf("got %q, want %q", got, want)
	}
}

// spec: R-022
func TestStripCredentials(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		`{"userId": 42, "big": 12345678901234567890}`:                                `{"userId": 42, "big": 12345678901234567890}`,
		`{"access_token":"x","userId":42}`:                                           `{"userId":42}`,
		`{"userId":42, "Refresh_Token":{"deep":["x"]} , "b":[] }`:                    `{"userId":42,"b":[]}`,
		`{"a":{"b":[{"ID_TOKEN":1,"c":2},{"client_secret":null}]}}`:                  `{"a":{"b":[{"c":2},{}]}}`,
		`{"AUTHORIZATION":"Basic x"}`:                                                `{}`,
		`{"access\u005ftoken":"x"}`:                                                  `{}`,
		`{"h":"Bearer abc","k":"Bearers of news","l":["Bearer abc","x","bearer y"]}`: `{"k":"Bearers of news","l":[null,"x",null]}`,
		`"Bearer abc"`:                     `null`,
		`{"h":"\u0042earer abc"}`:          `{}`,
		`{"note":"send the access_token"}`: `{"note":"send the access_token"}`,
		`{"accessToken":"x"}`:              `{"accessToken":"x"}`,
		`{bad`:                             `null`,
		`[]`:                               `[]`,
		``:                                 ``,
	}
	for in, want := range tests {
		if got := StripCredentials(json.RawMessage(in)); string(got) != want {
			t.Errorf("StripCredentials(%s)\n got %s\nwant %s", in, got, want)
		}
	}
}

func FuzzMaskerJSON(f *testing.F) {
	for _, s := range []string{`{"a":"tok_live_8fK2mQ"}`, `[12345678,"\u0074ok_live_8fK2mQ"]`, `{"access_token":1}`, `x`} {
		f.Add([]byte(s))
	}
	m := NewMasker(map[string]string{"api": plainSecret, "pin": "12345678"}, nil)
	f.Fuzz(func(t *testing.T, raw []byte) {
		valid := json.Valid(raw)
		masked, stripped := m.JSON(raw), StripCredentials(raw)
		if strings.Contains(string(masked), plainSecret) {
			t.Errorf("the secret stands in %s", masked)
		}
		if valid && (!json.Valid(masked) || !json.Valid(stripped)) {
			t.Errorf("%s became %s and %s, which must both be valid", raw, masked, stripped)
		}
	})
}

func BenchmarkMaskerJSON(b *testing.B) {
	secrets := map[string]string{}
	for i := range 20 {
		secrets[fmt.Sprint("s", i)] = fmt.Sprintf("%d-sk_live_%d", i, i*7919)
	}
	m := NewMasker(secrets, nil)
	raw := json.RawMessage(`{"items":[` + strings.Repeat(`{"id":12345,"name":"Alice Example","note":"line\nbreak"},`, 2000) + `1]}`)
	b.SetBytes(int64(len(raw)))
	for b.Loop() {
		m.JSON(raw)
	}
}
