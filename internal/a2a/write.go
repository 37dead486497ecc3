package a2a

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// Dialect is a spelling of the protocol.
type Dialect string

// The dialects. Recovery is 1.0 plus a "type" in each part, which the recovery
// specification prints and strict 1.0 servers refuse.
const (
	V1       Dialect = "1.0"
	V03      Dialect = "0.3"
	Recovery Dialect = "recovery"
)

// version is the A2A-Version header of the dialect.
func (d Dialect) version() string {
	if d == V03 {
		return "0.3"
	}
	return "1.0"
}

// operation is one of the three things that are ever asked.
type operation int

const (
	opSend operation = iota
	opGet
	opCancel
)

// method is the JSON-RPC method of the operation.
func (d Dialect) method(op operation) string {
	if d == V03 {
		return [...]string{"message/send", "tasks/get", "tasks/cancel"}[op]
	}
	return [...]string{"SendMessage", "GetTask", "CancelTask"}[op]
}

// Out is one message to send. It has no task id on purpose: every message
// starts a new task, and contexts and tasks are the server's to name.
type Out struct {
	ID        string          // the JSON-RPC id; HTTP+JSON has none
	MessageID string          // stable across retries of the transport
	ContextID string          // as the agent gave it; empty at first
	Text      string          // becomes a text part
	Data      json.RawMessage // any JSON value; becomes a data part
	Metadata  map[string]any

	ReturnImmediately   bool     // the agent should answer with a working task
	AcceptedOutputModes []string // media types
}

type message struct {
	Kind      string         `json:"kind,omitempty"`
	MessageID string         `json:"messageId"`
	Role      string         `json:"role"`
	ContextID string         `json:"contextId,omitempty"`
	Parts     []outPart      `json:"parts"`
	Metadata  map[string]any `json:"metadata,omitempty"`
}

type outPart struct {
	Kind string          `json:"kind,omitempty"`
	Type string          `json:"type,omitempty"`
	Text string          `json:"text,omitempty"`
	Data json.RawMessage `json:"data,omitempty"`
}

type configuration struct {
	ReturnImmediately   bool     `json:"returnImmediately,omitempty"`
	Blocking            *bool    `json:"blocking,omitempty"`
	AcceptedOutputModes []string `json:"acceptedOutputModes,omitempty"`
}

type sendParams struct {
	Message       message        `json:"message"`
	Configuration *configuration `json:"configuration,omitempty"`
	Tenant        string         `json:"tenant,omitempty"`
}

type taskParams struct {
	ID     string `json:"id"`
	Tenant string `json:"tenant,omitempty"`
}

type envelope struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      string          `json:"id"`
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params"`
}

// writeMessage is the SendMessage request in the dialect: the params of the
// envelope, and the whole body over HTTP+JSON.
func writeMessage(o Out, d Dialect, tenant string) (json.RawMessage, error) {
	m := message{MessageID: o.MessageID, Role: "ROLE_USER", ContextID: o.ContextID, Metadata: o.Metadata}
	if d == V03 {
		m.Kind, m.Role, tenant = "message", "user", ""
	}
	if o.Text != "" {
		m.Parts = append(m.Parts, outPart{Text: o.Text}.spell("text", d))
	}
	if !isNull(o.Data) {
		data, err := portable(o.Data)
		if err != nil {
			return nil, fault(ErrMessage, "its data is not JSON: %v", err)
		}
		if d == V03 && data[0] != '{' { // 0.3 allows objects only
			data = append(append([]byte(`{"value":`), data...), '}')
		}
		m.Parts = append(m.Parts, outPart{Data: data}.spell("data", d))
	}
	if len(m.Parts) == 0 {
		return nil, fault(ErrMessage, "it has neither text nor data")
	}
	return encode(sendParams{Message: m, Configuration: configure(o, d), Tenant: tenant})
}

func (p outPart) spell(kind string, d Dialect) outPart {
	switch d {
	case V03:
		p.Kind = kind
	case Recovery:
		p.Type = kind
	}
	return p
}

func configure(o Out, d Dialect) *configuration {
	if !o.ReturnImmediately && len(o.AcceptedOutputModes) == 0 {
		return nil
	}
	c := &configuration{AcceptedOutputModes: o.AcceptedOutputModes, ReturnImmediately: o.ReturnImmediately}
	if d == V03 && o.ReturnImmediately { // 0.3 servers block unless told not to
		c.ReturnImmediately, c.Blocking = false, new(bool)
	}
	return c
}

// encode is json.Marshal without the escaping that is meant for HTML pages.
func encode(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, fault(ErrMessage, "it cannot be written as JSON: %v", err)
	}
	return bytes.TrimSpace(b.Bytes()), nil
}

// portable rewrites JSON so that strict readers accept it: no member twice, no
// broken UTF-8, no half of a surrogate pair, and no number outside the range
// of a double (it becomes a string).
func portable(raw json.RawMessage) (json.RawMessage, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if d.More() {
		return nil, fmt.Errorf("more than one value")
	}
	return encode(inRange(v))
}

func inRange(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			v[k] = inRange(e)
		}
	case []any:
		for i, e := range v {
			v[i] = inRange(e)
		}
	case json.Number:
		if _, err := strconv.ParseFloat(v.String(), 64); err != nil {
			return v.String()
		}
	case string:
		return strings.ToValidUTF8(v, "�")
	}
	return v
}
