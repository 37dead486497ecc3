// Package chain makes the audit record one that cannot be changed unseen: the
// rows of a commit make a link, whose hash covers the link before it.
//
// A row's canonical text is the JSON of RFC 8785 of its members without seq
// and hash. A link's hash is the SHA-256, in hex, of the canonical JSON
//
//	{"first":SEQ,"previous":HASH,"rows":[ROW,...]}
//
// where first is the seq of its first row and previous the hash of the link
// before, "" for none. It stands at the link's last row.
package chain

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"time"

	"github.com/gowebpki/jcs"

	"github.com/longstop-dev/longstop/internal/flow"
)

// Canonical gives a row's canonical text. It answers invalid if the details
// are no JSON object.
func Canonical(a flow.Audit) ([]byte, error) {
	bad := flow.Errorf(flow.CodeInvalid, "the details of an audit row are no JSON object").At("details")
	if details := bytes.TrimSpace(a.Details); len(details) == 0 || details[0] != '{' {
		return nil, bad
	}
	details, err := jcs.Transform(a.Details)
	if err != nil {
		return nil, bad.Because(err)
	}
	text := make([]byte, 0, 256+len(details))
	for _, m := range []struct{ name, value string }{ // in the order of their names
		{"at", a.At.UTC().Format(time.RFC3339Nano)}, {"author", a.Author}, {"details", ""}, {"keyId", a.KeyID}, {"op", a.Op},
		{"outcome", a.Outcome}, {"target", a.Target}, {"workspace", a.Workspace}} {
		text = append(append(append(text, ",\""...), m.name...), "\":"...)
		if m.name == "details" {
			text = append(text, details...)
		} else if text, err = appendText(text, m.value); err != nil {
			return nil, bad.Because(err)
		}
	}
	text[0] = '{'
	return append(text, '}'), nil
}

// appendText adds a text as canonical JSON has it. Most hold nothing that is
// written otherwise than it is.
func appendText(to []byte, text string) ([]byte, error) {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			raw, err := json.Marshal([]string{text})
			if err != nil {
				return to, err
			}
			list, err := jcs.Transform(raw)
			if err != nil {
				return to, err
			}
			return append(to, list[1:len(list)-1]...), nil
		}
	}
	return append(append(append(to, '"'), text...), '"'), nil
}

// Link gives the hash of the link of some rows, by their canonical texts, of
// which the first has the seq first.
func Link(previous string, first int64, rows [][]byte) string {
	h := sha256.New()
	h.Write([]byte(`{"first":`))
	h.Write(strconv.AppendInt(nil, first, 10))
	h.Write([]byte(`,"previous":"`)) // hex, or what somebody has written in its place: the hash is another then
	h.Write([]byte(previous))
	h.Write([]byte(`","rows":[`))
	for i, row := range rows {
		if i > 0 {
			h.Write([]byte{','})
		}
		h.Write(row)
	}
	h.Write([]byte(`]}`))
	return hex.EncodeToString(h.Sum(nil))
}
