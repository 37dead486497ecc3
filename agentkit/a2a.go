package agentkit

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
)

// A2A serves the agent over A2A: its card, JSON-RPC in the dialects 1.0 and
// 0.3, and HTTP+JSON. It answers with a message at once and keeps no tasks.
func (a *Agent) A2A(publicURL string) http.Handler {
	base := strings.TrimRight(publicURL, "/")
	mux := http.NewServeMux()
	card := func(w http.ResponseWriter, _ *http.Request) {
		reply(w, http.StatusOK, contentJSON, a.card(base))
	}
	mux.HandleFunc("GET /.well-known/agent-card.json", card)
	mux.HandleFunc("GET /.well-known/agent.json", card)
	mux.HandleFunc("POST /{$}", a.serveA2A)
	mux.HandleFunc("POST /message:send", a.serveA2A)
	return mux
}

type object map[string]any

// card describes the agent. It is blended: readers of 1.0 take
// supportedInterfaces, those of 0.3 and of a minimal card take url.
func (a *Agent) card(base string) object {
	modes := []string{"application/json"}
	c := object{
		"name": a.Name, "description": a.Description, "version": a.version(),
		"url": base + "/", "preferredTransport": "JSONRPC", "protocolVersion": "0.3.0",
		"supportedInterfaces": []object{
			{"url": base + "/", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"},
			{"url": base, "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0"},
		},
		"capabilities": object{}, "defaultInputModes": modes, "defaultOutputModes": modes,
		"skills": []object{{
			"id": "recover", "name": "Mend a failed step", "tags": []string{"recovery"},
			"description": "Takes RecoveryToolInput as a data part and answers one RecoveryAction.",
		}},
	}
	if a.Token != "" {
		c["securitySchemes"] = object{"token": object{"httpAuthSecurityScheme": object{"scheme": "bearer"}, "type": "http", "scheme": "bearer"}}
		c["securityRequirements"] = []object{{"schemes": object{"token": object{"list": []string{}}}}}
		c["security"] = []object{{"token": []string{}}}
	}
	return c
}

// The error codes of JSON-RPC and A2A that this server answers.
const (
	codeParse      = -32700
	codeRequest    = -32600
	codeMethod     = -32601
	codeParams     = -32602
	codeNoAnswer   = -32000
	codeNoTask     = -32001
	codeBadVersion = -32009
)

// The method by which a message is sent, in each dialect.
const (
	dialect03 = "message/send"
	dialect10 = "SendMessage"
)

// The media types of answers.
const (
	contentJSON     = "application/json"
	contentHTTPJSON = "application/a2a+json"
)

// rpcError is an error of JSON-RPC.
type rpcError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

func (e *rpcError) Error() string { return e.Message }

// asRPC is an error as JSON-RPC has it: the author's own as "no answer".
func asRPC(err error) *rpcError {
	var e *rpcError
	if errors.As(err, &e) {
		return e
	}
	return &rpcError{codeNoAnswer, err.Error()}
}

// envelope is a request: JSON-RPC with params, or HTTP+JSON with message.
type envelope struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  string          `json:"method"`
	Params  struct {
		Message *message `json:"message"`
	} `json:"params"`
	Message *message `json:"message"`
}

type message struct {
	ContextID string `json:"contextId"`
	Parts     []struct {
		Data json.RawMessage `json:"data"`
	} `json:"parts"`
}

// data is the first data part.
func (m *message) data() json.RawMessage {
	if m == nil {
		return nil
	}
	for _, p := range m.Parts {
		if len(p.Data) > 0 && string(p.Data) != "null" {
			return p.Data
		}
	}
	return nil
}

func (a *Agent) serveA2A(w http.ResponseWriter, r *http.Request) {
	if !a.allowed(w, r) {
		return
	}
	body, ok := readBody(w, r, a.maxBody())
	if !ok {
		return
	}
	var q envelope
	if err := json.Unmarshal(body, &q); err != nil {
		a.refuse(w, q, &rpcError{codeParse, "this is not JSON: " + err.Error()})
		return
	}
	result, err := a.result(r.Context(), r.Header.Get("A2A-Version"), q)
	if err != nil {
		a.refuse(w, q, err)
		return
	}
	if q.JSONRPC == "" {
		reply(w, http.StatusOK, contentHTTPJSON, result)
		return
	}
	reply(w, http.StatusOK, contentJSON, object{"jsonrpc": "2.0", "id": orNull(q.ID), "result": result})
}

// readBody reads a request of at most limit bytes. A larger one is refused; ok
// says whether there is something to answer.
func readBody(w http.ResponseWriter, r *http.Request, limit int64) (body []byte, ok bool) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		http.Error(w, "the request is larger than this agent reads", http.StatusRequestEntityTooLarge)
	}
	return body, err == nil // else the caller is gone, or told
}

// result is what a request comes to: an answering message.
func (a *Agent) result(ctx context.Context, version string, q envelope) (object, error) {
	if major, _, _ := strings.Cut(version, "."); major != "" && major != "1" && major != "0" {
		return nil, &rpcError{codeBadVersion, "this agent speaks A2A 1.0 and 0.3"}
	}
	m := q.Params.Message
	switch {
	case q.JSONRPC == "" && q.Method == "":
		m = q.Message
	case q.Method == dialect10, q.Method == dialect03:
	case q.Method == "GetTask", q.Method == "CancelTask", q.Method == "tasks/get", q.Method == "tasks/cancel":
		return nil, &rpcError{codeNoTask, "this agent answers at once and keeps no tasks"}
	case q.Method == "":
		return nil, &rpcError{codeRequest, "method is missing"}
	default:
		return nil, &rpcError{codeMethod, "this agent serves SendMessage"}
	}
	data := m.data()
	if data == nil {
		return nil, &rpcError{codeParams, "the message has no data part: RecoveryToolInput goes there"}
	}
	act, err := a.answer(ctx, data)
	if err != nil {
		return nil, &rpcError{codeNoAnswer, err.Error()}
	}
	if q.Method == dialect03 {
		answer := object{"kind": "message", "role": "agent", "messageId": rand.Text(), "parts": []object{{"kind": "data", "data": act}}}
		return withContext(answer, m.ContextID), nil
	}
	answer := object{"role": "ROLE_AGENT", "messageId": rand.Text(), "parts": []object{{"data": act}}}
	return object{"message": withContext(answer, m.ContextID)}, nil
}

func withContext(answer object, id string) object {
	if id != "" {
		answer["contextId"] = id
	}
	return answer
}

// orNull is a request's id, null if it had none.
func orNull(id json.RawMessage) json.RawMessage {
	if len(id) == 0 {
		return json.RawMessage("null")
	}
	return id
}

// refuse answers an error: of JSON-RPC with status 200, else as HTTP+JSON.
func (a *Agent) refuse(w http.ResponseWriter, q envelope, err error) {
	e := asRPC(err)
	if q.JSONRPC != "" || q.Method != "" || e.Code == codeParse {
		reply(w, http.StatusOK, contentJSON, object{"jsonrpc": "2.0", "id": orNull(q.ID), "error": e})
		return
	}
	status := http.StatusBadRequest
	if e.Code == codeNoAnswer {
		status = http.StatusInternalServerError
	}
	reply(w, status, contentHTTPJSON, object{"error": object{"code": status, "message": e.Message}})
}

func reply(w http.ResponseWriter, status int, contentType string, v any) {
	b, err := json.Marshal(v)
	if err != nil { // an action that is not JSON has been refused before
		http.Error(w, "the answer cannot be written", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(status)
	_, _ = w.Write(b) // the caller may be gone
}
