package responder

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/longstop-dev/longstop/internal/egress"
	"github.com/longstop-dev/longstop/internal/flow"
)

const (
	maxCompletion = 16 << 20 // bytes of an endpoint's answer
	maxCalls      = 3        // of one question, where the endpoint is busy
	busyPause     = time.Second
	leastTime     = 500 * time.Millisecond // worth asking again with
)

// message is one of a chat.
type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// completionRequest is what is asked. It has what every endpoint knows and no
// more: a limit or a temperature goes by other names, or is refused, at some.
type completionRequest struct {
	Model    string          `json:"model"`
	Messages []message       `json:"messages"`
	Stream   bool            `json:"stream"`
	Format   *responseFormat `json:"response_format,omitempty"`
}

type responseFormat struct {
	Type   string     `json:"type"`
	Schema namedShape `json:"json_schema"`
}

type namedShape struct {
	Name   string          `json:"name"`
	Strict bool            `json:"strict"`
	Schema json.RawMessage `json:"schema"`
}

// complete asks the endpoint for one completion. Busy endpoints are asked
// again while the deadline has room; one that refuses schemas is asked without.
// reached tells whether the model may have been at work.
func (m *Model) complete(ctx context.Context, s flow.ModelSettings, messages []message) (said saying, reached bool, err error) {
	endpoint := completions(s.URL)
	known := s.Name + " " + withoutQuery(endpoint)
	schema := m.takesSchema(known)
	dropped := false
	for call := 1; ; call++ {
		r, reached, err := m.post(ctx, s, endpoint, requestOf(s, messages, schema))
		if err != nil {
			return saying{}, reached, err
		}
		if r.status/100 == 2 {
			if dropped {
				m.takesNone(known)
			}
			said, err := r.saying()
			return said, true, err
		}
		wait, busy := r.pause(call)
		switch {
		case schema && r.mayRefuseSchema():
			schema, dropped = false, true
		case !busy || call >= maxCalls || !roomFor(ctx, wait):
			return saying{}, false, r.failure(s)
		case m.sleep(ctx, wait) != nil:
			return saying{}, false, r.failure(s)
		}
	}
}

// completions is the URL to post to.
func completions(base string) string {
	u, err := url.Parse(base)
	if err != nil {
		return base
	}
	if !strings.HasSuffix(u.Path, "/chat/completions") {
		u.Path = strings.TrimRight(u.Path, "/") + "/chat/completions"
	}
	return u.String()
}

func requestOf(s flow.ModelSettings, messages []message, schema bool) completionRequest {
	r := completionRequest{Model: s.Name, Messages: messages}
	if schema {
		r.Format = &responseFormat{Type: "json_schema", Schema: namedShape{Name: "recovery_action", Strict: true, Schema: json.RawMessage(answerShape)}}
		return r
	}
	r.Messages = append([]message(nil), messages...)
	r.Messages[0].Content += "\n\nThe JSON Schema of your answer:\n" + answerShape
	return r
}

// reply is an endpoint's answer over HTTP.
type reply struct {
	status int
	header http.Header
	body   []byte
}

// post sends one request. reached tells, where it fails, whether it may have
// cost tokens all the same: the clock cut it off, or it broke off in the middle
// of an answer.
func (m *Model) post(ctx context.Context, s flow.ModelSettings, endpoint string, body completionRequest) (r *reply, reached bool, err error) {
	raw, err := json.Marshal(body)
	if err != nil {
		return nil, false, failure(flow.AskInvalid, "the case cannot be written as JSON", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint, bytes.NewReader(raw))
	if err != nil {
		return nil, false, failure(flow.AskUnreachable, "model.url is not a URL", err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	if s.Key != "" {
		req.Header.Set("Authorization", "Bearer "+s.Key)
	}
	resp, err := m.http.Do(req)
	if err != nil {
		return nil, ctx.Err() != nil, unreachable(ctx, s, err)
	}
	defer resp.Body.Close()
	r = &reply{status: resp.StatusCode, header: resp.Header}
	r.body, err = egress.ReadBody(resp, maxCompletion)
	switch {
	case errors.Is(err, egress.ErrTooLarge):
		return nil, true, failure(flow.AskInvalid, fmt.Sprintf("the model's endpoint answered more than %d bytes", maxCompletion), err)
	case err != nil:
		return nil, true, unreachable(ctx, s, err)
	}
	return r, true, nil
}

// unreachable says why a call did not come about. The *url.Error is left out,
// because it repeats the whole URL.
func unreachable(ctx context.Context, s flow.ModelSettings, err error) error {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	if ctx.Err() != nil {
		return asAskError(ctx, flow.AskUnreachable, err)
	}
	return failure(flow.AskUnreachable, "the model cannot be asked: "+withoutKey(err.Error(), s), err)
}

func withoutKey(text string, s flow.ModelSettings) string {
	if s.Key == "" {
		return text
	}
	return strings.ReplaceAll(text, s.Key, "[model.key]")
}

// mayRefuseSchema reports whether the same question without a schema may be
// answered.
func (r *reply) mayRefuseSchema() bool {
	return r.status == http.StatusBadRequest || r.status == http.StatusUnprocessableEntity || r.status == http.StatusNotImplemented
}

// pause says how long to wait before the call-th call is made again, and
// whether the status is one that passes.
func (r *reply) pause(call int) (time.Duration, bool) {
	switch r.status {
	case http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout, 529:
	default:
		return 0, false
	}
	wait := busyPause << (call - 1)
	if text := strings.TrimSpace(r.header.Get("Retry-After")); text != "" {
		if n, err := strconv.ParseUint(text, 10, 31); err == nil {
			wait = time.Duration(n) * time.Second
		} else if at, err := http.ParseTime(text); err == nil {
			wait = max(time.Until(at), 0)
		}
	}
	return wait, true
}

func roomFor(ctx context.Context, wait time.Duration) bool {
	end, ok := ctx.Deadline()
	return !ok || time.Until(end) > wait+leastTime
}

func (m *Model) sleep(ctx context.Context, d time.Duration) error {
	after, stop := m.clock.After(d)
	defer stop()
	select {
	case <-after:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// failure is an error status in a sentence: what it was, what the endpoint
// says, and which setting would mend it.
func (r *reply) failure(s flow.ModelSettings) error {
	text := fmt.Sprintf("the model's endpoint answered HTTP %d", r.status)
	if name := http.StatusText(r.status); name != "" {
		text += " " + name
	}
	if said := errorText(r.body); said != "" {
		text += ": " + short(withoutKey(said, s), 120)
	}
	switch {
	case r.status == http.StatusUnauthorized && s.Key == "":
		text += " (model.key is not set)"
	case r.status == http.StatusUnauthorized, r.status == http.StatusForbidden:
		text += " (check model.key)"
	case r.status == http.StatusNotFound:
		text += " (check model.url and model.name)"
	case r.status/100 == 3:
		text += " (redirects are not followed: set model.url to where it leads)"
	case r.status == http.StatusTooManyRequests && r.header.Get("Retry-After") != "":
		text += " (Retry-After: " + short(r.header.Get("Retry-After"), 40) + ")"
	}
	return failure(flow.AskUnreachable, text, nil)
}

// errorText finds what an error's body says: OpenAI's form, the same in an
// array, a bare text, a message.
func errorText(body []byte) string {
	var list []json.RawMessage
	if json.Unmarshal(body, &list) == nil && len(list) > 0 {
		body = list[0]
	}
	var e struct {
		Error   json.RawMessage `json:"error"`
		Message string          `json:"message"`
	}
	if json.Unmarshal(body, &e) != nil {
		return ""
	}
	var inner struct {
		Message string `json:"message"`
	}
	var text string
	switch {
	case json.Unmarshal(e.Error, &inner) == nil && inner.Message != "":
		return inner.Message
	case json.Unmarshal(e.Error, &text) == nil && text != "":
		return text
	}
	return e.Message
}
