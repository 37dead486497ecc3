package definition

import (
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// leaf tells one broken rule.
func (x explainer) leaf(e *jsonschema.ValidationError) problem {
	switch k := e.ErrorKind.(type) {
	case *kind.Type:
		return kindProblem(nil, k.Want)
	case *kind.Enum:
		return oneOf(k)
	case *kind.Const:
		return problem{message: "is not the one value that is allowed", fix: plainValue(k.Want)}
	case *kind.Pattern:
		return x.pattern(e, k)
	case *kind.DependentRequired:
		return problem{message: fmt.Sprintf("%s is missing", strings.Join(k.Missing, " and ")), fix: fmt.Sprintf("it goes with %s", clip(k.Prop))}
	case *kind.Not:
		return x.not(e)
	case *kind.FalseSchema:
		return problem{message: "nothing is allowed here"}
	case *kind.UniqueItems:
		return problem{message: fmt.Sprintf("entries %d and %d are the same", k.Duplicates[0], k.Duplicates[1])}
	case *kind.MinProperties:
		return x.members(e, bound(k), "give one of")
	case *kind.MaxProperties:
		return x.members(e, bound(k), "give only so many of")
	case *kind.Format:
		if k.Want == "regex" {
			return problem{message: "is no regular expression that is understood here", fix: "RE2: no look-around, no back references"}
		}
		return problem{message: "is not what the format " + clip(k.Want) + " wants"}
	case *kind.PropertyNames:
		return problem{message: fmt.Sprintf("the name %q is not allowed", clip(k.Property))}
	}
	return bound(e.ErrorKind)
}

// members adds to a limit on the number of members which ones there are.
func (x explainer) members(e *jsonschema.ValidationError, p problem, what string) problem {
	object, _ := x.schemaOf(e).(map[string]any)
	known, _ := object["properties"].(map[string]any)
	if names := slices.Sorted(maps.Keys(known)); len(names) > 0 && len(names) <= 12 {
		p.fix += ": " + what + " " + strings.Join(names, ", ")
	}
	return p
}

// bound tells a limit that was passed.
func bound(e jsonschema.ErrorKind) problem {
	size := func(what string, got, want int, least bool) problem {
		if least {
			return problem{message: fmt.Sprintf("has %d %s", got, what), fix: fmt.Sprintf("at least %d", want)}
		}
		return problem{message: fmt.Sprintf("has %d %s", got, what), fix: fmt.Sprintf("at most %d", want)}
	}
	amount := func(than string, want *big.Rat) problem {
		return problem{message: "the number is out of range", fix: than + " " + decimal(want)}
	}
	switch k := e.(type) {
	case *kind.MinProperties:
		return size("members", k.Got, k.Want, true)
	case *kind.MaxProperties:
		return size("members", k.Got, k.Want, false)
	case *kind.MinItems:
		return size("entries", k.Got, k.Want, true)
	case *kind.MaxItems:
		return size("entries", k.Got, k.Want, false)
	case *kind.MinLength:
		return size("characters", k.Got, k.Want, true)
	case *kind.MaxLength:
		return size("characters", k.Got, k.Want, false)
	case *kind.Minimum:
		return amount("at least", k.Want)
	case *kind.Maximum:
		return amount("at most", k.Want)
	case *kind.ExclusiveMinimum:
		return amount("more than", k.Want)
	case *kind.ExclusiveMaximum:
		return amount("less than", k.Want)
	case *kind.MultipleOf:
		return problem{message: "the number does not fit", fix: "a multiple of " + decimal(k.Want)}
	}
	return problem{message: "does not satisfy " + strings.Join(e.KeywordPath(), "/")}
}

func decimal(r *big.Rat) string {
	if r == nil {
		return "what the schema says"
	}
	if r.IsInt() {
		return clip(r.Num().String())
	}
	return clip(strings.TrimRight(r.FloatString(20), "0"))
}

// kindProblem says which kinds are wanted.
func kindProblem(where []string, wants []string) problem {
	names := map[string]string{"string": "a text", "number": "a number", "integer": "an integer", "boolean": "true or false", "object": "an object", "array": "a list", "null": "null"}
	var list []string
	seen := map[string]bool{}
	for _, w := range wants {
		if name := names[w]; name != "" && !seen[w] {
			list, seen[w] = append(list, name), true
		}
	}
	return problem{where: where, message: "is not " + strings.Join(list, " or "), fix: "give " + strings.Join(list, " or "), wants: wants}
}

func oneOf(k *kind.Enum) problem {
	var list []string
	for _, v := range k.Want {
		list = append(list, plainValue(v))
	}
	if got, ok := k.Got.(string); ok {
		return problem{message: "is not one of the values that are allowed", fix: suggestValue(got, list)}
	}
	return problem{message: "is not one of the values that are allowed", fix: suggest("", list)}
}

// suggestValue suggests like suggest, and lists the values beside.
func suggestValue(got string, list []string) string {
	hint := suggest(got, list)
	if strings.HasPrefix(hint, "did you") && len(list) <= 12 {
		hint += " one of " + strings.Join(list, ", ")
	}
	return hint
}

// plainValue writes a value of the schema.
func plainValue(v any) string {
	switch v := v.(type) {
	case string:
		return clip(v)
	case map[string]any, []any:
		return "what the schema says"
	case nil:
		return "null"
	}
	return clip(fmt.Sprint(v))
}

func (x explainer) pattern(e *jsonschema.ValidationError, k *kind.Pattern) problem {
	p := problem{message: "does not have the form that is wanted", fix: "a text that matches " + clip(k.Want)}
	if k.Want == `\{\{` {
		p.fix = "a template"
	}
	if object, ok := x.schemaOf(e).(map[string]any); ok {
		if examples, ok := object["examples"].([]any); ok && len(examples) > 0 {
			var list []string
			for _, one := range examples[:min(len(examples), 3)] {
				list = append(list, plainValue(one))
			}
			p.fix = "such as " + strings.Join(list, ", ")
		}
	}
	return p
}

// not tells the one use of not that is common: members that exclude each
// other.
func (x explainer) not(e *jsonschema.ValidationError) problem {
	if object, ok := x.schemaOf(e).(map[string]any); ok {
		inner, _ := object["not"].(map[string]any)
		if list, ok := inner["required"].([]any); ok {
			var names []string
			for _, one := range list {
				names = append(names, plainValue(one))
			}
			return problem{message: strings.Join(names, " and ") + " exclude each other", fix: "give one of them"}
		}
	}
	return problem{message: "has a form that is not allowed"}
}
