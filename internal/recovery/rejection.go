package recovery

import (
	"strings"
	"unicode/utf8"

	"github.com/longstop-dev/longstop/internal/flow"
)

// Rejection says why an answer is not used: what is wrong, where, and what
// would be right. Its text is at most 400 characters.
type Rejection struct {
	Field   string // path into the action, such as modifications.httpRequest.url
	Message string
	Fix     string
}

// Error gives place, message and remedy in one line.
func (r *Rejection) Error() string {
	text := r.Message
	if r.Field != "" {
		text = r.Field + ": " + text
	}
	if r.Fix != "" {
		text += " (" + r.Fix + ")"
	}
	return cut(text, 400)
}

// problem is the rejection of something that a person sent in the member
// called prefix; "" for a rejection whose place says so itself.
func (r *Rejection) problem(prefix string) *flow.Error {
	return flow.Errorf(flow.CodeInvalid, "%s", r.Message).At(join(prefix, r.Field)).Right(r.Fix)
}

func reject(field, message, fix string) *Rejection {
	return &Rejection{Field: field, Message: message, Fix: fix}
}

// under puts the rejection's place below another.
func (r *Rejection) under(parent string) *Rejection {
	if r == nil {
		return nil
	}
	r.Field = join(parent, r.Field)
	return r
}

// join puts two pieces of a path together; an index needs no dot.
func join(parent, child string) string {
	switch {
	case parent == "":
		return child
	case child == "" || child[0] == '[':
		return parent + child
	}
	return parent + "." + child
}

// quoted shows a piece of an outsider's text in a message.
func quoted(s string) string { return `"` + oneLine(s, 60) + `"` }

// oneLine gives at most n characters of s, without line breaks and other
// control characters.
func oneLine(s string, n int) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, cut(s, n))
	return s
}

// cut gives s if it has at most n characters, else the first n-1 and an
// ellipsis. What is not UTF-8 is replaced.
func cut(s string, n int) string {
	if len(s) > 4*n { // no character has more bytes: do not count a megabyte
		s = s[:4*n]
	} else if utf8.RuneCountInString(s) <= n {
		return strings.ToValidUTF8(s, "\uFFFD")
	}
	count := 0
	for i := range s {
		if count == n-1 {
			return strings.ToValidUTF8(s[:i], "\uFFFD") + "…"
		}
		count++
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
