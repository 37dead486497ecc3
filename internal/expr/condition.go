package expr

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
)

// Bounds of a condition.
const (
	maxCondition  = 10_000    // characters of source
	maxCost       = 2_000_000 // CEL's units: about a second of work
	interruptFreq = 100       // steps of a loop between looks at the context
)

// Condition is a CEL expression, ready to be evaluated. It is immutable and
// safe for concurrent use.
type Condition struct {
	source  string
	program cel.Program
	refs    []Ref
	uses    []use
}

// CompileCondition reads a CEL expression. Errors are an [*Error] with the
// column; its pointer is "". It takes well under a millisecond.
func CompileCondition(source string) (*Condition, error) {
	c, err := compileCondition(source)
	if err != nil {
		return nil, err
	}
	return c, nil
}

func compileCondition(source string) (c *Condition, bad *Error) {
	if strings.TrimSpace(source) == "" {
		return nil, &Error{Message: "a condition is empty", Fix: "CEL, such as input.n > 3"}
	}
	if len(source) > maxCondition {
		return nil, &Error{Message: "a condition is too long", Fix: fmt.Sprintf("at most %d characters", maxCondition)}
	}
	defer func() { // their parser is large, and the text is anybody's
		if p := recover(); p != nil {
			c, bad = nil, &Error{Message: "the condition cannot be read"}
		}
	}()
	env, err := environment()
	if err != nil {
		return nil, &Error{Message: "conditions cannot be read"}
	}
	tree, issues := env.Compile(source)
	if issues.Err() != nil {
		return nil, syntaxError(source, issues)
	}
	found := tracer{}
	found.visit(tree.NativeRep().Expr(), nil)
	if err := found.check(); err != nil {
		return nil, err
	}
	program, err := env.Program(tree, cel.CostLimit(maxCost), cel.CostTracking(costs{}), cel.InterruptCheckFrequency(interruptFreq))
	if err != nil {
		return nil, &Error{Message: "the condition cannot be prepared"}
	}
	return &Condition{source: source, program: program, refs: found.refs(), uses: found.uses}, nil
}

func environment() (*cel.Env, error) {
	options := []cel.EnvOption{
		cel.OptionalTypes(),
		cel.CrossTypeNumericComparisons(true),
		cel.DefaultUTCTimeZone(true),
		cel.ParserRecursionLimit(maxDepth),
		cel.ParserExpressionSizeLimit(maxCondition),
		cel.ParserErrorRecoveryLimit(3),
	}
	for _, root := range Roots() {
		options = append(options, cel.Variable(root, cel.DynType))
	}
	return cel.NewEnv(append(options, functions()...)...)
}

// Refs gives every use of a name of the scope.
func (c *Condition) Refs() []Ref { return append([]Ref(nil), c.refs...) }

// Bool evaluates a condition that gives true or false; anything else is an
// [*Error].
func (c *Condition) Bool(ctx context.Context, scope Scope) (bool, error) {
	v, err := c.eval(ctx, scope)
	if err != nil {
		return false, err
	}
	b, ok := v.(types.Bool)
	if !ok {
		return false, &Error{Message: fmt.Sprintf("the condition gives %s, not true or false", typeOf(v)), Fix: "compare it with something, or has(...)"}
	}
	return bool(b), nil
}

// Value evaluates to decoded JSON with [json.Number]: times and durations
// become texts, bytes base64. It must not be changed. Errors are an [*Error].
func (c *Condition) Value(ctx context.Context, scope Scope) (any, error) {
	left := maxResult
	v, err := c.value(ctx, scope, &left)
	if err != nil {
		return nil, err
	}
	return v, nil
}

func (c *Condition) value(ctx context.Context, scope Scope, left *int) (any, *Error) {
	v, err := c.eval(ctx, scope)
	if err != nil {
		return nil, err
	}
	return native(v, left, 0)
}

func (c *Condition) eval(ctx context.Context, scope Scope) (v ref.Val, bad *Error) {
	defer func() {
		if p := recover(); p != nil {
			v, bad = nil, &Error{Message: "the condition cannot be evaluated"}
		}
	}()
	out, _, err := c.program.ContextEval(ctx, map[string]any(scope))
	if err != nil {
		return nil, c.explain(ctx, scope, err)
	}
	return out, nil
}

// explain turns CEL's error into ours. CEL names a missing key without its
// path, so the paths that the source names are looked up again. Few of its
// texts are passed on: a failed conversion shows the value.
func (c *Condition) explain(ctx context.Context, scope Scope, err error) *Error {
	text := err.Error()
	switch {
	case ctx.Err() != nil || strings.Contains(text, "operation interrupted"):
		return &Error{Message: "the condition was stopped before it had an answer"}
	case strings.Contains(text, "cost limit exceeded"):
		return &Error{Message: "the condition takes too much work", Fix: "look at fewer entries, or use a code step"}
	}
	_, key, named := strings.Cut(text, "no such key: ")
	for _, u := range c.uses {
		if u.test {
			continue
		}
		miss := u.path.misses(scope)
		if miss >= 0 && (!named || u.path[miss].name == key) {
			_, e := u.path.resolve(scope)
			return e
		}
	}
	switch {
	case named:
		return &Error{Message: "a key that the condition computes or reaches in a loop is missing", Fix: "test it with has(...) or in"}
	case strings.Contains(text, "no such overload"):
		return &Error{Message: "an operator or function of the condition got a kind of value that it does not take",
			Fix: "both sides of + - * / must be of one kind: int(x), double(x), string(x)"}
	}
	return &Error{Message: "the condition cannot be evaluated" + harmless(text)}
}

// harmless gives the texts of CEL that hold no value, after a colon.
func harmless(text string) string {
	for _, known := range []string{"division by zero", "modulus by zero", "overflow", "type conversion error from '", "a text grows over",
		"index out of bounds", "no such attribute"} {
		if strings.Contains(text, known) && !strings.ContainsAny(text, "\"`") {
			return ": " + cut(text)
		}
	}
	switch {
	case strings.Contains(text, "error parsing regexp"):
		return ": a pattern is no regular expression"
	case strings.Contains(text, "RFC 3339"):
		return ": a text is no instant such as 2026-01-02T03:04:05Z"
	}
	return ""
}

// misses gives the segment at which the path ends too early, or -1.
func (p path) misses(scope Scope) int {
	for i := range p {
		if _, err := p[:i+1].resolve(scope); err != nil {
			return i
		}
	}
	return -1
}

// syntaxError tells the first of CEL's issues with its column.
func syntaxError(source string, issues *cel.Issues) *Error {
	e := &Error{Message: "the condition is not valid CEL"}
	if all := issues.Errors(); len(all) > 0 {
		first := all[0]
		text := strings.ReplaceAll(first.Message, " (in container '')", "")
		text = strings.TrimPrefix(text, "Syntax error: ")
		text, _, _ = strings.Cut(text, " expecting ")
		text = strings.TrimSuffix(text, ",")
		if strings.Contains(text, "<EOF>") {
			text = "it ends too early"
		}
		place := fmt.Sprintf("column %d", first.Location.Column()+1)
		if strings.Contains(source, "\n") {
			place = fmt.Sprintf("line %d, %s", first.Location.Line(), place)
		}
		e.Message = fmt.Sprintf("not valid CEL at %s: %s", place, cut(text))
	}
	number := regexp.MustCompile(`\bsteps\.([0-9]+)`)
	hyphen := regexp.MustCompile(`\bsteps\.([A-Za-z_][A-Za-z0-9_]*(-[A-Za-z0-9_]+)+)`)
	switch {
	case strings.Contains(source, "{{"):
		e.Fix = "a condition names values without braces: input.n > 3"
	case number.MatchString(source):
		e.Fix = fmt.Sprintf(`in a condition an index stands in quotes: steps["%s"].output`, number.FindStringSubmatch(source)[1])
	case hyphen.MatchString(source):
		e.Fix = fmt.Sprintf(`in a condition a name with a hyphen stands in quotes: steps["%s"].output`, hyphen.FindStringSubmatch(source)[1])
	case strings.Contains(e.Message, "undeclared reference"):
		e.Fix = "names are " + strings.Join(Roots(), ", ") + "; texts stand in quotes"
	case regexp.MustCompile(`(^|[^=!<>])=([^=]|$)`).MatchString(source):
		e.Fix = "equality is =="
	default:
		e.Fix = "CEL, such as input.n > 3 && has(input.lang)"
	}
	return e
}
