// Package responder carries a case to whoever answers it: the workspace's own
// agent over A2A or MCP, or the rules that are built in. A new responder is
// one file here and one line in the table that server passes to the desk, and
// has to pass the suite in suite_test.go.
package responder

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/longstop-dev/longstop/internal/flow"
)

// Responder answers questions about cases. It keeps nothing of a question, is
// safe for concurrent use, and returns when ctx ends. Its errors are
// [*flow.AskError].
type Responder interface {
	Name() string
	Ask(ctx context.Context, q flow.Question) (flow.Answer, error)
}

// maxMessage bounds the text of an AskError, in characters.
const maxMessage = 300

func failure(kind flow.AskKind, message string, cause error) *flow.AskError {
	return &flow.AskError{Kind: kind, Message: short(message, maxMessage), Err: cause}
}

// asAskError sorts what asking an outsider ends with.
func asAskError(ctx context.Context, kind flow.AskKind, err error) *flow.AskError {
	var known *flow.AskError
	switch {
	case errors.As(err, &known):
		return known
	case errors.Is(err, context.DeadlineExceeded), errors.Is(ctx.Err(), context.DeadlineExceeded):
		return failure(flow.AskTimeout, "no answer in time", err)
	}
	return failure(kind, err.Error(), err)
}

// short gives at most n characters of s on one line.
func short(s string, n int) string {
	s = strings.Join(strings.Fields(strings.ToValidUTF8(s[:min(len(s), 8*n)], "\uFFFD")), " ")
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:n-1]) + "…"
}

// withoutQuery is a URL as it may be shown.
func withoutQuery(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return ""
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return u.String()
}
