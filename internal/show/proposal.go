package show

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/longstop-dev/longstop/internal/flow"
)

// Proposal writes what a gate asks a person to approve: the question of an
// approval step, or a code fix with what it makes of the answer. Anything else
// is written as it is.
func Proposal(w io.Writer, ink Ink, indent string, raw json.RawMessage) {
	proposal(w, ink, indent, raw, true)
}

// proposal leaves out what a code fix changes if that has been shown already.
func proposal(w io.Writer, ink Ink, indent string, raw json.RawMessage, changes bool) {
	if len(raw) == 0 {
		return
	}
	var p struct {
		flow.Approval
		From          string          `json:"from"` // of a question
		Type          flow.ActionType `json:"type"`
		Code          string          `json:"code"`
		Input, Output any
	}
	if json.Unmarshal(raw, &p) != nil {
		p.Type, p.Message = "", ""
	}
	switch {
	case p.Type == flow.ActionCodeFix:
		fmt.Fprintf(w, "%sthe code:\n%s\n", indent, block(p.Code, indent+"  "))
		if !changes {
			return
		}
		fmt.Fprintf(w, "%swhat it makes of the answer:\n", indent)
		Diff(w, ink, indent+"  ", p.Input, p.Output)
	case p.From != "":
		fmt.Fprintf(w, "%s%s asks: %s\n", indent, Line(p.From, 100), Line(p.Message, 300))
	case p.Message != "":
		fmt.Fprintf(w, "%sto approve: %s\n", indent, Line(p.Message, 300))
		if len(p.Form) > 0 {
			fmt.Fprintf(w, "%sto fill in: %s\n", indent, Line(string(p.Form), 300))
		}
	default:
		fmt.Fprintf(w, "%sto approve: %s\n", indent, Line(string(raw), 300))
	}
}

// block is text from outside, each line of it indented.
func block(text, indent string) string {
	return indent + strings.ReplaceAll(strings.TrimRight(Clean(text), "\n"), "\n", "\n"+indent)
}
