package definition_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/longstop-dev/longstop/internal/definition"
	"github.com/longstop-dev/longstop/internal/flow"
)

func outlineTypes() []flow.StepType {
	var out []flow.StepType
	for _, name := range []string{"http_request", "transform", "conditional", "human_approval", "wait", "mcp_call", "code"} {
		out = append(out, flow.StepType{Name: name})
	}
	return out
}

const goodDescription = `# Nightly sync

Brings the users over. A call that fails is retried twice.

## Input

- userId: the user's number

## Steps

1. GET https://api.example.com/users/{{ input.userId }} with the token in secrets.api
2. Rename the members: userId becomes id
3. If the user is a VIP, POST it to https://crm.example.com/vips with its id as JSON, otherwise do nothing
4. Wait 10 minutes
5. Ask a person to approve, within 2 days
6. Call the tool ` + "`notify` of `chat`" + `
`

func TestPrevalidate(t *testing.T) {
	t.Parallel()
	o := definition.Prevalidate(goodDescription, outlineTypes())
	if !o.Ready || o.Name != "nightly-sync" || len(o.Missing) > 0 || len(o.Ask) > 0 {
		t.Errorf("a whole description: got %+v", o)
	}
	var types []string
	for _, s := range o.Steps {
		types = append(types, s.Type)
	}
	if got := strings.Join(types, " "); got != "http_request transform conditional wait human_approval mcp_call" {
		t.Errorf("types: got %s", got)
	}
	if s := o.Steps[0]; s.Line != 11 || !strings.HasPrefix(s.Title, "GET https://api.example.com") {
		t.Errorf("first step: got %+v", s)
	}
}

func TestPrevalidateSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	step := func(text string) string { return "# Sync\n\nFailures are retried.\n\n1. " + text + "\n" }
	for name, tc := range map[string]struct{ markdown, want string }{ // "field@line" of all that is missing, then of what is asked
		"nothing":                 {"", "description@0 /"},
		"no name":                 {"1. Wait 5 minutes, errors are fine\n", "name@1 /"},
		"no steps":                {"# Sync\n\nIt syncs.\n", "steps@0 /"},
		"only prose below Steps":  {"# Sync\n\n## Steps\n\nIt syncs.\n", "steps@0 /"},
		"no address":              {step("Fetch the user"), "steps[0].url@5 /"},
		"not https":               {step("GET http://api.example.com/"), "/ steps[0].url@5"},
		"no method":               {step("Send the user to the API at https://api.example.com"), "/ steps[0].method@5"},
		"no body":                 {step("POST to https://api.example.com"), "/ steps[0].body@5"},
		"no secret":               {step("GET https://api.example.com using an API key"), "steps[0].secrets@5 /"},
		"a secret in the clear":   {step("GET https://api.example.com, the secret is sk-live-0123456789abcdef"), "secrets@5 /"},
		"no tool":                 {step("Call the tool for notices"), "steps[0].tool@5 /"},
		"no time":                 {step("Wait a bit"), "steps[0].for@5 /"},
		"no other case":           {step("If it is a VIP, stop"), "/ steps[0].else@5"},
		"no deadline":             {step("The boss approves it"), "/ steps[0].deadline@5"},
		"no kind":                 {step("Think about it"), "steps[0].type@5 /"},
		"left open":               {step("Wait 5 minutes TODO"), "description@5 /"},
		"a placeholder":           {step("GET https://api.example.com/<your path>"), "description@5 /"},
		"an input nobody knows":   {step("Wait until {{ input.day }}"), "input.day@5 /"},
		"a schedule":              {step("Wait 5 minutes, every night"), "/ schedule@5"},
		"nothing about failures":  {"# Sync\n\n1. Wait 5 minutes\n", "/ retry@0"},
		"a plan":                  {step("Wait 5 minutes") + "\n```yaml\nname: x\nsteps:\n  - {type: wait}\n```\n", "/ description@0"},
		"numbers in a fence":      {"# Sync\n\n```\n1. Wait\n```\n", "steps@0 /"},
		"steps as headings":       {"# Sync\n\nRetries: none.\n\n## Steps\n\n### Wait 5 minutes\n\n- quietly\n\n### Think\n\n## Notes\n\n1. Fetch\n", "steps[1].type@11 /"},
		"steps as a list":         {"# Sync\n\nRetries: none.\n\n## Steps\n\n- Wait 5 minutes\n- Think\n", "steps[1].type@8 /"},
		"a type that is named":    {step("human_approval: the boss, within 2 days"), "/"},
		"more than can be looked": {"# Sync\n\nRetried.\n\n" + strings.Repeat("1. Wait 5 minutes\n", 201), "steps@205 /"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := definition.Prevalidate(tc.markdown, outlineTypes())
			if got := places(o.Missing) + "/" + strings.TrimRight(" "+places(o.Ask), " "); got != tc.want {
				t.Errorf("got %q, want %q: %+v", got, tc.want, o)
			}
			if o.Ready != (len(o.Missing) == 0) {
				t.Errorf("ready: got %t with %d missing", o.Ready, len(o.Missing))
			}
			for _, p := range append(o.Missing, o.Ask...) {
				if p.Message == "" || p.Fix == "" {
					t.Errorf("%+v says not what is wrong and what would be right", p)
				}
			}
		})
	}
}

func places(list []flow.Problem) string {
	out := ""
	for _, p := range list {
		out += fmt.Sprintf("%s@%d ", p.Field, p.Line)
	}
	return out
}

func FuzzPrevalidate(f *testing.F) {
	f.Add(goodDescription)
	f.Add("# \n\n## Steps\n- x\n```\n1.")
	f.Fuzz(func(t *testing.T, markdown string) {
		o := definition.Prevalidate(markdown, outlineTypes())
		if o.Ready && (o.Name == "" || len(o.Steps) == 0) {
			t.Errorf("ready without a name or a step: %+v", o)
		}
	})
}
