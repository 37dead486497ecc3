package flow

import (
	"encoding/json"
	"time"
)

// Audit is a row of a workspace's audit record: who changed what, and when. It
// is written together with what it tells of or not at all, and is never
// changed again. It holds no secret.
type Audit struct {
	Seq       int64           `json:"seq" doc:"Counts the workspace's rows from 1."`
	At        time.Time       `json:"at"`
	Workspace string          `json:"workspace"`
	Author    string          `json:"author" doc:"The person's id."`
	KeyID     string          `json:"keyId" doc:"The key that was used; local for this process itself."`
	Op        string          `json:"op" doc:"The operation: runs.start, keys.revoke."`
	Target    string          `json:"target" doc:"What was changed: run/ID, setting/KEY, person/ID."`
	Outcome   string          `json:"outcome" doc:"done."`
	Details   json.RawMessage `json:"details" doc:"More about it, masked."`
	Hash      string          `json:"hash,omitempty" doc:"Of the chain up to here, where a commit's rows end."`
}

// AuditDone is the outcome of what was changed.
const AuditDone = "done"

// AuditHead is where a workspace's audit record ends: its last row, and the
// hash that stands for it and all before it.
type AuditHead struct {
	Seq  int64  `json:"seq" doc:"Of the last row; 0 for an empty record."`
	Hash string `json:"hash" doc:"Keep it elsewhere: a record that was cut or written anew no longer holds it."`
}

// AuditFilter narrows a list of audit rows.
type AuditFilter struct {
	Workspace string
	Author    string    // "" for all
	Op        string    // one operation, or "keys." for all whose names begin so; "" for all
	Target    string    // one target, or "run/" for all that begin so; "" for all
	From, To  time.Time // at or after, before; zero for all
	After     int64     // only rows beyond this one, in the order of the list; 0 for all
	Oldest    bool      // the oldest first, else the newest
	Limit     int
}

// Did makes the row that tells what the caller has changed: the operation's
// name, a target such as "run/run_1", and details that are an object, masked,
// or nil.
func (c Caller) Did(op, target string, at time.Time, details any) Audit {
	a := Audit{At: at.UTC().Truncate(time.Microsecond), Workspace: c.Workspace, Author: c.Person, KeyID: c.KeyID, Op: op, Target: target,
		Outcome: AuditDone, Details: json.RawMessage("{}")}
	if details != nil {
		if raw, err := json.Marshal(details); err == nil && string(raw) != "null" { // our own structs and maps, which marshal
			a.Details = raw
		}
	}
	for _, text := range []*string{&a.Author, &a.KeyID, &a.Target} {
		*text = PlainText(*text)
	}
	return a
}
