package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/longstop-dev/longstop/internal/flow"
)

// readBody reads and checks the whole body, so that what decodes it later has
// well-formed JSON of a bounded size, or for text any UTF-8.
func readBody(w http.ResponseWriter, r *http.Request, limit int64, within time.Duration, text bool) *Problem {
	if p := checkType(r, text); p != nil {
		return p
	}
	if r.ContentLength > limit {
		return tooLarge(limit)
	}
	// The socket's deadline goes by the machine's clock. It is taken off after
	// a whole body, because it would end the request while the operation works;
	// it stays on a broken one, of which the rest is still waited for.
	conn := http.NewResponseController(w)
	_ = conn.SetReadDeadline(time.Now().Add(within))
	b, err := io.ReadAll(io.LimitReader(r.Body, limit+1))
	var slow net.Error
	switch {
	case int64(len(b)) > limit:
		return tooLarge(limit)
	case errors.As(err, &slow) && slow.Timeout():
		return refuse(http.StatusRequestTimeout, "the body did not arrive in time", "body", fmt.Sprintf("send it within %s", within))
	case err != nil:
		return refuse(http.StatusBadRequest, "the body broke off", "body", "send it again")
	}
	_ = conn.SetReadDeadline(time.Time{})
	if p := checkText(b); p != nil {
		return p
	}
	if !text {
		if b = bytes.TrimSpace(b); len(b) > 0 {
			if p := checkJSON(b); p != nil {
				return p
			}
		}
		r.Header.Set("Content-Type", "application/json")
	}
	r.Body = io.NopCloser(bytes.NewReader(b))
	return nil
}

func tooLarge(limit int64) *Problem {
	return refuse(http.StatusRequestEntityTooLarge, "the body is too large", "body", fmt.Sprintf("send at most %d bytes", limit))
}

// jsonTypes are the content types in which JSON may come: curl -d sends the
// form type, whatever the body is.
func jsonTypes() []string { return []string{"application/json", "application/x-www-form-urlencoded"} }

// textTypes are those in which a definition may come.
func textTypes() []string {
	return []string{"application/yaml", "application/x-yaml", "text/yaml", "text/x-yaml", "application/json", "text/plain",
		"application/octet-stream", "application/x-www-form-urlencoded"}
}

func checkType(r *http.Request, text bool) *Problem {
	if enc := r.Header.Get("Content-Encoding"); enc != "" && !strings.EqualFold(enc, "identity") {
		return refuse(http.StatusUnsupportedMediaType, "an encoded body is not read", "Content-Encoding", "send the body as it is")
	}
	header := r.Header.Get("Content-Type")
	if header == "" || r.ContentLength == 0 {
		return nil
	}
	allowed := jsonTypes()
	if text {
		allowed = textTypes()
	}
	if kind, _, err := mime.ParseMediaType(header); err == nil && slices.Contains(allowed, kind) {
		return nil
	}
	return refuse(http.StatusUnsupportedMediaType, "a body of this content type is not read", "Content-Type", "one of "+strings.Join(allowed, ", "))
}

func checkText(b []byte) *Problem {
	if utf8.Valid(b) {
		return nil
	}
	at := 0
	for at < len(b) {
		r, n := utf8.DecodeRune(b[at:])
		if r == utf8.RuneError && n == 1 {
			break
		}
		at += n
	}
	return malformed(b, at, "the body is not UTF-8 text", "encode it as UTF-8")
}

func checkJSON(b []byte) *Problem {
	var whole json.RawMessage
	err := json.Unmarshal(b, &whole)
	if err == nil {
		return nil
	}
	at := len(b)
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		at = max(0, int(syntax.Offset)-1)
	}
	if strings.Contains(err.Error(), "max depth") {
		return malformed(b, at, "the JSON is nested too deep", "nest at most 10,000 levels")
	}
	return malformed(b, at, "the body is not valid JSON", "send one JSON object")
}

// malformed says where a body goes wrong without repeating any of it.
func malformed(b []byte, at int, what, fix string) *Problem {
	line, column := flow.Place(b, at)
	p := refuse(http.StatusBadRequest, fmt.Sprintf("%s: line %d, column %d", what, line, column), "body", fix)
	p.Errors = []flow.Problem{{Field: "body", Message: what, Fix: fix, Line: line}}
	return p
}

// decode is json.Unmarshal, but for numbers that no float64 holds: where any
// JSON is allowed they are allowed too.
func decode(b []byte, v any) error {
	whole, ok := v.(*any)
	if !ok {
		return json.Unmarshal(b, v)
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	if err := dec.Decode(whole); err != nil {
		return err
	}
	*whole = floats(*whole)
	return nil
}

func floats(v any) any {
	switch v := v.(type) {
	case json.Number:
		if f, err := v.Float64(); err == nil {
			return f
		}
	case []any:
		for i := range v {
			v[i] = floats(v[i])
		}
	case map[string]any:
		for name := range v {
			v[name] = floats(v[name])
		}
	}
	return v
}
