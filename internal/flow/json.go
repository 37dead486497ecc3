package flow

import (
	"bytes"
	"encoding/json"
)

// PlainJSON is json.Marshal without the escapes that are meant for HTML: those
// make six bytes of one, and another text of the same value.
func PlainJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}
