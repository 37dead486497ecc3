package mcpclient

import (
	"bytes"
	"io"
	"strings"
	"sync/atomic"
)

// maxDepth is how deep an answer may be nested. It is that of definitions
// and outputs everywhere.
const maxDepth = 200

// link is what a session's transport knows and the SDK's errors hide.
type link struct {
	max     int64                   // bytes of one answer
	headers map[string]string       // of the server's configuration
	calls   atomic.Int64            // under way
	left    atomic.Int64            // what a stream that outlives calls may still send
	breach  atomic.Pointer[failure] // what broke the session
	stderr  tail                    // of a command
}

func newLink(max int64, headers map[string]string) *link {
	l := &link{max: max, headers: headers}
	l.left.Store(max)
	return l
}

// begin allows a stream that outlives calls one more answer for each call
// under way.
func (l *link) begin() { l.left.Store(l.max * (1 + l.calls.Add(1))) }

// end is called when a call is over, and gives how many remain.
func (l *link) end() int64 { return l.calls.Add(-1) }

// masked is a text of the server's without the values of the headers that it
// was sent: some servers echo them.
func (l *link) masked(s string) string {
	for _, v := range l.headers {
		for _, secret := range append(strings.Fields(v), v) {
			if len(secret) >= 8 {
				s = strings.ReplaceAll(s, secret, "…")
			}
		}
	}
	return s
}

// once bounds the body of one answer; lines says that it is a stream of
// events.
func (l *link) once(body io.ReadCloser, lines bool) *bounded {
	left := new(atomic.Int64)
	left.Store(l.max)
	return &bounded{ReadCloser: body, left: left, link: l, nest: nesting{lines: lines}}
}

// lasting bounds a stream that outlives calls.
func (l *link) lasting(stream io.ReadCloser) *bounded {
	return &bounded{ReadCloser: stream, left: &l.left, link: l, nest: nesting{lines: true}}
}

// bounded fails a stream that goes on beyond its allowance or whose JSON is
// nested too deep, and leaves word of it on the link.
type bounded struct {
	io.ReadCloser
	left *atomic.Int64
	link *link
	nest nesting
	line int64 // bytes of the line being read
}

// Read reads within the bounds.
func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.line += int64(n)
	if i := bytes.LastIndexByte(p[:n], '\n'); i >= 0 {
		b.line = int64(n - i)
	}
	switch {
	case b.left.Add(-int64(n)) < 0, b.nest.lines && b.line > b.link.max:
		return 0, b.broken(ErrTooLarge)
	case b.nest.exceeded(p[:n]):
		return 0, b.broken(ErrTooDeep)
	}
	return n, err
}

func (b *bounded) broken(kind error) error {
	f := fail(kind, nil, "at most %d bytes and %d levels are read", b.link.max, maxDepth)
	b.link.breach.Store(f)
	return f
}

// nesting follows how deep JSON is nested, without parsing it.
type nesting struct {
	lines           bool // a message is one line, and lines that are no JSON may stand between
	depth           int
	quoted, escaped bool
}

// exceeded takes the next bytes and reports whether they go beyond maxDepth.
func (n *nesting) exceeded(p []byte) bool {
	for _, c := range p {
		switch {
		case c == '\n' && n.lines:
			*n = nesting{lines: true}
		case n.escaped:
			n.escaped = false
		case n.quoted:
			n.escaped, n.quoted = c == '\\', c != '"'
		case c == '"':
			n.quoted = true
		case c == '{', c == '[':
			if n.depth++; n.depth > maxDepth {
				return true
			}
		case c == '}', c == ']':
			n.depth = max(0, n.depth-1)
		}
	}
	return false
}
