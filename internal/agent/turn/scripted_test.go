package turn_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	pb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// scripted is an agent that answers what a test says: an outsider's faults
// cannot be had otherwise.
type scripted struct {
	t   *testing.T
	url string

	mu     sync.Mutex
	card   func() string
	send   func(n int, q call) string // the n-th message, from 1: a result, or what the answer is
	get    func(n int, q call) string
	sent   []call
	polled []call
	cards  int
	cancel int
	stop   func() // hears of a task that is to be cancelled
}

// call is a request as it came.
type call struct {
	Method string
	Auth   string
	Params struct {
		ID      string
		Message struct {
			MessageID, ContextID, TaskID string
			Parts                        []map[string]any
			Metadata                     map[string]any
		}
		Configuration map[string]any
	}
	raw string
}

// A result that begins with one of these is no result but the whole answer.
const (
	asBody = "body:"   // with status 200
	asCode = "status:" // status:503 text
	asRPC  = "error:"  // a JSON-RPC error object
)

func (s *scripted) cancelled() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cancel
}

func task(id, context, state, more string) string {
	return fmt.Sprintf(`{"id":%q,"contextId":%q,"status":{"state":"TASK_STATE_%s"%s}}`, id, context, state, more)
}

func saying(text string) string {
	return fmt.Sprintf(`,"message":{"messageId":"m","role":"ROLE_AGENT","parts":[{"text":%q}]}`, text)
}

func newScripted(t *testing.T) *scripted {
	t.Helper()
	s := &scripted{t: t}
	s.send = func(int, call) string { return `{"task":` + task("t-1", "c-1", "COMPLETED", saying("done")) + `}` }
	s.get = func(int, call) string { return task("t-1", "c-1", "COMPLETED", saying("done")) }
	srv := httptest.NewServer(s)
	t.Cleanup(srv.Close)
	s.url = srv.URL
	s.card = func() string { return s.plainCard("") }
	return s
}

func (s *scripted) plainCard(more string) string {
	return `{"name":"Helper","description":"d","supportedInterfaces":[{"url":"` + s.url + `/rpc","protocolBinding":"JSONRPC","protocolVersion":"1.0"}]` + more + `}`
}

func (s *scripted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Method == http.MethodGet {
		s.cards++
		if r.Header.Get("Authorization") != "" {
			s.t.Errorf("the card was asked for with a token")
		}
		s.answer(w, "", asBody+s.card())
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		s.t.Errorf("body: %v", err)
	}
	q := call{Auth: r.Header.Get("Authorization"), raw: string(body)}
	var envelope struct {
		ID     json.RawMessage
		Method string
		Params json.RawMessage
	}
	if err := json.Unmarshal(body, &envelope); err != nil {
		s.t.Errorf("not JSON-RPC: %s", body)
	}
	if err := json.Unmarshal(envelope.Params, &q.Params); err != nil {
		s.t.Errorf("params: %v in %s", err, body)
	}
	q.Method = envelope.Method
	s.strict(q.Method, envelope.Params)
	switch q.Method {
	case "SendMessage", "message/send":
		s.sent = append(s.sent, q)
		s.answer(w, string(envelope.ID), s.send(len(s.sent), q))
	case "GetTask", "tasks/get":
		s.polled = append(s.polled, q)
		s.answer(w, string(envelope.ID), s.get(len(s.polled), q))
	default:
		if s.cancel++; s.stop != nil {
			s.stop()
		}
		s.answer(w, string(envelope.ID), task("t-1", "c-1", "CANCELED", ""))
	}
}

// strict has a reader of the protocol buffer take what was written in 1.0.
func (s *scripted) strict(method string, params []byte) {
	var into proto.Message
	switch method {
	case "SendMessage":
		into = &pb.SendMessageRequest{}
	case "GetTask":
		into = &pb.GetTaskRequest{}
	case "CancelTask":
		into = &pb.CancelTaskRequest{}
	default:
		return
	}
	if err := (protojson.UnmarshalOptions{}).Unmarshal(params, into); err != nil {
		s.t.Errorf("a strict reader refuses %s %s: %v", method, params, err)
	}
}

func (s *scripted) answer(w http.ResponseWriter, id, what string) {
	switch {
	case strings.HasPrefix(what, asBody):
		io.WriteString(w, strings.TrimPrefix(what, asBody))
	case strings.HasPrefix(what, asCode):
		code, text, _ := strings.Cut(strings.TrimPrefix(what, asCode), " ")
		var n int
		fmt.Sscan(code, &n)
		w.WriteHeader(n)
		io.WriteString(w, text)
	case strings.HasPrefix(what, asRPC):
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":%s}`, id, strings.TrimPrefix(what, asRPC))
	default:
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, id, what)
	}
}

// seen gives what came.
func (s *scripted) seen() (sent, polled []call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]call(nil), s.sent...), append([]call(nil), s.polled...)
}

// set changes the script.
func (s *scripted) set(f func()) { s.mu.Lock(); defer s.mu.Unlock(); f() }
