package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

const (
	sessionHeader = "Mcp-Session-Id"
	versionHeader = "Mcp-Protocol-Version"

	// alone is the first version in which a request stands alone.
	alone = "2026-07-28"
)

// versions are those that are spoken here.
func versions() []string { return []string{alone, "2025-11-25", "2025-06-18", "2025-03-26"} }

// read takes in the whole message, bounded in size, time and number, and puts
// it back for who answers it.
func (f *Face) read(w http.ResponseWriter, r *http.Request) ([]byte, bool) {
	l := f.c.Limits
	if r.ContentLength > l.BodyBytes {
		refuse(w, http.StatusRequestEntityTooLarge, fmt.Sprintf("the message is too large: send at most %d bytes", l.BodyBytes))
		return nil, false
	}
	conn := http.NewResponseController(w)
	_ = conn.SetReadDeadline(time.Now().Add(l.BodyTime))
	b, err := io.ReadAll(io.LimitReader(r.Body, l.BodyBytes+1))
	var slow net.Error
	switch {
	case int64(len(b)) > l.BodyBytes:
		refuse(w, http.StatusRequestEntityTooLarge, fmt.Sprintf("the message is too large: send at most %d bytes", l.BodyBytes))
		return nil, false
	case errors.As(err, &slow) && slow.Timeout():
		refuse(w, http.StatusRequestTimeout, fmt.Sprintf("the message did not arrive within %s", l.BodyTime))
		return nil, false
	case err != nil:
		refuse(w, http.StatusBadRequest, "the message broke off")
		return nil, false
	}
	_ = conn.SetReadDeadline(time.Time{})
	if t := bytes.TrimSpace(b); len(t) > 0 && t[0] == '[' {
		var batch []json.RawMessage
		if json.Unmarshal(t, &batch) == nil && len(batch) > l.Batch {
			refuse(w, http.StatusBadRequest, fmt.Sprintf("a batch of %d messages is too long: send at most %d", len(batch), l.Batch))
			return nil, false
		}
	}
	r.Body = io.NopCloser(bytes.NewReader(b))
	return b, true
}

// standsAlone tells whether a request is of the generation without sessions.
// Its header says so; without one, its own metadata may.
func standsAlone(r *http.Request, body []byte) bool {
	if v := r.Header.Get(versionHeader); v != "" {
		return v >= alone
	}
	if r.Header.Get(sessionHeader) != "" {
		return false
	}
	var m struct {
		Params struct {
			Meta struct {
				Version string `json:"io.modelcontextprotocol/protocolVersion"`
			} `json:"_meta"`
		} `json:"params"`
	}
	return json.Unmarshal(body, &m) == nil && m.Params.Meta.Version >= alone
}

// refuse answers a request that no message is read from.
func refuse(w http.ResponseWriter, status int, what string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	code := -32600 // an invalid request
	if status >= 500 || status == http.StatusTooManyRequests {
		code = -32000
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"jsonrpc": "2.0", "id": nil, "error": map[string]any{"code": code, "message": what}})
}
