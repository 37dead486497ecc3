package secret

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"strings"
	"unicode/utf16"
)

// MinLength is the least length of a secret's value in bytes: a shorter one
// would be found, and masked, in texts that have nothing to do with it.
const MinLength = 8

// forms gives the texts as which value may turn up: as it is, inside JSON,
// inside a URL, inside HTML, in base64 and in hexadecimal.
func forms(value string) []string {
	set := map[string]bool{value: true}
	escaped := []string{jsonEscape(value, false), jsonEscape(value, true), asciiEscape(value, "%04x"), asciiEscape(value, "%04X")}
	for _, f := range escaped {
		set[f] = true
		set[strings.ReplaceAll(f, "/", `\/`)] = true // as PHP writes it
	}
	query, path := url.QueryEscape(value), url.PathEscape(value)
	for _, f := range []string{query, path, strings.ReplaceAll(query, "+", "%20"), componentEscape(value)} {
		set[f] = true
		set[lowerHex(f)] = true
	}
	set[html.EscapeString(value)] = true
	set[fmt.Sprintf("%x", value)], set[fmt.Sprintf("%X", value)] = true, true
	for _, f := range base64Forms(value) {
		set[f] = true
	}
	out := make([]string, 0, len(set))
	for f := range set {
		out = append(out, f)
	}
	return out
}

// jsonEscape is value inside a JSON string, with < > & escaped or not.
func jsonEscape(value string, htmlSafe bool) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(htmlSafe)
	if err := enc.Encode(value); err != nil {
		return value // cannot happen to a string
	}
	return strings.TrimSuffix(b.String(), "\n")[1 : b.Len()-2]
}

// asciiEscape is value inside a JSON string that has ASCII only.
func asciiEscape(value, verb string) string {
	var b strings.Builder
	for _, r := range jsonEscape(value, false) {
		if r < 0x80 {
			b.WriteRune(r)
			continue
		}
		for _, u := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&b, `\u`+verb, u)
		}
	}
	return b.String()
}

// componentEscape is value as JavaScript's encodeURIComponent writes it.
func componentEscape(value string) string {
	s := strings.ReplaceAll(url.QueryEscape(value), "+", "%20")
	return strings.NewReplacer("%21", "!", "%27", "'", "%28", "(", "%29", ")", "%2A", "*").Replace(s)
}

// lowerHex turns the digits of %XX into lower case.
func lowerHex(s string) string {
	b := []byte(s)
	for i := 0; i+2 < len(b); i++ {
		if b[i] == '%' {
			copy(b[i+1:i+3], strings.ToLower(s[i+1:i+3]))
			i += 2
		}
	}
	return string(b)
}

// base64Forms gives what base64 makes of value: whole, and as part of a longer
// text at each of the three offsets (a password behind its user's name), there
// without the first and last digit that value shares with its neighbours.
func base64Forms(value string) []string {
	var out []string
	for _, enc := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding} {
		out = append(out, enc.EncodeToString([]byte(value)))
		raw := enc.WithPadding(base64.NoPadding)
		out = append(out, raw.EncodeToString([]byte(value)))
		for offset := range 3 {
			s := raw.EncodeToString(append(make([]byte, offset), value...))
			first := (8*offset + 5) / 6
			last := 8 * (offset + len(value)) / 6
			out = append(out, s[first:last])
		}
	}
	return out
}
