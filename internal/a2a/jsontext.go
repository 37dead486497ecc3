package a2a

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"

	"github.com/longstop-dev/longstop/internal/flow"
)

// object is a JSON object read one member at a time, so that a member of an
// unexpected type costs that member and not the whole answer.
type object map[string]json.RawMessage

// asObject reads raw as an object; nil if it is anything else.
func asObject(raw json.RawMessage) object {
	var o object
	if !begins(raw, '{') || json.Unmarshal(raw, &o) != nil {
		return nil
	}
	return o
}

// asList reads raw as an array; nil if it is anything else.
func asList(raw json.RawMessage) []json.RawMessage {
	var l []json.RawMessage
	if !begins(raw, '[') || json.Unmarshal(raw, &l) != nil {
		return nil
	}
	return l
}

// text is the first of the named members that is a non-empty string.
func (o object) text(names ...string) string {
	for _, n := range names {
		var s string
		if json.Unmarshal(o[n], &s) == nil && s != "" {
			return s
		}
	}
	return ""
}

// has says whether the member is there and not null.
func (o object) has(name string) bool { return !isNull(o[name]) }

func isNull(raw json.RawMessage) bool {
	raw = bytes.TrimSpace(raw)
	return len(raw) == 0 || string(raw) == "null"
}

// number reads a JSON number or a numeric string that is a whole number.
func number(raw json.RawMessage) (int64, bool) {
	var f float64
	if json.Unmarshal(raw, &f) != nil {
		var s string
		if json.Unmarshal(raw, &s) != nil {
			return 0, false
		}
		var err error
		if f, err = strconv.ParseFloat(strings.TrimSpace(s), 64); err != nil {
			return 0, false
		}
	}
	if f != math.Trunc(f) || math.Abs(f) > 1<<53 {
		return 0, false
	}
	return int64(f), true
}

func trimBOM(b []byte) []byte {
	return bytes.TrimSpace(bytes.TrimPrefix(bytes.TrimSpace(b), []byte("\xef\xbb\xbf")))
}

// begins tells cheaply what kind of value raw is: the parser's error costs
// much more, and an agent can ask for millions of them.
func begins(raw json.RawMessage, c byte) bool {
	raw = bytes.TrimLeft(raw, " \t\r\n")
	return len(raw) > 0 && raw[0] == c
}

// maxValues bounds how many values an answer may have: one of two bytes costs
// a hundred when it is read.
const maxValues = 100_000

// oversized says what of b is more than is read; nil if nothing is. It is asked
// before b is parsed.
func oversized(b []byte, maxDepth int) error {
	switch depth, commas := flow.JSONSize(b); {
	case depth > maxDepth:
		return fault(ErrTooDeep, "more than %d levels", maxDepth)
	case commas > maxValues:
		return fault(ErrTooLarge, "more than %d values", maxValues)
	}
	return nil
}

// count reads a number of tokens: a part of one is one, and what is larger
// than a number can tell apart is that number. It is not ok for what is no
// number, or below nothing.
func count(raw json.RawMessage) (n int64, ok bool) {
	const most = 1 << 53
	text := strings.TrimSpace(strings.Trim(string(bytes.TrimSpace(raw)), `"`))
	f, err := strconv.ParseFloat(text, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) || f < 0 || strings.ContainsAny(text, "xXpP_nN") { // no hexadecimal, no Inf, no NaN
		return 0, false
	}
	return int64(min(math.Ceil(f), most)), true
}
