package mcp

import (
	"bytes"
	"context"
	_ "embed" // the texts
	"encoding/json"
	"fmt"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/longstop-dev/longstop/internal/flow"
)

// introduceText and compileText are the prompts; {{types}}, {{schema}},
// {{examples}} and {{description}} stand for what is read when they are asked
// for.
//
//go:embed prompts/introduce.md
var introduceText string

//go:embed prompts/compile.md
var compileText string

// maxDescription bounds what a plan is made of.
const maxDescription = 64 << 10

func (o *offer) offerPrompts() {
	if o.c.Workflows == nil {
		return
	}
	o.prompt(&sdk.Prompt{Name: "introduce", Title: "What Longstop is and how its plans are written",
		Description: "Explains workflows, steps, templates and recovery, with the step types that this server has."},
		func(ctx context.Context, by flow.Caller, _ map[string]string) (string, error) {
			types, err := o.typesText(ctx, by, false)
			return strings.ReplaceAll(introduceText, "{{types}}", types), err
		})
	o.prompt(&sdk.Prompt{Name: "compile", Title: "Make a plan out of a description",
		Description: "Guides a model from a description in markdown to a valid plan.",
		Arguments:   []*sdk.PromptArgument{{Name: "description", Title: "Description", Description: "What the workflow should do, in markdown.", Required: true}}},
		o.compile)
}

func (o *offer) prompt(p *sdk.Prompt, text func(context.Context, flow.Caller, map[string]string) (string, error)) {
	op, ok := o.may("workflows.schema")
	if !ok {
		return
	}
	o.server.AddPrompt(p, func(ctx context.Context, r *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
		out, err := o.run(ctx, r.Extra, op, func(ctx context.Context, by flow.Caller) (any, error) { return text(ctx, by, r.Params.Arguments) })
		if err != nil {
			return nil, refusal(err)
		}
		return &sdk.GetPromptResult{Description: p.Description, Messages: []*sdk.PromptMessage{{Role: "user", Content: &sdk.TextContent{Text: out.(string)}}}}, nil
	})
}

func (o *offer) compile(ctx context.Context, by flow.Caller, in map[string]string) (string, error) {
	description := strings.TrimSpace(in["description"])
	switch {
	case description == "":
		return "", flow.Errorf(flow.CodeInvalid, "there is nothing to make a plan of").At("description").Right("send what the workflow should do, in markdown")
	case len(description) > maxDescription:
		return "", flow.Errorf(flow.CodeTooLarge, "the description is too long").At("description").Right("send at most 64 KiB")
	}
	types, err := o.typesText(ctx, by, true)
	if err != nil {
		return "", err
	}
	schema, err := o.c.Workflows.DefinitionSchema(ctx, by, nil)
	if err != nil {
		return "", err
	}
	list, err := examples()
	if err != nil {
		return "", err
	}
	var plans strings.Builder
	for _, e := range list.Items {
		fmt.Fprintf(&plans, "```yaml\n%s\n```\n\n", strings.TrimSpace(e.Plan))
	}
	// In one pass: what was sent is never read as a placeholder.
	return strings.NewReplacer("{{types}}", types, "{{schema}}", string(*schema), "{{examples}}", strings.TrimSpace(plans.String()),
		"{{description}}", fenced(description)).Replace(compileText), nil
}

// fenced puts text into a fence that it does not hold itself.
func fenced(text string) string {
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fence + "markdown\n" + text + "\n" + fence
}

// typesText lists the step types, with the schemas of their config if whole.
func (o *offer) typesText(ctx context.Context, by flow.Caller, whole bool) (string, error) {
	types, err := o.c.Workflows.StepTypes(ctx, by, nil)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, t := range types.Items {
		fmt.Fprintf(&b, "- `%s`: %s", t.Name, t.Summary)
		if len(t.Nested) > 0 {
			fmt.Fprintf(&b, " Holds lists of steps: %s.", strings.Join(t.Nested, ", "))
		}
		b.WriteByte('\n')
		if !whole {
			continue
		}
		var config bytes.Buffer
		if err := json.Compact(&config, t.Config); err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "  config: `%s`\n", config.String())
	}
	return strings.TrimSpace(b.String()), nil
}
