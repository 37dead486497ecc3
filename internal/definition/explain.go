package definition

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/longstop-dev/longstop/internal/flow"
)

// problem is one way in which a value breaks a schema. It tells what the
// schema wants and never what the value is.
type problem struct {
	where   []string // JSON pointer's tokens
	message string
	fix     string
	wants   []string // kinds, if the kind of the value is what is wrong
	needs   []string // members, if they are missing
}

// public gives the problem to a user, under a path.
func (p problem) public(base string) flow.Problem {
	return flow.Problem{Field: fieldPath(base, p.where), Message: p.message, Fix: p.fix}
}

// fieldPath writes a place as a path: base.items[2].id.
func fieldPath(base string, tokens []string) string {
	var b strings.Builder
	b.WriteString(base)
	for _, t := range tokens {
		switch {
		case isIndex(t):
			b.WriteString("[" + t + "]")
		case isPlain(t) && b.Len() > 0:
			b.WriteString("." + t)
		case isPlain(t):
			b.WriteString(t)
		default:
			fmt.Fprintf(&b, "[%q]", clip(t))
		}
	}
	return b.String()
}

func isIndex(s string) bool {
	return s != "" && len(s) < 10 && strings.Trim(s, "0123456789") == ""
}

func isPlain(s string) bool {
	return s != "" && len(s) <= 60 && strings.IndexFunc(s, func(r rune) bool {
		return r != '_' && r != '-' && r != '$' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	}) < 0
}

// explain turns an error of the library into problems, the most telling ones
// where a value fits none of several alternatives. doc is the schema, for what
// it says beside its rules; nil if it is not at hand.
func explain(e *jsonschema.ValidationError, doc any) []problem {
	x := explainer{doc: doc}
	found := x.explain(e)
	if len(found) == 0 {
		found = []problem{{message: "does not satisfy its JSON Schema"}}
	}
	slices.SortStableFunc(found, func(a, b problem) int { // the library goes through maps
		return slices.Compare(a.where, b.where)
	})
	return found[:min(len(found), maxProblems)]
}

type explainer struct{ doc any }

func (x explainer) explain(e *jsonschema.ValidationError) []problem {
	switch k := e.ErrorKind.(type) {
	case *kind.AnyOf:
		return x.alternatives(e)
	case *kind.OneOf:
		if len(k.Subschemas) == 0 {
			return x.alternatives(e)
		}
		return []problem{{where: e.InstanceLocation, message: "fits more than one of the alternatives"}}
	}
	if len(e.Causes) > 0 {
		var all []problem
		for _, c := range e.Causes {
			if all = append(all, x.explain(c)...); len(all) > maxProblems {
				break
			}
		}
		return all
	}
	if k, ok := e.ErrorKind.(*kind.AdditionalProperties); ok {
		return x.unknown(e, k.Properties)
	}
	if k, ok := e.ErrorKind.(*kind.Required); ok {
		return x.required(e, k.Missing)
	}
	p := x.leaf(e)
	p.where = e.InstanceLocation
	return []problem{p}
}

// alternatives picks out of several the one that was meant.
func (x explainer) alternatives(e *jsonschema.ValidationError) []problem {
	var meant [][]problem
	template := false
	for _, c := range e.Causes {
		if x.isTemplate(c) {
			template = true
			continue
		}
		meant = append(meant, x.explain(c))
	}
	here := len(e.InstanceLocation)
	deeper := slices.DeleteFunc(slices.Clone(meant), func(ps []problem) bool {
		return slices.ContainsFunc(ps, func(p problem) bool { return len(p.where) == here && len(p.wants) > 0 })
	})
	switch {
	case len(meant) == 1:
		return orTemplate(meant[0], template)
	case len(meant) == 0:
		return nil
	case len(deeper) == 1:
		return deeper[0]
	}
	var wants, needs []string
	for _, ps := range meant {
		if len(ps) == 1 && len(ps[0].where) == here {
			wants = append(wants, ps[0].wants...)
		}
		if len(ps) == 1 && len(ps[0].where) == here+1 {
			needs = append(needs, ps[0].needs...)
		}
	}
	switch {
	case len(wants) > 0 && len(deeper) == 0:
		return orTemplate([]problem{kindProblem(e.InstanceLocation, wants)}, template)
	case len(needs) == len(meant):
		return []problem{{where: e.InstanceLocation, message: strings.Join(needs, " or ") + " is missing", fix: "give one of them"}}
	}
	return []problem{{where: e.InstanceLocation, message: "fits none of the alternatives"}}
}

func orTemplate(ps []problem, template bool) []problem {
	if template && len(ps) == 1 && ps[0].fix != "" && !strings.HasPrefix(ps[0].fix, "did you") && !strings.HasSuffix(ps[0].fix, "a template") {
		ps[0].fix += ", or a template"
	}
	return ps
}

// isTemplate tells whether an alternative is "a text that holds a template".
func (x explainer) isTemplate(e *jsonschema.ValidationError) bool {
	if k, ok := e.ErrorKind.(*kind.Pattern); ok && k.Want == `\{\{` {
		return true
	}
	if object, ok := x.schemaOf(e).(map[string]any); ok {
		return object["pattern"] == `\{\{`
	}
	return len(e.Causes) == 1 && x.isTemplate(e.Causes[0])
}

// schemaOf gives the subschema that an error comes from.
func (x explainer) schemaOf(e *jsonschema.ValidationError) any {
	_, fragment, _ := strings.Cut(e.SchemaURL, "#")
	if pointer, err := url.PathUnescape(fragment); err == nil && x.doc != nil {
		if found, ok := lookup(x.doc, pointer); ok {
			return found
		}
	}
	return nil
}

func (x explainer) unknown(e *jsonschema.ValidationError, names []string) []problem {
	var known []string
	if object, ok := x.schemaOf(e).(map[string]any); ok {
		members, _ := object["properties"].(map[string]any)
		for k := range members {
			known = append(known, k)
		}
	}
	slices.Sort(known)
	slices.Sort(names)
	var all []problem
	for _, name := range names[:min(len(names), maxProblems)] {
		all = append(all, problem{where: append(slices.Clone(e.InstanceLocation), name), message: fmt.Sprintf("unknown member %q", clip(name)), fix: suggest(name, known)})
	}
	return all
}

// within is a sentence that goes on another: its first letter is a small one,
// unless it begins an abbreviation, and it has no stop.
func within(sentence string) string {
	sentence = strings.TrimSuffix(sentence, ".")
	if sentence == "" {
		return ""
	}
	first, n := utf8.DecodeRuneInString(sentence)
	if second, _ := utf8.DecodeRuneInString(sentence[n:]); unicode.IsUpper(second) {
		return sentence
	}
	return string(unicode.ToLower(first)) + sentence[n:]
}

func (x explainer) required(e *jsonschema.ValidationError, names []string) []problem {
	object, _ := x.schemaOf(e).(map[string]any)
	members, _ := object["properties"].(map[string]any)
	var all []problem
	for _, name := range names[:min(len(names), maxProblems)] {
		p := problem{where: append(slices.Clone(e.InstanceLocation), name), message: fmt.Sprintf("%s is missing", clip(name)), needs: []string{clip(name)}}
		if about, ok := members[name].(map[string]any); ok {
			description, _ := about["description"].(string)
			p.fix = within(description)
		}
		all = append(all, p)
	}
	return all
}
