package api

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/validation"

	"github.com/longstop-dev/longstop/internal/flow"
)

// ofHuma turns huma's refusal into ours, without the values that it repeats.
func ofHuma(schemas huma.Registry, op *huma.Operation, m *huma.ErrorModel) *Problem {
	if len(m.Errors) == 0 {
		switch m.Detail {
		case "request body is required":
			return refuse(m.Status, "the request needs a body", "body", "send a JSON object; GET /openapi.json describes it")
		}
		return refuse(m.Status, "the request cannot be read", "", "GET /openapi.json describes it")
	}
	p := refuse(m.Status, "the request is not valid", "", "")
	for _, d := range m.Errors {
		p.Errors = append(p.Errors, ofDetail(schemas, op, d))
	}
	slices.SortStableFunc(p.Errors, func(a, b flow.Problem) int { return strings.Compare(a.Field, b.Field) })
	first := p.Errors[0]
	p.Field, p.Fix = first.Field, first.Fix
	if len(p.Errors) == 1 {
		p.Detail = first.Message
	}
	return p
}

// ofDetail words one thing that is wrong.
func ofDetail(schemas huma.Registry, op *huma.Operation, d *huma.ErrorDetail) flow.Problem {
	where, field, _ := strings.Cut(d.Location, ".")
	out := flow.Problem{Field: clip(field)}
	if field == "" {
		out.Field = where
	}
	switch {
	case d.Message == validation.MsgUnexpectedProperty:
		name, known := unexpected(schemas, op, field)
		out.Message, out.Fix = fmt.Sprintf("there is no member %q", clip(name)), suggest(name, known)
	case d.Message == "unknown query parameter":
		out.Message, out.Fix = fmt.Sprintf("there is no parameter %q", clip(field)), suggest(field, queryNames(op))
	case strings.HasPrefix(d.Message, "expected required property "):
		name := strings.Fields(strings.TrimPrefix(d.Message, "expected required property "))[0]
		out.Field = strings.TrimPrefix(strings.TrimPrefix(field+"."+name, "."), where+".")
		out.Message, out.Fix = fmt.Sprintf("%q is missing", name), "add it"
	case strings.HasPrefix(d.Message, "required "):
		out.Message, out.Fix = "it is missing", "add it"
	case strings.HasPrefix(d.Message, "expected value to be one of "):
		out.Message, out.Fix = "it is none of the values that there are", "one of "+strings.Trim(strings.TrimPrefix(d.Message, "expected value to be one of "), `"`)
	case strings.HasPrefix(d.Message, "expected "):
		out.Message, out.Fix = "it is of the wrong kind or out of range", strings.TrimPrefix(firstPart(d.Message), "expected ")
	case strings.HasPrefix(d.Message, "invalid "):
		out.Message, out.Fix = "it is of the wrong kind", strings.TrimPrefix(firstPart(d.Message), "invalid ")
	default:
		out.Message, out.Fix = "it cannot be read", "GET /openapi.json describes it"
	}
	return out
}

// firstPart drops what a message quotes of what was sent.
func firstPart(message string) string {
	message, _, _ = strings.Cut(message, ":")
	return message
}

// unexpected finds the object that has no such member: the member's name in
// it, and the names that it knows.
func unexpected(schemas huma.Registry, op *huma.Operation, field string) (name string, known []string) {
	if op.RequestBody == nil || op.RequestBody.Content["application/json"] == nil {
		return field, nil
	}
	s := resolve(schemas, op.RequestBody.Content["application/json"].Schema)
	for name = field; s != nil; {
		head, tail, more := strings.Cut(name, ".")
		head, _, _ = strings.Cut(head, "[")
		next := s.Properties[head]
		if !more || next == nil {
			break
		}
		name = tail
		s = resolve(schemas, next)
		if s != nil && s.Items != nil {
			s = resolve(schemas, s.Items)
		}
	}
	if s != nil {
		for n := range s.Properties {
			known = append(known, n)
		}
	}
	return name, known
}

func queryNames(op *huma.Operation) []string {
	var out []string
	for _, p := range op.Parameters {
		if p.In == "query" {
			out = append(out, p.Name)
		}
	}
	return out
}

// suggest names the nearest of the known names, or all of them.
func suggest(name string, known []string) string {
	if len(known) == 0 {
		return "leave it out"
	}
	slices.Sort(known)
	best, least := "", 3
	for _, k := range known {
		if d := distance(strings.ToLower(name), strings.ToLower(k)); d < least {
			best, least = k, d
		}
	}
	if best != "" {
		return fmt.Sprintf("did you mean %q?", best)
	}
	return "known are " + strings.Join(known, ", ")
}

// distance is the number of letters to change, add or drop between two names,
// for names of up to 64 bytes.
func distance(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return 64
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// clip bounds a name of the caller's that an error repeats.
func clip(name string) string {
	name = strings.ToValidUTF8(name, "\uFFFD")
	if utf8.RuneCountInString(name) > 60 {
		return string([]rune(name)[:60]) + "…"
	}
	return name
}
