package a2a

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// payload finds the result in an answer: out of a JSON-RPC envelope, a bare
// HTTP+JSON body or a single server-sent event, whatever the content type
// says, and whatever the status if it is an error that the agent spoke. id is
// that of the envelope, if there was one.
func (r *response) payload(maxDepth int) (result, id json.RawMessage, err error) {
	body := event(trimBOM(r.body))
	ok := r.status >= 200 && r.status <= 299
	big := oversized(body, maxDepth)
	switch {
	case r.tooLarge && ok:
		return nil, nil, fault(ErrTooLarge, "more than %d bytes", len(r.body)-1)
	case big != nil && ok:
		return nil, nil, big
	case r.tooLarge || big != nil:
		return nil, nil, r.statusError(nil)
	}
	o := asObject(body)
	if spoken := r.spokenError(o); spoken != nil {
		return nil, o["id"], spoken
	}
	switch {
	case !ok:
		return nil, nil, r.statusError(o)
	case bytes.HasPrefix(body, []byte("<")):
		return nil, nil, &Fault{Kind: ErrHTML}
	case o == nil:
		return nil, nil, fault(ErrShape, "not a JSON object but %q", r.scrub(string(body), maxSnippet))
	case o.has("result"):
		return o["result"], o["id"], nil
	case o.has("jsonrpc"):
		return nil, o["id"], fault(ErrShape, "neither a result nor an error")
	}
	return body, nil, nil
}

// spokenError is the error member of an answer, if it is one that the agent
// meant: a JSON-RPC error, or a google.rpc.Status with a reason. Nil if there
// is none, or if it only repeats the HTTP status.
func (r *response) spokenError(o object) error {
	if !o.has("error") {
		return nil
	}
	e := asObject(o["error"])
	if len(e) == 0 && o.has("result") { // false, "" or {} beside what was asked for
		return nil
	}
	if e == nil { // {"error": "words"}: of use only where no status speaks
		if r.status > 299 {
			return nil
		}
		var words string
		if json.Unmarshal(o["error"], &words) != nil {
			words = string(o["error"])
		}
		return &RPCError{Status: r.status, Message: r.scrub(words, maxErrorText)}
	}
	out := &RPCError{Status: r.status, Message: r.scrub(e.text("message"), maxErrorText), RetryAfter: r.retryAfter()}
	if code, ok := number(e["code"]); ok {
		out.Code = int(code)
	}
	for _, detail := range asList(e["details"]) {
		if code := reasonCode(asObject(detail).text("reason")); code != 0 {
			out.Code = code
		}
	}
	if out.Code == http.StatusBadRequest {
		out.Code = codeInvalidParams
	}
	if out.Code >= 0 && r.status > 299 {
		return nil
	}
	return out
}

// reasonCode is the JSON-RPC code of the reasons in HTTP+JSON errors that
// decide what is done next; 0 for any other.
func reasonCode(reason string) int {
	switch reason {
	case "VERSION_NOT_SUPPORTED":
		return codeVersion
	case "TASK_NOT_FOUND":
		return codeTaskNotFound
	case "METHOD_NOT_FOUND":
		return codeMethodNotFound
	case "INVALID_PARAMS":
		return codeInvalidParams
	case "INVALID_REQUEST":
		return codeInvalidRequest
	}
	return 0
}

func (r *response) statusError(o object) *StatusError {
	body := trimBOM(r.body)
	e := &StatusError{Status: r.status, RetryAfter: r.retryAfter(), HTML: bytes.HasPrefix(body, []byte("<"))}
	e.Text = asObject(o["error"]).text("message")
	if e.Text == "" {
		e.Text = o.text("message", "detail", "error", "title")
	}
	if e.Text == "" && o == nil && !e.HTML {
		e.Text = string(body[:min(len(body), 4*maxErrorText)])
	}
	if e.Text == "" && r.status >= 300 && r.status <= 399 {
		e.Text = "redirects are not followed; configure the final URL"
	}
	e.Text = r.scrub(e.Text, maxSnippet)
	return e
}

// retryAfter reads the header in seconds or as a date; 0 if it is neither.
func (r *response) retryAfter() time.Duration {
	const most = time.Hour
	v := r.header.Get("Retry-After")
	if s, err := strconv.ParseUint(v, 10, 31); err == nil {
		return min(time.Duration(s)*time.Second, most)
	}
	if at, err := http.ParseTime(v); err == nil {
		return min(max(time.Until(at), 0), most)
	}
	return 0
}

// readEvent reads an event stream up to the end of its first event with data:
// a server may keep the stream open for as long as it likes.
func readEvent(r io.Reader) ([]byte, error) {
	var out bytes.Buffer
	lines, data := bufio.NewReader(r), false
	for {
		line, err := lines.ReadBytes('\n')
		out.Write(line)
		data = data || bytes.HasPrefix(line, []byte("data:"))
		switch {
		case err == io.EOF, err == nil && data && len(bytes.TrimSpace(line)) == 0:
			return out.Bytes(), nil
		case err != nil:
			return nil, err
		}
	}
}

// event is the data of the first server-sent event in b, or b itself if it is
// none. A field name starts the line, which no JSON does.
func event(b []byte) []byte {
	if !bytes.HasPrefix(b, []byte("data:")) && !bytes.HasPrefix(b, []byte("event:")) &&
		!bytes.HasPrefix(b, []byte("id:")) && !bytes.HasPrefix(b, []byte("retry:")) && !bytes.HasPrefix(b, []byte(":")) {
		return b
	}
	var data []string
	for line := range strings.Lines(string(b)) {
		line = strings.TrimRight(line, "\r\n")
		if d, found := strings.CutPrefix(line, "data:"); found {
			data = append(data, strings.TrimPrefix(d, " "))
		} else if line == "" && data != nil {
			break
		}
	}
	return bytes.TrimSpace([]byte(strings.Join(data, "\n")))
}
