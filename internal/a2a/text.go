package a2a

import (
	"encoding/json"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	maxErrorText = 300 // characters of any error
	maxTaskText  = 200 // characters of what a failed task says
	maxSnippet   = 120 // characters of a body that was not understood
)

// clip cuts s to n characters, the last of which says that it was cut.
func clip(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:n-1]) + "…"
}

// plain makes outside text fit for an error, a log line or a page: valid
// UTF-8, on one line, without control or direction characters, at most n
// characters.
func plain(s string, n int) string {
	if len(s) > 8*n { // the rest cannot matter, and may be megabytes
		s = s[:8*n]
	}
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.Is(unicode.C, r) && r != utf8.RuneError:
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "�"))
	return clip(strings.Join(strings.Fields(s), " "), n)
}

// scrubber returns plain preceded by the removal of the token, for texts that
// an agent may have made by echoing what it was sent.
func scrubber(token string) func(s string, n int) string {
	if len(token) < 4 { // shorter ones hide nothing and would shred the text
		return plain
	}
	quoted, err := json.Marshal(token)
	escaped := strings.Trim(string(quoted), `"`)
	if err != nil || escaped == "" {
		escaped = token
	}
	hide := strings.NewReplacer(token, "[token]", escaped, "[token]")
	return func(s string, n int) string { return plain(hide.Replace(s), n) }
}
