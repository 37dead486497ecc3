package agentkit

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"strings"
)

// Ask is what an event asks of an agent.
type Ask struct {
	Text       string          // what the agent is told
	Data       json.RawMessage // the rest of the event's payload; nil for none
	ContextID  string          // of the conversation: the same in all its turns
	VaultID    string
	Scope      string
	JobID      string
	TaskID     string // the turn's
	EventType  string
	OnBehalfOf string  // a person's public key; "" for nobody
	Claims     *Claims // of the execution token; nil if the desk verifies none
}

// Reply is what an agent answers. It has a text, data, or both.
type Reply struct {
	Text string
	Data any   // JSON: what a workflow's step gets as its output
	Asks bool  // the text is a question: the person's reply is the next turn of the conversation
	Used Usage // tokens, for the vault owner's ceiling
}

// Usage is what an answer has cost.
type Usage struct {
	InputTokens  int64 `json:"inputTokens"`
	OutputTokens int64 `json:"outputTokens"`
}

// Desk is an agent that answers events of vaults and agent steps of workflows
// over A2A 1.0. It answers at once, within the turn's 15 minutes.
type Desk struct {
	Name        string
	Description string
	Version     string // default 1.0.0

	// Answer answers one turn. An error fails the turn, which is tried again;
	// its text is told.
	Answer func(ctx context.Context, a Ask) (Reply, error)

	// Verify, if set, lets only execution tokens through that it finds good,
	// and has the card require them.
	Verify *Verifier
}

// Handler serves the desk: its card and JSON-RPC. publicURL is where Longstop
// reaches it.
func (d *Desk) Handler(publicURL string) http.Handler {
	base := strings.TrimRight(publicURL, "/")
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/agent-card.json", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, http.StatusOK, contentJSON, d.card(base))
	})
	mux.HandleFunc("POST /{$}", d.serve)
	return mux
}

func (d *Desk) card(base string) object {
	modes := []string{"text/plain", "application/json"}
	c := object{
		"name": d.Name, "description": d.Description, "version": cmp.Or(d.Version, defaultVersion),
		"supportedInterfaces": []object{{"url": base + "/", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}},
		"capabilities":        object{}, "defaultInputModes": modes, "defaultOutputModes": modes,
		"skills": []object{{"id": "answer", "name": d.Name, "description": d.Description, "tags": []string{"turns"}}},
	}
	if d.Verify != nil {
		c["securitySchemes"] = object{"execution": object{"httpAuthSecurityScheme": object{"scheme": "bearer", "bearerFormat": "JWT"}}}
		c["securityRequirements"] = []object{{"schemes": object{"execution": object{"list": []string{}}}}}
	}
	return c
}

// maxTurn bounds the request of a turn, in bytes: an event holds 1 MiB.
const maxTurn = 4 << 20

// turnEnvelope is a request of a turn.
type turnEnvelope struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Message struct {
			ContextID string `json:"contextId"`
			Parts     []struct {
				Text string          `json:"text"`
				Data json.RawMessage `json:"data"`
			} `json:"parts"`
			Metadata struct {
				VaultID, Scope, JobID, TaskID, EventType, OnBehalfOf string
			} `json:"metadata"`
		} `json:"message"`
	} `json:"params"`
}

func (d *Desk) serve(w http.ResponseWriter, r *http.Request) {
	var claims *Claims
	if d.Verify != nil {
		var err error
		if claims, err = d.Verify.Verify(r); err != nil {
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, err.Error(), http.StatusUnauthorized)
			return
		}
	}
	body, ok := readBody(w, r, maxTurn)
	if !ok {
		return
	}
	var q turnEnvelope
	var result object
	var err error
	if json.Unmarshal(body, &q) != nil {
		err = &rpcError{codeParse, "this is not JSON-RPC"}
	} else {
		result, err = d.result(r.Context(), q, claims)
	}
	answer := object{"jsonrpc": "2.0", "id": orNull(q.ID)}
	if err != nil {
		answer["error"] = asRPC(err)
	} else {
		answer["result"] = result
	}
	reply(w, http.StatusOK, contentJSON, answer)
}

// result is what a request comes to: a task that has ended.
func (d *Desk) result(ctx context.Context, q turnEnvelope, claims *Claims) (object, error) {
	switch q.Method {
	case dialect10:
	case "GetTask", "CancelTask":
		return nil, &rpcError{codeNoTask, "this agent answers at once and keeps no tasks"}
	default:
		return nil, &rpcError{codeMethod, "this agent serves SendMessage"}
	}
	m := q.Params.Message
	a := Ask{ContextID: m.ContextID, VaultID: m.Metadata.VaultID, Scope: m.Metadata.Scope, JobID: m.Metadata.JobID, TaskID: m.Metadata.TaskID,
		EventType: m.Metadata.EventType, OnBehalfOf: m.Metadata.OnBehalfOf, Claims: claims}
	for _, p := range m.Parts {
		if p.Text != "" && a.Text == "" {
			a.Text = p.Text
		}
		if len(p.Data) > 0 && a.Data == nil {
			a.Data = p.Data
		}
	}
	if a.Text == "" && a.Data == nil {
		return nil, &rpcError{codeParams, "the message has neither text nor data"}
	}
	if claims != nil { // what is signed counts
		a.VaultID, a.Scope, a.JobID, a.TaskID, a.OnBehalfOf = claims.Vault, claims.Scope, claims.Job, claims.Task, claims.OnBehalfOf
	}
	if a.ContextID == "" {
		a.ContextID = rand.Text()
	}
	said, err := d.Answer(ctx, a)
	if err != nil {
		return nil, err
	}
	return said.task(a.ContextID), nil
}

// task is the reply as A2A has it.
func (s Reply) task(contextID string) object {
	var parts []object
	if s.Text != "" {
		parts = append(parts, object{"text": s.Text})
	}
	if s.Data != nil {
		parts = append(parts, object{"data": s.Data})
	}
	task := object{"id": rand.Text(), "contextId": contextID, "status": object{"state": "TASK_STATE_COMPLETED"}}
	if s.Asks {
		task["status"] = object{"state": "TASK_STATE_INPUT_REQUIRED", "message": object{"messageId": rand.Text(), "role": "ROLE_AGENT", "parts": parts}}
	} else if len(parts) > 0 {
		task["artifacts"] = []object{{"artifactId": rand.Text(), "parts": parts}}
	}
	if s.Used != (Usage{}) {
		task["metadata"] = object{"usage": s.Used}
	}
	return object{"task": task}
}
