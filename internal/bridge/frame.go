// Package bridge lets calls reach an agent that has no public address: the
// agent's side dials out over a WebSocket and carries what comes through it to
// one place, and to no other. Requests and answers are frames, matched by
// number; a connection that is lost loses what was on the way, which whoever
// called sees as an agent that cannot be reached.
package bridge

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/coder/websocket"
)

// Bounds of a bridge.
const (
	maxBody    = 4 << 20             // bytes of a request or an answer
	maxFrame   = maxBody*4/3 + 1<<16 // of a frame, with its body in base64
	maxWaiting = 64                  // requests under way over one bridge
	maxName    = 64                  // characters

	pingEvery = 10 * time.Second // of the server
	silence   = 25 * time.Second // after which the agent's side takes a connection for dead
	writeTime = 10 * time.Second // of a frame, and of each
	writeRate = 32 << 10         // bytes of it a second more
)

// statusReplaced closes the older of two connections of one holder: the side
// that gets it must not come back, or the two would throw each other out.
const statusReplaced = websocket.StatusCode(4001)

// Subprotocol names what is spoken over the WebSocket.
const Subprotocol = "longstop.bridge.v1"

// Scheme is how the URL of a card says that it is read through a bridge.
const Scheme = "bridge:"

// writing is how long a frame may take: a line to a desk is slow upwards.
func writing(frame []byte) time.Duration {
	return writeTime + time.Duration(len(frame)/writeRate)*time.Second
}

// read reads a message and tells whenever a part of it has come.
func read(ctx context.Context, c *websocket.Conn, seen func()) (websocket.MessageType, []byte, error) {
	kind, r, err := c.Reader(ctx)
	if err != nil {
		return kind, nil, err
	}
	var all bytes.Buffer
	_, err = all.ReadFrom(telling{r, seen})
	return kind, all.Bytes(), err
}

// telling is a reader that tells of every part.
type telling struct {
	io.Reader
	seen func()
}

func (t telling) Read(p []byte) (int, error) {
	n, err := t.Reader.Read(p)
	t.seen()
	return n, err
}

// ask is a frame to the agent's side: a request, or the end of one.
type ask struct {
	ID     uint64            `json:"id"`
	Cancel bool              `json:"cancel,omitempty"`
	Method string            `json:"method,omitempty"`
	Path   string            `json:"path,omitempty"` // with the query; it begins with a slash
	Header map[string]string `json:"header,omitempty"`
	Body   []byte            `json:"body,omitempty"`
}

// reply is a frame from the agent's side.
type reply struct {
	ID     uint64            `json:"id"`
	Status int               `json:"status,omitempty"`
	Header map[string]string `json:"header,omitempty"`
	Body   []byte            `json:"body,omitempty"`
	Error  string            `json:"error,omitempty"` // instead of the rest: the agent was not reached
}

// Name gives the name that a card's URL has behind bridge:, and whether it is
// one.
func Name(cardURL string) (string, bool) {
	name, ok := strings.CutPrefix(cardURL, Scheme)
	return name, ok && ValidName(name)
}

// ValidName reports whether a bridge may be called so: letters, digits, dots,
// dashes and underscores, at most 64.
func ValidName(name string) bool {
	return name != "" && len(name) <= maxName && strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == ""
}

// carried are the headers that go through a bridge, in both directions.
func carried() []string {
	return []string{"Content-Type", "Accept", "A2a-Version", "Authorization", "Retry-After", "Www-Authenticate"}
}

func pick(h http.Header) map[string]string {
	out := map[string]string{}
	for _, name := range carried() {
		if v := h.Get(name); v != "" {
			out[name] = v
		}
	}
	return out
}
